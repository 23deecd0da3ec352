//! Single members that are refused: where, with which code, and in which words.

use super::{codes, line_with, order_of_lines, order_with, refused};
use order_service::schema::{Faults, code};
use std::collections::HashSet;

#[test]
fn all_faults_of_a_body_are_reported_at_once() {
    let body = r#"{
        "currency": "EURO", "frobnicate": 1, "a/b~c": 2, "pricesIncludeTax": "false", "placedAt": "2026-03-02 08:15:31",
        "items": [
            { "sku": "", "qty": 0, "lineId": "1", "unitPrice": "1,50" },
            { "qty": "1.0000001", "lineId": "1", "parentLineId": "9", "total": -1, "taxes": [{ "rate": -1, "amount": -2 }] },
            null,
            { "kind": "gift", "sku": 5, "qty": true, "unit": "kg", "attributes": [{ "name": "" }] }
        ],
        "discounts": [{ "appliesTo": ["1", "7", 8] }],
        "billingAddress": { "lines": ["1", "2", "3", "4", "5"], "country": "SVK", "zip": "1" },
        "customer": { "guest": 1, "business": [] },
        "totals": { "net": "1.001" }, "extensions": []
    }"#;
    let expected = [
        "/customer/guest WrongType",
        "/customer/business WrongType",
        "/currency NotACurrency",
        "/items/0/sku TooShort",
        "/items/0/qty TooSmall",
        "/items/0/unitPrice NotADecimal",
        "/items/1/qty TooManyDigits",
        "/items/1/taxes/0/rate TooSmall",
        "/items/2 WrongType",
        "/items/3/kind NotOneOf",
        "/items/3/sku WrongType",
        "/items/3/qty WrongType",
        "/items/3/unit NotAUnit",
        "/items/3/attributes/0/name TooShort",
        "/items/3/attributes/0/value Required",
        "/pricesIncludeTax WrongType",
        "/discounts/0/appliesTo/2 WrongType",
        "/billingAddress/lines TooMany",
        "/billingAddress/country NotACountry",
        "/billingAddress/zip UnknownMember",
        "/placedAt NotAnInstant",
        "/extensions WrongType",
        "/frobnicate UnknownMember",
        "/a~1b~0c UnknownMember",
        "/items/1/sku Required",
        "/items/1/lineId NotUnique",
        "/items/1/parentLineId UnknownLine",
        "/items/1/total TooSmall",
        "/items/1/taxes/0/amount TooSmall",
        "/discounts/0/appliesTo/1 UnknownLine",
    ];
    assert_eq!(codes(body), expected);
}

#[test]
fn a_body_that_is_not_an_object_or_is_empty_is_refused_as_such() {
    for body in ["null", "[]", "\"\"", "1", "true"] {
        assert_eq!(codes(body), [" WrongType"], "{body}");
    }
    assert_eq!(codes("{}"), ["/currency Required", "/items Required", "/customerId Required"]);
    let nulls = r#"{"currency":null,"items":null,"customerId":null,"customer":null}"#;
    assert_eq!(codes(nulls), ["/currency Required", "/items Required", "/customerId Required"]);
}

