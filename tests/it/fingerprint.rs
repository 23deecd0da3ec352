//! What makes two requests the same intent, and that it stays so over releases.

mod vectors;

use order_service::command::fingerprint::{Fingerprint, Intent, UnknownVersion};
use order_service::json::{Json, parse};
use order_service::order::ORDER;
use order_service::schema::{DecimalRule, Kind, Member, Object, Sign};
use std::collections::HashSet;
use vectors::VECTORS;

/// The parts of a request beside its body.
#[derive(Clone, Copy)]
pub struct Request {
    method: &'static str,
    route: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    if_match: Option<&'static str>,
    if_none_match: Option<&'static str>,
}

pub const CREATE: Request =
    Request { method: "POST", route: "/v1/orders", parameters: &[], if_match: None, if_none_match: None };

pub const fn cancel(order: &'static str) -> Request {
    let parameters: &[(&str, &str)] = match order.as_bytes() {
        b"ord_1" => &[("orderId", "ord_1")],
        _ => &[("orderId", "ord_2")],
    };
    Request { route: "/v1/orders/{orderId}/cancel", parameters, ..CREATE }
}

pub const fn put(if_match: Option<&'static str>, if_none_match: Option<&'static str>) -> Request {
    let parameters = &[("orderId", "web-1")];
    Request { method: "PUT", route: "/v1/orders/{orderId}", parameters, if_match, if_none_match }
}

fn json(text: &str) -> Json {
    parse(text.as_bytes()).unwrap_or_else(|malformed| panic!("{text}: {malformed}"))
}

fn fingerprint_with(table: &'static Object, request: Request, body: &str) -> String {
    Fingerprint::of(&intent(table, request, &json(body))).to_string()
}

fn intent(table: &'static Object, request: Request, body: &Json) -> Intent {
    let Request { method, route, parameters, if_match, if_none_match } = request;
    let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let [if_match, if_none_match] = [if_match, if_none_match].map(|header| header.map(str::to_owned));
    Intent { method, route, parameters, if_match, if_none_match, table, body: body.clone() }
}

fn of(body: &str) -> String {
    fingerprint_with(&ORDER, CREATE, body)
}

#[track_caller]
fn same(left: &str, right: &str) {
    assert_eq!(of(left), of(right), "{left} and {right} are one intent");
}

#[track_caller]
fn differ(left: &str, right: &str) {
    assert_ne!(of(left), of(right), "{left} and {right} are two intents");
}

#[test]
fn golden_vectors_of_version_1_hold() {
    assert!(VECTORS.len() >= 20);
    for vector in VECTORS {
        let body = json(vector.sent);
        assert_eq!(ORDER.normal(&body).canonical(), vector.normal, "{}", vector.name);
        assert_eq!(
            fingerprint_with(&ORDER, vector.request, vector.sent),
            format!("v1:{}", vector.digest),
            "{}",
            vector.name
        );
    }
    let digests: HashSet<&str> = VECTORS.iter().map(|vector| vector.digest).collect();
    assert_eq!(digests.len(), VECTORS.len(), "every vector is another intent");
}

#[test]
fn a_stored_fingerprint_matches_its_own_intent_and_no_other() {
    for stored in VECTORS {
        for asked in VECTORS {
            let body = json(asked.sent);
            let matches = intent(&ORDER, asked.request, &body).matches(&format!("v1:{}", stored.digest));
            assert_eq!(matches, Ok(stored.name == asked.name), "{} against {}", asked.name, stored.name);
        }
    }
}

#[test]
fn a_fingerprint_of_an_unknown_version_is_neither_match_nor_mismatch() {
    let body = json("{}");
    let intent = intent(&ORDER, CREATE, &body);
    for stored in ["v9:00", "V1:00", "", "00", ":"] {
        let unknown: UnknownVersion = intent.matches(stored).expect_err("no such version");
        assert!(unknown.to_string().contains("newer release"), "{stored}: {unknown}");
    }
}

