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

use crate::api::{self, State, trace, unread};
use crate::api_key::{self, KeyError, SCOPES};
use crate::config::{Config, CorsOrigins};
use crate::db::{self, Db, MigrateError, OpenError, Pools};
use crate::metrics::{Metrics, PoolConnections};
use crate::retention::Cleaner;

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
        let (server, address) = serve(state.config.bind, state.clone(), metrics.clone())?;
        let (metrics_server, metrics_address) =
            state.config.metrics_bind.map(|bind| serve_metrics(bind, metrics.clone())).transpose()?.unzip();
        // The last step: a key that is made and then not shown, because the start failed, would be lost.
        let demo_key = if state.config.demo { make_demo(&state.config)? } else { None };
        Ok(App { server, metrics_server, address, metrics_address, demo_key, state, metrics })
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
        let result = self.server.await;
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
    Metrics::new(move || {
        let usage = pools.usage();
        PoolConnections { idle: usage.idle, in_use: usage.open - usage.idle, max: usage.max }
    })
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

/// On a database without tenants: makes the tenant `demo` with the client `shop`, and returns its key. The key may do all
/// that a shop does; `operations:manage` is never given by default.
fn make_demo(config: &Config) -> Result<Option<String>, StartError> {
    let mut db = Db::open(&config.database)?;
    if !api_key::nobody_yet(&mut db).map_err(KeyError::from)? {
        return Ok(None);
    }
    let scopes: Vec<&str> = SCOPES.iter().map(|(name, _)| *name).filter(|name| *name != "operations:manage").collect();
    Ok(Some(api_key::issue(&mut db, "demo", "shop", &scopes)?))
}
