//! Every setting, read once when the program starts: from `.env` and from the environment, which wins. Nothing else in
//! the crate reads the environment. The table of settings in `settings` is the only list of names and defaults; the
//! parsing here, the error texts and the test of `.env.example` all use it.

mod bad;
mod cors;
mod database;
#[cfg(feature = "deliberate-breaks")]
pub mod deliberate_break;
mod environment;
mod secrets;
mod settings;
mod value;

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

pub use bad::BadSetting;
pub use cors::CorsOrigins;
pub use database::DatabaseUrl;
pub use environment::refuse_unknown;
pub use secrets::Secrets;
pub use settings::{SETTINGS, Setting};

use settings as setting;

/// The prefix of the variables that hold secrets of connections. They are no settings: their names are free, and only
/// what bears this prefix can be named as the secret of a connection, so that no other variable can be sent out.
pub const SECRET_PREFIX: &str = "ORDERS_SECRET_";

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

/// All settings, parsed and checked. The meaning, the default and the limits of each are those of its row in [`SETTINGS`].
#[derive(Clone, Debug)]
pub struct Config {
    /// `DATABASE_URL`: where the orders are kept. Default `sqlite://data/orders.db`.
    pub database: DatabaseUrl,
    /// `ORDERS_BIND`: the address of the API. Default 127.0.0.1:8080; port 0 takes any free port.
    pub bind: SocketAddr,
    /// `ORDERS_METRICS_BIND`: the address of `/metrics`; `None` switches it off. Default 127.0.0.1:9464.
    pub metrics_bind: Option<SocketAddr>,
    /// `ORDERS_WORKERS`: HTTP worker threads, 1 to 256. Default: one for each core.
    pub workers: usize,
    /// `ORDERS_DRAIN`: how long a stop waits for requests in flight, at most 10 minutes. Default 30 s.
    pub drain: Duration,
    /// `ORDERS_POOL_SIZE`: database connections of this process, 1 to 256. Default 8.
    pub pool_size: u32,
    /// `ORDERS_POOL_TIMEOUT`: how long a request waits for a connection before it gets a 503, 10 ms to 60 s. Default 5 s.
    pub pool_timeout: Duration,
    /// `ORDERS_WAIT_LIMIT`: how long a rival of a running command waits before it gets a 202, at most 60 s. Default 5 s.
    pub wait_limit: Duration,
    /// `ORDERS_REPLAY_WINDOW`: how long a recorded answer is replayed, from the moment the operation became final; from a
    /// minute to ten years. Default 7 days.
    pub replay_window: Duration,
    /// `ORDERS_KEY_MEMORY`: how long a key is remembered, from the same moment; from the replay window to a hundred years.
    /// Default 400 days.
    pub key_memory: Duration,
    /// `ORDERS_CLEANER_INTERVAL`: how long the cleaner waits between two sweeps, 100 ms to a day; `None` switches it off.
    /// Default 1 minute.
    pub cleaner_interval: Option<Duration>,
    /// `ORDERS_CLEANER_BATCH`: the most rows of one transaction of the cleaner, 1 to 10,000. Default 500.
    pub cleaner_batch: u32,
    /// `ORDERS_MAX_BODY`: the largest request body in bytes, 1 KiB to 16 MiB. Default 1 MiB.
    pub max_body: usize,
    /// `ORDERS_BODY_TIMEOUT`: how long a whole request body may take to arrive, 100 ms to 5 minutes. Default 10 s.
    pub body_timeout: Duration,
    /// `ORDERS_RATE_LIMIT`: requests a second that each client may make to this process, 0 to 100,000; 0 is no limit.
    /// Default 0.
    pub rate_limit: u32,
    /// `ORDERS_CORS_ORIGINS`: the web pages that may call the API from a browser. Default: all.
    pub cors_origins: CorsOrigins,
    /// `ORDERS_RELAY`: whether this process brings orders to the ERP while it serves. Default: on.
    pub relay: bool,
    /// `ORDERS_RELAY_INTERVAL`: how long the relay rests when nothing is due, 10 ms to 1 minute. Default 500 ms.
    pub relay_interval: Duration,
    /// `ORDERS_RELAY_PARALLEL`: messages on their way to one ERP at a time, 1 to 64. Default 4.
    pub relay_parallel: u32,
    /// `ORDERS_LEASE`: how long a relay holds a message, longer than the time-out, at most an hour. Default 60 s.
    pub lease: Duration,
    /// `ORDERS_ERP_TIMEOUT`: the most time of one request to an ERP, 100 ms to 10 minutes. Default 40 s.
    pub erp_timeout: Duration,
    /// `ORDERS_ERP_SETTLE`: how long "not found" proves nothing after a lost answer, at most a day. Default 120 s.
    pub erp_settle: Duration,
    /// `ORDERS_ERP_ALLOW_PRIVATE`: whether an ERP may be in a private network. Default: off.
    pub erp_allow_private: bool,
    /// `ORDERS_RETRY_BASE`, `_CAP`, `_ATTEMPTS`, `_BUDGET`: how often and how long the relay tries. Default: from 1 s to
    /// 15 minutes, 20 attempts, 72 hours.
    pub retry: Retry,
    /// `ORDERS_DEMO`: whether a first start on an empty database makes the demo tenant. Default: only on SQLite.
    pub demo: bool,
    /// `RUST_LOG`: what is logged, in the syntax of `env_logger`. Default `info,actix_server=warn`.
    pub log_filter: String,
    /// The variables `ORDERS_SECRET_*`. [`Config::read`] leaves them empty, [`Config::from_env`] fills them.
    pub secrets: Secrets,
}

