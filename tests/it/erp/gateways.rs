//! What every gateway keeps, and how a connection is administered. A new gateway needs its line in [`each_gateway`].

use std::time::Duration;

use order_service::config::Secrets;
use order_service::db::Db;
use order_service::erp::{Failure, Gateway, Gateways};
use order_service::outbox::connection::Connection;
use order_service::outbox::{Channel, Kind};

use super::conformance::{Trial, keeps_the_promises};
use crate::harness::erp::{FakeErp, Step};
use crate::harness::process;
use crate::harness::relay::{SECRET, relay_config};
use crate::harness::tryton::{self, FakeTryton};
use crate::harness::world::{World, on_both_databases};

fn connection(kind: &str, url: Option<String>) -> Connection {
    Connection {
        tenant_id: "acme".to_owned(),
        channel: Channel::Erp.as_str().to_owned(),
        kind: kind.to_owned(),
        url,
        secret_name: Some(SECRET.0.to_owned()),
        options: "{}".to_owned(),
        failures: 0,
        paused_until: None,
        pause_reason: None,
        created_at: order_service::db::Instant::default(),
    }
}

fn gateways() -> Gateways {
    let secrets = Secrets::from_iter([(SECRET.0.to_owned(), SECRET.1.to_owned())]);
    Gateways::new(secrets, Duration::from_secs(5), true)
}

fn each_gateway(erp: &FakeErp, tryton: &FakeTryton) -> Vec<(&'static str, Box<dyn Gateway>)> {
    let gateways = gateways();
    let open = |kind, url| gateways.open(&connection(kind, url)).unwrap_or_else(|failure| panic!("{kind}: {failure}"));
    let of_tryton = Connection { options: tryton::OPTIONS.to_owned(), ..connection("tryton", Some(tryton.url())) };
    vec![
        ("sandbox", open("sandbox", None)),
        ("webhook", open("webhook", Some(erp.url()))),
        ("tryton", gateways.open(&of_tryton).expect("it is well configured")),
    ]
}

