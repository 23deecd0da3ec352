//! The one table of settings: name, default, what is allowed and what it means. `.env.example` is compared with it.

/// One setting of the service, as it is documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name of the variable.
    pub name: &'static str,
    /// The text that holds when the variable is not set.
    pub default: &'static str,
    /// What is allowed, in words; ends the message about a bad value.
    pub allowed: &'static str,
    /// What it is for.
    pub meaning: &'static str,
}

macro_rules! settings {
    ($($ident:ident = $name:literal, $default:literal, $allowed:literal, $meaning:literal;)*) => {
        $(#[doc = $meaning] pub(super) const $ident: Setting =
            Setting { name: $name, default: $default, allowed: $allowed, meaning: $meaning };)*

        /// Every setting, in the order of `.env.example`.
        pub const SETTINGS: &[Setting] = &[$($ident),*];
    };
}

settings! {
    DATABASE_URL = "DATABASE_URL", "sqlite://data/orders.db",
        "sqlite://<path of a file> or postgres://<user>:<password>@<host>:<port>/<database>, with '@', '/', '%' in a password percent-encoded",
        "Where the orders are kept.";
    POOL_SIZE = "ORDERS_POOL_SIZE", "8",
        "a whole number from 1 to 256",
        "Database connections of this process.";
    POOL_TIMEOUT = "ORDERS_POOL_TIMEOUT", "5s",
        "a duration from 10ms to 60s",
        "How long a request waits for a connection before it is answered with 503.";
    BIND = "ORDERS_BIND", "127.0.0.1:8080",
        "an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080",
        "The address on which the API listens; port 0 takes any free port.";
    METRICS_BIND = "ORDERS_METRICS_BIND", "127.0.0.1:9464",
        "an IP address and a port, such as 127.0.0.1:9464, or nothing for no metrics",
        "The address on which /metrics listens.";
    WORKERS = "ORDERS_WORKERS", "auto",
        "a whole number from 1 to 256, or auto for one thread a core",
        "HTTP worker threads.";
    MAX_BODY = "ORDERS_MAX_BODY", "1048576",
        "a whole number of bytes from 1024 (1 KiB) to 16777216 (16 MiB)",
        "The largest request body.";
    BODY_TIMEOUT = "ORDERS_BODY_TIMEOUT", "10s",
        "a duration from 100ms to 5m",
        "How long a whole request body may take to arrive before it is answered with 408.";
    RATE_LIMIT = "ORDERS_RATE_LIMIT", "0",
        "a whole number from 0 to 100000; 0 is no limit",
        "Requests a second that each client may make to this process before it is answered with 429.";
    CORS_ORIGINS = "ORDERS_CORS_ORIGINS", "*",
        "*, or origins such as https://shop.example separated by commas, or nothing for none",
        "The web pages that may call the API from a browser.";
    DRAIN = "ORDERS_DRAIN", "30s",
        "a duration from 0s to 10m",
        "How long a stop waits for the requests in flight.";
    WAIT_LIMIT = "ORDERS_WAIT_LIMIT", "5s",
        "a duration from 0s to 60s",
        "How long a request waits while its key is at work, before it is answered with 202.";
    REPLAY_WINDOW = "ORDERS_REPLAY_WINDOW", "7d",
        "a duration from 1m to 3650d",
        "How long a recorded answer is replayed, from the moment its operation became final.";
    KEY_MEMORY = "ORDERS_KEY_MEMORY", "400d",
        "a duration from ORDERS_REPLAY_WINDOW to 36500d",
        "How long a key is remembered and refused as spent, from the same moment.";
    CLEANER_INTERVAL = "ORDERS_CLEANER_INTERVAL", "1m",
        "a duration from 100ms to 24h, or off",
        "How long the cleaner waits between two sweeps for what is past its time.";
    CLEANER_BATCH = "ORDERS_CLEANER_BATCH", "500",
        "a whole number from 1 to 10000",
        "The most rows that the cleaner changes in one transaction.";
    RELAY = "ORDERS_RELAY", "on",
        "on or off",
        "Whether this process brings orders to the ERP, and mails to the mail server, while it serves.";
    RELAY_INTERVAL = "ORDERS_RELAY_INTERVAL", "500ms",
        "a duration from 10ms to 1m",
        "How long the relay rests when nothing is due.";
    RELAY_PARALLEL = "ORDERS_RELAY_PARALLEL", "4",
        "a whole number from 1 to 64",
        "The most messages that are on their way to one ERP, or to one mail server, at a time, over all relays.";
    ERP_TIMEOUT = "ORDERS_ERP_TIMEOUT", "40s",
        "a duration from 100ms to 10m",
        "The most time of one request to an ERP, or of one mail.";
    LEASE = "ORDERS_LEASE", "60s",
        "a duration of at least ORDERS_ERP_TIMEOUT and a quarter of it, at most 1h",
        "How long a relay holds a message before another one may take it over.";
    ERP_SETTLE = "ORDERS_ERP_SETTLE", "120s",
        "a duration from 0s to 1d",
        "How long an ERP may go on with a request whose answer was lost, so that 'not found' proves nothing.";
    ERP_ALLOW_PRIVATE = "ORDERS_ERP_ALLOW_PRIVATE", "off",
        "on or off",
        "Whether an ERP or a mail server may be in a private network or on this machine, and be reached by http or without encryption.";
    RETRY_BASE = "ORDERS_RETRY_BASE", "1s",
        "a duration from 1ms to 1h",
        "The pause that the first failure may reach; each further one doubles it.";
    RETRY_CAP = "ORDERS_RETRY_CAP", "15m",
        "a duration from ORDERS_RETRY_BASE to 1d",
        "The longest pause, also of a connection that is misconfigured, and the longest Retry-After.";
    RETRY_ATTEMPTS = "ORDERS_RETRY_ATTEMPTS", "20",
        "a whole number from 1 to 1000",
        "The most attempts of a message before a person has to look.";
    RETRY_BUDGET = "ORDERS_RETRY_BUDGET", "72h",
        "a duration from 1s to 30d",
        "The most time from the first failure of a message until a person has to look.";
    DEMO = "ORDERS_DEMO", "auto",
        "on, off, or auto for on with SQLite and off with PostgreSQL",
        "Whether the first start on an empty database makes the demo tenant.";
    RUST_LOG = "RUST_LOG", "info,actix_server=warn",
        "a level (error, warn, info, debug, trace, off) or a list such as info,order_service=debug",
        "What is logged.";
}
