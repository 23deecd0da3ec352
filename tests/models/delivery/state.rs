//! What can be asked of a state, and what makes two states the same.

use super::{Erp, Lease, Relay, Request, State};

impl State {
    /// Whether the relay that has the lease is alive.
    pub(super) fn is_held(&self) -> bool {
        self.relays.iter().filter_map(Relay::lease).any(|lease| lease.token == self.message.token)
    }

    /// Gives equal names to states that differ in names alone: tokens are counted from one, relays have no order.
    pub(super) fn rename(&mut self) {
        let mut tokens: Vec<u8> = self.relays.iter().filter_map(Relay::lease).map(|lease| lease.token).collect();
        tokens.extend(self.erp.requests.iter().map(|request| request.token));
        tokens.push(self.message.token);
        tokens.sort_unstable();
        tokens.dedup();
        let rank =
            |token: &mut u8| *token = (1..).zip(&tokens).find(|(_, old)| *old == token).map_or(0, |(new, _)| new);
        self.relays.iter_mut().filter_map(Relay::lease_mut).for_each(|lease| rank(&mut lease.token));
        self.erp.requests.iter_mut().for_each(|request| rank(&mut request.token));
        rank(&mut self.message.token);
        self.relays.sort_unstable();
    }

    pub(super) fn forget_unheard(&mut self) {
        let relays = self.relays;
        let waits = |token| relays.iter().any(|relay| matches!(relay, Relay::Asking(lease, _) if lease.token == token));
        self.erp.requests.retain(|request| request.answer.is_none() || waits(request.token));
    }
}

impl Relay {
    pub(super) fn lease(&self) -> Option<&Lease> {
        match self {
            Relay::Idle => None,
            Relay::Leased(lease) | Relay::MaySend(lease, _) | Relay::Asking(lease, _) | Relay::Reporting(lease, _) => {
                Some(lease)
            }
        }
    }

    pub(super) fn lease_mut(&mut self) -> Option<&mut Lease> {
        match self {
            Relay::Idle => None,
            Relay::Leased(lease) | Relay::MaySend(lease, _) | Relay::Asking(lease, _) | Relay::Reporting(lease, _) => {
                Some(lease)
            }
        }
    }
}

impl Erp {
    pub(super) fn request(&self, token: u8) -> Option<&Request> {
        self.requests.iter().find(|request| request.token == token)
    }

    pub(super) fn works_on_what_is_old(&self) -> bool {
        self.requests.iter().any(|request| request.answer.is_none() && request.before_doubt)
    }

    /// Whether it does not have the order, and will not get it from what is on its way.
    pub(super) fn is_surely_absent(&self) -> bool {
        let may_take = self.takes_it || self.changes > 0;
        self.orders == 0 && !(may_take && self.requests.iter().any(|request| request.answer.is_none()))
    }
}
