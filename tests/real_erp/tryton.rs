//! A real Tryton in a process of its own, on a copy of the database that `tests/tools/need-tryton.sh` made, and the tests' own
//! look into that database.

use std::cell::RefCell;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::{Connection, SqliteConnection};
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::database::sqlite_rows;
use crate::harness::ports::free_port;
use crate::harness::raw::RawConnection;
use crate::harness::wait::until;

const SERVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/tryton/serve.py");
const MISSING: &str = "the ERP of the tests is not set up; `make test-erp` does that, and runs them";
/// A start takes two seconds on an idle machine; this is a limit for one that hangs.
const START_LIMIT: Duration = Duration::from_mins(1);
/// How long anything else may take that the ERP does.
const LIMIT: Duration = Duration::from_secs(30);

/// The ERP of one test. Its process is killed and reaped with this value, so a test that panics leaves none behind.
pub struct Tryton {
    home: TempDir,
    port: u16,
    key: Value,
    server: RefCell<Option<Child>>,
}

impl Tryton {
    /// A Tryton with the master data of a small company, and no sale. Returns when it answers.
    pub fn start() -> Self {
        let pristine = pristine();
        assert!(pristine.join("stamp").is_file(), "{MISSING}");
        let home = tempfile::Builder::new().prefix("orders-tryton-").tempdir().expect("a directory for the ERP");
        fs::copy(pristine.join("erp.sqlite"), home.path().join("erp.sqlite")).expect("the database can be copied");
        let configuration = format!("[database]\nuri = sqlite://\npath = {}\nlist = False\n", home.path().display());
        fs::write(home.path().join("trytond.conf"), configuration).expect("the directory is ours");
        let key = fs::read_to_string(pristine.join("key.json")).expect("the script wrote it");
        let key = serde_json::from_str(&key).expect("the script wrote JSON");
        let tryton = Self { home, port: free_port(), key, server: RefCell::default() };
        tryton.resume();
        tryton
    }

    /// Ends it at once, as a power cut does to a process (SIGKILL).
    pub fn kill(&self) {
        let mut server = self.server.take().expect("it runs");
        server.kill().expect("the process is ours");
        server.wait().expect("the process is ours");
    }

    /// Starts it again, at the same address and on what its database holds. Returns when it answers.
    pub fn resume(&self) {
        let log = File::options().create(true).append(true).open(self.log()).expect("the directory is ours");
        let server = Command::new(pristine().join("venv/bin/python"))
            .arg(SERVE)
            .arg(self.port.to_string())
            .env_clear()
            .env("TRYTOND_CONFIG", self.home.path().join("trytond.conf"))
            .env("TRYTOND_DATABASE_NAMES", "erp")
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a file handle can be doubled"))
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{MISSING}: {error}"));
        let before = self.server.replace(Some(server));
        assert!(before.is_none(), "it runs already");
        until(START_LIMIT, "the ERP is ready or has ended", || self.has_ended() || self.is_ready());
        assert!(!self.has_ended(), "the ERP ended at its start:\n{}", self.said());
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// The key of a user who may sell.
    pub fn bearer(&self) -> &str {
        self.key["bearer"].as_str().expect("the key is text")
    }

    /// The id of the web shop whose sales the orders become.
    pub fn web_shop(&self) -> u32 {
        self.key["web_shop"].as_u64().and_then(|id| id.try_into().ok()).expect("the id is a number")
    }

    /// The rows of a query on its database, each an object with the columns as its members.
    pub fn rows(&self, query: &str) -> Vec<Value> {
        sqlite_rows(&mut self.open(), query).unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// How many rows a table, or a table and a condition, has.
    pub fn count(&self, what: &str) -> usize {
        let rows = self.rows(&format!("SELECT count(*) AS found FROM {what}"));
        rows[0]["found"].as_u64().and_then(|count| count.try_into().ok()).expect("count(*) is an integer")
    }

    /// The references of its sales, each as often as there is a sale of it.
    pub fn references(&self) -> Vec<String> {
        let rows = self.rows("SELECT web_id FROM sale_sale ORDER BY web_id");
        rows.iter().map(|row| row["web_id"].as_str().expect("every sale is of the web shop").to_owned()).collect()
    }

    /// Runs statements past it, to set a scene or to break something.
    pub fn execute(&self, statements: &str) {
        self.open().batch_execute(statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
    }

    /// Takes the lock that every write needs, until the value that this returns is gone.
    pub fn lock(&self) -> Lock {
        let mut connection = self.open();
        connection.batch_execute("BEGIN IMMEDIATE").expect("the lock comes free");
        Lock { _connection: connection }
    }

    /// Waits until a transaction of its own holds that lock.
    pub fn until_it_writes(&self) {
        let mut connection = self.open();
        until(LIMIT, "the ERP writes", || {
            connection.batch_execute("PRAGMA busy_timeout = 0; BEGIN IMMEDIATE; ROLLBACK").is_err()
        });
    }

    /// Waits until a table, or a table and a condition, has so many rows.
    pub fn until(&self, what: &str, count: usize) {
        until(LIMIT, &format!("the ERP has {count} of {what}"), || self.count(what) >= count);
    }

    fn open(&self) -> SqliteConnection {
        let file = self.home.path().join("erp.sqlite");
        let mut connection = SqliteConnection::establish(&file.to_string_lossy()).expect("the file opens");
        connection.batch_execute("PRAGMA busy_timeout = 20000").expect("SQLite knows this setting");
        connection
    }

    fn has_ended(&self) -> bool {
        let mut server = self.server.borrow_mut();
        server.as_mut().is_none_or(|server| server.try_wait().expect("the process is ours").is_some())
    }

    fn is_ready(&self) -> bool {
        // Until it listens, a connection is refused; that is an answer too, and not a failure of the test.
        if TcpStream::connect(self.address()).is_err() {
            return false;
        }
        let mut connection = RawConnection::open(self.address());
        let (shop, bearer) = (self.web_shop(), self.bearer());
        let question = format!(
            "GET /erp/rest/model/web.shop/{shop}?f=name HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {bearer}\r\n\
             Connection: close\r\n\r\n"
        );
        connection.send(question.as_bytes());
        connection.answer().status == Some(200)
    }

    fn log(&self) -> PathBuf {
        self.home.path().join("log")
    }

    fn said(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_else(|error| error.to_string())
    }
}

impl Drop for Tryton {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            // Both fail only where it has ended and was reaped already, which is what is wanted.
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

/// The lock of Tryton's database, held. It comes free with this value.
pub struct Lock {
    _connection: SqliteConnection,
}

/// Where the script keeps what it has set up: beside the directory that Cargo gives the tests.
fn pristine() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("tryton")
}
