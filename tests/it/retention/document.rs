//! `docs/retention.md` says of the settings what the code says.

use std::collections::BTreeMap;

use order_service::config::SETTINGS;

const DOCUMENT: &str = include_str!("../../../docs/retention.md");

#[test]
fn the_document_tells_the_defaults_and_limits_of_the_settings() {
    let documented: BTreeMap<&str, (&str, &str)> = DOCUMENT
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let name = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
            Some((name, (cells[2].trim_matches('`'), cells[3])))
        })
        .collect();
    let expected = ["WAIT_LIMIT", "REPLAY_WINDOW", "KEY_MEMORY", "CLEANER_INTERVAL", "CLEANER_BATCH"];
    assert_eq!(documented.len(), expected.len(), "{documented:?}");
    for name in expected {
        let setting = SETTINGS.iter().find(|setting| setting.name == format!("ORDERS_{name}")).expect("a setting");
        assert_eq!(documented.get(setting.name), Some(&(setting.default, setting.allowed)), "{name}");
    }
}
