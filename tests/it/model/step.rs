//! The steps of a sequence. Whatever a step is about is named by a small number, so that any part of a sequence is a
//! sequence too, and a failure shrinks to the few steps that make it.

use proptest::prelude::*;
use proptest::sample::select;

use super::body::{OrderBody, SKUS, any_order};
use super::contract::{Age, TENANT_OF};
use super::spelling::{Spelling, any_spelling};

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// A command is sent.
    Try(Try),
    /// Two commands are sent at the same time.
    Rivals(Try, Try),
    /// A request that is refused before the claim.
    Broken { client: usize, broken: Broken },
    /// An API key gets other rights, or its own back.
    Rights { client: usize, slot: usize, rights: Rights },
    /// Time passes for the n-th claim.
    Age { nth: usize, age: Age },
    /// The cleaner comes by.
    Clean { batch: u32 },
    /// Time passes for the n-th reservation of a tenant that may expire.
    Expire { tenant: usize, nth: usize },
    /// The ERP answers about the n-th order of a tenant.
    Erp { tenant: usize, nth: usize, status: &'static str },
    /// Something is read.
    Read { client: usize, slot: usize, read: Read },
}

/// A command that is sent, or sent again.
#[derive(Clone, Debug)]
pub enum Try {
    /// By one of the two API keys of a client, under one of few idempotency keys.
    New { client: usize, slot: usize, key: usize, wish: Wish, spelling: Spelling },
    /// The n-th try again, under the same key, in any spelling; by another client where one is named.
    Again { nth: usize, client: Option<usize>, slot: usize, spelling: Spelling },
    /// Another body under the key and to the path of the n-th try.
    Otherwise { nth: usize, slot: usize, number: usize, spelling: Spelling },
}

