//! Both sides are compared: what the ERP lacks, has besides, or tells differently is named, and what it lost it gets again.

use std::process::Output;
use std::sync::{Arc, Mutex};

use order_service::db::{self, Pool};
use order_service::erp::{Cancelled, Delivery, Failure, Gateway, Listed, Listing, Pending, Taken, Verification};
use order_service::outbox::Kind;
use order_service::reconcile::{Difference, Event, Finding, Reconciler, Summary};
use serde_json::{Value, json};

use crate::harness::database::Database;
use crate::harness::erp::{FakeErp, Step};
use crate::harness::http::Caller;
use crate::harness::process;
use crate::harness::relay::{
    FAST, HandRelay, SECRET, connect, connect_sandbox, create, make_due, operation, order, relay_config, shop_with,
};
use crate::harness::world::{TENANT, World, on_both_databases};

const WINDOW_IS_OVER: &[(&str, &str)] = &[("ORDERS_ERP_SETTLE", "0s")];

/// Runs the program; returns its exit code, the lines of its report, and what it said besides.
fn reconcile(database: &Database, more: &[&str]) -> (i32, Vec<String>, String) {
    let since = ["erp", "reconcile", "--tenant", TENANT, "--since", "2020-01-01"];
    let settings: Vec<(&str, &str)> = FAST.iter().copied().chain([SECRET]).collect();
    let Output { status, stdout, stderr } = process::run(database.url(), &[&since, more].concat(), &settings);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints text");
    (status.code().expect("nobody killed it"), text(stdout).lines().map(str::to_owned).collect(), text(stderr))
}

async fn confirmed(world: &World, shop: &Caller, external: &str) -> (String, String) {
    let made = create(shop, external).await;
    HandRelay::new(world, &[]).drain(world).await;
    assert_eq!(order(shop, &made.0).await["status"], "confirmed");
    made
}

/// An ERP that can list its orders, so many a page.
struct ListingErp {
    orders: Arc<Mutex<Vec<Listed>>>,
    page: usize,
}

impl Gateway for ListingErp {
    fn verification(&self, _: Kind) -> Verification {
        Verification::LookThenSend
    }

    fn ping(&self, _: db::Instant) -> Pending<'_, String> {
        Box::pin(async { Ok("it is there".to_owned()) })
    }

    fn find<'a>(&'a self, delivery: &'a Delivery) -> Pending<'a, Option<Taken>> {
        let orders = self.orders.lock().expect("no test panics over it");
        let found = orders.iter().find(|listed| listed.reference == delivery.reference);
        let found = found.map(|listed| Taken { erp_reference: listed.erp_reference.clone(), before: true });
        Box::pin(async move { Ok(found) })
    }

    fn create<'a>(&'a self, _: &'a Delivery) -> Pending<'a, Taken> {
        Box::pin(async { Err(Failure::Refused("a comparison makes nothing".to_owned())) })
    }

    fn cancel<'a>(&'a self, _: &'a Delivery) -> Pending<'a, Cancelled> {
        Box::pin(async { Err(Failure::Refused("a comparison cancels nothing".to_owned())) })
    }

    fn receive_payment<'a>(&'a self, _: &'a Delivery) -> Pending<'a, Taken> {
        Box::pin(async { Err(Failure::Refused("a comparison pays nothing".to_owned())) })
    }

    fn list<'a>(&'a self, _: db::Instant, after: Option<&'a str>) -> Pending<'a, Listing> {
        let begin: usize = after.map_or(0, |after| after.parse().expect("it is what the page before named"));
        let orders = self.orders.lock().expect("no test panics over it");
        let end = (begin + self.page).min(orders.len());
        let (page, next) = (orders[begin..end].to_vec(), (end < orders.len()).then(|| end.to_string()));
        Box::pin(async move { Ok(Listing::Page { orders: page, next }) })
    }
}

/// Compares with an ERP that can list; returns what was told.
async fn compare(world: &World, orders: Vec<Listed>, page: usize) -> (Summary, Vec<Finding>, u64) {
    let config = relay_config(world.database(), &[]);
    let pool = Pool::single(&config.database, std::time::Duration::from_secs(10));
    let erp = ListingErp { orders: Arc::new(Mutex::new(orders)), page };
    let since = chrono::NaiveDate::from_ymd_opt(2020, 1, 1).and_then(|day| day.and_hms_opt(0, 0, 0)).expect("a date");
    let (mut findings, mut compared, mut announced) = (Vec::new(), 0, 0);
    let reconciler = Reconciler::new(pool, Box::new(erp), TENANT, since, 4);
    let summary = reconciler.run(false, |event| match event {
        Event::Orders(count) => announced = count.unsigned_abs(),
        Event::Compared(count) => compared += count,
        Event::Found(finding) => findings.push(finding),
    });
    let summary = summary.await.unwrap_or_else(|trouble| panic!("they can be compared: {trouble}"));
    assert_eq!((compared, summary.compared), (announced, announced), "the progress comes to its end");
    (summary, findings, announced)
}