impl Config {
    /// Reads all settings through `lookup`, which gives the text of a variable, or `None` where it is not set. Blanks
    /// round a text are no part of it.
    ///
    /// # Errors
    /// The first setting that is not allowed.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Config, BadSetting> {
        let from = value::Reader::new(lookup);
        let database = from.read(&setting::DATABASE_URL, value::database)?;
        let demo = from.read(&setting::DEMO, value::switch(matches!(database, DatabaseUrl::Sqlite(_))))?;
        let replay_window = from.read(&setting::REPLAY_WINDOW, value::duration(MINUTE..=3650 * DAY))?;
        let erp_timeout =
            from.read(&setting::ERP_TIMEOUT, value::duration(Duration::from_millis(100)..=10 * MINUTE))?;
        Ok(Config {
            database,
            bind: from.read(&setting::BIND, value::address)?,
            metrics_bind: from.read(&setting::METRICS_BIND, value::address_or_none)?,
            workers: from.read(&setting::WORKERS, value::number_or_auto(cores(), 1..=256))?,
            drain: from.read(&setting::DRAIN, value::duration(Duration::ZERO..=10 * MINUTE))?,
            pool_size: from.read(&setting::POOL_SIZE, value::number(1..=256))?,
            pool_timeout: from
                .read(&setting::POOL_TIMEOUT, value::duration(Duration::from_millis(10)..=60 * SECOND))?,
            wait_limit: from.read(&setting::WAIT_LIMIT, value::duration(Duration::ZERO..=60 * SECOND))?,
            replay_window,
            key_memory: from.read(&setting::KEY_MEMORY, value::duration(replay_window..=36_500 * DAY))?,
            cleaner_interval: from
                .read(&setting::CLEANER_INTERVAL, value::duration_or_off(Duration::from_millis(100)..=DAY))?,
            cleaner_batch: from.read(&setting::CLEANER_BATCH, value::number(1..=10_000))?,
            max_body: from.read(&setting::MAX_BODY, value::number(1024..=16 * 1024 * 1024))?,
            body_timeout: from
                .read(&setting::BODY_TIMEOUT, value::duration(Duration::from_millis(100)..=5 * MINUTE))?,
            rate_limit: from.read(&setting::RATE_LIMIT, value::number(0..=100_000))?,
            cors_origins: from.read(&setting::CORS_ORIGINS, CorsOrigins::parse)?,
            relay: from.read(&setting::RELAY, value::on_or_off)?,
            relay_interval: from.read(&setting::RELAY_INTERVAL, value::duration(Duration::from_millis(10)..=MINUTE))?,
            relay_parallel: from.read(&setting::RELAY_PARALLEL, value::number(1..=64))?,
            lease: from.read(&setting::LEASE, value::duration(erp_timeout * 5 / 4..=60 * MINUTE))?,
            erp_timeout,
            erp_settle: from.read(&setting::ERP_SETTLE, value::duration(Duration::ZERO..=DAY))?,
            erp_allow_private: from.read(&setting::ERP_ALLOW_PRIVATE, value::on_or_off)?,
            retry: retry(&from)?,
            demo,
            log_filter: from.read(&setting::RUST_LOG, value::log_filter)?,
            secrets: Secrets::default(),
        })
    }

    /// The settings of a service that nobody configured.
    #[must_use]
    pub fn defaults() -> Config {
        Config::read(|_| None).expect("every default is allowed")
    }

    /// Reads all settings from the file `.env` of the working directory or the nearest one above it, if there is one, and
    /// from the environment, which wins. The environment itself is left as it is.
    ///
    /// # Errors
    /// A `.env` that cannot be read, a variable that begins with `ORDERS_` and is not known, or a setting that is not
    /// allowed.
    pub fn from_env() -> Result<Config, BadSetting> {
        let variables = environment::variables()?;
        refuse_unknown(variables.keys().map(String::as_str))?;
        let secrets = Secrets::among(&variables);
        Ok(Config { secrets, ..Config::read(|name| variables.get(name).cloned())? })
    }
}

/// The four settings of the retry policy.
fn retry<F: Fn(&str) -> Option<String>>(from: &value::Reader<F>) -> Result<Retry, BadSetting> {
    let base = from.read(&setting::RETRY_BASE, value::duration(Duration::from_millis(1)..=60 * MINUTE))?;
    Ok(Retry {
        base,
        cap: from.read(&setting::RETRY_CAP, value::duration(base..=DAY))?,
        attempts: from.read(&setting::RETRY_ATTEMPTS, value::number(1..=1000))?,
        budget: from.read(&setting::RETRY_BUDGET, value::duration(SECOND..=30 * DAY))?,
    })
}

/// How often and how long it is tried to deliver a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The pause that the first failure may reach.
    pub base: Duration,
    /// The longest pause.
    pub cap: Duration,
    /// The most attempts of a message that count.
    pub attempts: u32,
    /// The most time from the first failure of a message.
    pub budget: Duration,
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