fn trial(kind: &'static str) -> Trial<'static> {
    let now = chrono::NaiveDate::from_ymd_opt(2026, 3, 2).and_then(|day| day.and_hms_opt(8, 0, 0)).expect("a date");
    Trial { kind, prefix: "web", sku: "ABC", now, since: now }
}

#[actix_web::test]
async fn every_gateway_keeps_the_same_promises() {
    let (erp, tryton) = (FakeErp::start(), FakeTryton::start());
    for (kind, gateway) in each_gateway(&erp, &tryton) {
        let made = keeps_the_promises(&*gateway, &trial(kind)).await;
        match kind {
            "webhook" => assert_eq!(erp.orders().len(), made),
            "tryton" => assert_eq!(tryton.sales().len(), made),
            _ => {}
        }
    }
}

#[actix_web::test]
async fn each_answer_of_a_webhook_means_one_thing() {
    let erp = FakeErp::start();
    let gateway = gateways().open(&connection("webhook", Some(erp.url()))).expect("it is well configured");
    for (number, (step, meaning)) in (0_u32..).zip([
        (Step::Status(400), "refused"),
        (Step::Status(422), "refused"),
        (Step::Status(301), "refused"),
        (Step::Status(308), "refused"),
        (Step::Status(401), "misconfigured"),
        (Step::Status(403), "refused"),
        (Step::Status(404), "refused"),
        (Step::Status(405), "refused"),
        (Step::Status(410), "refused"),
        (Step::Status(408), "unavailable"),
        (Step::Status(425), "unavailable"),
        (Step::Status(429), "unavailable"),
        (Step::Busy("1"), "unavailable"),
        (Step::Status(500), "unknown"),
        (Step::Status(502), "unknown"),
        (Step::Cut, "unknown"),
        (Step::AcceptThenCut, "unknown"),
        (Step::AcceptThenRubbish, "unknown"),
    ]) {
        erp.script(&[step]);
        let said = match gateway.create(&trial("webhook").delivery(Kind::OrderCreated, number)).await {
            Ok(_) => "taken",
            Err(Failure::Refused(_)) => "refused",
            Err(Failure::Conflict(_)) => "conflict",
            Err(Failure::Misconfigured(_)) => "misconfigured",
            Err(Failure::NotDelivered(_)) => "not delivered",
            Err(Failure::Unavailable { .. }) => "unavailable",
            Err(Failure::Unknown(_)) => "unknown",
        };
        assert_eq!(said, meaning, "{step:?}");
    }
    // Each was one request: nothing below the relay tries again.
    assert_eq!(erp.requests("POST").len(), 18);
    let gone = erp.url();
    drop(erp);
    let gateway = gateways().open(&connection("webhook", Some(gone))).expect("it is well configured");
    let failure = gateway.create(&trial("webhook").delivery(Kind::OrderCreated, 99)).await;
    assert!(matches!(failure, Err(Failure::NotDelivered(_))), "{failure:?}");
}

#[actix_web::test]
async fn a_check_of_a_webhook_is_signed_and_says_what_its_answer_means() {
    let erp = FakeErp::start();
    erp.verify(SECRET.1);
    let with = |options: &str| {
        let webhook = Connection { options: options.to_owned(), ..connection("webhook", Some(erp.url())) };
        gateways().open(&webhook).expect("it is well configured")
    };
    let (lookup, resend) = (with("{}"), with(r#"{"unknownOutcome":"resend"}"#));
    let now = trial("webhook").now;
    let well = "the ERP answers (status 404 for an order that is not there)".to_owned();
    assert_eq!(lookup.ping(now).await, Ok(well), "the ERP verifies, and lets us in");
    let asked = &erp.requests("GET")[0];
    assert_eq!((asked.header("webhook-id"), asked.path.as_str()), ("msg_check", "/hooks/orders/ping"));
    for (step, for_lookup, for_resend) in [
        (Step::Status(200), Ok("status 200"), Ok("status 200")),
        (Step::Status(429), Ok("status 429"), Ok("status 429")),
        (Step::Status(405), Err("405: a look-up is answered by 200 or 404"), Ok("status 405")),
        (Step::Status(308), Err("308: it is a redirect"), Err("308: it is a redirect")),
        (Step::Status(401), Err("the secret is not accepted"), Err("the secret is not accepted")),
        (Step::Status(403), Err("the secret is not accepted"), Err("the secret is not accepted")),
        (Step::Status(500), Err("500: it fails itself"), Err("500: it fails itself")),
        (Step::Busy("1"), Err("503: it fails itself"), Err("503: it fails itself")),
        (Step::Cut, Err("the connection ended"), Err("the connection ended")),
    ] {
        for (gateway, wanted) in [(&lookup, for_lookup), (&resend, for_resend)] {
            erp.script_look_ups(&[step]);
            let said = gateway.ping(now).await.map_err(|failure| failure.to_string());
            let fits = match (&said, wanted) {
                (Ok(said), Ok(wanted)) | (Err(said), Err(wanted)) => said.contains(wanted),
                (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
            };
            assert!(fits, "{step:?}: {said:?}, and not {wanted:?}");
        }
    }
    erp.verify("whsec_bm90IHRoZSBzZWNyZXQgdGhhdCB3ZSBob2xk");
    let refused = lookup.ping(now).await.map_err(|failure| failure.to_string());
    assert!(refused.is_err_and(|said| said.contains("the secret is not accepted")));
}

on_both_databases! {
    async fn a_connection_is_administered_and_its_secret_is_nowhere(world: World) {
        let erp = FakeErp::start();
        world.shop();
        let settings = [SECRET, ("ORDERS_ERP_ALLOW_PRIVATE", "on")];
        let run = |arguments: &[&str], settings: &[(&str, &str)]| {
            let output = process::run(world.database().url(), arguments, settings);
            let text = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8(text).expect("it is text"))
        };
        let url = erp.url();
        let set = ["erp", "set", "--tenant", "acme", "--kind", "webhook", "--url", &url, "--secret-env", SECRET.0];
        let (done, said) = run(&set, &settings);
        assert!(done && said.contains("0 messages wait for it"), "{said}");
        let (done, said) = run(&["erp", "check", "--tenant", "acme"], &settings);
        assert!(done && said.contains("the ERP answers"), "{said}");
        // What an ERP says reaches a terminal as text.
        world.database().execute(
            "UPDATE connections SET paused_until = '2100-01-01 00:00:00', pause_reason = 'all is \u{1b}[2Jwell'",
        );
        erp.script_look_ups(&[Step::Status(401)]);
        let (done, said) = run(&["erp", "check", "--tenant", "acme"], &settings);
        assert!(!done && said.contains("the secret is not accepted"), "{said}");
        assert!(said.contains("all is \\u{1b}[2Jwell") && !said.contains('\u{1b}'), "{said}");
        let rows = format!("{:?}", world.rows("SELECT tenant_id, kind, url, secret_name, options FROM connections"));
        assert!(rows.contains(SECRET.0) && !rows.contains(SECRET.1), "{rows}");

        for (arguments, settings, wrong) in [
            (&set[..], &settings[1..], "the variable ORDERS_SECRET_HOOK is not set"),
            (&set, &settings[..1], "http:// is for ORDERS_ERP_ALLOW_PRIVATE=on"),
            (&["erp", "check", "--tenant", "other"], &settings[..], "tenant 'other' has no ERP"),
            (&["erp", "set", "--tenant", "other", "--kind", "sandbox"], &settings, "there is no tenant 'other'"),
            (&["erp", "set", "--tenant", "acme", "--kind", "webhook", "--url", &url, "--secret-env", "HOME"], &settings, "begins with ORDERS_SECRET_"),
        ] {
            let (done, said) = run(arguments, settings);
            assert!(!done && said.contains(wrong) && !said.contains(SECRET.1), "{said}");
        }
        let tryton = |more: &'static [&'static str]| {
            let all = ["erp", "set", "--tenant", "acme", "--kind", "tryton", "--url", "https://erp.example/db", "--secret-env", SECRET.0, "--web-shop", "1"];
            all.into_iter().chain(more.iter().copied()).collect::<Vec<_>>()
        };
        let webhook_at = |url: &'static str| vec!["erp", "set", "--tenant", "acme", "--kind", "webhook", "--url", url, "--secret-env", SECRET.0];
        let sandbox = |more: &'static [&'static str]| {
            ["erp", "set", "--tenant", "acme", "--kind", "sandbox"].into_iter().chain(more.iter().copied()).collect::<Vec<_>>()
        };
        for (arguments, key, wrong) in [
            (webhook_at("https://user:topsecret@erp.example/o"), SECRET.1, "a name or a password"),
            (webhook_at("https://erp.example:0/o"), SECRET.1, "port 0"),
            (webhook_at("https://a..b/"), SECRET.1, "no host name"),
            (webhook_at("https://erp.example/o#frag"), SECRET.1, "behind '#'"),
            (webhook_at("https://erp.example/o"), "", "is not the Base64"),
            (tryton(&[]), "", "ORDERS_SECRET_HOOK holds no key of Tryton's"),
            (tryton(&[]), "abc\ndef", "ORDERS_SECRET_HOOK holds no key of Tryton's"),
            (tryton(&[]), "kľúč", "ORDERS_SECRET_HOOK holds no key of Tryton's"),
            (tryton(&["--unit", "zz=0"]), SECRET.1, "'zz' is an id in Tryton, 1 or more"),
            (tryton(&["--unit", "KGM=1", "--unit", "KGM=2"]), SECRET.1, "--unit names 'KGM' twice"),
            (tryton(&["--tax", "19=0"]), SECRET.1, "'19' is an id in Tryton, 1 or more"),
            (tryton(&["--tax", "19=1", "--tax", "19=2"]), SECRET.1, "--tax names '19' twice"),
            (tryton(&["--tax", "19=1", "--tax", "19.0=2"]), SECRET.1, "the rate 19 is there twice, also as 19.0"),
            (tryton(&["--company", "0"]), SECRET.1, "--company"),
            (tryton(&["--shipping-sku", " "]), SECRET.1, "the product for 'shipping'"),
            (tryton(&["--unknown-outcome", "hold"]), SECRET.1, "'tryton' has no --unknown-outcome"),
            (sandbox(&["--url", "https://erp.example"]), SECRET.1, "'sandbox' has no --url"),
            (sandbox(&["--web-shop", "1", "--unknown-outcome", "lookup"]), SECRET.1, "has no --unknown-outcome, --web-shop"),
        ] {
            let (done, said) = run(&arguments, &[(SECRET.0, key)]);
            assert!(!done && said.contains(wrong) && !said.contains("topsecret"), "{arguments:?}: {said}");
            assert!(said.starts_with("error: ") || said.lines().count() == 1, "one line: {said}");
        }
        let mut db = Db::open(&relay_config(world.database(), &[]).database).expect("the database takes connections");
        let kept = order_service::outbox::connection::find(&mut db, "acme", Channel::Erp).expect("it works").expect("it was set");
        assert_eq!(kept.kind, "webhook", "what was refused has changed nothing");
    }
}
