//! The settings of the tests' services: what keeps tests independent of each other and of the machine.

use std::collections::BTreeMap;

use order_service::config::Config;

/// No fixed port, no demo tenant among the rows, and nothing that moves by itself: no cleaner, no relay.
pub const QUIET: [(&str, &str); 4] =
    [("ORDERS_METRICS_BIND", ""), ("ORDERS_DEMO", "off"), ("ORDERS_CLEANER_INTERVAL", "off"), ("ORDERS_RELAY", "off")];

/// The configuration of a service on this database, on a port that the system gives; `settings` come on top.
pub fn config(database_url: &str, settings: &[(&str, &str)]) -> Config {
    let mut map =
        BTreeMap::from([("DATABASE_URL", database_url), ("ORDERS_BIND", "127.0.0.1:0"), ("ORDERS_POOL_SIZE", "4")]);
    map.extend(QUIET);
    map.extend(settings.iter().copied());
    Config::read(|name| map.get(name).map(|value| (*value).to_owned()))
        .unwrap_or_else(|error| panic!("the settings of the test are good: {error}"))
}