fn listed(number: usize) -> Listed {
    Listed {
        reference: format!("web/{number}"),
        erp_reference: Some(format!("SO-{number}")),
        currency: Some("EUR".to_owned()),
        total: Some("10.00".parse().expect("a decimal")),
        lines: Some(1),
        cancelled: false,
    }
}

/// A thousand confirmed orders, all made at one moment, so that their ids alone part them.
async fn a_thousand_orders(world: &World) {
    let shop = world.shop();
    let body = json!({"customerId": "c", "items": [{"sku": "A", "qty": 1}], "currency": "EUR", "channel": "web",
        "externalOrderId": "model", "totals": {"gross": "10"}});
    shop.post("/v1/orders", "model", &body).await.expect(201);
    let numbers = "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 1000)";
    world.database().execute(&format!(
        "{numbers} INSERT INTO orders (tenant_id, order_id, client_id, operation_id, channel, external_order_id, currency, \
             status, reference, erp_reference, paid_amount, document, version, created_at, updated_at) \
         SELECT tenant_id, 'ord_' || n, client_id, operation_id, channel, CAST(n AS TEXT), currency, 'confirmed', \
             'web/' || n, 'SO-' || n, paid_amount, document, version, created_at, updated_at FROM orders, numbers; \
         {numbers} INSERT INTO order_lines (tenant_id, order_id, line_no, kind, sku, qty, document) \
         SELECT tenant_id, 'ord_' || n, line_no, kind, sku, qty, document FROM order_lines, numbers"
    ));
    // Nobody hands the model over.
    world
        .database()
        .execute("DELETE FROM outbox; UPDATE orders SET status = 'cancelled' WHERE external_order_id = 'model'");
}

