//! The contract as a sequential model: what one call may hear, given everything that has happened before it.

use std::collections::BTreeMap;

use super::event::{Answer, Ask, Heard, Scope};

/// Everything that the service should know. What no client has heard yet is unknown here, and learned from the first who
/// hears it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    claims: BTreeMap<Scope, Claim>,
    /// The orders that have an identity, by tenant and identity; with their ids once these are known.
    orders: BTreeMap<(&'static str, String), Option<String>>,
}

/// A key that was won.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Claim {
    body: u8,
    made: bool,
    /// The order and the text of the recorded answer.
    answer: Option<(String, String)>,
}

impl State {
    /// The state after this call, heard as it was; `None` when the contract does not allow it here.
    pub fn after(&self, ask: &Ask, heard: Option<&Heard>) -> Option<State> {
        match (ask, heard) {
            // A call that nobody knows the end of matters only where it was carried out.
            (Ask::List { .. } | Ask::Look { .. }, None) | (Ask::Create { .. }, Some(Heard::AtWork)) => {
                Some(self.clone())
            }
            (Ask::Create { scope, body, identity }, heard) => match self.claims.get(scope) {
                Some(claim) => self.answer((scope, claim), *body, identity.as_ref(), heard),
                None => self.execute(scope, *body, identity.as_ref(), heard),
            },
            (Ask::List { tenant, identity }, Some(Heard::Orders(ids))) => self.list(tenant, identity, ids),
            (Ask::Look { scope }, Some(Heard::Known(known))) => {
                (self.claims.contains_key(scope) == *known).then(|| self.clone())
            }
            (Ask::List { .. } | Ask::Look { .. }, Some(_)) => None,
        }
    }

    /// How many keys are won, and how many orders are made.
    pub fn count(&self) -> (usize, usize) {
        (self.claims.len(), self.claims.values().filter(|claim| claim.made).count())
    }

    /// The key is free: the command is carried out, once.
    fn execute(&self, scope: &Scope, body: u8, identity: Option<&String>, heard: Option<&Heard>) -> Option<State> {
        let mut next = self.clone();
        let identity = identity.map(|identity| (scope.tenant, identity.clone()));
        let stands = identity.as_ref().and_then(|identity| self.orders.get(identity));
        let (made, answer) = match (heard, stands) {
            (None, stands) => (stands.is_none(), None),
            (Some(Heard::Made(answer)), None) if !answer.replayed && !self.knows(&answer.order) => (true, Some(answer)),
            (Some(Heard::Duplicate(answer)), Some(known))
                if !answer.replayed && may_be(known.as_ref(), &answer.order) =>
            {
                (false, Some(answer))
            }
            _ => return None,
        };
        if let Some(identity) = identity {
            let order = answer.map(|answer| answer.order.clone());
            next.orders.entry(identity).and_modify(|known| *known = known.take().or(order.clone())).or_insert(order);
        }
        let answer = answer.map(|answer| (answer.order.clone(), answer.text.clone()));
        next.claims.insert(scope.clone(), Claim { body, made, answer });
        Some(next)
    }

    /// The key is taken: what was recorded is heard again, or the conflict.
    fn answer(
        &self,
        (scope, claim): (&Scope, &Claim),
        body: u8,
        identity: Option<&String>,
        heard: Option<&Heard>,
    ) -> Option<State> {
        let Some(heard) = heard else { return Some(self.clone()) };
        if claim.body != body {
            return (*heard == Heard::Conflict).then(|| self.clone());
        }
        let (Heard::Made(answer) | Heard::Duplicate(answer)) = heard else { return None };
        let same_kind = matches!(heard, Heard::Made(_)) == claim.made;
        if !same_kind || !answer.replayed {
            return None;
        }
        match &claim.answer {
            Some((order, text)) => (*order == answer.order && *text == answer.text).then(|| self.clone()),
            None => self.learn((scope, claim), identity, answer),
        }
    }

    /// The first answer was lost; this is the first time that somebody hears it.
    fn learn(&self, (scope, claim): (&Scope, &Claim), identity: Option<&String>, answer: &Answer) -> Option<State> {
        if claim.made && self.claims.values().any(|other| other.made && other.names(&answer.order)) {
            return None;
        }
        let mut next = self.clone();
        if let Some(identity) = identity {
            let order = next.orders.get_mut(&(scope.tenant, identity.clone()))?;
            if !may_be(order.as_ref(), &answer.order) {
                return None;
            }
            *order = Some(answer.order.clone());
        }
        next.claims.get_mut(scope)?.answer = Some((answer.order.clone(), answer.text.clone()));
        Some(next)
    }

    fn list(&self, tenant: &'static str, identity: &str, ids: &[String]) -> Option<State> {
        let place = (tenant, identity.to_owned());
        match (self.orders.get(&place), ids) {
            (None, []) => Some(self.clone()),
            (Some(known), [id]) if may_be(known.as_ref(), id) => {
                let mut next = self.clone();
                next.orders.insert(place, Some(id.clone()));
                Some(next)
            }
            _ => None,
        }
    }

    fn knows(&self, order: &str) -> bool {
        self.claims.values().any(|claim| claim.names(order))
            || self.orders.values().flatten().any(|known| known == order)
    }
}

impl Claim {
    fn names(&self, order: &str) -> bool {
        self.answer.as_ref().is_some_and(|(known, _)| known == order)
    }
}

fn may_be(known: Option<&String>, order: &str) -> bool {
    known.is_none_or(|known| known == order)
}
