//! The gateway to Tryton before a scripted one: what each answer means at each step, and that one order is one sale.

use order_service::config::Secrets;
use order_service::db::Db;
use order_service::erp::{Cancelled, Delivery, Failure, Gateway, Gateways};
use order_service::outbox::connection::{self, Connection, Wanted};
use order_service::outbox::{Channel, Kind};
use serde_json::{Value, json};

use crate::harness::http::Caller;
use crate::harness::process;
use crate::harness::relay::{FAST, HandRelay, SECRET, operation, order, outcomes};
use crate::harness::settings::config;
use crate::harness::tryton::{FakeTryton, OPTIONS, Say};
use crate::harness::world::{TENANT, World, on_both_databases};

fn gateway(tryton: &FakeTryton, options: &str) -> Box<dyn Gateway> {
    let connection = Connection {
        tenant_id: TENANT.to_owned(),
        channel: Channel::Erp.as_str().to_owned(),
        kind: "tryton".to_owned(),
        url: Some(tryton.url()),
        secret_name: Some(SECRET.0.to_owned()),
        options: options.to_owned(),
        failures: 0,
        paused_until: None,
        pause_reason: None,
        created_at: order_service::db::Instant::default(),
    };
    let secrets = Secrets::from_iter([(SECRET.0.to_owned(), SECRET.1.to_owned())]);
    let gateways = Gateways::new(secrets, std::time::Duration::from_secs(5), true);
    gateways.open(&connection).unwrap_or_else(|failure| panic!("{failure}"))
}

fn delivery(kind: Kind, reference: &str, content: &Value) -> Delivery {
    let mut payload = json!({"type": kind.as_str(), "reference": reference, "occurredAt": "2026-03-02T08:00:00.000Z"});
    let member = if kind == Kind::PaymentReceived { "payment" } else { "order" };
    payload[member] = content.clone();
    let now = chrono::NaiveDate::from_ymd_opt(2026, 3, 2).and_then(|day| day.and_hms_opt(8, 0, 0)).expect("a date");
    let id = format!("msg_{}_{reference}", kind.as_str());
    Delivery::new((&id, kind), &payload.to_string(), "trace", (1, now)).expect("the payload can be read")
}

fn small(qty: u32) -> Value {
    json!({"customerId": "cus_1", "items": [{"sku": "ABC", "qty": qty}], "currency": "EUR"})
}

fn name_of(failure: &Failure) -> &'static str {
    match failure {
        Failure::Refused(_) => "refused",
        Failure::Conflict(_) => "conflict",
        Failure::Misconfigured(_) => "misconfigured",
        Failure::NotDelivered(_) => "not delivered",
        Failure::Unavailable { .. } => "unavailable",
        Failure::Unknown(_) => "unknown",
    }
}

#[actix_web::test]
async fn each_answer_means_one_thing_and_a_step_before_the_sale_leaves_no_doubt() {
    let asked = ["GET sale.sale", "GET 1", "GET product.product", "GET party.party", "GET currency.currency"];
    let questions = asked.into_iter().flat_map(|question| {
        [
            (question, Say::Page(401), "misconfigured"),
            (question, Say::Page(403), "misconfigured"),
            (question, Say::Refusal, "misconfigured"),
            (question, Say::Page(400), "not delivered"),
            (question, Say::Page(500), "not delivered"),
            (question, Say::Page(503), "unavailable"),
            (question, Say::Page(429), "unavailable"),
            (question, Say::Rubbish, "not delivered"),
            (question, Say::Cut, "not delivered"),
        ]
    });
    let steps = [
        ("POST party.party", Say::Refusal, "refused"),
        ("POST party.party", Say::Page(400), "not delivered"),
        ("POST party.party", Say::Page(503), "not delivered"),
        ("POST party.party", Say::Cut, "not delivered"),
        ("POST party.party", Say::TruthThenCut, "not delivered"),
        ("POST sale.sale", Say::Refusal, "refused"),
        ("POST sale.sale", Say::Page(401), "misconfigured"),
        ("POST sale.sale", Say::Page(403), "misconfigured"),
        ("POST sale.sale", Say::Page(404), "misconfigured"),
        ("POST sale.sale", Say::Page(301), "misconfigured"),
        ("POST sale.sale", Say::Page(413), "refused"),
        ("POST sale.sale", Say::Page(429), "unavailable"),
        ("POST sale.sale", Say::Page(400), "unknown"),
        ("POST sale.sale", Say::Page(500), "unknown"),
        ("POST sale.sale", Say::Page(503), "unknown"),
        ("POST sale.sale", Say::Rubbish, "unknown"),
        ("POST sale.sale", Say::Cut, "unknown"),
        ("POST sale.sale", Say::TruthThenCut, "unknown"),
    ];
    for (request, step, meaning) in questions.chain(steps) {
        let tryton = FakeTryton::start();
        tryton.script(request, &[step]);
        let gateway = gateway(&tryton, OPTIONS);
        let sent = delivery(Kind::OrderCreated, "web/1", &small(2));
        let failure = gateway.create(&sent).await.expect_err("the step fails");
        assert_eq!(name_of(&failure), meaning, "{request} {step:?}: {failure}");
        assert!(tryton.requests("POST sale.sale") <= 1, "{request} {step:?}: nothing below the relay tries again");
        let taken = gateway.create(&sent).await.unwrap_or_else(|failure| panic!("{request} {step:?}: {failure}"));
        assert_eq!(taken.before, request == "POST sale.sale" && step == Say::TruthThenCut, "{request} {step:?}");
        assert_eq!((tryton.sales().len(), tryton.parties().len()), (1, 1), "{request} {step:?}");
    }
}

