//! What each answer of a mail server means, and what follows it.

use std::time::{Duration, Instant};

use order_service::config::Secrets;
use order_service::erp::Failure;
use order_service::mail::{Letter, Mailer, Mailers};
use order_service::outbox::Channel;
use order_service::outbox::connection::Connection;
use serde_json::json;

use super::{ask, order, shop_with_mail, stands};
use crate::harness::relay::{HandRelay, SECRET, make_due, operation};
use crate::harness::smtp::{FROM, FakeSmtp, Moment, Step};
use crate::harness::world::{World, on_both_databases};

fn mailer(url: &str, allow_private: bool) -> Result<Mailer, Failure> {
    let secrets = Secrets::from_iter([(SECRET.0.to_owned(), SECRET.1.to_owned())]);
    let connection = Connection {
        tenant_id: "acme".to_owned(),
        channel: Channel::Mail.as_str().to_owned(),
        kind: "smtp".to_owned(),
        url: Some(url.to_owned()),
        secret_name: Some(SECRET.0.to_owned()),
        options: json!({"from": FROM, "user": "shop"}).to_string(),
        failures: 0,
        paused_until: None,
        pause_reason: None,
        created_at: order_service::db::Instant::default(),
    };
    Mailers::new(secrets, allow_private).open(&connection)
}

fn letter(address: &str) -> Letter {
    let payload = json!({
        "occurredAt": "2026-03-02T08:15:31.402Z",
        "mail": {"address": address, "subject": "s", "text": "t"}
    });
    Letter::read("msg_1", &payload.to_string()).expect("it can be read")
}

async fn send(mailer: &Mailer, patience: Duration) -> Result<(), Failure> {
    mailer.send(&letter("jana@customer.example"), Instant::now() + patience).await
}

fn meaning(sent: &Result<(), Failure>) -> &'static str {
    match sent {
        Ok(()) => "taken",
        Err(Failure::Refused(_)) => "refused",
        Err(Failure::Conflict(_)) => "conflict",
        Err(Failure::Misconfigured(_)) => "misconfigured",
        Err(Failure::NotDelivered(_)) => "not delivered",
        Err(Failure::Unavailable { .. }) => "unavailable",
        Err(Failure::Unknown(_)) => "unknown",
    }
}

const LONG: Duration = Duration::from_secs(20);
const ENOUGH: Duration = Duration::from_secs(4);
const SHORT: Duration = Duration::from_millis(300);

#[actix_web::test]
async fn each_answer_of_a_mail_server_means_one_thing() {
    let server = FakeSmtp::start();
    let mailer = mailer(&server.url(), true).expect("it is well configured");
    let steps = [
        (Step::Accept, "taken"),
        (Step::Say(Moment::Greeting, "421 busy"), "unavailable"),
        (Step::Say(Moment::Greeting, "554 not for you"), "misconfigured"),
        (Step::Cut(Moment::Greeting), "not delivered"),
        (Step::Hang(Moment::Greeting), "not delivered"),
        (Step::Say(Moment::Login, "535 wrong password"), "misconfigured"),
        (Step::Say(Moment::Login, "454 later"), "unavailable"),
        (Step::Cut(Moment::Login), "not delivered"),
        (Step::Say(Moment::Sender, "550 not your address"), "misconfigured"),
        (Step::Say(Moment::Sender, "451 later"), "unavailable"),
        (Step::Say(Moment::Recipient, "450 greylisted"), "unavailable"),
        (Step::Say(Moment::Recipient, "550 no such user"), "refused"),
        (Step::Say(Moment::Recipient, "530 log in first"), "misconfigured"),
        (Step::Cut(Moment::Recipient), "not delivered"),
        (Step::Hang(Moment::Recipient), "not delivered"),
        (Step::Say(Moment::Data, "451 later"), "unavailable"),
        (Step::Say(Moment::Data, "554 no"), "refused"),
        (Step::Say(Moment::Data, "250 ok"), "not delivered"),
        (Step::Cut(Moment::Data), "not delivered"),
        (Step::Say(Moment::Content, "452 disk full"), "unavailable"),
        (Step::Say(Moment::Content, "554 spam"), "refused"),
        (Step::Say(Moment::Content, "gibberish"), "unknown"),
        (Step::Cut(Moment::Content), "unknown"),
        (Step::Hang(Moment::Content), "unknown"),
        (Step::AcceptThenCut, "unknown"),
        (Step::AcceptThenHang, "unknown"),
    ];
    for (number, (step, means)) in (1_usize..).zip(steps) {
        server.script(&[step]);
        let patience = match step {
            // Long enough for the mail to be sent, on a busy machine too.
            Step::Hang(Moment::Content) | Step::AcceptThenHang => ENOUGH,
            Step::Hang(_) => SHORT,
            _ => LONG,
        };
        let sent = send(&mailer, patience).await;
        assert_eq!(meaning(&sent), means, "{step:?}: {sent:?}");
        assert_eq!(server.conversations(), number, "{step:?}: each was one conversation");
    }
    let gone = server.url();
    drop(server);
    let mailer = self::mailer(&gone, true).expect("it is well configured");
    assert_eq!(meaning(&send(&mailer, LONG).await), "not delivered");
}

