//! What can happen in a state, and what comes of it.

use stateright::{Model, Property};

use super::{
    Action, BUDGET, Doubt, Erp, Flaw, Lease, Message, Order, Outcome, Place, Protocol, Relay, Report, Request, Since,
    State, Verification, properties,
};

/// A relay that dies in the middle; with one that is late that is enough for a takeover of a takeover.
const CRASHES: u8 = 1;
/// A relay that is late, and settles after another one has taken over.
const DELAYS: u8 = 1;

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        // Elsewhere a retry by the duty desk is a new budget, and nothing else.
        let retries = u8::from(matches!(self.verification, Verification::LookAndWait | Verification::AskAPerson));
        // An ERP that knows a message by its name answers it the same way every time.
        let changes = u8::from(self.verification != Verification::SendAgain);
        let state = |takes_it| State {
            message: Message {
                place: Place::Waiting,
                token: 0,
                lease_is_over: false,
                doubt: None,
                resend_asked: false,
                spent: 0,
            },
            order: Order::Accepted,
            relays: [Relay::Idle; 2],
            erp: Erp { takes_it, changes, orders: 0, cancelled: false, requests: Vec::new() },
            crashes: CRASHES,
            delays: DELAYS,
            retries,
            first_end: None,
        };
        vec![state(true), state(false)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for number in 0..state.relays.len() {
            self.actions_of_relay(state, number, actions);
        }
        let undecided = state.erp.requests.iter().filter(|request| request.answer.is_none());
        actions.extend(undecided.flat_map(|request| [Action::Decide(request.token), Action::Lose(request.token)]));
        if state.erp.changes > 0 && !state.erp.requests.is_empty() {
            actions.push(Action::ErpChanges);
        }
        let may_end = state.delays > 0 || !state.is_held();
        if state.message.place == Place::Leased && !state.message.lease_is_over && may_end {
            actions.push(Action::LeaseEnds);
        }
        if state.message.doubt == Some(Since { window_is_over: false }) && !state.erp.works_on_what_is_old() {
            actions.push(Action::WindowEnds);
        }
        match state.order {
            Order::Accepted | Order::Confirmed => actions.push(Action::Cancel),
            Order::Cancelling if state.message.place.is_final() => {
                actions.extend([Action::CancelAtErp(true), Action::CancelAtErp(false)]);
            }
            Order::Cancelling | Order::Rejected | Order::Cancelled => {}
        }
        if state.message.place == Place::Parked {
            self.actions_of_the_desk(state, actions);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Lease(relay) => self.lease(&mut next, relay),
            Action::Verify(relay) => self.verify(&mut next, relay),
            Action::LookFails(relay) => next.report(relay, Outcome::Unknown, Doubt::Kept),
            Action::DoNotSend(relay) => {
                let Relay::MaySend(_, absent) = next.relays[relay] else { return None };
                next.report(relay, Outcome::NotDelivered, absent);
            }
            Action::Send(relay) => next.send(relay)?,
            Action::Hear(relay) => self.hear(&mut next, relay)?,
            Action::TimeOut(relay) => self.time_out(&mut next, relay)?,
            Action::Settle(relay) => self.settle(&mut next, relay)?,
            Action::Crash(relay) => next.crash(relay),
            Action::LeaseEnds => next.end_lease(),
            Action::WindowEnds => next.message.doubt = Some(Since { window_is_over: true }),
            Action::Decide(token) => self.decide(&mut next, token)?,
            Action::ErpChanges => {
                next.erp.changes -= 1;
                next.erp.takes_it = !next.erp.takes_it;
            }
            Action::Lose(token) => next.erp.requests.retain(|request| request.token != token),
            Action::Cancel => self.cancel(&mut next),
            Action::CancelAtErp(agrees) => next.cancel_at_erp(agrees),
            Action::Retry => {
                next.retries -= 1;
                next.message = Message { place: Place::Waiting, spent: 0, resend_asked: true, ..next.message };
            }
            Action::ResolveDelivered => next.conclude(Place::Delivered),
            Action::Abandon => next.conclude(Place::Abandoned),
        }
        // A request that was decided and that nobody waits for is over.
        next.forget_unheard();
        next.rename();
        if next.first_end.is_none() && next.message.place.is_final() {
            next.first_end = Some(next.message.place);
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(self.verification)
    }
}