#[actix_web::test]
async fn a_refusal_by_the_unique_reference_is_the_order_being_there() {
    let tryton = FakeTryton::start();
    let gateway = gateway(&tryton, OPTIONS);
    let sent = delivery(Kind::OrderCreated, "web/1", &small(2));
    gateway.create(&sent).await.expect("it is taken");
    // The first request has not committed when it is looked for, and has when the second wants to be made.
    tryton.script("GET sale.sale", &[Say::Nothing]);
    let again = gateway.create(&sent).await.expect("it is there");
    assert!(again.before);
    assert_eq!((tryton.sales().len(), tryton.requests("POST sale.sale")), (1, 2));
    // A look that fails after the refusal says nothing against the order, and nothing for it.
    tryton.script("GET sale.sale", &[Say::Nothing, Say::Cut]);
    let unsure = gateway.create(&sent).await;
    assert!(matches!(unsure, Err(Failure::NotDelivered(_))), "{unsure:?}");
}

#[actix_web::test]
async fn a_right_that_lacks_is_no_fault_of_the_order() {
    let tryton = FakeTryton::start();
    tryton.forbid();
    let gateway = gateway(&tryton, OPTIONS);
    let said = "the user of the key may not create sale.sale; add the group Sales to it".to_owned();
    let sent = delivery(Kind::OrderCreated, "web/1", &small(2));
    assert_eq!(gateway.ping(sent.now).await, Err(Failure::Misconfigured(said.clone())));
    assert_eq!(gateway.create(&sent).await, Err(Failure::Misconfigured(said)));
}

#[actix_web::test]
async fn another_order_under_our_name_is_a_conflict_for_a_person() {
    let tryton = FakeTryton::start();
    let gateway = gateway(&tryton, OPTIONS);
    let two_lines = json!({"customerId": "cus_1", "currency": "EUR",
        "items": [{"sku": "ABC", "qty": 1, "total": "10"}, {"sku": "TEE", "qty": 1, "total": "5"}]});
    gateway.create(&delivery(Kind::OrderCreated, "web/1", &two_lines)).await.expect("it is taken");
    let dearer = json!({"customerId": "cus_1", "currency": "EUR",
        "items": [{"sku": "ABC", "qty": 1, "total": "10"}, {"sku": "TEE", "qty": 1, "total": "5.03"}]});
    for (other, difference) in [(small(2), "2 lines, ours are 1"), (dearer, "a total of 15, ours is 15.03")] {
        let sent = delivery(Kind::OrderCreated, "web/1", &other);
        for failure in [gateway.create(&sent).await.map(drop), gateway.find(&sent).await.map(drop)] {
            let Err(Failure::Conflict(said)) = failure else { panic!("{failure:?}") };
            assert!(said.contains(difference), "{said}");
        }
    }
    // One minor unit a line is what rounding explains.
    let near = json!({"customerId": "cus_1", "currency": "EUR",
        "items": [{"sku": "ABC", "qty": 1, "total": "10"}, {"sku": "TEE", "qty": 1, "total": "5.02"}]});
    assert!(gateway.create(&delivery(Kind::OrderCreated, "web/1", &near)).await.is_ok_and(|taken| taken.before));
    tryton.change(0, "currency", json!({"id": 2, "code": "USD"}));
    let failure = gateway.find(&delivery(Kind::OrderCreated, "web/1", &two_lines)).await;
    assert_eq!(failure, Err(Failure::Conflict("the ERP's sale (id 1) has currency USD, ours is EUR".to_owned())));
}