#[actix_web::test]
async fn a_servers_words_are_kept_without_the_address() {
    let server = FakeSmtp::start();
    let mailer = mailer(&server.url(), true).expect("it is well configured");
    server.script(&[Step::Say(Moment::Recipient, "550 5.1.1 <jana@customer.example> is nobody")]);
    let Err(Failure::Refused(words)) = send(&mailer, LONG).await else { panic!("it was not refused") };
    assert_eq!(words, "the mail server answered 550: 5.1.1 <the recipient> is nobody");
    server.script(&[Step::Say(Moment::Recipient, "550 5.1.1 <JANA@Customer.Example> is nobody")]);
    let Err(Failure::Refused(words)) = send(&mailer, LONG).await else { panic!("it was not refused") };
    assert_eq!(words, "the mail server answered 550: 5.1.1 <the recipient> is nobody");
    let abroad = mailer.send(&letter("jürgen@customer.example"), Instant::now() + LONG).await;
    assert_eq!(meaning(&abroad), "refused", "the server takes ASCII only: {abroad:?}");
    assert_eq!(server.mails().len(), 0);
}

#[actix_web::test]
async fn a_connection_goes_only_where_it_may_and_encrypted_where_it_has_to_be() {
    let server = FakeSmtp::start();
    let plain = server.url();
    // A server that speaks no TLS, where TLS is wanted from the first byte.
    let wrapped = mailer(&plain.replace("smtp:", "smtps:"), true).expect("it is well configured");
    let refused = send(&wrapped, LONG).await;
    assert!(matches!(&refused, Err(Failure::Misconfigured(said)) if said.contains("TLS")), "{refused:?}");
    let before = server.conversations();
    for (url, words) in [
        (plain.as_str(), "in a private network"),
        ("smtps://localhost", "in a private network"),
        ("smtp://[::1]:25", "in a private network"),
        ("smtps://no-such-host.invalid", "cannot be resolved"),
    ] {
        // A literal address is looked at when the connection is made, a name when it is resolved.
        let refused = match mailer(url, false) {
            Ok(mailer) => send(&mailer, LONG).await,
            Err(failure) => Err(failure),
        };
        assert!(matches!(&refused, Err(Failure::Misconfigured(said)) if said.contains(words)), "{url}: {refused:?}");
    }
    assert_eq!(server.conversations(), before, "nothing was connected to");
    for url in [
        "http://mail.example",
        "smtp://",
        "smtp://user:hunter2@mail.example",
        "smtp://mail.example/?tls=none",
        "smtp://mail.example/path",
        "mail.example",
    ] {
        let refused = mailer(url, true).map(|_| ());
        assert!(
            matches!(&refused, Err(Failure::Misconfigured(said)) if !said.contains("hunter2")),
            "{url}: {refused:?}"
        );
    }
}

on_both_databases! {
    async fn a_refused_mail_has_failed_and_the_order_is_as_it_was(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with_mail(&world, &server);
        server.script(&[Step::Say(Moment::Recipient, "550 no such user")]);
        let order_id = order(&shop, "1").await;
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
        let orders = world.rows("SELECT * FROM orders");
        relay.drain(&world).await;
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("failed".into(), "failed".into()));
        let failed = operation(&shop, &operation_id).await;
        assert_eq!((&failed["error"], &failed["mail"]["state"]), (&json!("RefusedByMailServer"), &json!("refused")));
        assert_eq!(failed["mail"]["attempts"][0]["detail"], "the mail server answered 550: no such user");
        assert_eq!(world.rows("SELECT * FROM orders"), orders);
        assert_eq!(server.conversations(), 1);
    }

    async fn a_busy_server_is_asked_again_until_the_budget_is_gone(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[("ORDERS_RETRY_ATTEMPTS", "3")]));
        let shop = shop_with_mail(&world, &server);
        server.script(&[Step::Say(Moment::Recipient, "450 greylisted"); 4]);
        let order_id = order(&shop, "1").await;
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
        relay.drain(&world).await;
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("unresolved".into(), "unresolved".into()));
        assert_eq!((server.conversations(), server.mails().len()), (3, 0));
    }

    async fn a_wrong_password_pauses_the_connection_and_not_the_mails(world: World) {
        let settings = [("ORDERS_RETRY_CAP", "1h"), ("ORDERS_RETRY_ATTEMPTS", "1")];
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &settings));
        let shop = shop_with_mail(&world, &server);
        server.script(&[Step::Say(Moment::Login, "535 wrong password")]);
        let order_id = order(&shop, "1").await;
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
        relay.step().await;
        assert_eq!(relay.step().await, 0, "while it is paused nothing is sent");
        let paused = world.rows("SELECT channel, pause_reason FROM connections WHERE paused_until IS NOT NULL");
        assert_eq!(paused, [json!({"channel": "mail", "pause_reason": "the mail server answered 535: wrong password"})]);
        make_due(&world);
        assert_eq!(relay.step().await, 1);
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("sent".into(), "succeeded".into()));
    }
}
