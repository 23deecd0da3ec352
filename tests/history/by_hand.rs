//! The checker, checked: histories that the contract allows are accepted, and each that it forbids is refused.

use super::event::{Answer, Ask, Entry, Heard, Scope};
use super::linear::check;

/// A call from one moment to another.
fn call(ask: Ask, begin: u64, end: u64, heard: Heard) -> Entry {
    Entry { client: 0, ask, begin, end: Some((end, heard)) }
}

/// A call that was never heard of again.
fn lost(ask: Ask, begin: u64) -> Entry {
    Entry { client: 0, ask, begin, end: None }
}

fn scope(tenant: &'static str, key: &str) -> Scope {
    Scope { tenant, key: key.to_owned() }
}

/// The order with the identity `web/1`, under this key.
fn create(key: &str) -> Ask {
    Ask::Create { scope: scope("acme", key), body: 1, identity: Some("web/1".to_owned()) }
}

/// Another order under this key, without an identity.
fn other(tenant: &'static str, key: &str) -> Ask {
    Ask::Create { scope: scope(tenant, key), body: 2, identity: None }
}

fn list() -> Ask {
    Ask::List { tenant: "acme", identity: "web/1".to_owned() }
}

fn look(key: &str) -> Ask {
    Ask::Look { scope: scope("acme", key) }
}

fn answer(order: &str, replayed: bool) -> Answer {
    Answer { order: order.to_owned(), text: format!("the order is {order}"), replayed }
}

fn made(order: &str) -> Heard {
    Heard::Made(answer(order, false))
}

fn again(order: &str) -> Heard {
    Heard::Made(answer(order, true))
}

fn duplicate(order: &str, replayed: bool) -> Heard {
    Heard::Duplicate(answer(order, replayed))
}

fn orders(ids: &[&str]) -> Heard {
    Heard::Orders(ids.iter().map(|id| (*id).to_owned()).collect())
}

#[test]
fn what_the_contract_allows_is_accepted() {
    let known = Heard::Known;
    let histories = [
        ("nothing happens", vec![]),
        ("a replay", vec![call(create("a"), 0, 1, made("1")), call(create("a"), 2, 3, again("1"))]),
        ("rivals, the later one first", vec![call(create("a"), 0, 9, again("1")), call(create("a"), 1, 8, made("1"))]),
        ("a lost answer is replayed", vec![lost(create("a"), 0), call(create("a"), 5, 6, again("1"))]),
        ("a lost request is made up for", vec![lost(create("a"), 0), call(create("a"), 5, 6, made("1"))]),
        (
            "a lost request arrives late",
            vec![lost(create("a"), 0), call(list(), 1, 2, orders(&[])), call(list(), 3, 4, orders(&["1"]))],
        ),
        ("a conflict", vec![call(create("a"), 0, 1, made("1")), call(other("acme", "a"), 2, 3, Heard::Conflict)]),
        ("a duplicate", vec![call(create("a"), 0, 1, made("1")), call(create("b"), 2, 3, duplicate("1", false))]),
        ("two tenants, one key", vec![call(create("a"), 0, 1, made("1")), call(other("other", "a"), 2, 3, made("2"))]),
        ("at work", vec![call(create("a"), 0, 9, made("1")), call(create("a"), 1, 2, Heard::AtWork)]),
        (
            "a key is known from its commit on",
            vec![
                call(look("a"), 0, 1, known(false)),
                call(create("a"), 0, 5, made("1")),
                call(look("a"), 2, 3, known(true)),
            ],
        ),
    ];
    for (name, history) in histories {
        assert!(check(&history).is_ok(), "{name}: {}", check(&history).unwrap_err());
    }
}

#[test]
fn what_the_contract_forbids_is_refused() {
    let first = || call(create("a"), 0, 1, made("1"));
    let known = Heard::Known;
    let changed = Heard::Made(Answer { text: "otherwise".to_owned(), ..answer("1", true) });
    let histories = [
        ("two effects under one key", vec![first(), call(create("a"), 2, 3, made("2"))]),
        (
            "two rivals, two effects",
            vec![call(other("acme", "a"), 0, 9, made("1")), call(other("acme", "a"), 1, 8, made("2"))],
        ),
        ("a replay before the first", vec![call(create("a"), 0, 1, again("1")), call(create("a"), 2, 3, made("1"))]),
        ("a replay of nothing", vec![call(create("a"), 0, 1, again("1"))]),
        ("a replay of another order", vec![first(), call(create("a"), 2, 3, again("2"))]),
        ("a replay in other words", vec![first(), call(create("a"), 2, 3, changed)]),
        ("the other body is carried out", vec![first(), call(other("acme", "a"), 2, 3, made("2"))]),
        ("the other body gets the record", vec![first(), call(other("acme", "a"), 2, 3, again("1"))]),
        ("a conflict with nothing", vec![call(create("a"), 0, 1, Heard::Conflict)]),
        ("a mistake of the service", vec![call(create("a"), 0, 1, Heard::Other("500".to_owned()))]),
        ("a conflict with itself", vec![first(), call(create("a"), 2, 3, Heard::Conflict)]),
        ("two orders of one identity", vec![first(), call(create("b"), 2, 3, made("2"))]),
        ("a duplicate of nothing", vec![call(create("a"), 0, 1, duplicate("1", false))]),
        ("a duplicate of another order", vec![first(), call(create("b"), 2, 3, duplicate("2", false))]),
        (
            "a refusal that became an order",
            vec![first(), call(create("b"), 2, 3, duplicate("1", false)), call(create("b"), 4, 5, again("2"))],
        ),
        ("another tenant's record", vec![first(), call(other("other", "a"), 2, 3, again("1"))]),
        ("another tenant's conflict", vec![first(), call(other("other", "a"), 2, 3, Heard::Conflict)]),
        (
            "two keys, one order",
            vec![call(other("acme", "a"), 0, 1, made("1")), call(other("acme", "b"), 2, 3, made("1"))],
        ),
        ("one's own write is not there", vec![first(), call(list(), 2, 3, orders(&[]))]),
        ("an order is there twice", vec![first(), call(list(), 2, 3, orders(&["1", "2"]))]),
        (
            "an order goes away again",
            vec![lost(create("a"), 0), call(list(), 1, 2, orders(&["1"])), call(list(), 3, 4, orders(&[]))],
        ),
        (
            "a lost answer is learned twice",
            vec![lost(create("a"), 0), call(create("a"), 1, 2, again("1")), call(create("a"), 3, 4, again("2"))],
        ),
        (
            "the list and the replay name two orders",
            vec![lost(create("a"), 0), call(list(), 1, 2, orders(&["1"])), call(create("a"), 3, 4, again("2"))],
        ),
        ("a key is not known after its answer", vec![first(), call(look("a"), 2, 3, known(false))]),
        (
            "a key is known before it was sent",
            vec![call(look("a"), 0, 1, known(true)), call(create("a"), 2, 3, made("1"))],
        ),
    ];
    for (name, history) in histories {
        assert!(check(&history).is_err(), "accepted: {name}");
    }
}
