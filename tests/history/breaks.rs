//! The check, checked on the real service: each deliberate break of it has to be noticed.

use crate::harness::database::Dialect;
use crate::run::{Plan, history_of};

/// Runs of a broken service until one is noticed; a break that shows only when rivals meet may hide in one run.
const RUNS: usize = 5;

/// What somebody who looks before they insert does not have: constraints that let one of two rivals win.
const WITHOUT_CONSTRAINTS: &str = "ALTER TABLE claims DROP CONSTRAINT claims_pkey CASCADE; \
    ALTER TABLE operations DROP CONSTRAINT operations_pkey CASCADE; \
    ALTER TABLE outbox DROP CONSTRAINT outbox_tenant_id_operation_id_kind_key CASCADE";

fn is_noticed(name: &'static str, scene: &'static str) {
    let plan = || Plan {
        dialect: Dialect::Postgres,
        processes: 2,
        groups: 12,
        kills: 0,
        settings: vec![("DELIBERATE_BREAK", name)],
        scene,
    };
    let found = (0..RUNS).find_map(|_| history_of(&plan()).err());
    let found = found.unwrap_or_else(|| panic!("{name} was not noticed in {RUNS} runs"));
    println!("{name}: {found}");
}

#[test]
fn select_then_insert_is_noticed() {
    is_noticed("select-then-insert", WITHOUT_CONSTRAINTS);
}

#[test]
fn select_then_insert_is_noticed_although_the_constraints_prevent_a_second_order() {
    is_noticed("select-then-insert", "");
}

#[test]
fn a_commit_before_the_reply_is_noticed() {
    is_noticed("commit-before-reply", "");
}

#[test]
fn a_scope_without_the_tenant_is_noticed() {
    is_noticed("scope-without-tenant", "");
}
