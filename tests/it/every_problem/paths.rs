//! The problems that belong to no operation: paths that there are not, and methods that a path does not know. With them
//! the catalogue is whole.

use std::collections::{BTreeMap, BTreeSet};

use order_service::problem::{CATALOGUE, Code};
use reqwest::Method;
use serde_json::json;

use super::declared::Operation;
use super::ledger::Ledger;
use crate::every_command::client;
use crate::harness::http::send;
use crate::harness::world::{World, on_both_databases};

/// Every method of HTTP that asks for something (RFC 9110, section 9.3, and RFC 5789). OPTIONS is a question of browsers.
const METHODS: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// The methods of every path of the document.
fn methods_by_path(operations: &[Operation]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut methods: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for operation in operations {
        let of_path = methods.entry(&operation.path).or_default();
        of_path.insert(&operation.method);
        if operation.method == "GET" {
            of_path.insert("HEAD");
        }
    }
    methods
}

on_both_databases! {
    async fn a_path_knows_its_methods_and_no_others(world: World) {
        let document = world.stranger().get("/openapi.json").await.expect(200).json();
        let (operations, ledger, client) = (Operation::all(&document), Ledger::of(&document), client(&world));
        let before = world.database().everything();
        let mut wrong = 0;
        for (path, known) in methods_by_path(&operations) {
            let filled = path.replace(['{', '}'], "");
            for method in METHODS.iter().filter(|method| !known.contains(method.as_str())) {
                let place = format!("{method} {path}");
                let answer = send(client.command(method.clone(), &filled, "walk", &json!({}))).await.expect(405);
                let allow = answer.header("allow").unwrap_or_else(|| panic!("{place} does not say what is allowed"));
                assert_eq!(allow.split(", ").collect::<BTreeSet<_>>(), known, "{place}");
                if method != Method::HEAD {
                    ledger.is_problem(&place, Code::MethodNotAllowed, &answer);
                }
                wrong += 1;
            }
            let below = send(client.command(Method::POST, &format!("{filled}/no/such/path"), "walk", &json!({}))).await;
            ledger.is_problem(path, Code::RouteNotFound, &below);
        }
        assert!(wrong > operations.len(), "only {wrong} wrong methods");
        assert_eq!(world.database().everything(), before);
    }

    async fn every_code_of_the_catalogue_is_declared_or_belongs_to_a_path(world: World) {
        let document = world.stranger().get("/openapi.json").await.expect(200).json();
        let mut declared: BTreeSet<Code> = Operation::all(&document).iter().flat_map(Operation::codes).collect();
        // The last four are ends of an operation, not answers.
        let elsewhere = [
            Code::RouteNotFound,
            Code::MethodNotAllowed,
            Code::OrderWithdrawn,
            Code::RefusedByErp,
            Code::RefusedByMailServer,
            Code::Abandoned,
        ];
        for code in elsewhere {
            assert!(declared.insert(code), "{code:?} is declared for an operation");
        }
        assert_eq!(declared, CATALOGUE.iter().map(|entry| entry.code).collect());
    }
}
