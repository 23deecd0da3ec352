//! A relay that is killed with -9 while it sends a mail: the mail is not sent twice, and a person sees what is in doubt.

use std::time::Duration;

use serde_json::json;

use super::{ask, order, outcomes, shop_with_mail, stands};
use crate::harness::http::Caller;
use crate::harness::process::Process;
use crate::harness::relay::{FAST, HandRelay, SECRET, end_leases, operation};
use crate::harness::smtp::{FakeSmtp, Moment, Step};
use crate::harness::wait::until;
use crate::harness::world::{World, on_both_databases};

const SOON: Duration = Duration::from_mins(1);

fn start(world: &World) -> Process {
    let own = [SECRET, ("ORDERS_ERP_TIMEOUT", "15s")];
    let settings: Vec<(&str, &str)> = FAST.iter().copied().chain(own).collect();
    Process::relay(world.database().url(), &settings)
}

/// After the death of a relay: time passes, another one comes, and leaves it to a person.
async fn the_next_relay_asks_a_person(world: &World, shop: &Caller, names: (&str, &str)) {
    end_leases(world);
    HandRelay::new(world, &[]).drain(world).await;
    assert_eq!(stands(shop, names).await, ("unresolved".into(), "unresolved".into()));
}

on_both_databases! {
    async fn after_the_mail_was_taken_and_before_the_answer(world: World) {
        let server = FakeSmtp::start();
        let shop = shop_with_mail(&world, &server);
        server.script(&[Step::AcceptThenHang]);
        let order_id = order(&shop, "1").await;
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
        let relay = start(&world);
        server.wait_for_mails(1);
        relay.kill();
        the_next_relay_asks_a_person(&world, &shop, (&message_id, &operation_id)).await;
        assert_eq!((server.mails().len(), server.conversations()), (1, 1));
        assert_eq!(outcomes(&operation(&shop, &operation_id).await), ["unknown", "unknown"]);
    }

    /// Who is killed cannot tell how far it got: it is a doubt, even if nothing was sent.
    async fn before_the_mail_was_sent(world: World) {
        let server = FakeSmtp::start();
        let shop = shop_with_mail(&world, &server);
        server.script(&[Step::Hang(Moment::Recipient)]);
        let order_id = order(&shop, "1").await;
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
        let relay = start(&world);
        until(SOON, "the relay has asked the mail server", || server.conversations() == 1);
        relay.kill();
        the_next_relay_asks_a_person(&world, &shop, (&message_id, &operation_id)).await;
        assert_eq!((server.mails().len(), server.conversations()), (0, 1));
        let retry = format!("/v1/operations/{operation_id}/retry");
        shop.post(&retry, "r", &json!({})).await.expect(200);
        HandRelay::new(&world, &[]).drain(&world).await;
        assert_eq!(stands(&shop, (&message_id, &operation_id)).await, ("sent".into(), "succeeded".into()));
        assert_eq!(server.mails().len(), 1);
    }

    /// The word of a person is for one mail: a relay that dies over it has used it.
    async fn while_it_sends_again_what_a_person_wanted_sent_again(world: World) {
        let server = FakeSmtp::start();
        let shop = shop_with_mail(&world, &server);
        server.script(&[Step::AcceptThenCut, Step::AcceptThenHang]);
        let order_id = order(&shop, "1").await;
        let (message_id, operation_id) = ask(&shop, "m", &order_id, "order-confirmation").await;
        HandRelay::new(&world, &[]).drain(&world).await;
        shop.post(&format!("/v1/operations/{operation_id}/retry"), "r", &json!({})).await.expect(200);
        let relay = start(&world);
        server.wait_for_mails(2);
        relay.kill();
        the_next_relay_asks_a_person(&world, &shop, (&message_id, &operation_id)).await;
        assert_eq!((server.mails().len(), server.conversations()), (2, 2));
    }
}