#[test]
fn every_limit_of_a_member_is_kept() {
    let id = "x".repeat(65);
    let cases = [
        (order_with(&format!(r#""externalOrderId":"{id}""#)), "/externalOrderId TooLong"),
        (order_with(r#""externalOrderId":"""#), "/externalOrderId TooShort"),
        (order_with(r#""externalOrderId":48211"#), "/externalOrderId WrongType"),
        (order_with(&format!(r#""externalOrderNumber":"{id}""#)), "/externalOrderNumber TooLong"),
        (order_with(&format!(r#""channel":"{id}""#)), "/channel TooLong"),
        (order_with(r#""channel":"""#), "/channel TooShort"),
        (order_with(&format!(r#""note":"{}""#, "ľ".repeat(5_001))), "/note TooLong"),
        (order_with(r#""billingAddress":{"country":"UK"}"#), "/billingAddress/country NotACountry"),
        (order_with(r#""billingAddress":{"lines":"a street"}"#), "/billingAddress/lines WrongType"),
        (order_with(r#""payment":{"amount":"1e3"}"#), "/payment/amount NotADecimal"),
        (order_with(r#""totals":{"gross":"1000000000000000"}"#), "/totals/gross TooManyDigits"),
        (order_with(r#""totals":{"rounding":{}}"#), "/totals/rounding WrongType"),
        (order_with(&format!(r#""extensions":{{"a":"{}"}}"#, "x".repeat(16 * 1024 - 7))), "/extensions TooLarge"),
        (line_with(&format!(r#""name":"{}""#, "x".repeat(501))), "/items/0/name TooLong"),
        (line_with(&format!(r#""lineId":"{id}""#)), "/items/0/lineId TooLong"),
        (line_with(r#""unit":"KGMX""#), "/items/0/unit NotAUnit"),
        (line_with(r#""kind":"Product""#), "/items/0/kind NotOneOf"),
        (line_with(r#""priceBaseQty":0"#), "/items/0/priceBaseQty TooSmall"),
        (line_with(r#""unitPrice":"1.0000001""#), "/items/0/unitPrice TooManyDigits"),
        (line_with(r#""total":"1.0000001""#), "/items/0/total TooManyDigits"),
        (line_with(r#""taxes":[{"rate":"1000"}]"#), "/items/0/taxes/0/rate TooManyDigits"),
        (line_with(r#""taxes":{}"#), "/items/0/taxes WrongType"),
        (
            line_with(&format!(r#""attributes":[{}]"#, vec![r#"{"name":"a","value":"b"}"#; 51].join(","))),
            "/items/0/attributes TooMany",
        ),
        (order_of_lines(""), "/items TooFew"),
        (order_of_lines(&vec![r#"{"sku":"A","qty":1}"#; 1_001].join(",")), "/items TooMany"),
        (order_of_lines(&format!(r#"{{"sku":"{}","qty":1}}"#, "茶".repeat(256))), "/items/0/sku TooLong"),
    ];
    for (body, expected) in cases {
        assert_eq!(codes(&body), [expected], "{body:.200}");
    }
}

#[test]
fn quantities_follow_the_grammar_of_decimals_and_their_digits() {
    for (qty, expected) in [
        ("0", "TooSmall"),
        ("\"-0.0\"", "TooSmall"),
        ("-1", "TooSmall"),
        ("1000000000", "TooManyDigits"),
        ("0.0000001", "TooManyDigits"),
        ("1e300", "TooManyDigits"),
        ("\"1e3\"", "NotADecimal"),
        ("\"+1\"", "NotADecimal"),
        ("\".5\"", "NotADecimal"),
        ("\"1.\"", "NotADecimal"),
        ("\"\"", "NotADecimal"),
        ("\"-\"", "NotADecimal"),
        ("\" 1\"", "NotADecimal"),
        ("\"1 000\"", "NotADecimal"),
        ("\"1,5\"", "NotADecimal"),
        ("\"0x1\"", "NotADecimal"),
        ("\"١\"", "NotADecimal"),
        ("\"NaN\"", "NotADecimal"),
        ("true", "WrongType"),
        ("[1]", "WrongType"),
        ("null", "Required"),
    ] {
        let body = order_of_lines(&format!(r#"{{"sku":"A","qty":{qty}}}"#));
        assert_eq!(codes(&body), [format!("/items/0/qty {expected}")], "{qty}");
    }
}

#[test]
fn only_currencies_that_can_be_paid_in_are_taken() {
    for currency in ["XXX", "XTS", "XAU", "XDR", "XAD", "EU", "EURO", "", "€", "978", "еur"] {
        let body = format!(r#"{{"customerId":"c","currency":"{currency}","items":[{{"sku":"A","qty":1}}]}}"#);
        assert_eq!(codes(&body), ["/currency NotACurrency"], "{currency}");
    }
}

#[test]
fn an_instant_needs_the_grammar_of_rfc_3339_and_an_offset() {
    for instant in [
        "2026-03-02T08:15:31",
        "2026-03-02 08:15:31Z",
        "2026-03-02",
        "2026-02-29T08:15:31Z",
        "2026-03-02T24:00:00Z",
        "2026-03-02T23:59:60Z",
        "2026-03-02T08:15Z",
        "2026-03-02T08:15:31.Z",
        "2026-03-02T08:15:31.1234567891Z",
        "2026-03-02T08:15:31,5Z",
        "2026-03-02T08:15:31+1:00",
        "2026-03-02T08:15:31+0100",
        "2026-03-02T08:15:31+24:00",
        "2026-03-02T08:15:31+01:60",
        "2026-03-02T08:15:31 +01:00",
        "2026-03-02T08:15:31Z ",
        "+026-03-02T08:15:31Z",
        "2026-03-02T08:15:+1Z",
        "0000-00-00T00:00:00Z",
        "0001-01-01T00:00:00+00:01",
        "9999-12-31T23:59:59-00:01",
        "١٠٢٦-03-02T08:15:31Z",
        "",
    ] {
        assert_eq!(codes(&order_with(&format!(r#""placedAt":"{instant}""#))), ["/placedAt NotAnInstant"], "{instant}");
    }
}

#[test]
fn a_bad_body_of_any_size_has_a_short_answer() {
    let lines = vec!["{}"; 100_000].join(",");
    let names: Vec<String> = (0..50_000).map(|index| format!("\"{index}\":0")).collect();
    let long = format!(r#"{{"{}":1}}"#, "n".repeat(1_000_000));
    for body in [order_of_lines(&lines), format!("{{{}}}", names.join(",")), long] {
        let faults = refused(&body);
        assert!(faults.len() <= Faults::LISTED + 1);
        let size = serde_json::to_string(&faults).expect("faults have a JSON form").len();
        assert!(size < 64 * 1024, "{size} bytes");
    }
    let faults = refused(&order_of_lines(&lines));
    let last = faults.last().expect("there are faults");
    // Every line lacks its quantity and its name, and there are too many of them.
    assert_eq!((last.pointer.as_str(), last.code), ("", code::MORE_FAULTS));
    assert_eq!(last.message, format!("{} more faults were found; correct these first.", 200_001 - Faults::LISTED));
}

#[test]
fn a_message_never_repeats_the_value_that_was_sent() {
    let secret = "Ďurčáková-777";
    let long = secret.repeat(500);
    let bodies = [
        format!(r#"{{"currency":"{secret}","items":"{secret}","customer":"{secret}","placedAt":"{secret}"}}"#),
        order_with(&format!(r#""note":"{long}","billingAddress":{{"country":"{secret}","lines":"{secret}"}}"#)),
        line_with(&format!(
            r#""qty2":"{secret}","lineId":"{long}","parentLineId":"{secret}","kind":"{secret}","unit":"{secret}","total":"{secret}""#
        )),
        order_with(&format!(r#""extensions":"{secret}","discounts":[{{"appliesTo":["{secret}"]}}]"#)),
    ];
    for body in bodies {
        let faults = refused(&body);
        let answer = serde_json::to_string(&faults).expect("faults have a JSON form");
        assert!(!answer.contains("777") && !answer.contains("Ďurč"), "{answer}");
        for fault in faults {
            assert!(fault.message.ends_with('.') && fault.message.len() < 400, "{fault:?}");
        }
    }
}

#[test]
fn the_list_of_codes_is_whole_and_has_no_code_twice() {
    let unique: HashSet<&str> = code::ALL.into_iter().collect();
    assert_eq!(unique.len(), code::ALL.len());
    for code in unique {
        assert!(code.chars().all(|letter| letter.is_ascii_alphabetic()), "{code}");
    }
}
