//! What happens to the scene between two requests: rights come and go, time passes, the cleaner comes by, the ERP answers.
//! All of it is done to the database, or by the relay, and told to the model.

use std::fmt::Write;

use order_service::retention::Sweep;
use sha2::{Digest, Sha256};

use super::contract::{Age, Scope, TENANT_OF};
use super::play::{CLIENTS, Ground, Play, READ, WRITE};
use super::rules::{HAND_OVERS, Message, Tenant};
use super::step::Rights;
use crate::harness::erp::Step as Answer;
use crate::harness::relay::connect_on as connect;
use crate::retention::{FORGOTTEN, SPENT, age_where};

/// Long ago, as both databases write it.
const LONG_AGO: &str = "2020-01-01 00:00:00";
/// As good as never, as both databases write it.
const NEVER: &str = "2100-01-01 00:00:00";

impl Play<'_, '_> {
    pub(super) fn set_rights(&mut self, client: usize, slot: usize, rights: Rights) {
        let key = &mut self.api_keys[client][slot];
        let hash = hex::encode(Sha256::digest(key.caller.api_key().expect("a client has a key")));
        let (revoked, scopes) = match rights {
            Rights::All => ("NULL".to_owned(), [READ, WRITE].concat()),
            Rights::Revoked => (format!("'{LONG_AGO}'"), [READ, WRITE].concat()),
            Rights::ReadOnly => ("NULL".to_owned(), READ.to_vec()),
            Rights::WriteOnly => ("NULL".to_owned(), WRITE.to_vec()),
        };
        self.ground.database.execute(&format!(
            "UPDATE api_keys SET revoked_at = {revoked}, scopes = '{}' WHERE key_hash = '{hash}'",
            scopes.join(",")
        ));
        key.rights = rights;
    }

    pub(super) fn nth_claim(&self, nth: usize) -> Option<Scope> {
        let count = self.model.claims.len();
        (count > 0).then(|| self.model.claims.keys().nth(nth % count).expect("it is less than the count").clone())
    }

    pub(super) fn age(&mut self, nth: usize, age: Age) {
        let Some(scope) = self.nth_claim(nth) else { return };
        let seconds = if age == Age::Forgotten { FORGOTTEN } else { SPENT };
        let Scope { client, command, key } = &scope;
        let condition = format!(
            "tenant_id = '{}' AND client_id = '{}' AND command = '{}' AND idempotency_key = '{key}'",
            self.names.tenants[TENANT_OF[*client]],
            CLIENTS[*client],
            command.name(),
        );
        age_where(self.ground.database, seconds, &condition);
        let claim = self.model.claims.get_mut(&scope).expect("it was found above");
        // What is not final has no end that could come nearer.
        if claim.is_final() {
            claim.age = claim.age.max(age);
        }
        writeln!(self.log, "time passes for {scope:?}: {:?}", claim.age).expect("text takes text");
    }

    pub(super) fn clean(&mut self, batch: u32) {
        let mut sweep = Sweep::begin(self.ground.db, batch).expect("the database answers");
        while sweep.clean_batch(self.ground.db).expect("the batch is done").is_some() {}
        let claims = self.model.claims.iter();
        let forgotten = claims.filter(|(_, claim)| claim.age == Age::Forgotten).map(|(scope, _)| scope.clone());
        let forgotten: Vec<Scope> = forgotten.collect();
        for scope in &forgotten {
            self.model.forget(scope);
        }
        for claim in self.model.claims.values_mut().filter(|claim| claim.age == Age::Spent) {
            claim.is_body_dropped = true;
        }
        self.log.push_str("the cleaner comes by\n");
    }

    pub(super) fn expire(&mut self, tenant: usize, nth: usize) {
        let mut expiring =
            self.model.tenants[tenant].reservations.iter_mut().filter(|reservation| reservation.may_expire);
        let Some(reservation) = expiring.nth(nth) else { return };
        let (id, tenant) = (&reservation.id, &self.names.tenants[tenant]);
        self.ground.database.execute(&format!(
            "UPDATE reservations SET expires_at = '{LONG_AGO}' WHERE tenant_id = '{tenant}' AND reservation_id = '{id}'; \
             UPDATE reservation_lines SET held_until = '{LONG_AGO}' WHERE tenant_id = '{tenant}' \
             AND reservation_id = '{id}' AND held_until IS NOT NULL"
        ));
        if reservation.state == "reserved" {
            reservation.state = "expired";
        }
        writeln!(self.log, "time passes for {id}: {}", reservation.state).expect("text takes text");
    }

    /// The relay brings the order's hand-over to the ERP, which says what it thinks of the order. The tenant has an ERP for as
    /// long as that takes, and nothing else is due.
    pub(super) async fn erp_answers(&mut self, tenant: usize, nth: usize, status: &'static str) {
        let Tenant { orders, messages, .. } = &mut self.model.tenants[tenant];
        let Some(order) = orders.get_mut(nth) else { return };
        let of_order = |message: &&mut Message| message.order == order.id && message.state == "waiting";
        let waits = |message: &&mut Message| of_order(message) && HAND_OVERS.contains(&message.kind);
        let Some(hand_over) = messages.iter_mut().find(waits) else { return };
        hand_over.state = if status == "rejected" { "refused" } else { "delivered" };
        if status == "rejected" {
            // What was to be told of it next waits for another hand-over.
            messages.iter_mut().filter(of_order).for_each(|message| message.state = "parked");
        }
        order.status = status;
        order.version += 1;
        let (id, tenant) = (&order.id, &self.names.tenants[tenant]);
        let Ground { database, erp, relay, .. } = &self.ground;
        if status == "rejected" {
            erp.script(&[Answer::Status(422)]);
        }
        database.execute(&format!(
            "UPDATE outbox SET next_attempt_at = '{NEVER}' WHERE tenant_id = '{tenant}'; \
             UPDATE outbox SET next_attempt_at = '{LONG_AGO}' WHERE tenant_id = '{tenant}' AND order_id = '{id}'"
        ));
        connect(database, tenant, &erp.url(), "lookup");
        let attempts = relay.step().await;
        database.execute(&format!("DELETE FROM erp_connections WHERE tenant_id = '{tenant}'"));
        assert_eq!(attempts, 1, "of {id} the hand-over alone is due");
        writeln!(self.log, "the ERP says of {id}: {status}").expect("text takes text");
    }
}