impl Protocol {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn actions_of_relay(&self, state: &State, number: usize, actions: &mut Vec<Action>) {
        let is_due = match state.message.place {
            Place::Waiting => true,
            Place::Leased => state.message.lease_is_over,
            _ => false,
        };
        match state.relays[number] {
            Relay::Idle if is_due => actions.push(Action::Lease(number)),
            Relay::Idle => return,
            Relay::Leased(lease) => {
                actions.push(Action::Verify(number));
                if lease.doubt.is_some() && self.looks() {
                    actions.push(Action::LookFails(number));
                }
            }
            Relay::MaySend(lease, _) => {
                actions.push(Action::DoNotSend(number));
                let in_time = state.message.place == Place::Leased
                    && state.message.token == lease.token
                    && !state.message.lease_is_over;
                if in_time || self.has(Flaw::SendsLate) {
                    actions.push(Action::Send(number));
                }
            }
            Relay::Asking(lease, _) => {
                actions.push(Action::TimeOut(number));
                if state.erp.request(lease.token).is_some_and(|request| request.answer.is_some()) {
                    actions.push(Action::Hear(number));
                }
            }
            Relay::Reporting(..) => actions.push(Action::Settle(number)),
        }
        if state.relays[number] != Relay::Idle && state.crashes > 0 {
            actions.push(Action::Crash(number));
        }
    }

    /// A person looks before deciding. Where the program can look by itself, a retry needs no person's look.
    fn actions_of_the_desk(&self, state: &State, actions: &mut Vec<Action>) {
        if state.erp.orders > 0 {
            actions.push(Action::ResolveDelivered);
        }
        if state.erp.is_surely_absent() {
            actions.push(Action::Abandon);
        }
        if state.retries > 0 && (self.verification != Verification::AskAPerson || state.erp.is_surely_absent()) {
            actions.push(Action::Retry);
        }
    }

    fn looks(&self) -> bool {
        match self.verification {
            Verification::LookThenSend | Verification::LookAndWait => !self.has(Flaw::SendsUnverified),
            Verification::SendAgain | Verification::AskAPerson => false,
        }
    }

    fn lease(&self, state: &mut State, relay: usize) {
        let message = &mut state.message;
        if message.place == Place::Leased {
            // What a lost relay did until its lease ended is not known.
            let takes_old = self.has(Flaw::TakeoverWithOldDoubt) && message.doubt.is_some();
            if !takes_old && !self.has(Flaw::TakeoverWithoutDoubt) {
                message.doubt = Some(Since { window_is_over: false });
                for request in &mut state.erp.requests {
                    request.before_doubt = request.before_lease_end;
                }
            }
            message.spent += 1;
        }
        message.place = Place::Leased;
        message.token += 1;
        message.lease_is_over = false;
        let Message { token, doubt, resend_asked, spent, .. } = *message;
        if !self.has(Flaw::PermissionStays) {
            message.resend_asked = false;
        }
        for request in &mut state.erp.requests {
            request.before_lease_end = true;
        }
        state.relays[relay] = Relay::Leased(Lease { token, doubt, resend_asked, spent });
    }

    fn verify(&self, state: &mut State, relay: usize) {
        let Relay::Leased(lease) = state.relays[relay] else { return };
        let Some(since) = lease.doubt.filter(|_| !self.has(Flaw::SendsUnverified)) else {
            state.relays[relay] = Relay::MaySend(lease, Doubt::None);
            return;
        };
        let is_found = state.erp.orders > 0;
        let absence_counts = since.window_is_over || self.has(Flaw::AbsenceCountsAtOnce);
        match self.verification {
            Verification::SendAgain => state.relays[relay] = Relay::MaySend(lease, Doubt::Kept),
            Verification::AskAPerson if lease.resend_asked => state.relays[relay] = Relay::MaySend(lease, Doubt::Kept),
            Verification::AskAPerson => state.report(relay, Outcome::AskAPerson, Doubt::Kept),
            _ if is_found => state.report(relay, Outcome::Taken, Doubt::None),
            Verification::LookThenSend => state.relays[relay] = Relay::MaySend(lease, Doubt::Kept),
            Verification::LookAndWait if absence_counts => state.relays[relay] = Relay::MaySend(lease, Doubt::None),
            Verification::LookAndWait => state.report(relay, Outcome::Unknown, Doubt::Kept),
        }
    }

    fn hear(&self, state: &mut State, relay: usize) -> Option<()> {
        let Relay::Asking(lease, _) = state.relays[relay] else { return None };
        let outcome = state.erp.request(lease.token)?.answer?;
        let another_may_come = self.verification == Verification::LookThenSend
            && lease.doubt == Some(Since { window_is_over: false })
            && !self.has(Flaw::RefusalIsTheLastWord);
        if outcome == Outcome::Refused && another_may_come {
            state.report(relay, Outcome::Unknown, Doubt::Kept);
        } else {
            state.report(relay, outcome, Doubt::None);
        }
        Some(())
    }

