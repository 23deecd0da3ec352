//! Properties of normalisation and validation, on bodies made from the table itself, valid and not.

use crate::json_input::any_json;
use order_service::json::{Json, Number};
use order_service::order::{ORDER, Order};
use order_service::schema::{Kind, Member, Object, Presence, code};
use proptest::prelude::*;

/// Any body whose members are mostly of the right kind, and now and then anything at all.
fn any_body(table: &'static Object) -> BoxedStrategy<Json> {
    let members: Vec<_> = table
        .members
        .iter()
        .map(|member| {
            let value = prop_oneof![12 => any_value(&member.kind), 1 => Just(Json::Null), 1 => any_json()];
            prop::option::weighted(0.6, value.prop_map(|value| (member.name.to_owned(), value)))
        })
        .collect();
    let unknown = prop::option::weighted(0.1, any_json().prop_map(|value| ("frobnicate".to_owned(), value)));
    (members, unknown)
        .prop_map(|(members, unknown)| Json::Object(members.into_iter().flatten().chain(unknown).collect()))
        .boxed()
}

fn any_value(kind: &'static Kind) -> BoxedStrategy<Json> {
    let text =
        |choices: &'static [&'static str]| prop::sample::select(choices).prop_map(|text| Json::Text(text.to_owned()));
    match kind {
        Kind::Text { .. } => "[a-bľ ]{0,3}".prop_map(Json::Text).boxed(),
        Kind::Token(tokens) => text(tokens).boxed(),
        Kind::Decimal(_) => any_decimal().prop_map(Json::Text).boxed(),
        Kind::Currency => text(&["EUR", "jpy", "KWD", "XXX", "eu"]).boxed(),
        Kind::Country => text(&["SK", "xk", "ZZ"]).boxed(),
        Kind::Instant => text(&["2026-03-02T08:15:31Z", "2026-03-02T09:15:31.50+01:00", "2026-03-02"]).boxed(),
        Kind::Unit => text(&["C62", "KGM", "kg"]).boxed(),
        Kind::Bool => any::<bool>().prop_map(Json::Bool).boxed(),
        Kind::List { of, .. } => prop::collection::vec(any_value(of), 0..3).prop_map(Json::Array).boxed(),
        Kind::Object(table) => any_body(table),
        Kind::Bag { .. } => prop::collection::btree_map("[a-c]", any_json(), 0..3)
            .prop_map(|members| Json::Object(members.into_iter().collect()))
            .boxed(),
    }
}

fn any_decimal() -> impl Strategy<Value = String> {
    "-?[0-9]{1,3}(\\.[0-9]{1,3})?"
}

/// An order that keeps every rule: what it leaves out and in varies, and so do its figures.
fn valid_order() -> impl Strategy<Value = Json> {
    let line =
        (1u32..1_000, 0u32..100_000, any::<bool>(), prop::sample::select(vec!["product", "shipping", "discount"]));
    let lines = prop::collection::vec(line, 1..6);
    (lines, any::<bool>(), any::<bool>(), "[a-zľ🙏 ]{0,20}").prop_map(|(lines, including_tax, with_totals, note)| {
        let number = |number: u32| Json::Number(Number::from(number));
        let object = |members: Vec<(&str, Json)>| {
            Json::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        };
        let sum: u32 = lines.iter().map(|(_, total, ..)| total).sum();
        let items = lines.into_iter().enumerate().map(|(index, (qty, total, child, kind))| {
            let mut line = vec![
                ("lineId", Json::Text(index.to_string())),
                ("name", Json::Text("Ž".to_owned())),
                ("kind", Json::Text(kind.to_owned())),
                ("qty", number(qty)),
                ("total", number(total)),
            ];
            if child && index > 0 {
                line.push(("parentLineId", Json::Text("0".to_owned())));
            }
            object(line)
        });
        let mut order = vec![
            ("customerId", Json::Text("c".to_owned())),
            ("currency", Json::Text("eur".to_owned())),
            ("items", Json::Array(items.collect())),
            ("pricesIncludeTax", Json::Bool(including_tax)),
            ("note", Json::Text(note)),
            ("extensions", object(vec![("a", Json::Null), ("b", number(sum))])),
        ];
        if with_totals {
            order.push(("totals", object(vec![(if including_tax { "gross" } else { "net" }, number(sum))])));
        }
        object(order)
    })
}

/// Endless small decisions, drawn by the property test so that they shrink with it.
#[derive(Debug)]
struct Choices {
    drawn: Vec<u8>,
    next: usize,
}

impl Choices {
    fn below(&mut self, limit: usize) -> usize {
        self.next += 1;
        usize::from(self.drawn[self.next % self.drawn.len()]) % limit.max(1)
    }
}

fn choices() -> impl Strategy<Value = Choices> {
    prop::collection::vec(any::<u8>(), 64).prop_map(|drawn| Choices { drawn, next: 0 })
}

/// The same intent in another spelling: members in another order, `null` or the default for absent, decimals, codes and
/// instants written otherwise.
fn respell(table: &Object, body: &Json, choices: &mut Choices) -> Json {
    let Json::Object(sent) = body else {
        return body.clone();
    };
    let mut members: Vec<(String, Json)> = Vec::new();
    for member in table.members {
        let value = body.get(member.name).filter(|value| !value.is_null());
        let value = match value {
            Some(value) => Some(respell_value(&member.kind, value, choices)),
            None => absence(member, choices),
        };
        members.extend(value.map(|value| (member.name.to_owned(), value)));
    }
    members.extend(sent.iter().filter(|(name, _)| table.member(name).is_none()).cloned());
    shuffle(&mut members, choices);
    Json::Object(members)
}