#[test]
fn member_order_and_white_space_are_not_content() {
    same(
        r#"{"currency":"EUR","items":[{"sku":"A","qty":1}],"customerId":"c"}"#,
        "\n{ \"customerId\" : \"c\",\r\n\t\"items\": [ { \"qty\":1 , \"sku\":\"A\" } ] ,\"currency\":\"EUR\" } ",
    );
    same(r#"{"extensions":{"a":{"b":1,"c":2}}}"#, r#"{"extensions":{"a":{"c":2,"b":1}}}"#);
}

#[test]
fn the_order_of_lines_is_content() {
    differ(r#"{"items":[{"sku":"A"},{"sku":"B"}]}"#, r#"{"items":[{"sku":"B"},{"sku":"A"}]}"#);
    differ(r#"{"extensions":{"a":[1,2]}}"#, r#"{"extensions":{"a":[2,1]}}"#);
}

#[test]
fn another_quantity_is_another_intent() {
    differ(r#"{"items":[{"sku":"A","qty":2}]}"#, r#"{"items":[{"sku":"A","qty":3}]}"#);
}

#[test]
fn the_spelling_of_a_decimal_is_not_content() {
    for spelling in ["2", "2.0", "2e0", "20e-1", "\"2\"", "\"2.00\"", "\"02\""] {
        same(r#"{"items":[{"qty":2}]}"#, &format!(r#"{{"items":[{{"qty":{spelling}}}]}}"#));
    }
    differ(r#"{"items":[{"qty":2}]}"#, r#"{"items":[{"qty":"2e0"}]}"#);
    differ(r#"{"items":[{"qty":9007199254740993}]}"#, r#"{"items":[{"qty":9007199254740992}]}"#);
}

#[test]
fn text_is_compared_as_sent() {
    differ(r#"{"customer":{"lastName":"Ďurčák"}}"#, "{\"customer\":{\"lastName\":\"D\u{30c}urc\u{30c}a\u{301}k\"}}");
    differ("{\"note\":\"\u{212b}\"}", "{\"note\":\"\u{c5}\"}");
    differ(r#"{"note":"a"}"#, r#"{"note":"a "}"#);
    same(r#"{"note":"ľ🙏"}"#, r#"{"note":"\u013e\ud83d\ude4f"}"#);
}

#[test]
fn absent_null_and_default_are_one_and_empty_text_is_content() {
    same(r#"{"items":[{}]}"#, r#"{"note":null,"items":[{}]}"#);
    differ(r#"{"items":[{}]}"#, r#"{"note":"","items":[{}]}"#);
    for base in ["1", "\"1\"", "1.0", "\"1.00\"", "null"] {
        same(r#"{"items":[{}]}"#, &format!(r#"{{"items":[{{"priceBaseQty":{base}}}]}}"#));
    }
    same("{}", r#"{"pricesIncludeTax":false,"discounts":[]}"#);
    differ("{}", r#"{"pricesIncludeTax":true}"#);
    differ("{}", r#"{"customer":{}}"#);
    differ("{}", r#"{"extensions":{}}"#);
}

#[test]
fn in_the_open_bag_null_is_content_and_a_number_is_not_text() {
    differ(r#"{"extensions":{}}"#, r#"{"extensions":{"a":null}}"#);
    differ(r#"{"extensions":{"a":2}}"#, r#"{"extensions":{"a":"2"}}"#);
    same(r#"{"extensions":{"a":2}}"#, r#"{"extensions":{"a":2.0}}"#);
    differ(r#"{"extensions":{"a":"eur"}}"#, r#"{"extensions":{"a":"EUR"}}"#);
}

#[test]
fn codes_and_instants_have_one_spelling() {
    same(r#"{"currency":"eur"}"#, r#"{"currency":"EUR"}"#);
    same(r#"{"billingAddress":{"country":"sk"}}"#, r#"{"billingAddress":{"country":"SK"}}"#);
    same(r#"{"placedAt":"2026-03-02T08:15:31Z"}"#, r#"{"placedAt":"2026-03-02T09:15:31.000+01:00"}"#);
    differ(r#"{"placedAt":"2026-03-02T08:15:31Z"}"#, r#"{"placedAt":"2026-03-02T08:15:31"}"#);
}

#[test]
fn every_part_of_the_request_is_covered_and_parts_do_not_run_together() {
    let requests = [
        CREATE,
        Request { method: "PUT", ..CREATE },
        Request { method: "POST/v1", route: "/orders", ..CREATE },
        Request { route: "/v1/orders/{orderId}", ..CREATE },
        Request { parameters: &[("orderId", "a")], ..CREATE },
        Request { parameters: &[("orderI", "da")], ..CREATE },
        Request { parameters: &[("orderId", "a"), ("", "")], ..CREATE },
        Request { if_match: Some(""), ..CREATE },
        Request { if_match: Some("*"), ..CREATE },
        Request { if_none_match: Some(""), ..CREATE },
        Request { if_none_match: Some("*"), ..CREATE },
        Request { if_match: Some(""), if_none_match: Some(""), ..CREATE },
    ];
    let all: HashSet<String> = requests.iter().map(|request| fingerprint_with(&ORDER, *request, "{}")).collect();
    assert_eq!(all.len(), requests.len());
}

#[test]
fn an_optional_member_of_a_later_release_leaves_bodies_without_it_as_they_were() {
    const QTY: Kind = Kind::Decimal(DecimalRule::new(9, 6, Sign::Positive));
    const TAGS: Kind = Kind::List { of: &Kind::Text { min: 1, max: 9 }, min: 0, max: 9 };
    static NOW: Object = Object { name: "", members: &[Member::required("qty", QTY, "")] };
    static LATER: Object = Object {
        name: "",
        members: &[
            Member::optional("tags", TAGS, ""),
            Member::default("priority", Kind::Token(&["normal", "high"]), "normal", ""),
            Member::required("qty", QTY, ""),
        ],
    };
    for body in [r#"{"qty":"2.0"}"#, r#"{"qty":-1}"#, "{}", "[]", r#"{"other":null}"#] {
        assert_eq!(fingerprint_with(&NOW, CREATE, body), fingerprint_with(&LATER, CREATE, body), "{body}");
    }
    let spelled_out = r#"{"qty":2,"priority":"normal","tags":[]}"#;
    assert_eq!(fingerprint_with(&NOW, CREATE, r#"{"qty":2}"#), fingerprint_with(&LATER, CREATE, spelled_out));
}

#[test]
fn a_changed_limit_changes_no_fingerprint() {
    static WIDE: Object =
        Object { name: "", members: &[Member::required("note", Kind::Text { min: 0, max: 9_000 }, "")] };
    static NARROW: Object =
        Object { name: "", members: &[Member::optional("note", Kind::Text { min: 5, max: 6 }, "")] };
    for body in [r#"{"note":"a"}"#, r#"{"note":null}"#, r#"{"note":5}"#, r#"{"note":""}"#] {
        assert_eq!(fingerprint_with(&WIDE, CREATE, body), fingerprint_with(&NARROW, CREATE, body), "{body}");
    }
}
