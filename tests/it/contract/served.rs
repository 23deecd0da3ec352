//! What the running service answers is what the document declares: status, media type, headers and body.

use reqwest::Method;
use serde_json::{Value, json};

use super::document::Specs;
use super::{closed, faults, made, operations};
use crate::harness::database::Dialect;
use crate::harness::http::{Answer, Caller, send};
use crate::harness::world::{World, prove};

/// Headers of the transport and of CORS, which no operation declares.
const OF_EVERY_ANSWER: &[&str] = &["content-type", "content-length", "date", "vary", "connection", "transfer-encoding"];

/// Fails when the document does not declare this answer of an operation.
#[track_caller]
fn assert_declared(document: &Value, method: &str, path: &str, answer: &Answer) {
    let place = format!("{method} {path} {}", answer.status);
    let responses = &document["paths"][path][method.to_lowercase()]["responses"];
    let response = &responses[answer.status.as_str()];
    assert!(response.is_object(), "{place} is not declared: {}", answer.text());
    let ours = |name: &str| !OF_EVERY_ANSWER.contains(&name) && !name.starts_with("access-control-");
    for name in answer.headers.keys().filter(|name| ours(name.as_str())) {
        let declared = response["headers"]
            .as_object()
            .is_some_and(|headers| headers.keys().any(|declared| declared.eq_ignore_ascii_case(name.as_str())));
        assert!(declared, "{place}: the header {name} is not declared");
    }
    if answer.body.is_empty() {
        assert!(response["content"].is_null(), "{place}: a body is declared");
        return;
    }
    let media_type = answer.header("content-type").expect("a body has a type");
    let schema = &response["content"][media_type]["schema"];
    assert!(schema.is_object(), "{place}: {media_type} is not declared");
    let faults = faults(document, schema, &answer.json());
    assert!(faults.is_empty(), "{place}: {faults:#?}\n{}", answer.text());
}

fn on_sqlite<F: Future<Output = ()>>(body: impl FnOnce(World) -> F) {
    prove(Dialect::Sqlite, body);
}

fn everybody(world: &World) -> Caller {
    let scopes: Vec<&str> = order_service::api_key::SCOPES.iter().map(|(scope, _)| *scope).collect();
    world.caller("acme", "shop", &scopes)
}

/// A path with every parameter replaced by the id of nothing.
fn filled(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "nothing" } else { part }).collect::<Vec<_>>().join("/")
}

#[test]
fn the_answers_about_an_order_are_declared() {
    on_sqlite(|world| async move {
        let (document, shop) = (closed(&made()), everybody(&world));
        let order: Value = serde_json::from_str(&super::stored("tests/payloads/rich_order.json")).expect("JSON");
        let first = shop.post("/v1/orders", "k1", &order).await.expect(201);
        assert_declared(&document, "POST", "/v1/orders", &first);
        assert_declared(&document, "POST", "/v1/orders", &shop.post("/v1/orders", "k1", &order).await.expect(201));
        assert_declared(&document, "POST", "/v1/orders", &shop.post("/v1/orders", "k2", &order).await.expect(409));
        assert_declared(&document, "POST", "/v1/orders", &shop.post("/v1/orders", "k1", &json!({})).await.expect(409));
        assert_declared(&document, "POST", "/v1/orders", &shop.post("/v1/orders", "k3", &json!({})).await.expect(400));
        let made = first.json();
        let (order_path, operation_path) = (text(&made["links"]["self"]), text(&made["links"]["operation"]));
        let read = shop.get(order_path).await.expect(200);
        assert_declared(&document, "GET", "/v1/orders/{orderId}", &read);
        let etag = read.header("etag").expect("an order has a version");
        let unchanged = send(shop.request(Method::GET, order_path).header("If-None-Match", etag)).await.expect(304);
        assert_declared(&document, "GET", "/v1/orders/{orderId}", &unchanged);
        assert_declared(&document, "GET", "/v1/operations/{operationId}", &shop.get(operation_path).await.expect(200));
        let waited = send(shop.request(Method::GET, operation_path).header("Prefer", "wait=0")).await.expect(200);
        assert_declared(&document, "GET", "/v1/operations/{operationId}", &waited);
        for list in ["/v1/orders", "/v1/operations"] {
            assert_declared(&document, "GET", list, &shop.get(list).await.expect(200));
            assert_declared(&document, "GET", list, &shop.get(&format!("{list}?limit=0&x=y")).await.expect(400));
        }
    });
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a link is text")
}