/// What a client wants.
#[derive(Clone, Debug)]
pub enum Wish {
    Create(OrderBody),
    Put { order: OrderName, precondition: Precondition, content: Content },
    Cancel { order: OrderName, reason: bool },
    Pay { order: OrderName, amount: &'static str, currency: &'static str, reference: Option<usize> },
    Stock { sku: usize, on_hand: &'static str },
    Reserve { lines: Vec<(usize, &'static str)>, order: Option<OrderName>, expires: Option<Expires> },
    Release { reservation: usize },
    Send { order: OrderName, template: &'static str, locale: Option<&'static str> },
}

/// An order by a name that means something in any sequence.
#[derive(Clone, Copy, Debug)]
pub enum OrderName {
    /// The n-th of the tenant, counted round; one that does not exist where it has none.
    Nth(usize),
    /// One that does not exist.
    Nobody,
    /// One that a client may choose.
    Chosen(usize),
    /// One that no client may choose.
    NotToChoose,
    /// The n-th of the other tenant.
    Foreign(usize),
}

/// What `PUT` sends.
#[derive(Clone, Debug)]
pub enum Content {
    /// This.
    Of(OrderBody),
    /// What stands already, where something does.
    AsItStands,
    /// The same, with a note: another order of the same identity.
    Noted(usize),
}

/// The preconditions of `PUT`.
#[derive(Clone, Copy, Debug)]
pub enum Precondition {
    Absent,
    Present,
    Current,
    Stale,
    None,
}

/// When a reservation is to expire.
#[derive(Clone, Copy, Debug)]
pub enum Expires {
    Past,
    Future,
}

/// Requests that are refused before the claim. None of them may leave a trace.
#[derive(Clone, Copy, Debug)]
pub enum Broken {
    NoKey,
    BlankKey,
    TwoKeys,
    NotJson,
    TwiceTheMember,
    PlainText,
    NoApiKey,
}

/// What an API key may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    All,
    Revoked,
    ReadOnly,
    WriteOnly,
}

/// What is read.
#[derive(Clone, Copy, Debug)]
pub enum Read {
    Order(OrderName),
    Orders,
    Stock(usize),
    Reservation(usize),
    Payment(usize),
    Message(usize),
    /// The operation of the n-th claim, found by its key.
    OperationByKey(usize),
    /// The operation of the n-th claim, by its id.
    Operation(usize),
}

/// A sequence of at most this many steps.
pub fn any_steps(most: usize) -> BoxedStrategy<Vec<Step>> {
    let steps = prop::collection::vec(any_step(), 1..=most);
    (any::<bool>(), steps)
        .prop_map(|(stocked, steps)| if stocked { [opening(), steps].concat() } else { steps })
        .boxed()
}

/// What makes it likely that something can be reserved and paid.
fn opening() -> Vec<Step> {
    let order = OrderBody {
        currency: "EUR",
        lines: vec![(0, "1")],
        external: None,
        channel: false,
        gross: Some("10.5"),
        extra: None,
        fault: None,
    };
    let wishes = [Wish::Stock { sku: 0, on_hand: "5" }, Wish::Stock { sku: 1, on_hand: "2.5" }, Wish::Create(order)];
    let new = |(key, wish)| Try::New { client: 0, slot: 0, key, wish, spelling: Spelling::default() };
    (OPENING_KEYS..).zip(wishes).map(|(key, wish)| Step::Try(new((key, wish)))).collect()
}

/// Keys of the first steps, and of rivals that are to meet at an order or a SKU and not at a key.
const OPENING_KEYS: usize = 10;
const RIVAL_KEYS: usize = 20;

/// Two commands about the same order or the same SKU, under keys that nobody else has used much.
fn any_rivals() -> BoxedStrategy<Step> {
    let order = OrderName::Nth(0);
    let wish = || {
        prop_oneof![
            3 => (select(vec!["2.5", "10"]), prop::option::of(0..1_usize))
                .prop_map(move |(amount, reference)| Wish::Pay { order, amount, currency: "EUR", reference }),
            1 => any::<bool>().prop_map(move |reason| Wish::Cancel { order, reason }),
            3 => (select(vec!["2", "3"]), prop::option::of(Just(order)))
                .prop_map(|(qty, order)| Wish::Reserve { lines: vec![(0, qty)], order, expires: None }),
            1 => select(vec!["1", "5"]).prop_map(|on_hand| Wish::Stock { sku: 0, on_hand }),
            1 => (0..3_usize).prop_map(|reservation| Wish::Release { reservation }),
            1 => (0..3_usize).prop_map(move |note| Wish::Put {
                order,
                precondition: Precondition::Present,
                content: Content::Noted(note),
            }),
        ]
    };
    let new = |key, wish| Try::New { client: 0, slot: 0, key, wish, spelling: Spelling::default() };
    (RIVAL_KEYS..RIVAL_KEYS + 20, wish(), wish())
        .prop_map(move |(key, one, other)| Step::Rivals(new(key, one), new(key + 20, other)))
        .boxed()
}

fn any_step() -> BoxedStrategy<Step> {
    let tenants = 0..=TENANT_OF[TENANT_OF.len() - 1];
    let broken = select(vec![
        Broken::NoKey,
        Broken::BlankKey,
        Broken::TwoKeys,
        Broken::NotJson,
        Broken::TwiceTheMember,
        Broken::PlainText,
        Broken::NoApiKey,
    ]);
    let rights =
        prop_oneof![3 => Just(Rights::All), 1 => select(vec![Rights::Revoked, Rights::ReadOnly, Rights::WriteOnly])];
    let says = select(vec!["confirmed", "rejected"]);
    prop_oneof![
        24 => any_try().prop_map(Step::Try),
        2 => (any_try(), any_try()).prop_map(|(one, other)| Step::Rivals(one, other)),
        4 => any_rivals(),
        1 => any_try().prop_map(|one| Step::Rivals(one.clone(), one)),
        1 => (any_client(), broken).prop_map(|(client, broken)| Step::Broken { client, broken }),
        2 => (any_client(), 0..2_usize, rights).prop_map(|(client, slot, rights)| Step::Rights { client, slot, rights }),
        3 => (0..8_usize, select(vec![Age::Spent, Age::Forgotten])).prop_map(|(nth, age)| Step::Age { nth, age }),
        2 => select(vec![1, 100]).prop_map(|batch| Step::Clean { batch }),
        1 => (tenants.clone(), 0..3_usize).prop_map(|(tenant, nth)| Step::Expire { tenant, nth }),
        1 => (tenants, 0..4_usize, says).prop_map(|(tenant, nth, status)| Step::Erp { tenant, nth, status }),
        4 => (any_client(), 0..2_usize, any_read()).prop_map(|(client, slot, read)| Step::Read { client, slot, read }),
    ]
    .boxed()
}

/// The first client is at work most, so that things meet.
fn any_client() -> BoxedStrategy<usize> {
    prop_oneof![4 => Just(0_usize), 1 => Just(1), 1 => Just(2)].boxed()
}

fn any_try() -> BoxedStrategy<Try> {
    let new = (any_client(), 0..2_usize, 0..8_usize, any_wish(), any_spelling())
        .prop_map(|(client, slot, key, wish, spelling)| Try::New { client, slot, key, wish, spelling });
    let again = (0..25_usize, prop::option::weighted(0.2, any_client()), 0..2_usize, any_spelling())
        .prop_map(|(nth, client, slot, spelling)| Try::Again { nth, client, slot, spelling });
    let otherwise = (0..25_usize, 0..2_usize, 0..2_usize, any_spelling())
        .prop_map(|(nth, slot, number, spelling)| Try::Otherwise { nth, slot, number, spelling });
    prop_oneof![7 => new, 3 => again, 1 => otherwise].boxed()
}

fn any_order_name() -> BoxedStrategy<OrderName> {
    prop_oneof![
        12 => prop_oneof![2 => Just(0_usize), 1 => 1..4_usize].prop_map(OrderName::Nth),
        2 => (0..2_usize).prop_map(OrderName::Chosen),
        1 => Just(OrderName::Nobody),
        1 => (0..2_usize).prop_map(OrderName::Foreign),
    ]
    .boxed()
}

fn any_wish() -> BoxedStrategy<Wish> {
    let chosen = prop_oneof![
        5 => (0..2_usize).prop_map(OrderName::Chosen),
        1 => Just(OrderName::NotToChoose),
        1 => Just(OrderName::Nobody),
        6 => (0..4_usize).prop_map(OrderName::Nth),
        1 => (0..2_usize).prop_map(OrderName::Foreign),
    ];
    let precondition = prop_oneof![
        8 => Just(Precondition::Absent),
        3 => Just(Precondition::Present),
        6 => Just(Precondition::Current),
        2 => Just(Precondition::Stale),
        1 => Just(Precondition::None),
    ];
    let content = prop_oneof![
        3 => any_order().prop_map(Content::Of),
        1 => Just(Content::AsItStands),
        3 => (0..3_usize).prop_map(Content::Noted),
    ];
    let put = (chosen, precondition, content).prop_map(|(order, precondition, content)| Wish::Put {
        order,
        precondition,
        content,
    });
    let amount = prop_oneof![6 => select(vec!["1", "2.5", "10"]), 1 => select(vec!["0", "1.005"])];
    let pay = (any_order_name(), amount, prop_oneof![5 => Just("EUR"), 1 => Just("USD")], prop::option::of(0..2_usize))
        .prop_map(|(order, amount, currency, reference)| Wish::Pay { order, amount, currency, reference });
    let on_hand = prop_oneof![8 => select(vec!["0", "1", "5", "20"]), 1 => Just("-1")];
    let stock = (0..SKUS.len(), on_hand).prop_map(|(sku, on_hand)| Wish::Stock { sku, on_hand });
    let line = (0..SKUS.len(), prop_oneof![8 => select(vec!["1", "0.5", "2"]), 1 => Just("0")]);
    let expires = prop_oneof![4 => Just(Expires::Future), 1 => Just(Expires::Past)];
    let reserve = (
        prop::collection::vec(line, 1..=2),
        prop::option::weighted(0.5, any_order_name()),
        prop::option::weighted(0.4, expires),
    )
        .prop_map(|(lines, order, expires)| Wish::Reserve { lines, order, expires });
    let template = prop_oneof![6 => select(vec!["order-confirmation", "payment-received"]), 1 => Just("spam")];
    let locale = prop::option::weighted(0.3, select(vec!["en", "de"]));
    let send = (any_order_name(), template, locale).prop_map(|(order, template, locale)| Wish::Send {
        order,
        template,
        locale,
    });
    prop_oneof![
        6 => any_order().prop_map(Wish::Create),
        4 => put,
        3 => (any_order_name(), any::<bool>()).prop_map(|(order, reason)| Wish::Cancel { order, reason }),
        4 => pay,
        4 => stock,
        5 => reserve,
        2 => (0..4_usize).prop_map(|reservation| Wish::Release { reservation }),
        3 => send,
    ]
    .boxed()
}

fn any_read() -> BoxedStrategy<Read> {
    prop_oneof![
        3 => any_order_name().prop_map(Read::Order),
        1 => Just(Read::Orders),
        2 => (0..SKUS.len()).prop_map(Read::Stock),
        2 => (0..4_usize).prop_map(Read::Reservation),
        1 => (0..3_usize).prop_map(Read::Payment),
        1 => (0..3_usize).prop_map(Read::Message),
        2 => (0..8_usize).prop_map(Read::OperationByKey),
        1 => (0..8_usize).prop_map(Read::Operation),
    ]
    .boxed()
}