#[actix_web::test]
async fn a_sale_is_driven_as_far_as_it_is_wanted_and_a_person_sees_what_stops_it() {
    for (options, state, number) in [
        (r#"{"webShop":1,"target":"draft"}"#, "draft", Some("id 1")),
        (r#"{"webShop":1,"target":"quotation"}"#, "quotation", Some("S1")),
        (OPTIONS, "processing", Some("S1")),
    ] {
        let tryton = FakeTryton::start();
        let gateway = gateway(&tryton, options);
        let sent = delivery(Kind::OrderCreated, "web/1", &small(2));
        gateway.create(&sent).await.expect("it is taken");
        assert_eq!(gateway.advance(&sent).await, Ok(number.map(str::to_owned)), "{options}");
        assert_eq!(tryton.sales()[0]["state"], state, "{options}");
    }
    let tryton = FakeTryton::start();
    let gateway = gateway(&tryton, OPTIONS);
    let sent = delivery(Kind::OrderCreated, "web/1", &small(2));
    gateway.create(&sent).await.expect("it is taken");
    tryton.script("POST quote", &[Say::Refusal]);
    let stopped = gateway.advance(&sent).await;
    let said = "the ERP has the sale (id 1, draft) and does not quote it: Nein.";
    assert_eq!(stopped, Err(Failure::Conflict(said.to_owned())));
    // A lost answer to a button is a doubt; the next look sees how far it came.
    tryton.script("POST quote", &[Say::TruthThenCut]);
    assert!(matches!(gateway.advance(&sent).await, Err(Failure::Unknown(_))));
    assert_eq!(gateway.advance(&sent).await, Ok(Some("S1".to_owned())));
    // Somebody else pressed the button between the look and us.
    tryton.change(0, "state", json!("cancelled"));
    assert!(matches!(gateway.advance(&sent).await, Err(Failure::Conflict(_))));
}

#[actix_web::test]
async fn a_cancel_says_when_it_is_too_late_and_a_payment_is_noted_once() {
    let tryton = FakeTryton::start();
    let gateway = gateway(&tryton, OPTIONS);
    let cancel = |reference| delivery(Kind::OrderCancelled, reference, &Value::Null);
    assert_eq!(gateway.cancel(&cancel("web/1")).await, Ok(Cancelled::NotFound));
    let sent = delivery(Kind::OrderCreated, "web/1", &small(2));
    gateway.create(&sent).await.expect("it is taken");
    let paid = json!({"paymentId": "pay_1", "amount": "19", "currency": "EUR", "method": "card"});
    let payment = delivery(Kind::PaymentReceived, "web/1", &paid);
    assert_eq!(gateway.find(&payment).await, Ok(None));
    tryton.script("POST ir.note", &[Say::TruthThenCut]);
    assert!(matches!(gateway.receive_payment(&payment).await, Err(Failure::Unknown(_))));
    assert!(gateway.find(&payment).await.is_ok_and(|found| found.is_some_and(|taken| taken.before)));
    assert!(gateway.receive_payment(&payment).await.is_ok_and(|taken| taken.before));
    assert_eq!(tryton.notes().len(), 1);
    gateway.advance(&sent).await.expect("it is confirmed");
    let too_late = gateway.cancel(&cancel("web/1")).await;
    assert_eq!(too_late, Ok(Cancelled::TooLate("the sale S1 is processing in the ERP".to_owned())));
    // Confirmed by a person in the very moment: Tryton refuses, and the sale says why.
    gateway.create(&delivery(Kind::OrderCreated, "web/2", &small(2))).await.expect("it is taken");
    tryton.script("POST cancel", &[Say::Refusal]);
    let refused = gateway.cancel(&cancel("web/2")).await;
    assert_eq!(refused, Ok(Cancelled::TooLate("the sale id 2 is draft in the ERP: Nein.".to_owned())));
    assert_eq!(gateway.cancel(&cancel("web/2")).await, Ok(Cancelled::Now));
}

#[actix_web::test]
async fn customers_and_their_addresses_are_made_once() {
    let tryton = FakeTryton::start();
    let gateway = gateway(&tryton, OPTIONS);
    let with = |customer: &str, city: &str| {
        json!({"customerId": customer, "channel": "web", "currency": "EUR", "items": [{"sku": "ABC", "qty": 1}],
            "shippingAddress": {"firstName": "Ada", "lastName": "L", "lines": ["Weg 1", " Hof "], "city": city, "country": "DE"}})
    };
    let orders = [
        with("1", "Köln"),
        with("1", "Köln"),
        with("1", "Bonn"),
        with("2/3", "Köln"),
        json!({"customer": {"guest": true, "email": "a@example.org"}, "currency": "EUR", "items": [{"sku": "ABC", "qty": 1}]}),
    ];
    for (number, body) in orders.iter().enumerate() {
        let sent = delivery(Kind::OrderCreated, &format!("web/{number}"), body);
        gateway.create(&sent).await.unwrap_or_else(|failure| panic!("{number}: {failure}"));
    }
    let parties = tryton.parties();
    let seen: Vec<(&Value, usize)> =
        parties.iter().map(|party| (&party["code"], party["addresses"].as_array().map_or(0, Vec::len))).collect();
    assert_eq!(seen, [(&json!("1-C-web/1"), 2), (&json!("1-C-web/2%2F3"), 1), (&json!("1-G-web/4"), 1)]);
    let places: Vec<Value> = tryton.sales().iter().map(|sale| sale["shipment_address"].clone()).collect();
    assert_eq!(places, [101, 101, 102, 201, 301].map(|id| json!(id)));
    assert_eq!(parties[0]["addresses"][0]["street_unstructured"], "Weg 1\nHof");
}

async fn hand_over(shop: &Caller, key: &str, body: &Value) -> (String, String) {
    let answer = shop.post("/v1/orders", key, body).await.expect(201).json();
    let text = |name: &str| answer[name].as_str().expect("every answer has it").to_owned();
    (text("orderId"), text("operationId"))
}

on_both_databases! {
    async fn an_order_becomes_one_sale_though_its_answer_is_lost(world: World) {
        let tryton = FakeTryton::start();
        let shop = world.caller(TENANT, "shop", &["orders:write", "orders:read", "operations:read"]);
        let url = tryton.url();
        let wanted = Wanted { kind: "tryton", url: Some(&url), secret_name: Some(SECRET.0), options: OPTIONS };
        let mut db = Db::open(&config(world.database().url(), &[]).database).expect("the database takes connections");
        connection::set(&mut db, TENANT, Channel::Erp, &wanted).expect("the tenant exists");
        let relay = HandRelay::new(&world, &[]);
        let with_id = |id: &str, sku: &str| {
            json!({"customerId": "cus_1", "items": [{"sku": sku, "qty": 2}], "currency": "EUR", "channel": "web", "externalOrderId": id})
        };
        tryton.script("POST sale.sale", &[Say::TruthThenCut]);
        let (order_id, operation_id) = hand_over(&shop, "k1", &with_id("1", "ABC")).await;
        relay.drain(&world).await;
        let (done, known) = (operation(&shop, &operation_id).await, order(&shop, &order_id).await);
        assert_eq!((&done["status"], outcomes(&done)), (&json!("succeeded"), vec!["unknown".to_owned(), "already_there".to_owned()]));
        assert_eq!((&known["status"], &known["erpReference"]), (&json!("confirmed"), &json!("S1")));
        assert_eq!((tryton.sales().len(), &tryton.sales()[0]["state"]), (1, &json!("processing")));

        let (order_id, operation_id) = hand_over(&shop, "k2", &with_id("2", "NOPE")).await;
        relay.drain(&world).await;
        let (done, known) = (operation(&shop, &operation_id).await, order(&shop, &order_id).await);
        assert_eq!((&done["status"], &known["status"]), (&json!("failed"), &json!("rejected")));
        assert_eq!(done["erp"]["attempts"][0]["detail"], "item 1: unknown SKU NOPE: the ERP has no product of this code");
        assert_eq!(tryton.sales().len(), 1);
    }

    async fn a_connection_to_tryton_is_set_and_checked(world: World) {
        let tryton = FakeTryton::start();
        world.shop();
        let settings = [SECRET, FAST[0]];
        let run = |arguments: &[&str]| {
            let output = process::run(world.database().url(), arguments, &settings);
            let text = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8(text).expect("it is text"))
        };
        let url = tryton.url();
        let set = ["erp", "set", "--tenant", TENANT, "--kind", "tryton", "--url", &url, "--secret-env", SECRET.0];
        let (done, said) = run(&set);
        assert!(!done && said.contains("--web-shop"), "{said}");
        let full = ["--web-shop", "1", "--target", "draft", "--tax", "7=2", "--unit", "XBX=4", "--shipping-sku", "SHIPPING"];
        let (done, said) = run(&[&set[..], &full].concat());
        assert!(done && said.contains("connected by 'tryton'"), "{said}");
        let options = r#"{"webShop":1,"target":"draft","payments":"note","units":{"XBX":4},"taxes":{"7":2},"skus":{"shipping":"SHIPPING"}}"#;
        let rows = format!("{:?}", world.rows("SELECT options FROM connections"));
        assert!(rows.contains(&format!("{options:?}")) || rows.contains(options), "{rows}");
        let (done, said) = run(&["erp", "check", "--tenant", TENANT]);
        assert!(done && said.contains("Tryton answers: web shop 'Shop' of Acme"), "{said}");
        tryton.script("GET 1", &[Say::Page(401), Say::Page(404), Say::Page(500)]);
        for wrong in ["does not accept the key in ORDERS_SECRET_HOOK", "there is no web shop 1; the user of the key sees 1 'Shop'", "modules sale and web_shop"] {
            let (done, said) = run(&["erp", "check", "--tenant", TENANT]);
            assert!(!done && said.contains(wrong) && !said.contains(SECRET.1), "{said}");
        }
    }
}