on_both_databases! {
    async fn what_the_erp_has_lost_is_named_and_handed_over_once_more(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, WINDOW_IS_OVER));
        let shop = shop_with(&world, &erp, "lookup");
        confirmed(&world, &shop, "1").await;
        let (lost, lost_operation) = confirmed(&world, &shop, "2").await;
        let done = operation(&shop, &lost_operation).await;
        let (code, report, said) = reconcile(world.database(), &[]);
        assert_eq!((code, report), (0, vec!["summary\tcompared=2\ton_their_way=0\tmissing=0\textra=unknown\tdifferent=0\tqueued=0".to_owned()]));
        assert_eq!(said.lines().count(), 1, "a bar is for terminals: {said}");
        assert!(said.contains("cannot list its orders"), "{said}");

        erp.lose("web/2");
        let line = format!("missing\tweb/2\t{lost}\tSO-2\tconfirmed here, and the ERP has none");
        let before = world.database().everything();
        let (code, report, _) = reconcile(world.database(), &[]);
        assert_eq!((code, &report[0]), (1, &line));
        assert_eq!(world.database().everything(), before, "who only looks changes nothing");

        let (code, report, _) = reconcile(world.database(), &["--fix"]);
        assert_eq!((code, &report[0]), (1, &format!("{line}; it is handed over again")));
        assert!(report[1].contains("missing=1") && report[1].ends_with("queued=1"), "{report:?}");
        let audit = world.rows("SELECT client_id, decision, target_operation_id FROM interventions");
        assert_eq!(audit, [json!({"client_id": "reconcile", "decision": "hand over", "target_operation_id": lost_operation})]);
        let queued = world.database().everything();
        let (code, report, _) = reconcile(world.database(), &["--fix"]);
        assert_eq!((code, &report[0]), (1, &format!("{line}; its hand-over is on its way")));
        assert!(report[1].ends_with("queued=0"), "{report:?}");
        assert_eq!(world.database().everything(), queued, "a second time changes nothing");

        let (posts, looks) = (erp.requests("POST").len(), erp.requests("GET").len());
        assert_eq!(relay.step().await, 1);
        assert_eq!((erp.requests("POST").len() - posts, erp.requests("GET").len() - looks), (1, 1), "it looks before it sends");
        assert_eq!(erp.orders(), ["web/1", "web/2"]);
        let after = operation(&shop, &lost_operation).await;
        assert_eq!((&after["status"], &after["completedAt"]), (&done["status"], &done["completedAt"]), "a final state never changes");
        assert_eq!(order(&shop, &lost).await["erpReference"], "SO-3");
        assert_eq!(reconcile(world.database(), &[]).0, 0);
    }

    /// Lost again before the relay came: what is at the ERP by then is found, and not sent.
    async fn what_has_come_back_meanwhile_is_not_sent_again(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, WINDOW_IS_OVER));
        let shop = shop_with(&world, &erp, "lookup");
        confirmed(&world, &shop, "1").await;
        erp.script_look_ups(&[Step::Status(404)]);
        assert!(reconcile(world.database(), &["--fix"]).1[1].ends_with("queued=1"));
        relay.drain(&world).await;
        assert_eq!((erp.requests("POST").len(), erp.orders().len()), (1, 1));
        assert_eq!(reconcile(world.database(), &[]).0, 0);
    }

    async fn what_follows_waits_behind_a_hand_over_that_is_repeated(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, WINDOW_IS_OVER));
        let shop = shop_with(&world, &erp, "lookup");
        let (order_id, _) = confirmed(&world, &shop, "1").await;
        erp.lose("web/1");
        let payment = json!({"orderId": order_id, "amount": 5, "currency": "EUR", "method": "card"});
        shop.post("/v1/payments", "p", &payment).await.expect(201);
        assert!(reconcile(world.database(), &["--fix"]).1[1].ends_with("queued=1"));
        for _ in 0..2 {
            make_due(&world);
            assert_eq!(relay.step().await, 1, "one after the other");
        }
        let kinds: Vec<Value> = erp.requests("POST").iter().map(|request| serde_json::from_str::<Value>(&request.body).expect("JSON")["type"].clone()).collect();
        assert_eq!(kinds, ["order.created", "order.created", "payment.received"]);
    }

    /// The operation is final, so that no duty desk sees a hand-over that was repeated in vain. The next report does.
    async fn a_repeated_hand_over_that_stops_is_named_until_it_ends(world: World) {
        let settings = [("ORDERS_RETRY_ATTEMPTS", "1"), ("ORDERS_ERP_SETTLE", "0s")];
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &settings));
        let shop = shop_with(&world, &erp, "lookup");
        let (order_id, operation_id) = confirmed(&world, &shop, "1").await;
        erp.lose("web/1");
        erp.script(&[Step::AcceptThenCut]);
        assert!(reconcile(world.database(), &["--fix"]).1[1].ends_with("queued=1"));
        let payment = json!({"orderId": order_id, "amount": 5, "currency": "EUR", "method": "card"});
        shop.post("/v1/payments", "p", &payment).await.expect(201);
        relay.drain(&world).await;
        assert_eq!((operation(&shop, &operation_id).await["status"].clone(), erp.payments().len()), (json!("succeeded"), 0));
        let stopped = "the ERP has it; its hand-over was repeated and has stopped, and what follows waits; the ERP's name is SO-1 here, SO-2 there";
        for (arguments, end) in [(&[][..], stopped.to_owned()), (&["--fix"], format!("{stopped}; it is handed over again"))] {
            let (code, report, _) = reconcile(world.database(), arguments);
            assert!(code == 1 && report[0].starts_with("different\tweb/1\t") && report[0].ends_with(&end), "{report:?}");
        }
        relay.drain(&world).await;
        assert_eq!((erp.requests("POST").len(), erp.orders().len(), erp.payments().len()), (3, 1, 1), "it was found, and not sent again");
        assert_eq!(reconcile(world.database(), &[]).0, 0);
    }

    async fn what_is_cancelled_or_with_a_person_is_left_alone(world: World) {
        let (erp, relay) = (FakeErp::start(), HandRelay::new(&world, &[("ORDERS_RETRY_ATTEMPTS", "1")]));
        let shop = shop_with(&world, &erp, "lookup");
        let (cancelled, _) = confirmed(&world, &shop, "1").await;
        shop.post(&format!("/v1/orders/{cancelled}/cancel"), "c", &json!({})).await.expect(200);
        erp.lose("web/1");
        let (code, report, _) = reconcile(world.database(), &["--fix"]);
        assert_eq!((code, report[0].split('\t').next_back()), (1, Some("cancelling here, and the ERP has none; it is being cancelled")));
        relay.drain(&world).await;
        assert_eq!(order(&shop, &cancelled).await["status"], "cancelled");
        let (waiting, _) = create(&shop, "2").await;
        let (code, report, _) = reconcile(world.database(), &["--fix"]);
        assert_eq!((code, report[0].as_str()), (0, "summary\tcompared=2\ton_their_way=1\tmissing=0\textra=unknown\tdifferent=0\tqueued=0"));

        erp.always("web/2", Step::Busy("0"));
        relay.drain(&world).await;
        let before = world.database().everything();
        let (code, report, _) = reconcile(world.database(), &["--fix"]);
        let line = format!("missing\tweb/2\t{waiting}\t-\taccepted here, and the ERP has none; its operation is unresolved: retry it, or resolve it");
        assert_eq!((code, report[0].as_str()), (1, line.as_str()));
        assert_eq!(world.database().everything(), before);
        assert_eq!(world.count("interventions"), 0);
    }

    async fn what_cannot_be_compared_says_why(world: World) {
        let erp = FakeErp::start();
        let shop = shop_with(&world, &erp, "lookup");
        confirmed(&world, &shop, "1").await;
        let troubled = |words: &str| {
            let (code, report, said) = reconcile(world.database(), &["--fix"]);
            assert!(code == 2 && report.is_empty() && said.contains(words), "{words}: {code} {report:?} {said}");
        };
        for outcome in ["resend", "hold"] {
            connect(&world, TENANT, &erp, outcome);
            troubled("this ERP can neither list its orders nor be asked for one");
        }
        connect_sandbox(&world, TENANT);
        troubled("the sandbox lives in the serving process");
        connect(&world, TENANT, &erp, "lookup");
        erp.script_look_ups(&[Step::Status(500)]);
        troubled("the comparison stopped: the ERP answered 500");
        drop(erp);
        troubled("the comparison stopped: no connection to the ERP could be made");
        world.database().execute("DELETE FROM connections");
        troubled("tenant 'acme' has no ERP");
        assert_eq!(world.count("interventions"), 0);
        let bad = process::run(world.database().url(), &["erp", "reconcile", "--tenant", TENANT, "--since", "yesterday"], &[]);
        assert!(bad.status.code() == Some(2) && String::from_utf8_lossy(&bad.stderr).contains("such as 2026-11-01"));
    }

    async fn a_thousand_orders_are_compared_page_by_page(world: World) {
        a_thousand_orders(&world).await;
        let (summary, findings, announced) = compare(&world, (1..=1000).map(listed).collect(), 90).await;
        assert_eq!((announced, summary.extra, findings), (1001, Some(0), Vec::new()));
        assert!(summary.is_equal());

        let mut orders: Vec<Listed> = (1..=1002).map(listed).collect();
        orders[4].total = Some("10.02".parse().expect("a decimal"));
        orders[499].cancelled = true;
        orders[999].lines = Some(2);
        orders[1001].cancelled = true;
        // One is lost, and one stands in the list twice, as happens when a list changes while it is read.
        orders[700] = orders[699].clone();
        let (summary, findings, _) = compare(&world, orders, 90).await;
        let told: Vec<(Difference, &str, &str)> = findings.iter().map(|found| (found.difference, found.reference.as_str(), found.detail.as_str())).collect();
        assert_eq!(told, [
            (Difference::Different, "web/5", "total 10 here, 10.02 there"),
            (Difference::Different, "web/500", "confirmed here, cancelled at the ERP"),
            (Difference::Different, "web/1000", "1 lines here, 2 there"),
            (Difference::Extra, "web/1001", "not known here"),
            (Difference::Extra, "web/1002", "not known here; cancelled at the ERP"),
            (Difference::Missing, "web/701", "confirmed here, and the ERP has none; there is no hand-over that could be repeated"),
        ]);
        assert_eq!((summary.compared, summary.missing, summary.extra, summary.different), (1001, 1, Some(2), 3));
        assert_eq!(findings[5].order_id.as_deref(), Some("ord_701"));
    }

    async fn an_order_of_another_tenant_is_not_known(world: World) {
        let shop = world.caller("other", "shop", &["orders:write"]);
        create(&shop, "1").await;
        world.shop();
        let (summary, findings, announced) = compare(&world, vec![listed(1)], 10).await;
        assert_eq!((announced, summary.extra, findings[0].detail.as_str()), (0, Some(1), "not known here"));
    }
}
