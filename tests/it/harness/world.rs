//! The world of one test: its database, the service running on it, and who calls the service.
//!
//! The service is the `App` that production runs, in this process, on a free port. `on_both_databases!` makes a test
//! of each body on each database; the service is stopped in order and the database removed when the body ends,
//! by a panic too.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::rt::task::JoinHandle;
use futures_util::FutureExt;
use order_service::api_key;
use order_service::app::{App, StartError};
use order_service::db::{Db, OpenError};
use serde_json::Value;

use super::database::{Database, Dialect};
use super::http::Caller;
use super::process::Process;
use super::raw::RawConnection;
use super::settings::config;
use super::wait::eventually;

/// A test that takes longer hangs, and fails with its name instead of holding up everything.
const LIMIT: Duration = Duration::from_mins(2);

/// How long a stopped service may take to end its threads, on a busy machine.
const RESTART_LIMIT: Duration = Duration::from_secs(20);

/// The tenant and the client of `World::shop`, and the scopes of its key.
pub const TENANT: &str = "acme";
/// See [`TENANT`].
pub const CLIENT: &str = "shop";
/// See [`TENANT`].
pub const SCOPES: &[&str] = &["orders:write", "orders:read"];

/// Makes two tests of each body: `<name>::sqlite` and `<name>::postgres`.
macro_rules! on_both_databases {
    ($($(#[$attribute:meta])* async fn $name:ident($world:ident: $kind:ty) $body:block)+) => {$(
        $(#[$attribute])*
        mod $name {
            use super::*;

            async fn body($world: $kind) $body

            #[test]
            fn sqlite() {
                $crate::harness::world::prove($crate::harness::database::Dialect::Sqlite, body);
            }

            #[test]
            fn postgres() {
                $crate::harness::world::prove($crate::harness::database::Dialect::Postgres, body);
            }
        }
    )+};
}
pub(crate) use on_both_databases;

/// Makes a test of each body that only PostgreSQL can prove, because it takes a rival that holds one row: `<name>::postgres`.
macro_rules! on_postgres {
    ($($(#[$attribute:meta])* async fn $name:ident($world:ident: $kind:ty) $body:block)+) => {$(
        $(#[$attribute])*
        mod $name {
            use super::*;

            async fn body($world: $kind) $body

            #[test]
            fn postgres() {
                $crate::harness::world::prove($crate::harness::database::Dialect::Postgres, body);
            }
        }
    )+};
}
pub(crate) use on_postgres;

/// What a test body is given.
pub struct World {
    stage: Rc<Stage>,
}

/// What outlives the test body, so that it can be cleared after a panic.
struct Stage {
    database: Database,
    apps: RefCell<Vec<Running>>,
}

/// A service in this process.
struct Running {
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    stop: ServerHandle,
    task: JoinHandle<std::io::Result<()>>,
}

/// Runs a test body in a world of its own, and clears it whatever the outcome.
pub fn prove<F: Future<Output = ()>>(dialect: Dialect, body: impl FnOnce(World) -> F) {
    prove_within(LIMIT, dialect, body);
}

/// As [`prove`], for a body that has more to do than others.
pub fn prove_within<F: Future<Output = ()>>(limit: Duration, dialect: Dialect, body: impl FnOnce(World) -> F) {
    actix_web::rt::System::new().block_on(async {
        let stage = Rc::new(Stage { database: Database::migrated(dialect), apps: RefCell::default() });
        let test = async {
            stage.run(stage.build(&[])).await;
            body(World { stage: Rc::clone(&stage) }).await;
        };
        let outcome = AssertUnwindSafe(tokio::time::timeout(limit, test)).catch_unwind().await;
        stage.stop_all().await;
        match outcome {
            Ok(ended) => ended.unwrap_or_else(|_| panic!("the test did not end within {limit:?}")),
            Err(panic) => resume_unwind(panic),
        }
    });
}

impl World {
    /// Which database this is.
    pub fn dialect(&self) -> Dialect {
        self.stage.database.dialect()
    }

    /// The database, for rows and for statements past the service.
    pub fn database(&self) -> &Database {
        &self.stage.database
    }

    /// How many rows a table has.
    pub fn count(&self, table: &str) -> i64 {
        self.database().count(table)
    }

    /// The rows of a query, each an object with the columns as its members.
    pub fn rows(&self, query: &str) -> Vec<Value> {
        self.database().rows(query)
    }

    /// Where the service listens; of several, the one started last.
    pub fn address(&self) -> SocketAddr {
        self.stage.latest(|app| app.address)
    }

    /// Where its metrics are, when the test asked for them by `ORDERS_METRICS_BIND`.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.stage.latest(|app| app.metrics_address)
    }

    /// Stops the service and starts it anew on the same database, with these settings on top of the tests' own.
    pub async fn restart(&self, settings: &[(&str, &str)]) {
        self.stage.stop_all().await;
        // The threads of the old service let go of a SQLite file a moment after it has said that it ended.
        let app = eventually(RESTART_LIMIT, "the old service to let go of its file", async || {
            match self.stage.build(settings) {
                Err(StartError::Open(OpenError::AlreadyServed(_))) => None,
                built => Some(built),
            }
        });
        self.stage.run(app.await).await;
    }

    /// Starts a further service on the same database, in this process. On SQLite that is refused; see the contract.
    pub async fn start_another(&self, settings: &[(&str, &str)]) -> SocketAddr {
        self.stage.run(self.stage.build(settings)).await;
        self.address()
    }

    /// Starts the real program on the same database, in a process of its own.
    pub fn process(&self, settings: &[(&str, &str)]) -> Process {
        Process::serve(self.database().url(), settings)
    }

    /// The usual client application: may write and read orders of the tenant `acme`.
    pub fn shop(&self) -> Caller {
        self.caller(TENANT, CLIENT, SCOPES)
    }

    /// A client application with a new API key. Tenant and client are made where they are missing.
    pub fn caller(&self, tenant: &str, client: &str, scopes: &[&str]) -> Caller {
        Caller::new(self.address(), Some(issue_api_key(self.database(), tenant, client, scopes)))
    }

    /// Someone without an API key.
    pub fn stranger(&self) -> Caller {
        Caller::new(self.address(), None)
    }

    /// A bare connection, for bytes that no HTTP client would send.
    pub fn raw(&self) -> RawConnection {
        RawConnection::open(self.address())
    }
}

impl Stage {
    fn build(&self, settings: &[(&str, &str)]) -> Result<App, StartError> {
        App::build(config(self.database.url(), settings))
    }

    async fn run(&self, built: Result<App, StartError>) {
        let app = built.unwrap_or_else(|error| panic!("the service starts: {error}"));
        let running = Running {
            address: app.address(),
            metrics_address: app.metrics_address(),
            stop: app.stop_handle(),
            task: actix_web::rt::spawn(app.run()),
        };
        let address = running.address;
        self.apps.borrow_mut().push(running);
        // A server of actix starts its threads when it is first polled: a test that blocks first would wait for ever.
        Caller::new(address, None).get("/readyz").await.expect(200);
    }

    async fn stop_all(&self) {
        let apps = self.apps.take();
        for app in apps {
            app.stop.stop(false).await;
            let ended = app.task.await.expect("the service does not panic");
            ended.expect("the service ends in order");
        }
    }

    fn latest<T>(&self, read: impl FnOnce(&Running) -> T) -> T {
        read(self.apps.borrow().last().expect("a service runs while its test does"))
    }
}

/// Issues an API key, and returns its only copy.
fn issue_api_key(database: &Database, tenant: &str, client: &str, scopes: &[&str]) -> String {
    let mut db = Db::open(&config(database.url(), &[]).database).expect("the database of the test takes connections");
    api_key::issue(&mut db, tenant, client, scopes).unwrap_or_else(|error| panic!("a key can be issued: {error}"))
}
