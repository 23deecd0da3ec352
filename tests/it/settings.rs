//! The settings: each bad one stops the start with one line that helps, and `.env.example` says what the code says.

use std::collections::BTreeMap;
use std::time::Duration;

use order_service::config::{self, BadSetting, Config, CorsOrigins, DatabaseUrl, SETTINGS};

fn read(settings: &[(&str, &str)]) -> Result<Config, BadSetting> {
    Config::read(|name| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
}

/// The line that the operator sees, after a check that it is one line, names the setting and says what is allowed.
fn refusal(settings: &[(&str, &str)]) -> String {
    let bad = read(settings).expect_err("this setting is not allowed");
    let line = bad.to_string();
    assert!(!line.contains(['\n', '\r']), "{line:?} is one line");
    let BadSetting::Value { setting, .. } = bad else { panic!("{line}") };
    assert!(line.starts_with(setting.name) && line.ends_with(setting.allowed), "{line}");
    line
}

#[test]
fn without_any_setting_the_documented_defaults_hold() {
    let config = read(&[]).expect("the defaults are allowed");
    assert!(config.database.is_default());
    assert_eq!(config.bind.to_string(), "127.0.0.1:8080");
    assert_eq!(config.metrics_bind.expect("metrics are on").to_string(), "127.0.0.1:9464");
    assert_eq!((config.pool_size, config.pool_timeout), (8, Duration::from_secs(5)));
    assert_eq!((config.wait_limit, config.drain), (Duration::from_secs(5), Duration::from_secs(30)));
    assert_eq!(config.replay_window, Duration::from_hours(7 * 24));
    assert_eq!(config.key_memory, Duration::from_hours(400 * 24));
    assert_eq!((config.cleaner_interval, config.cleaner_batch), (Some(Duration::from_mins(1)), 500));
    assert_eq!((config.max_body, config.body_timeout), (1 << 20, Duration::from_secs(10)));
    assert_eq!((config.cors_origins, config.demo), (CorsOrigins::Any, true));
    assert!(config.workers >= 1);
    assert_eq!(config.log_filter, "info,actix_server=warn");
}

#[test]
fn the_limits_themselves_are_allowed_and_what_lies_beyond_is_not() {
    for (name, least, most, beyond) in [
        ("ORDERS_POOL_SIZE", "1", "256", ["0", "257"]),
        ("ORDERS_POOL_TIMEOUT", "10ms", "60s", ["9ms", "61s"]),
        ("ORDERS_WORKERS", "1", "256", ["0", "257"]),
        ("ORDERS_MAX_BODY", "1024", "16777216", ["1023", "16777217"]),
        ("ORDERS_BODY_TIMEOUT", "100ms", "5m", ["99ms", "301s"]),
        ("ORDERS_DRAIN", "0s", "10m", ["-1s", "601s"]),
        ("ORDERS_WAIT_LIMIT", "0s", "60s", ["-1s", "60001ms"]),
        ("ORDERS_REPLAY_WINDOW", "1m", "3650d", ["59s", "3651d"]),
        ("ORDERS_RELAY_INTERVAL", "10ms", "1m", ["9ms", "61s"]),
        ("ORDERS_RELAY_PARALLEL", "1", "64", ["0", "65"]),
        ("ORDERS_LEASE", "50s", "1h", ["49999ms", "61m"]),
        ("ORDERS_ERP_TIMEOUT", "100ms", "48s", ["99ms", "11m"]),
        ("ORDERS_ERP_SETTLE", "0s", "1d", ["-1s", "25h"]),
        ("ORDERS_RETRY_BASE", "1ms", "15m", ["0s", "61m"]),
        ("ORDERS_RETRY_CAP", "1s", "1d", ["999ms", "25h"]),
        ("ORDERS_RETRY_ATTEMPTS", "1", "1000", ["0", "1001"]),
        ("ORDERS_RETRY_BUDGET", "1s", "30d", ["999ms", "31d"]),
        ("ORDERS_KEY_MEMORY", "7d", "36500d", ["167h", "36501d"]),
        ("ORDERS_CLEANER_INTERVAL", "100ms", "24h", ["99ms", "86401s"]),
        ("ORDERS_CLEANER_BATCH", "1", "10000", ["0", "10001"]),
    ] {
        for allowed in [least, most] {
            let settings =
                [(name, allowed), ("ORDERS_KEY_MEMORY", if name.ends_with("MEMORY") { allowed } else { "9999d" })];
            assert!(read(&settings).is_ok(), "{name}={allowed}");
        }
        for value in beyond {
            refusal(&[(name, value)]);
        }
    }
}

#[test]
fn every_kind_of_bad_value_is_refused_with_a_line_of_its_own() {
    for (name, values) in [
        ("DATABASE_URL", &["", "orders.db", "mysql://h/d", "sqlite://", "sqlite://:memory:"][..]),
        ("ORDERS_BIND", &["", "8080", "localhost", "127.0.0.1", "127.0.0.1:99999", "http://127.0.0.1:8080"]),
        ("ORDERS_METRICS_BIND", &["off", "9464"]),
        ("ORDERS_POOL_SIZE", &["", "many", "8.0", "-1", "99999999999999999999"]),
        ("ORDERS_POOL_TIMEOUT", &["", "5", "5 parsecs", "forever"]),
        ("ORDERS_WORKERS", &["", "two", "AUTO"]),
        ("ORDERS_MAX_BODY", &["", "1MiB", "1e6"]),
        ("ORDERS_CLEANER_INTERVAL", &["", "60", "never", "OFF"]),
        ("ORDERS_CLEANER_BATCH", &["", "all", "off"]),
        ("ORDERS_DEMO", &["", "yes", "1", "ON"]),
        ("ORDERS_RELAY", &["", "auto", "yes"]),
        ("ORDERS_ERP_ALLOW_PRIVATE", &["", "auto", "true"]),
        ("ORDERS_CORS_ORIGINS", &["shop.example", "https://shop.example/", "*,https://shop.example"]),
        ("RUST_LOG", &["", "order_service=loud", "info=debug=trace"]),
    ] {
        for value in values {
            let line = refusal(&[(name, value)]);
            assert!(line.starts_with(name), "{line}");
        }
    }
}

#[test]
fn a_key_is_never_forgotten_before_its_replay_window_ends() {
    let line = refusal(&[("ORDERS_REPLAY_WINDOW", "500d")]);
    insta::assert_snapshot!(line, @"ORDERS_KEY_MEMORY is '400d': allowed is a duration from ORDERS_REPLAY_WINDOW to 36500d");
    assert!(read(&[("ORDERS_REPLAY_WINDOW", "500d"), ("ORDERS_KEY_MEMORY", "500d")]).is_ok());
}

#[test]
fn a_line_break_in_a_value_cannot_break_the_message() {
    let line = refusal(&[("ORDERS_BIND", "1\n2\r\u{2028}")]);
    assert!(line.starts_with(r"ORDERS_BIND is '1\n2\r\u{2028}': "), "{line}");
}

#[test]
fn a_bad_database_url_is_named_without_its_password() {
    let line = refusal(&[("DATABASE_URL", "mysql://shop:s3cret@db/orders")]);
    assert!(line.starts_with("DATABASE_URL is 'mysql://shop:***@db/orders': allowed is sqlite://"), "{line}");
}

#[test]
fn debug_shows_no_secret() {
    let config = read(&[("DATABASE_URL", "postgres://shop:s3cret@db/orders?sslpassword=s3cret")]).expect("allowed");
    assert!(matches!(&config.database, DatabaseUrl::Postgres(url) if url.contains("s3cret")));
    let shown = format!("{config:?}");
    assert!(!shown.contains("s3cret") && shown.contains("postgres://shop:***@db"), "{shown}");
}

#[test]
fn the_demo_is_on_by_default_with_sqlite_only() {
    let postgres = ("DATABASE_URL", "postgres://db/orders");
    assert!(!read(&[postgres]).expect("allowed").demo);
    assert!(read(&[postgres, ("ORDERS_DEMO", "on")]).expect("allowed").demo);
    assert!(!read(&[("ORDERS_DEMO", "off")]).expect("allowed").demo);
}

#[test]
fn what_can_be_off_is_switched_off() {
    let config = read(&[("ORDERS_METRICS_BIND", ""), ("ORDERS_CORS_ORIGINS", ""), ("ORDERS_CLEANER_INTERVAL", "off")])
        .expect("allowed");
    assert_eq!(config.cleaner_interval, None);
    assert_eq!(config.metrics_bind, None);
    assert_eq!(config.cors_origins, CorsOrigins::These(Vec::new()));
}

#[test]
fn an_unknown_name_is_refused_with_the_nearest_known_one() {
    let refused = config::refuse_unknown(["PATH", "ORDERS_BIND", "ORDERS_POOLSIZE"].into_iter());
    let line = refused.expect_err("there is no such setting").to_string();
    insta::assert_snapshot!(line, @"ORDERS_POOLSIZE is not a setting of this service: the nearest is ORDERS_POOL_SIZE, and .env.example lists them all");
    assert_eq!(config::refuse_unknown(["HOME", "RUST_LOG", "ORDERS_SECRET_TRYTON"].into_iter()), Ok(()));
    assert_eq!(config::refuse_unknown(SETTINGS.iter().map(|setting| setting.name)), Ok(()));
}

/// The `#NAME=value` lines of `.env.example`, each with the comment paragraph before it.
fn documented() -> BTreeMap<String, (String, String)> {
    let text = include_str!("../../.env.example");
    let mut documented = BTreeMap::new();
    let mut comment = String::new();
    for line in text.lines() {
        match line.strip_prefix('#') {
            None => comment.clear(),
            Some(words) if words.is_empty() || words.starts_with(' ') => comment.push_str(words),
            Some(example) => {
                let (name, value) = example.split_once('=').unwrap_or_else(|| panic!("'{line}' is neither"));
                let before = documented.insert(name.to_owned(), (value.to_owned(), comment.clone()));
                assert_eq!(before, None, "{name} is documented once");
            }
        }
    }
    documented
}

#[test]
fn env_example_documents_every_setting_with_its_default_and_nothing_else() {
    let documented = documented();
    let found: BTreeMap<&str, &str> = documented.iter().map(|(name, (value, _))| (&name[..], &value[..])).collect();
    let known: BTreeMap<&str, &str> = SETTINGS.iter().map(|setting| (setting.name, setting.default)).collect();
    assert_eq!(found, known);
    for (name, (_, comment)) in &documented {
        assert!(comment.len() > 40, "{name} is explained: '{comment}'");
    }
}

#[test]
fn env_example_uncommented_is_a_valid_configuration() {
    let documented = documented();
    let config =
        Config::read(|name| documented.get(name).map(|(value, _)| value.clone())).expect("defaults are allowed");
    assert_eq!(format!("{config:?}"), format!("{:?}", read(&[]).expect("the defaults are allowed")));
}
