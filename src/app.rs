//! One build of the service, for production and for the tests alike: open the database, bind the addresses, run until told
//! to stop.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actix_cors::Cors;
use actix_web::dev::{Server, ServerHandle};
use actix_web::middleware::from_fn;
use actix_web::{HttpResponse, HttpServer, rt, web};
use tokio::sync::oneshot;

use crate::api::{self, State, trace, unread};
use crate::api_key::{self, KeyError, SCOPES};
use crate::config::{Config, CorsOrigins};
use crate::db::{self, Db, MigrateError, OpenError, Pools, Usage};
use crate::erp::{Failure, Gateway, Gateways, sandbox};
use crate::mail::{self, Mailers};
use crate::metrics::{Metrics, PoolConnections};
use crate::outbox::Channel;
use crate::outbox::connection::{self, Connection, Wanted};
use crate::relay::Relay;
use crate::retention::Cleaner;

mod relay_alone;

pub use relay_alone::RelayAlone;

/// Why the service did not start. Each displays as one line that names what to change.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The schema cannot be brought up to date.
    #[error("DATABASE_URL: {0}")]
    Migrate(#[from] MigrateError),
    /// The demo tenant cannot be made.
    #[error("ORDERS_DEMO: {0}")]
    Demo(#[from] KeyError),
    /// An address cannot be listened on.
    #[error("{setting}: cannot listen on {address}: {error}")]
    Bind {
        /// The setting that names the address.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
}

/// The service, ready to run: its database is open and its addresses are bound.
#[allow(missing_debug_implementations, reason = "servers of actix have no Debug")]
pub struct App {
    server: Server,
    metrics_server: Option<Server>,
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    demo_key: Option<String>,
    state: web::Data<State>,
    relay: Option<Arc<Relay>>,
    metrics: web::Data<Metrics>,
}

impl App {
    /// Opens and migrates the database, makes the demo tenant where that is wished, and binds the addresses.
    ///
    /// # Errors
    /// [`StartError`], displayed as one line.
    pub fn build(config: Config) -> Result<App, StartError> {
        let state = web::Data::new(State::open(config)?);
        db::migrate(&state.config.database)?;
        let metrics = web::Data::new(metrics_of(&state.pools));
        let relay = state.config.relay.then(|| {
            let pool = state.pools.writes.clone();
            Arc::new(Relay::new(&state.config, pool, metrics.clone().into_inner()))
        });
        let (server, address) = serve(state.config.bind, state.clone(), metrics.clone())?;
        let (metrics_server, metrics_address) =
            state.config.metrics_bind.map(|bind| serve_metrics(bind, metrics.clone())).transpose()?.unzip();
        // The last step: a key that is made and then not shown, because the start failed, would be lost.
        let demo_key = if state.config.demo { make_demo(&state.config)? } else { None };
        Ok(App { server, metrics_server, address, metrics_address, demo_key, state, relay, metrics })
    }

    /// The address of the API, with the port that was really taken.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the metrics, where they are on.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// The API key of the demo tenant, when this very start made it.
    #[must_use]
    pub fn demo_key(&self) -> Option<&str> {
        self.demo_key.as_deref()
    }

    /// A handle to stop the service with from elsewhere: `stop(true)` lets requests in flight finish.
    #[must_use]
    pub fn stop_handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Serves until SIGTERM, SIGINT or the handle says stop; requests in flight finish first.
    ///
    /// # Errors
    /// An error of the system while serving.
    pub async fn run(self) -> io::Result<()> {
        let watching = rt::spawn(self.state.watch.clone().run(self.state.pools.reads.clone()));
        let forgetting = rt::spawn(forget_idle_clients(self.state.clone()));
        let cleaning = start_cleaner(&self.state, self.metrics.into_inner());
        let metrics = self.metrics_server.map(|server| (server.handle(), rt::spawn(server)));
        let relaying = self.relay.map(Relaying::start);
        let result = self.server.await;
        if let Some(relaying) = relaying {
            relaying.stop(self.state.config.drain).await;
        }
        watching.abort();
        forgetting.abort();
        // It can be stopped anywhere: a batch that has begun still commits, or is undone with the process.
        cleaning.inspect(rt::task::JoinHandle::abort);
        if let Some((handle, serving)) = metrics {
            handle.stop(false).await;
            serving.await.map_err(io::Error::other)??;
        }
        result
    }
}

async fn stop_signal() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Asks the other side of a connection whether it is there and lets us in.
///
/// # Errors
/// What is wrong, in words.
pub async fn ping(
    config: &Config,
    (channel, connection): (Channel, &Connection),
    now: db::Instant,
) -> Result<String, Failure> {
    match channel {
        Channel::Erp => gateway(config, connection)?.ping(now).await,
        Channel::Mail => mailers(config).open(connection)?.ping(config.erp_timeout).await,
    }
}

/// The way to the ERP of a connection.
///
/// # Errors
/// What is wrong with the connection, in words.
pub fn gateway(config: &Config, connection: &Connection) -> Result<Box<dyn Gateway>, Failure> {
    gateways(config).open(connection)
}

/// Checks a connection before it is written down, without asking the other side.
///
/// # Errors
/// What is wrong, in words.
pub fn check_connection(
    config: &Config,
    (tenant_id, channel): (&str, Channel),
    wanted: &Wanted<'_>,
) -> Result<(), Failure> {
    let connection = Connection {
        tenant_id: tenant_id.to_owned(),
        channel: channel.as_str().to_owned(),
        kind: wanted.kind.to_owned(),
        url: wanted.url.map(str::to_owned),
        secret_name: wanted.secret_name.map(str::to_owned),
        options: wanted.options.to_owned(),
        failures: 0,
        paused_until: None,
        pause_reason: None,
        created_at: db::Instant::default(),
    };
    match channel {
        Channel::Erp => gateways(config).open(&connection).map(drop),
        Channel::Mail => mailers(config).open(&connection).map(drop),
    }
}

fn mailers(config: &Config) -> Mailers {
    Mailers::new(config.secrets.clone(), config.erp_allow_private)
}

fn gateways(config: &Config) -> Gateways {
    Gateways::new(config.secrets.clone(), config.erp_timeout, config.erp_allow_private)
}

/// The relay of this process, at work.
struct Relaying {
    stop: oneshot::Sender<()>,
    task: rt::task::JoinHandle<()>,
}

impl Relaying {
    fn start(relay: Arc<Relay>) -> Relaying {
        let (stop, stopped) = oneshot::channel();
        // A sender that is gone says stop, too.
        let task = rt::spawn(relay.run(async move { drop(stopped.await) }));
        Relaying { stop, task }
    }

    /// Lets the attempts under way end. One that takes longer is cut off: its outcome is then unknown, and the next relay looks.
    async fn stop(self, patience: Duration) {
        drop(self.stop);
        let task = self.task.abort_handle();
        if tokio::time::timeout(patience, self.task).await.is_err() {
            task.abort();
        }
    }
}

/// Keeps the memory of the rate limit as small as the number of clients that are at work.
async fn forget_idle_clients(state: web::Data<State>) {
    let mut minutes = rt::time::interval(Duration::from_mins(1));
    loop {
        minutes.tick().await;
        state.limit.forget_idle();
    }
}

/// Starts the cleaner, where it is on, with a connection of its own.
fn start_cleaner(state: &State, metrics: Arc<Metrics>) -> Option<rt::task::JoinHandle<()>> {
    let interval = state.config.cleaner_interval?;
    let cleaner = Cleaner::new(state.pools.beside(&state.config.database), state.config.cleaner_batch);
    Some(rt::spawn(cleaner.run(interval, metrics)))
}

fn serve(
    bind: SocketAddr,
    state: web::Data<State>,
    metrics: web::Data<Metrics>,
) -> Result<(Server, SocketAddr), StartError> {
    let (workers, drain) = (state.config.workers, state.config.drain);
    let server = HttpServer::new(move || {
        actix_web::App::new()
            .app_data(state.clone())
            .app_data(metrics.clone())
            .wrap(cors(&state.config.cors_origins))
            .wrap(from_fn(trace::middleware))
            .wrap(from_fn(unread::middleware))
            .configure(api::configure)
    })
    .workers(workers)
    .shutdown_timeout(whole_seconds(drain))
    .bind(bind)
    .map_err(|error| StartError::Bind { setting: "ORDERS_BIND", address: bind, error })?;
    let address = server.addrs()[0];
    Ok((server.run(), address))
}

/// A stop that should wait for less than a second waits for one; for nothing, it waits for nothing.
fn whole_seconds(drain: Duration) -> u64 {
    drain.as_secs() + u64::from(drain.subsec_nanos() > 0)
}

fn serve_metrics(bind: SocketAddr, metrics: web::Data<Metrics>) -> Result<(Server, SocketAddr), StartError> {
    let server = HttpServer::new(move || {
        actix_web::App::new().app_data(metrics.clone()).route("/metrics", web::get().to(metrics_page))
    })
    .workers(1)
    .disable_signals()
    .bind(bind)
    .map_err(|error| StartError::Bind { setting: "ORDERS_METRICS_BIND", address: bind, error })?;
    let address = server.addrs()[0];
    Ok((server.run(), address))
}

async fn metrics_page(metrics: web::Data<Metrics>) -> HttpResponse {
    HttpResponse::Ok().content_type(Metrics::CONTENT_TYPE).body(metrics.render())
}

fn metrics_of(pools: &Pools) -> Metrics {
    let pools = pools.clone();
    Metrics::new(move || connections_of(pools.usage()))
}

fn connections_of(usage: Usage) -> PoolConnections {
    PoolConnections { idle: usage.idle, in_use: usage.open - usage.idle, max: usage.max }
}

/// Browsers may send the headers of the contract, and scripts may read those that clients need. Credentials are never
/// implied: every call carries its API key.
fn cors(origins: &CorsOrigins) -> Cors {
    let cors = Cors::default()
        .allowed_methods(["GET", "HEAD", "POST", "PUT"])
        .allowed_headers([
            "authorization",
            "content-type",
            "idempotency-key",
            "if-match",
            "if-none-match",
            "prefer",
            "traceparent",
            "tracestate",
        ])
        .expose_headers([
            "etag",
            "idempotency-expires",
            "idempotency-key",
            "idempotent-replayed",
            "location",
            "preference-applied",
            "retry-after",
            "x-trace-id",
        ])
        .max_age(3600);
    match origins {
        CorsOrigins::Any => cors.allow_any_origin().send_wildcard(),
        CorsOrigins::These(origins) => origins.iter().fold(cors, |cors, origin| cors.allowed_origin(origin)),
    }
}

const DEMO_TENANT: &str = "demo";

/// On a database without tenants: makes the tenant `demo` with the client `shop` and the sandboxes for its ERP and its
/// mails, and returns the key. It may do all that a shop does; `operations:manage` is never given by default.
fn make_demo(config: &Config) -> Result<Option<String>, StartError> {
    let mut db = Db::open(&config.database)?;
    if !api_key::nobody_yet(&mut db).map_err(KeyError::from)? {
        return Ok(None);
    }
    let scopes: Vec<&str> = SCOPES.iter().map(|(name, _)| *name).filter(|name| *name != "operations:manage").collect();
    let key = api_key::issue(&mut db, DEMO_TENANT, "shop", &scopes)?;
    for (channel, kind) in [(Channel::Erp, sandbox::KIND), (Channel::Mail, mail::SANDBOX)] {
        let sandbox = Wanted { kind, url: None, secret_name: None, options: "{}" };
        connection::set(&mut db, DEMO_TENANT, channel, &sandbox).map_err(KeyError::from)?;
    }
    Ok(Some(key))
}
