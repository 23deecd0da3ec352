//! Every example of the document is valid by the schema that stands beside it, and so are the bodies that shops send.

use serde_json::{Value, json};

use super::{closed, faults, made, operations, resolved, stored};

/// Checks the example or examples of a media type, a parameter or a header; returns how many there were.
fn check(document: &Value, place: &str, described: &Value) -> usize {
    let mut examples: Vec<&Value> = described.get("example").into_iter().collect();
    if let Some(named) = described["examples"].as_object() {
        examples.extend(named.values().map(|example| &resolved(document, example)["value"]));
    }
    for example in &examples {
        let faults = faults(document, &described["schema"], example);
        assert!(faults.is_empty(), "{place}: {faults:#?}\n{example:#}");
    }
    examples.len()
}

#[test]
fn every_example_is_valid() {
    let document = closed(&made());
    let mut checked = 0;
    for (method, path, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            checked += check(&document, &format!("{method} {path}"), resolved(&document, parameter));
        }
        let body = operation["requestBody"]["content"].as_object();
        for media_type in body.into_iter().flat_map(|content| content.values()) {
            let found = check(&document, &format!("{method} {path}"), media_type);
            assert!(found > 0, "{method} {path}: no example of the body");
            checked += found;
        }
        for (status, response) in operation["responses"].as_object().expect("an operation has answers") {
            let place = format!("{method} {path} {status}");
            for media_type in response["content"].as_object().into_iter().flat_map(|content| content.values()) {
                let found = check(&document, &place, media_type);
                assert!(found > 0, "{place}: no example");
                checked += found;
            }
            for header in response["headers"].as_object().into_iter().flat_map(|headers| headers.values()) {
                checked += check(&document, &place, resolved(&document, header));
            }
        }
    }
    assert!(checked > 100, "{checked} examples");
}

#[test]
fn an_example_that_is_wrong_is_found() {
    let document = closed(&made());
    let schema = json!({ "$ref": "#/components/schemas/OrdersCreateDone" });
    let good = json!({
        "status": "accepted", "orderId": "ord_1", "operationId": "op_0123456789abcdef0123456789abcdef",
        "links": { "self": "/v1/orders/ord_1", "operation": "/v1/operations/op_0123456789abcdef0123456789abcdef" },
    });
    assert_eq!(faults(&document, &schema, &good), Vec::<String>::new());
    for (member, value) in [("status", json!(1)), ("operationId", json!("op_1")), ("unknown", json!("x"))] {
        let mut bad = good.clone();
        bad[member] = value;
        assert!(!faults(&document, &schema, &bad).is_empty(), "{member}");
    }
}

#[test]
fn the_orders_of_real_shops_are_valid_by_the_schema() {
    let document = made();
    let schema = json!({ "$ref": "#/components/schemas/OrderInput" });
    for name in ["rich_order", "order_in_yen", "order_including_tax", "order_with_promotion", "order_with_six_decimals"]
    {
        let order: Value = serde_json::from_str(&stored(&format!("tests/payloads/{name}.json"))).expect("JSON");
        assert_eq!(faults(&document, &schema, &order), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_schema_of_a_decimal_takes_what_the_service_takes() {
    let document = made();
    let schema = json!({ "$ref": "#/components/schemas/OrderLineInput/properties/qty" });
    for (text, valid) in [
        ("1", true),
        ("0.000001", true),
        ("000000000001.10000000", true),
        ("999999999.999999", true),
        ("0", false),
        ("0.0", false),
        ("-1", false),
        ("0.0000001", false),
        ("1000000000", false),
        ("1e3", false),
        (".5", false),
        ("1.", false),
        ("", false),
    ] {
        assert_eq!(faults(&document, &schema, &json!(text)).is_empty(), valid, "{text:?}");
        let body = format!(r#"{{"currency":"EUR","customerId":"c","items":[{{"sku":"a","qty":"{text}"}}]}}"#);
        let body = order_service::json::parse(body.as_bytes()).expect("JSON");
        assert_eq!(order_service::order::Order::parse(&body).is_ok(), valid, "{text:?}");
    }
}
