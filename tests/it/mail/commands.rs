//! What `messages.send` promises to who asks: one mail for one intent, written from the order as it stood.

use serde_json::{Value, json};

use super::{ask, mail_shop, order, order_of, outcomes, pay, shop_with_mail, stands};
use crate::harness::relay::{HandRelay, operation};
use crate::harness::smtp::{FakeSmtp, connect_mail};
use crate::harness::world::{TENANT, World, on_both_databases};

on_both_databases! {
    async fn a_mail_is_sent_once_and_says_what_it_should(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with_mail(&world, &server);
        let order_id = order(&shop, "1").await;
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
        let waiting = operation(&shop, &operation_id).await;
        assert_eq!((&waiting["mail"]["state"], &waiting["erp"]), (&json!("waiting"), &Value::Null));
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("processing".into(), "processing".into()));
        relay.drain(&world).await;
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("sent".into(), "succeeded".into()));
        let done = operation(&shop, &operation_id).await;
        assert_eq!((outcomes(&done), &done["mail"]["state"]), (vec!["delivered"], &json!("delivered")));
        assert_eq!(done["links"]["message"], format!("/v1/messages/{message_id}"));
        assert!(done["completedAt"].is_string() && done["expiresAt"].is_string());

        let mails = server.mails();
        assert_eq!(mails.len(), 1);
        let mail = &mails[0];
        assert_eq!((mail.sender.as_str(), &mail.recipients), ("orders@shop.example", &vec!["jana@customer.example".to_owned()]));
        assert_eq!(mail.header("Message-ID"), format!("<{message_id}@shop.example>"));
        assert_eq!(mail.header("Subject"), "Ihre Bestellung №1 😀");
        // The name has a character that a mail quotes.
        assert!(mail.header("From").contains("Müller & Söhne") && mail.header("From").contains("<orders@shop.example>"));
        assert!(mail.header("To").contains("Jürgen Groß") && mail.header("To").contains("<jana@customer.example>"));
        assert_eq!(mail.header("Auto-Submitted"), "auto-generated");
        let text = mail.text();
        for part in ["Guten Tag Jürgen Groß,", "Bestellung №1 😀.", "2 × Käse: 39,90 EUR\n", "Summe: 39,90 EUR\n"] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        // The mail has the date of the command, however late it is sent.
        let asked = chrono::DateTime::parse_from_rfc3339(done["createdAt"].as_str().expect("it has one")).expect("a time");
        let dated = chrono::DateTime::parse_from_rfc2822(&mail.header("Date")).expect("a date");
        assert_eq!(dated.timestamp(), asked.timestamp());
    }

    async fn the_same_key_sends_no_second_mail(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with_mail(&world, &server);
        let order_id = order(&shop, "1").await;
        pay(&shop, "p", &order_id).await;
        let body = json!({"orderId": order_id, "template": "payment-received", "locale": "en"});
        let first = shop.post("/v1/messages", "m", &body).await.expect(201);
        assert_eq!(first.header("location"), first.json()["links"]["self"].as_str());
        for _ in 0..2 {
            let again = shop.post("/v1/messages", "m", &body).await.expect(201);
            assert_eq!((&again.body, again.header("idempotent-replayed")), (&first.body, Some("true")));
            relay.drain(&world).await;
        }
        assert_eq!((server.mails().len(), world.count("messages")), (1, 1));
        assert!(server.mails()[0].text().contains("10.00 EUR of 39.90 EUR for your order №1 😀"));
        // A new intent is a new mail.
        shop.post("/v1/messages", "another", &body).await.expect(201);
        relay.drain(&world).await;
        assert_eq!(server.mails().len(), 2);
    }

    async fn what_cannot_be_sent_is_refused_with_what_to_do(world: World) {
        let shop = mail_shop(&world);
        let bad = json!({"orderId": "x", "template": "spam", "locale": "tlh"});
        let details = shop.post("/v1/messages", "bad", &bad).await.expect(400).json()["details"].clone();
        let said = |pointer: &str| {
            let found = details.as_array().expect("faults").iter().find(|detail| detail["pointer"] == pointer);
            found.expect("it is a fault")["message"].as_str().expect("it has words").to_owned()
        };
        assert_eq!(said("/template"), "This must be one of: order-confirmation, order-cancelled, payment-received.");
        assert_eq!(said("/locale"), "This must be one of: en, de.");
        for (key, customer) in [("1", json!({"name": "Jana"})), ("2", json!({"email": "nobody"})), ("3", json!({"email": "a@b.example\r\nBcc: c@d.example"})), ("4", json!({"email": "\"a\\\"b\"@shop.example"}))] {
            let order_id = order_of(&shop, key, &customer).await;
            let body = json!({"orderId": order_id, "template": "order-confirmation"});
            let refused = shop.post("/v1/messages", &format!("to-{key}"), &body).await.expect(409);
            assert_eq!((refused.error(), &refused.json()["orderId"]), ("NoRecipient".into(), &json!(order_id)));
        }
        // A mail that tells of a payment needs one. The refusal is kept, and a payment afterwards does not change it.
        let order_id = order(&shop, "5").await;
        let body = json!({"orderId": order_id, "template": "payment-received"});
        let refused = shop.post("/v1/messages", "to-5", &body).await.expect(409);
        assert_eq!((refused.error(), &refused.json()["orderId"]), ("NothingPaid".into(), &json!(order_id)));
        pay(&shop, "p", &order_id).await;
        let again = shop.post("/v1/messages", "to-5", &body).await.expect(409);
        assert_eq!((&again.body, again.header("idempotent-replayed")), (&refused.body, Some("true")));
        assert_eq!(world.count("messages"), 0);
        assert_eq!(world.rows("SELECT count(*) AS mails FROM outbox WHERE channel = 'mail'"), [json!({"mails": 0})]);
    }

    async fn nothing_that_a_customer_writes_becomes_a_header(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let shop = shop_with_mail(&world, &server);
        let evil = "a\r\nBcc: victim@customer.example\r\n\r\n.\r\nMAIL FROM:<x@y.example>";
        let body = json!({
            "customer": {"name": evil, "email": "jana@customer.example"}, "currency": "EUR",
            "externalOrderNumber": "1\r\nBcc: victim@customer.example",
            "items": [{"sku": "ABC", "name": ".\r\n.\r\nRSET", "qty": 1}]
        });
        let answer = shop.post("/v1/orders", "1", &body).await.expect(201).json();
        let order_id = answer["orderId"].as_str().expect("every answer has it");
        ask(&shop, "m", order_id, "order-confirmation").await;
        relay.drain(&world).await;
        let mails = server.mails();
        assert_eq!((mails.len(), server.conversations()), (1, 1));
        assert_eq!(mails[0].recipients, ["jana@customer.example"]);
        assert_eq!(mails[0].header("Subject"), "Your order 1 Bcc: victim@customer.example");
        assert!(mails[0].headers("Bcc").is_empty() && mails[0].headers("Cc").is_empty(), "{}", mails[0].raw);
        assert!(mails[0].text().contains("Dear a Bcc: victim@customer.example . MAIL FROM:<x@y.example>,"));
        assert!(mails[0].text().contains("1 × . . RSET\n"), "{}", mails[0].text());
    }

    async fn recorded_answers_and_reads_say_nothing_about_the_customer(world: World) {
        let server = FakeSmtp::start();
        let shop = shop_with_mail(&world, &server);
        let order_id = order(&shop, "1").await;
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
        let seen = [
            world.rows("SELECT reply_body FROM operations WHERE command = 'messages.send'")[0].to_string(),
            format!("{:?}", world.rows("SELECT message_id, order_id, template, locale, status FROM messages")),
            shop.get(&format!("/v1/messages/{message_id}")).await.expect(200).text(),
            shop.get(&format!("/v1/operations/{operation_id}")).await.expect(200).text(),
        ];
        for text in seen {
            assert!(text.contains(&message_id), "{text}");
            assert!(!text.contains("customer.example") && !text.contains("Jürgen"), "{text}");
        }
        let stranger = world.caller("other", "shop", &["messages:read"]);
        assert_eq!(stranger.get(&format!("/v1/messages/{message_id}")).await.expect(404).error(), "MessageNotFound");
    }

    async fn without_a_mail_server_a_message_waits_for_one(world: World) {
        let (server, relay) = (FakeSmtp::start(), HandRelay::new(&world, &[]));
        let shop = mail_shop(&world);
        let order_id = order(&shop, "1").await;
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-cancelled").await;
        relay.drain(&world).await;
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("processing".into(), "processing".into()));
        assert_eq!(operation(&shop, &operation_id).await["mail"]["state"], "waiting");
        connect_mail(&world, TENANT, &server);
        relay.drain(&world).await;
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("sent".into(), "succeeded".into()));
        assert_eq!(server.logins(), [format!("\u{0}shop\u{0}{}", crate::harness::relay::SECRET.1)]);
    }
}
