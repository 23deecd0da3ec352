//! What every gateway keeps, kept by the gateway to Tryton with a real one behind it.

use std::time::Duration;

use chrono::NaiveDate;
use futures_util::future::join_all;
use order_service::config::Secrets;
use order_service::erp::tryton::options::{Options, Target};
use order_service::erp::{Failure, Gateway, Gateways, Taken};
use order_service::outbox::connection::Connection;
use order_service::outbox::{Channel, Kind};
use serde_json::json;

use crate::bench::{KEY, url};
use crate::it::conformance::{Trial, keeps_the_promises};
use crate::tryton::Tryton;

/// As many as are under way at most on one connection.
const RIVALS: usize = 4;

fn gateway(tryton: &Tryton, target: Target) -> Box<dyn Gateway> {
    let secrets = Secrets::from_iter([(KEY.to_owned(), tryton.bearer().to_owned())]);
    let connection = Connection {
        tenant_id: "acme".to_owned(),
        channel: Channel::Erp.as_str().to_owned(),
        kind: "tryton".to_owned(),
        url: Some(url(tryton.address())),
        secret_name: Some(KEY.to_owned()),
        options: Options { target, ..Options::of_web_shop(tryton.web_shop()) }.to_json(),
        failures: 0,
        paused_until: None,
        pause_reason: None,
        created_at: order_service::db::Instant::default(),
    };
    let gateways = Gateways::new(secrets, Duration::from_secs(25), true);
    gateways.open(&connection).expect("it is well configured")
}

fn trial(prefix: &str) -> Trial<'_> {
    let midnight = |year| NaiveDate::from_ymd_opt(year, 1, 1).and_then(|day| day.and_hms_opt(0, 0, 0)).expect("a date");
    Trial { kind: "tryton", prefix, sku: "MUG-01", now: midnight(2026), since: midnight(2000) }
}

#[actix_web::test]
async fn the_gateway_keeps_what_every_gateway_keeps() {
    let tryton = Tryton::start();
    for target in [Target::Draft, Target::Quotation] {
        let prefix = format!("{target:?}");
        let made = keeps_the_promises(&*gateway(&tryton, target), &trial(&prefix)).await;
        assert_eq!(tryton.count(&format!("sale_sale WHERE web_id LIKE '{prefix}/%'")), made);
    }
    assert_eq!(
        tryton.rows("SELECT state FROM sale_sale ORDER BY id"),
        ["cancelled", "draft", "cancelled", "quotation"].map(|state| json!({"state": state})),
    );
    // Each payment was told twice.
    assert_eq!(tryton.count("ir_note"), 2);
}

/// What the ERP itself keeps unique, and not our look before it, decides between rivals.
#[actix_web::test]
async fn rivals_with_one_reference_make_one_sale() {
    let tryton = Tryton::start();
    let (gateway, order) = (gateway(&tryton, Target::Draft), trial("rivals").delivery(Kind::OrderCreated, 1));
    let taken = join_all((0..RIVALS).map(|_| gateway.create(&order))).await;
    let first = taken.iter().filter(|taken| matches!(taken, Ok(Taken { before: false, .. }))).count();
    assert_eq!((tryton.count("sale_sale"), first), (1, 1), "{taken:?}");
    // A database that was busy too long leaves a doubt, and never a "no".
    let honest =
        |taken: &Result<Taken, Failure>| matches!(taken, Ok(_) | Err(Failure::Unknown(_) | Failure::NotDelivered(_)));
    assert!(taken.iter().all(honest), "{taken:?}");
    assert!(gateway.create(&order).await.is_ok_and(|taken| taken.before));
}
