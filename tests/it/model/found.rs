//! Sequences that are worth their own names: what a search found once, or what it must be able to find.

use serde_json::{Value, json};

use super::body::{Extra, OrderBody};
use super::contract::Age;
use super::prove;
use super::spelling::{Spelling, Twist};
use super::step::{Content, Expires, OrderName, Precondition, Read, Rights, Step, Try, Wish};
use crate::harness::world::{World, on_both_databases};

fn smallest(external: Option<usize>) -> OrderBody {
    OrderBody { currency: "EUR", lines: vec![(0, "1")], external, channel: true, gross: None, extra: None, fault: None }
}

fn order(external: Option<usize>) -> Wish {
    Wish::Create(smallest(external))
}

fn new(client: usize, key: usize, wish: Wish) -> Try {
    Try::New { client, slot: 0, key, wish, spelling: Spelling::default() }
}

fn again(nth: usize) -> Try {
    Try::Again { nth, client: None, slot: 1, spelling: Spelling::default() }
}

on_both_databases! {
    /// Two orders at once, one of which a third order repeats: the refusal names an order, and makes none.
    async fn a_duplicate_after_two_at_once_names_the_one_that_it_repeats(world: World) {
        prove(&world, &[
            Step::Rivals(new(0, 0, order(None)), new(0, 1, order(Some(0)))),
            Step::Try(new(0, 2, order(Some(0)))),
        ]);
    }

    /// In the open bag too, the order of members and the spelling of numbers make no other order.
    async fn an_order_that_stands_is_what_was_sent_however_its_bag_is_spelled(world: World) {
        let put = |precondition, content| Wish::Put { order: OrderName::Chosen(0), precondition, content };
        let sent = Content::Of(OrderBody { extra: Some(Extra::BagOfNumber), ..smallest(None) });
        let spelling = Spelling::of([Twist::Reversed, Twist::ZerosInNumbers]);
        prove(&world, &[
            Step::Try(Try::New { client: 0, slot: 0, key: 0, wish: put(Precondition::Absent, sent), spelling }),
            Step::Try(new(0, 1, put(Precondition::Stale, Content::AsItStands))),
            Step::Try(new(0, 2, put(Precondition::Present, Content::AsItStands))),
        ]);
        assert_eq!(world.rows("SELECT version FROM orders"), [json!({"version": 1})]);
    }

    /// A key that was forgotten is won anew by another request; the shop's own id still stands for the first one.
    async fn a_forgotten_key_is_free_and_the_shops_order_is_not(world: World) {
        prove(&world, &[
            Step::Try(new(0, 0, order(Some(0)))),
            Step::Age { nth: 0, age: Age::Spent },
            Step::Try(again(0)),
            Step::Clean { batch: 1 },
            Step::Try(again(0)),
            Step::Age { nth: 0, age: Age::Forgotten },
            Step::Try(again(0)),
            Step::Try(new(1, 0, order(Some(0)))),
            Step::Try(new(2, 0, order(Some(0)))),
        ]);
    }

    /// What a cancel gives back, somebody else can reserve; the right to ask for it is looked at each time.
    async fn a_cancel_frees_what_its_order_had_reserved(world: World) {
        let reserve = |order| Wish::Reserve { lines: vec![(0, "2")], order, expires: Some(Expires::Future) };
        let cancel = Wish::Cancel { order: OrderName::Nth(0), reason: true };
        prove(&world, &[
            Step::Try(new(0, 0, Wish::Stock { sku: 0, on_hand: "2.5" })),
            Step::Try(new(0, 0, order(None))),
            Step::Try(new(0, 0, reserve(Some(OrderName::Nth(0))))),
            Step::Try(new(1, 0, reserve(None))),
            Step::Rights { client: 0, slot: 0, rights: Rights::ReadOnly },
            Step::Try(new(0, 0, cancel.clone())),
            Step::Rights { client: 0, slot: 0, rights: Rights::All },
            Step::Rivals(new(0, 0, cancel.clone()), new(0, 1, cancel)),
            Step::Try(new(1, 1, reserve(None))),
            Step::Read { client: 0, slot: 0, read: Read::Stock(0) },
        ]);
        let reservations: Vec<Value> =
            world.rows("SELECT count(*) AS made, count(released_at) AS released FROM reservations");
        assert_eq!(reservations, [json!({"made": 2, "released": 1})]);
    }
}