#[test]
fn every_operation_is_served_and_answers_as_declared() {
    on_sqlite(|world| async move {
        let (document, shop) = (closed(&made()), everybody(&world));
        for (method, path, _) in operations(&document) {
            let verb: Method = method.parse().expect("a method of HTTP");
            let stranger = send(world.stranger().request(verb.clone(), &filled(path))).await;
            assert_declared(&document, &method, path, &stranger);
            // Without a key a command is refused before anything happens, so that this asks nothing of the others' state.
            let known = send(shop.request(verb, &filled(path))).await;
            assert_declared(&document, &method, path, &known);
            if known.status.is_client_error() {
                assert!(!["RouteNotFound", "MethodNotAllowed"].contains(&known.error().as_str()), "{method} {path}");
            }
        }
    });
}

#[test]
fn every_example_of_a_body_is_one_that_the_service_takes() {
    on_sqlite(|world| async move {
        let (document, shop) = (closed(&made()), everybody(&world));
        for spec in Specs::all() {
            for (number, (name, body)) in spec.examples.iter().enumerate() {
                let method: Method = spec.method.as_str().parse().expect("a method of HTTP");
                let request = shop
                    .request(method, &filled(spec.route))
                    .header("Idempotency-Key", format!("{}-{number}", spec.name))
                    .header("If-None-Match", "*")
                    .header("Content-Type", "application/json");
                let answer = send(request.body(*body)).await;
                assert_declared(&document, spec.method.as_str(), spec.route, &answer);
                // Refused for the state of things it may be: there is no order called `nothing`. The body itself is good.
                assert_ne!(answer.status, 400, "{} {name}: {}", spec.name, answer.text());
            }
        }
    });
}

#[test]
fn the_first_example_of_an_order_works_however_often_it_is_tried() {
    on_sqlite(|world| async move {
        let shop = world.shop();
        let create = Specs::all().into_iter().find(|spec| spec.name == "orders.create").expect("the first command");
        let body: Value = serde_json::from_str(create.examples[0].1).expect("JSON");
        for key in ["a", "b", "a"] {
            shop.post(create.route, key, &body).await.expect(201);
        }
        let examples = &made()["paths"]["/v1/orders"]["post"]["requestBody"]["content"]["application/json"]["examples"];
        let first = examples.as_object().and_then(|examples| examples.values().next()).expect("there are examples");
        assert_eq!(first["value"], body, "Swagger UI would begin with another example");
    });
}

#[test]
fn the_served_document_and_the_policy_tell_the_configured_times() {
    on_sqlite(|world| async move {
        world.restart(&[("ORDERS_REPLAY_WINDOW", "3d"), ("ORDERS_WAIT_LIMIT", "1500ms")]).await;
        let policy = world.shop().get("/v1/idempotency-policy").await.expect(200).json();
        assert_eq!(policy["replayWindow"], "P3D");
        assert_eq!(policy["replayWindowSeconds"], 259_200);
        assert_eq!(policy["keyMemory"], "P400D");
        assert_eq!(policy["waitLimit"], "PT1.5S");
        let served = world.stranger().get("/openapi.json").await.expect(200).json();
        assert_eq!(served["x-idempotency"], policy);
        let (told, by_default) = (served["info"]["description"].to_string(), made()["info"]["description"].to_string());
        assert!(told.contains("**3 days**") && told.contains("**1s 500ms**"), "{told}");
        assert!(by_default.contains("**7 days**") && by_default.contains("These are the defaults"), "{by_default}");
    });
}

#[test]
fn the_page_of_the_documentation_is_served_with_everything_it_needs() {
    on_sqlite(|world| async move {
        let stranger = world.stranger();
        let redirect = stranger.get("/docs").await.expect(308);
        assert_eq!(redirect.header("location"), Some("/docs/"));
        let page = stranger.get("/docs/").await.expect(200).text();
        let parts = page.split('"').filter(|part| part.starts_with("./"));
        let mut found = 0;
        for part in parts {
            stranger.get(&format!("/docs/{}", part.trim_start_matches("./"))).await.expect(200);
            found += 1;
        }
        assert!(found >= 4, "{found} parts in {page}");
        let initializer = stranger.get("/docs/swagger-initializer.js").await.expect(200).text();
        assert!(initializer.contains("\"/openapi.json\""), "{initializer}");
        stranger.get("/docs/nothing.js").await.expect(404);
    });
}
