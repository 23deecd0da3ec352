//! Orders that are taken, and the form in which they are kept.

use super::{json, line_with, order_of_lines, order_with, taken};
use order_service::order::{Line, Order};

#[test]
fn the_smallest_order_is_taken_and_completed_with_its_defaults() {
    let order = taken(r#"{ "customerId": "cus_123", "items": [ { "sku": "ABC", "qty": 2 } ], "currency": "rub" }"#);
    assert_eq!(
        order.document().to_string(),
        r#"{"customerId":"cus_123","currency":"RUB","items":[{"kind":"product","sku":"ABC","qty":"2","unit":"C62","priceBaseQty":"1"}],"pricesIncludeTax":false}"#
    );
    assert_eq!((order.currency().code(), order.currency().minor_digits()), ("RUB", 2));
    assert_eq!((order.channel(), order.customer_id()), ("", Some("cus_123")));
    assert_eq!((order.external_order_id(), order.external_order_number(), order.placed_at()), (None, None, None));
}

#[test]
fn what_storage_needs_can_be_read_from_an_order() {
    let order = taken(include_str!("../../payloads/rich_order.json"));
    assert_eq!(order.channel(), "woocommerce/sk-obchod");
    assert_eq!(order.external_order_id(), Some("9001"));
    assert_eq!(order.external_order_number(), Some("2026-009001"));
    assert_eq!(order.placed_at(), Some("2026-04-07T16:42:05.25Z"));
    assert_eq!(order.customer_id(), None);
    let lines: Vec<_> = order
        .lines()
        .map(|line: Line| (line.line_id(), line.parent_line_id(), line.kind(), line.sku(), line.qty(), line.unit()))
        .collect();
    assert_eq!(
        lines,
        [
            (Some("1"), None, "product", Some("MUKA-T650-KG"), "0.5", "KGM"),
            (Some("2"), None, "product", Some("ZASTERA"), "2", "C62"),
            (Some("3"), Some("2"), "product", Some("ZASTERA"), "1", "C62"),
            (Some("4"), None, "shipping", None, "1", "C62"),
            (Some("5"), None, "gift_card", None, "1", "C62"),
        ]
    );
    let head = order.head();
    assert!(head.get("items").is_none());
    assert_eq!(head.get("extensions"), order.document().get("extensions"));
    let members = |json: &order_service::json::Json| json.as_object().map_or(0, <[_]>::len);
    assert_eq!(members(&head) + 1, members(order.document()));
}

#[test]
fn a_rich_order_is_kept_entire_and_normalised() {
    let stored = json(include_str!("../../payloads/rich_order.stored.json"));
    let order = taken(include_str!("../../payloads/rich_order.json"));
    assert_eq!(order.document().to_string(), stored.to_string(), "members come back in the order of the table");
}

#[test]
fn orders_of_every_shop_have_a_place_for_all_they_say() {
    for payload in [
        include_str!("../../payloads/order_including_tax.json"),
        include_str!("../../payloads/order_in_yen.json"),
        include_str!("../../payloads/order_with_promotion.json"),
        include_str!("../../payloads/order_with_six_decimals.json"),
    ] {
        let order = taken(payload);
        assert_eq!(Order::parse(order.document()).as_ref(), Ok(&order), "a stored document reads back the same");
    }
    let six = taken(include_str!("../../payloads/order_with_six_decimals.json"));
    let tax = six.document().to_string();
    assert!(tax.contains(r#""amount":"0.747967""#) && tax.contains(r#""total":"49.2""#), "{tax}");
}

#[test]
fn broken_quantities_are_kept_exactly() {
    for (sent, kept) in [
        ("\"0.5\"", "0.5"),
        ("1.5", "1.5"),
        ("\"0.001\"", "0.001"),
        ("\"1000000\"", "1000000"),
        ("0.000001", "0.000001"),
        ("1e-6", "0.000001"),
        ("999999999.999999", "999999999.999999"),
        ("\"2.500000000\"", "2.5"),
    ] {
        let order = taken(&order_of_lines(&format!(r#"{{"sku":"A","unit":"KGM","qty":{sent}}}"#)));
        assert_eq!(order.lines().next().map(Line::qty), Some(kept));
    }
}

#[test]
fn emoji_line_breaks_and_accents_are_kept_byte_for_byte() {
    let note = "🙏🏽 👨\u{200d}👩\u{200d}👧 \r\n<script>alert(1)</script>";
    let name = "Ďurčáková";
    let decomposed = "D\u{30c}urc\u{30c}a\u{301}kova\u{301}";
    let text = |text: &str| serde_json::to_string(text).expect("text has a JSON form");
    let order = taken(&order_with(&format!(
        r#""note":{},"customer":{{"firstName":{},"lastName":{}}}"#,
        text(note),
        text(name),
        text(decomposed)
    )));
    assert_eq!(order.document().text("note"), Some(note));
    let customer = order.document().get("customer").expect("it was sent");
    assert_eq!((customer.text("firstName"), customer.text("lastName")), (Some(name), Some(decomposed)));
}

#[test]
fn parent_and_child_may_share_a_sku_and_the_line_id_tells_them_apart() {
    let order = taken(&order_of_lines(
        r#"{"lineId":"child","parentLineId":"set","sku":"SET-1","qty":1,"unitPrice":"0","total":"0.00"},
           {"lineId":"set","sku":"SET-1","qty":1,"unitPrice":"20.00","total":"20.00"}"#,
    ));
    let lines: Vec<_> = order.lines().map(|line| (line.line_id(), line.sku(), line.total())).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0], (Some("child"), Some("SET-1"), order_service::money::exact("0")));
    assert_eq!(lines[1], (Some("set"), Some("SET-1"), order_service::money::exact("20")));
}

#[test]
fn lines_with_one_sku_never_merge() {
    assert_eq!(taken(&order_of_lines(r#"{"sku":"A","qty":1},{"sku":"A","qty":1}"#)).lines().len(), 2);
}

#[test]
fn limits_are_in_characters_and_everything_up_to_them_is_taken() {
    let emoji = "🙏".repeat(64);
    taken(&order_with(&format!(r#""externalOrderId":"{emoji}","note":"{}""#, "ľ".repeat(5_000))));
    taken(&order_of_lines(&format!(r#"{{"sku":"{}","qty":1}}"#, "茶".repeat(255))));
    taken(&order_of_lines(&vec![r#"{"sku":"A","qty":1}"#; 1_000].join(",")));
    taken(&line_with(&format!(r#""attributes":[{}]"#, vec![r#"{"name":"a","value":""}"#; 50].join(","))));
    taken(&order_with(r#""billingAddress":{"lines":["1","2","3","4"],"country":"xk"}"#));
    taken(&order_with(r#""totals":{"gross":"-999999999999999.99"}"#));
}

#[test]
fn the_open_bag_is_measured_without_blanks_and_kept_as_sent() {
    let frame = r#"{"a":""}"#.len();
    let bag = format!(r#"{{  "a" : "{}"  }}"#, "x".repeat(16 * 1024 - frame));
    let order = taken(&order_with(&format!(r#""extensions":{bag}"#)));
    assert_eq!(order.document().get("extensions").map(|bag| bag.canonical().len()), Some(16 * 1024));

    let order = taken(&order_with(r#""extensions":{"z":null,"a":[2.50,"2.50"],"m":{},"l":[]}"#));
    let kept = order.document().get("extensions").map(ToString::to_string);
    assert_eq!(kept.as_deref(), Some(r#"{"z":null,"a":[2.5,"2.50"],"m":{},"l":[]}"#));
}

#[test]
fn null_and_empty_optional_arrays_are_absent_and_empty_text_is_kept() {
    let order = taken(&order_with(
        r#""note":"","payment":null,"discounts":[],"shippingAddress":{"lines":[],"company":null,"city":""},"customer":{}"#,
    ));
    let document = order.document();
    assert_eq!(document.text("note"), Some(""));
    assert!(document.get("payment").is_none() && document.get("discounts").is_none());
    assert_eq!(document.get("shippingAddress").map(ToString::to_string).as_deref(), Some(r#"{"city":""}"#));
    assert_eq!(document.get("customer"), Some(&json("{}")));
}

#[test]
fn instants_are_kept_in_utc() {
    for (sent, kept) in [
        ("2026-03-02T08:15:31Z", "2026-03-02T08:15:31Z"),
        ("2026-03-29T01:59:58+01:00", "2026-03-29T00:59:58Z"),
        ("2026-03-29T03:00:02+02:00", "2026-03-29T01:00:02Z"),
        ("2026-03-02T08:15:31.482000000+00:00", "2026-03-02T08:15:31.482Z"),
        ("2026-01-01t00:30:00.000z", "2026-01-01T00:30:00Z"),
        ("2025-12-31T23:45:00-05:45", "2026-01-01T05:30:00Z"),
        ("2024-02-29T12:00:00-00:00", "2024-02-29T12:00:00Z"),
        ("2026-03-02T08:15:31.123456789Z", "2026-03-02T08:15:31.123456789Z"),
    ] {
        assert_eq!(taken(&order_with(&format!(r#""placedAt":"{sent}""#))).placed_at(), Some(kept));
    }
}
