//! Nobody knows whether the ERP has it: the answer is lost, the ERP dies in the middle, a lock delays the commit past the
//! patience of who waits. In the end there is one sale.

use order_service::erp::tryton::options::Target;
use serde_json::json;

use crate::bench::{create, order, relay, shop, shop_at};
use crate::harness::http::Caller;
use crate::harness::relay::{HandRelay, make_due, operation, outcomes};
use crate::harness::world::{World, on_both_databases};
use crate::tryton::Tryton;
use crate::wire::Wire;

/// The requests of a hand-over that change something, in their order.
const PARTY: &str = "/party.party?";
const SALE: &str = "/sale.sale?";
const QUOTE: &str = "/quote";
const CONFIRM: &str = "/confirm";

/// Makes Tryton stop for ever in the middle of a sale: the sale is written, its first line never is. Only the end of its
/// process ends such a statement.
const STOP_AT_THE_LINES: &str = "CREATE VIEW endless AS \
     WITH RECURSIVE step (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM step) SELECT n FROM step; \
     CREATE TRIGGER stop_here BEFORE INSERT ON sale_line BEGIN SELECT count(*) FROM endless; END";
const GO_ON: &str = "DROP TRIGGER stop_here; DROP VIEW endless";

/// The order is a sale, one, whole and confirmed, and everybody knows it.
async fn is_sold_once(bench: (&World, &Tryton, &HandRelay, &Caller), (order_id, operation_id): (&str, &str)) {
    let (world, tryton, relay, shop) = bench;
    relay.drain(world).await;
    let done = operation(shop, operation_id).await;
    assert_eq!(done["status"], "succeeded", "{done}");
    let reference = done["erp"]["reference"].as_str().expect("a hand-over has a reference");
    let number = crate::harness::relay::order(shop, order_id).await["erpReference"].clone();
    let lines = "(SELECT count(*) FROM sale_line WHERE sale = sale_sale.id) AS lines";
    let sales = format!("sale_sale WHERE web_id = '{reference}'");
    assert_eq!(tryton.rows(&format!("SELECT number, {lines} FROM {sales}")), [json!({"number": number, "lines": 1})]);
    // What is confirmed is processed by Tryton in its own time.
    tryton.until(&format!("{sales} AND state = 'processing'"), 1);
    assert_eq!(tryton.count("party_party WHERE code LIKE '%cus_123'"), 1);
}

on_both_databases! {
    async fn whichever_answer_is_lost_there_is_one_sale(world: World) {
        let tryton = Tryton::start();
        let (wire, relay) = (Wire::to(tryton.address()), relay(&world, &tryton, &[]));
        let shop = shop_at(&world, &tryton, wire.address(), Target::Confirmed);
        let cases = [
            // Without its customer the sale was surely not sent.
            (PARTY, ["not_delivered", "delivered"]),
            (SALE, ["unknown", "already_there"]),
            (QUOTE, ["unknown", "already_there"]),
            (CONFIRM, ["unknown", "already_there"]),
        ];
        for (sales, (request, seen)) in (1..).zip(cases) {
            wire.lose_the_answer_to(request);
            let (order_id, operation_id) = create(&shop, &order(request)).await;
            is_sold_once((&world, &tryton, &relay, &shop), (&order_id, &operation_id)).await;
            assert_eq!(outcomes(&operation(&shop, &operation_id).await), seen, "{request}");
            assert_eq!((wire.lost(), wire.posts(SALE), tryton.count("sale_sale")), (sales, sales, sales), "{request}");
        }
        assert_eq!(wire.posts(PARTY), 1, "all are orders of one customer");
    }

    async fn an_erp_that_is_killed_in_the_middle_of_a_create_has_nothing_of_it_and_gets_it_again(world: World) {
        let tryton = Tryton::start();
        let (wire, relay) = (Wire::to(tryton.address()), relay(&world, &tryton, &[]));
        let shop = shop_at(&world, &tryton, wire.address(), Target::Confirmed);
        tryton.execute(STOP_AT_THE_LINES);
        let (order_id, operation_id) = create(&shop, &order("1")).await;
        wire.hold(SALE);
        let dies = async {
            wire.until_held().await;
            // The customer is written; who writes from here on writes the sale.
            wire.let_go();
            tryton.until_it_writes();
            tryton.kill();
        };
        assert_eq!(tokio::join!(relay.step(), dies).0, 1);
        let unknown = operation(&shop, &operation_id).await;
        assert_eq!((&unknown["status"], outcomes(&unknown)), (&json!("processing"), vec!["unknown".to_owned()]));
        assert_eq!(tryton.count("sale_sale"), 0, "the transaction went with its process");
        tryton.execute(GO_ON);
        tryton.resume();
        is_sold_once((&world, &tryton, &relay, &shop), (&order_id, &operation_id)).await;
        assert_eq!(wire.posts(SALE), 2);
    }

    /// The case that was measured: a look says "absent", and the first request commits after it.
    async fn a_lock_that_outlasts_our_patience_makes_no_second_sale(world: World) {
        let tryton = Tryton::start();
        let (wire, relay) = (Wire::to(tryton.address()), relay(&world, &tryton, &[("ORDERS_ERP_TIMEOUT", "3s")]));
        let shop = shop_at(&world, &tryton, wire.address(), Target::Confirmed);
        // The customer is known, so that the lock delays the sale and nothing before it.
        let (order_id, operation_id) = create(&shop, &order("1")).await;
        wire.hold(SALE);
        let first = async {
            wire.until_held().await;
            let lock = tryton.lock();
            wire.let_go();
            lock
        };
        let (attempts, lock) = tokio::join!(relay.step(), first);
        assert_eq!(attempts, 1);
        // The first request still waits for the lock; the look finds nothing, and a second request waits too.
        make_due(&world);
        assert_eq!(relay.step().await, 1);
        let unknown = operation(&shop, &operation_id).await;
        assert_eq!((&unknown["status"], outcomes(&unknown)), (&json!("processing"), vec!["unknown".to_owned(); 2]));
        assert_eq!((tryton.count("sale_sale"), wire.posts(SALE)), (0, 2), "nothing is committed, and both were sent");
        drop(lock);
        // One of them commits, and the other is refused.
        wire.until_idle().await;
        assert_eq!(tryton.references(), ["web/1"]);
        is_sold_once((&world, &tryton, &relay, &shop), (&order_id, &operation_id)).await;
        assert_eq!(wire.posts(SALE), 2, "it was found and not sent a third time");
    }

    async fn an_erp_that_is_away_for_a_while_gets_everything_when_it_is_back(world: World) {
        let tryton = Tryton::start();
        let (shop, relay) = (shop(&world, &tryton, Target::Confirmed), relay(&world, &tryton, &[]));
        tryton.kill();
        let (order_id, operation_id) = create(&shop, &order("1")).await;
        relay.step().await;
        let waits = operation(&shop, &operation_id).await;
        assert_eq!((&waits["status"], outcomes(&waits)), (&json!("processing"), vec!["not_delivered".to_owned()]));
        tryton.resume();
        is_sold_once((&world, &tryton, &relay, &shop), (&order_id, &operation_id)).await;
    }
}