    fn time_out(&self, state: &mut State, relay: usize) -> Option<()> {
        let Relay::Asking(..) = state.relays[relay] else { return None };
        let ask = self.verification == Verification::AskAPerson;
        let outcome = if ask { Outcome::AskAPerson } else { Outcome::Unknown };
        state.report(relay, outcome, Doubt::Arose);
        Some(())
    }

    fn decide(&self, state: &mut State, token: u8) -> Option<()> {
        let erp = &mut state.erp;
        let makes_a_second = matches!(self.verification, Verification::LookAndWait | Verification::AskAPerson);
        let outcome = if erp.takes_it { Outcome::Taken } else { Outcome::Refused };
        if erp.takes_it && (erp.orders == 0 || makes_a_second) {
            erp.orders += 1;
        }
        erp.requests.iter_mut().find(|request| request.token == token)?.answer = Some(outcome);
        Some(())
    }

    fn settle(&self, state: &mut State, relay: usize) -> Option<()> {
        let Relay::Reporting(lease, report) = state.relays[relay] else { return None };
        state.relays[relay] = Relay::Idle;
        let message = &mut state.message;
        let holds_it = message.place == Place::Leased && message.token == lease.token;
        if !holds_it && !self.has(Flaw::NoFencing) {
            return Some(());
        }
        message.doubt = match report.doubt {
            Doubt::None => None,
            Doubt::Kept => lease.doubt,
            Doubt::Arose => Some(Since { window_is_over: false }),
        };
        if report.doubt == Doubt::Arose {
            state.erp.requests.iter_mut().for_each(|request| request.before_doubt = true);
        }
        message.resend_asked = false;
        match report.outcome {
            Outcome::Taken => state.conclude(Place::Delivered),
            Outcome::Refused => state.conclude(Place::Refused),
            Outcome::AskAPerson => message.place = Place::Parked,
            Outcome::NotDelivered | Outcome::Unknown => {
                message.spent = lease.spent + 1;
                message.place = if message.spent < BUDGET { Place::Waiting } else { Place::Parked };
            }
        }
        Some(())
    }

    fn cancel(&self, state: &mut State) {
        let is_open = matches!(state.message.place, Place::Waiting | Place::Parked);
        if is_open && (state.message.doubt.is_none() || self.has(Flaw::WithdrawsInDoubt)) {
            state.message.place = Place::Withdrawn;
            state.order = Order::Cancelled;
        } else {
            state.order = Order::Cancelling;
        }
    }
}

impl State {
    fn report(&mut self, relay: usize, outcome: Outcome, doubt: Doubt) {
        if let Relay::Leased(lease) | Relay::MaySend(lease, _) | Relay::Asking(lease, _) = self.relays[relay] {
            self.relays[relay] = Relay::Reporting(lease, Report { outcome, doubt });
        }
    }

    fn send(&mut self, relay: usize) -> Option<()> {
        let Relay::MaySend(lease, absent) = self.relays[relay] else { return None };
        let request = Request { token: lease.token, answer: None, before_doubt: false, before_lease_end: false };
        self.erp.requests.push(request);
        self.erp.requests.sort_by_key(|request| request.token);
        self.relays[relay] = Relay::Asking(lease, absent);
        Some(())
    }

    fn crash(&mut self, relay: usize) {
        self.relays[relay] = Relay::Idle;
        self.crashes -= 1;
    }

    fn end_lease(&mut self) {
        if self.is_held() {
            self.delays -= 1;
        }
        self.message.lease_is_over = true;
        self.erp.requests.iter_mut().for_each(|request| request.before_lease_end = true);
    }

    /// `command::settlement::conclude`.
    fn conclude(&mut self, place: Place) {
        self.message.place = place;
        self.order = match (place, self.order) {
            (Place::Delivered, Order::Accepted) => Order::Confirmed,
            (Place::Refused | Place::Abandoned, Order::Cancelling) => Order::Cancelled,
            (Place::Refused | Place::Abandoned, _) => Order::Rejected,
            (_, order) => order,
        };
    }

    fn cancel_at_erp(&mut self, agrees: bool) {
        self.erp.cancelled = agrees;
        self.order = if agrees { Order::Cancelled } else { Order::Confirmed };
    }
}