fn absence(member: &Member, choices: &mut Choices) -> Option<Json> {
    match (choices.below(3), member.presence, &member.kind) {
        (0, _, _) => Some(Json::Null),
        (1, Presence::Optional, Kind::List { .. }) => Some(Json::Array(Vec::new())),
        (1, Presence::Default(value), Kind::Bool) => Some(Json::Bool(value == "true")),
        (1, Presence::Default(value), _) => Some(Json::Text(value.to_owned())),
        _ => None,
    }
}

fn respell_value(kind: &Kind, value: &Json, choices: &mut Choices) -> Json {
    match (kind, value) {
        (Kind::Decimal(_), Json::Text(text)) => respell_decimal(text, choices).unwrap_or_else(|| value.clone()),
        (Kind::Decimal(_), Json::Number(number)) => Json::Text(number.as_str().to_owned()),
        (Kind::Currency | Kind::Country, Json::Text(text)) => match choices.below(2) {
            0 => Json::Text(text.to_ascii_lowercase()),
            _ => Json::Text(text.to_ascii_uppercase()),
        },
        (Kind::Instant, Json::Text(text)) => Json::Text(text.replace('Z', "+00:00")),
        (Kind::Object(table), value) => respell(table, value, choices),
        (Kind::List { of, .. }, Json::Array(elements)) => {
            Json::Array(elements.iter().map(|element| respell_value(of, element, choices)).collect())
        }
        (Kind::Bag { .. }, Json::Object(members)) => {
            let mut members = members.clone();
            shuffle(&mut members, choices);
            Json::Object(members)
        }
        _ => value.clone(),
    }
}

fn respell_decimal(text: &str, choices: &mut Choices) -> Option<Json> {
    let number = Number::from_decimal(text)?;
    let (sign, unsigned) = text.strip_prefix('-').map_or(("", text), |unsigned| ("-", unsigned));
    Some(match choices.below(4) {
        0 => Json::Number(number),
        1 => Json::Text(number.as_str().to_owned()),
        2 => Json::Text(format!("{sign}00{unsigned}")),
        _ if text.contains('.') => Json::Text(format!("{text}000")),
        _ => Json::Text(format!("{text}.0")),
    })
}

fn shuffle(members: &mut [(String, Json)], choices: &mut Choices) {
    for index in (1..members.len()).rev() {
        members.swap(index, choices.below(index + 1));
    }
}

fn normal(body: &Json) -> String {
    ORDER.normal(body).canonical()
}

/// The faults without their order, as `pointer code`.
fn fault_set(body: &Json) -> Vec<String> {
    let faults = Order::parse(body).err().unwrap_or_default();
    let mut faults: Vec<_> = faults.iter().map(|fault| format!("{} {}", fault.pointer, fault.code)).collect();
    faults.sort();
    faults
}

proptest! {
    #[test]
    fn normalisation_is_idempotent(body in any_body(&ORDER)) {
        let once = ORDER.normal(&body);
        prop_assert_eq!(normal(&once), once.canonical());
        let complete = ORDER.complete(&body);
        prop_assert_eq!(ORDER.complete(&complete), complete);
    }

    #[test]
    fn normalisation_is_total(body in any_json()) {
        prop_assert_eq!(normal(&ORDER.normal(&body)), normal(&body));
        prop_assert!(Order::parse(&body).is_err());
    }

    #[test]
    fn the_stored_form_is_the_same_intent(body in any_body(&ORDER)) {
        prop_assert_eq!(normal(&ORDER.complete(&body)), normal(&body));
    }

    #[test]
    fn another_spelling_is_the_same_intent_and_has_the_same_faults(body in any_body(&ORDER), mut choices in choices()) {
        let respelled = respell(&ORDER, &body, &mut choices);
        prop_assert_eq!(normal(&respelled), normal(&body));
        prop_assert_eq!(fault_set(&respelled), fault_set(&body));
        prop_assert_eq!(ORDER.complete(&respelled).canonical(), ORDER.complete(&body).canonical());
    }

    #[test]
    fn another_order_of_lines_is_another_intent(body in valid_order()) {
        let Some(items) = body.get("items").and_then(Json::as_array) else { return Ok(()) };
        let mut reversed = items.to_vec();
        reversed.reverse();
        let other = Json::Object(vec![("items".to_owned(), Json::Array(reversed.clone()))]);
        let same = Json::Object(vec![("items".to_owned(), Json::Array(items.to_vec()))]);
        prop_assert_eq!(normal(&other) == normal(&same), reversed == items);
    }

    #[test]
    fn a_valid_order_stays_valid_and_the_same_when_it_is_stored(body in valid_order(), mut choices in choices()) {
        let order = Order::parse(&body).map_err(|faults| TestCaseError::fail(format!("{faults:?}")))?;
        prop_assert_eq!(Order::parse(order.document()), Ok(order.clone()));
        let stored = order_service::json::parse(order.document().to_string().as_bytes()).expect("our own text");
        prop_assert_eq!(&stored, order.document());
        prop_assert_eq!(Order::parse(&respell(&ORDER, &body, &mut choices)).map(|order| order.document().canonical()), Ok(order.document().canonical()));
    }

    #[test]
    fn every_fault_has_a_known_code_and_points_into_the_body(body in any_body(&ORDER)) {
        let sent: serde_json::Value = serde_json::from_str(&body.to_string()).expect("our own text");
        for fault in Order::parse(&body).err().unwrap_or_default() {
            prop_assert!(code::ALL.contains(&fault.code), "{:?}", fault);
            // What is required is not there; then its object is.
            let parent = fault.pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
            let place = if fault.code == code::REQUIRED { parent } else { &fault.pointer };
            prop_assert!(sent.pointer(place).is_some(), "{:?}", fault);
        }
    }
}
