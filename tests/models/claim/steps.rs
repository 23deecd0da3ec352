//! What can happen in a state, and what comes of it.

use stateright::{Model, Property};

use super::{
    Action, Age, Body, Cleaner, Execution, Flaw, Holder, Outcome, Phase, Protocol, Recorded, State, Told, properties,
};

/// How often a call tries to make or find a claim: `claim::TAKE_TRIES`.
const TRIES: u8 = 3;

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let state = |in_stock| State {
            claim: None,
            result: None,
            orders: [0; 2],
            lock: None,
            calls: vec![Phase::Unsent; self.calls.len()],
            cleaner: Cleaner::Idle,
            in_stock,
            executions: Vec::new(),
            memories: 0,
            crashes: 1,
            faults: 1,
        };
        vec![state(true), state(false)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if let Some(next) = state.calls.iter().position(|phase| *phase == Phase::Unsent) {
            actions.push(Action::Begin(next));
        }
        for number in 0..state.calls.len() {
            self.actions_of_call(state, number, actions);
        }
        if state.crashes > 0 {
            actions.extend([Action::Crash(0), Action::Crash(1)]);
        }
        if !state.in_stock {
            actions.push(Action::Restock);
        }
        match state.result.map(|result| result.age) {
            Some(Age::Open) => actions.push(Action::End),
            Some(Age::Fresh) => actions.push(Action::WindowEnds),
            Some(Age::Expired) if state.memories == 0 => actions.push(Action::MemoryEnds),
            Some(Age::Expired | Age::Forgotten) | None => {}
        }
        self.actions_of_the_cleaner(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Begin(call) => next.calls[call] = self.first_phase(),
            Action::Insert(call) => self.insert(&mut next, call)?,
            Action::Find(call) => self.find(&mut next, call)?,
            Action::Forget(call) => next.forget(call)?,
            Action::GiveUp(call) => next.calls[call] = Phase::Answering(Told::AtWork),
            Action::Execute(call) => self.execute(&mut next, call),
            Action::Record(call) => next.record(call)?,
            Action::Commit(call) => self.commit(&mut next, call)?,
            Action::Fail(call) => {
                next.faults -= 1;
                next.release(call);
                next.calls[call] = Phase::Answering(Told::Unavailable);
            }
            Action::Answer(call) => {
                let Phase::Answering(told) = next.calls[call] else { return None };
                next.calls[call] = Phase::Ended(told);
            }
            Action::LoseAnswer(call) => next.calls[call] = Phase::Ended(Told::Nothing),
            Action::Crash(process) => self.crash(&mut next, process),
            Action::End => next.grow_old(Age::Fresh)?,
            Action::WindowEnds => next.grow_old(Age::Expired)?,
            Action::MemoryEnds => {
                next.memories += 1;
                next.grow_old(Age::Forgotten)?;
            }
            Action::Restock => next.in_stock = true,
            Action::DropBody => next.result.as_mut()?.has_body = false,
            Action::CleanerLooks => next.cleaner = Cleaner::Saw,
            Action::CleanerDeletes => {
                next.lock = Some(Holder::Cleaner);
                next.cleaner = Cleaner::Deleted;
            }
            Action::CleanerCommits => {
                (next.claim, next.result, next.lock) = (None, None, None);
                next.cleaner = Cleaner::Idle;
            }
        }
        // A crash of a process that does nothing, and the like.
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let promises = properties::PROMISES.iter().map(|(name, holds)| Property::always(name, *holds));
        let cases = properties::cases(self.guarded).into_iter();
        promises.chain(cases.map(|(name, is_so)| Property::sometimes(name, is_so))).collect()
    }
}

impl Protocol {
    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    fn actions_of_call(&self, state: &State, call: usize, actions: &mut Vec<Action>) {
        let is_free = state.lock.is_none_or(|holder| holder == Holder::Call(call));
        let waits = |action| if is_free { action } else { Action::GiveUp(call) };
        match state.calls[call] {
            Phase::Unsent | Phase::Ended(_) => return,
            Phase::Inserting(_) => actions.push(waits(Action::Insert(call))),
            Phase::Finding(_) => actions.push(Action::Find(call)),
            Phase::Forgetting(_) => actions.push(waits(Action::Forget(call))),
            Phase::Claimed => actions.push(Action::Execute(call)),
            Phase::Executed(_) if self.has(Flaw::CommitsBeforeTheReply) => actions.push(Action::Commit(call)),
            Phase::Executed(_) | Phase::Unrecorded(_) => actions.push(Action::Record(call)),
            Phase::Recorded(_) => actions.push(Action::Commit(call)),
            Phase::Answering(_) => {
                actions.extend([Action::Answer(call), Action::LoseAnswer(call)]);
                return;
            }
        }
        if state.faults > 0 {
            actions.push(Action::Fail(call));
        }
    }

    fn actions_of_the_cleaner(&self, state: &State, actions: &mut Vec<Action>) {
        let age = state.result.map(|result| result.age);
        if age >= Some(Age::Expired) && state.result.is_some_and(|result| result.has_body) {
            actions.push(Action::DropBody);
        }
        let is_free = state.lock.is_none();
        match state.cleaner {
            Cleaner::Idle if age != Some(Age::Forgotten) => {}
            Cleaner::Idle if self.has(Flaw::CleansWhatItSaw) => actions.push(Action::CleanerLooks),
            Cleaner::Idle | Cleaner::Saw if is_free => actions.push(Action::CleanerDeletes),
            Cleaner::Idle | Cleaner::Saw => {}
            Cleaner::Deleted => actions.push(Action::CleanerCommits),
        }
    }

    fn first_phase(&self) -> Phase {
        if self.has(Flaw::LooksThenInserts) { Phase::Finding(TRIES) } else { Phase::Inserting(TRIES) }
    }

    fn insert(&self, state: &mut State, call: usize) -> Option<()> {
        let Phase::Inserting(tries) = state.calls[call] else { return None };
        if self.has(Flaw::LooksThenInserts) {
            state.calls[call] = Phase::Claimed;
            return Some(());
        }
        // A row that this very transaction has deleted does not stand in its way.
        let is_taken = state.claim.is_some() && state.lock != Some(Holder::Call(call));
        if is_taken {
            state.calls[call] = Phase::Finding(tries);
        } else {
            state.lock = Some(Holder::Call(call));
            state.calls[call] = Phase::Claimed;
        }
        Some(())
    }

    fn find(&self, state: &mut State, call: usize) -> Option<()> {
        let Phase::Finding(tries) = state.calls[call] else { return None };
        let found = state.claim.zip(state.result);
        state.calls[call] = match found {
            None => Phase::again(tries),
            Some((_, result)) if result.age == Age::Forgotten => Phase::Forgetting(tries),
            Some((body, result)) => Phase::Answering(self.told(call, body, result)),
        };
        Some(())
    }

    /// `Past::answer`.
    fn told(&self, call: usize, body: Body, result: Recorded) -> Told {
        if body != self.calls[call].body && !self.has(Flaw::AnswersWithoutComparing) {
            return Told::Conflict;
        }
        let is_expired = result.age == Age::Expired && !self.has(Flaw::ExpiresByTheCleaner);
        if is_expired || !result.has_body {
            return Told::Expired;
        }
        Told::Replay(Execution { by: result.by, outcome: result.outcome }, result.age)
    }

    fn execute(&self, state: &mut State, call: usize) {
        let stands = state.orders[self.calls[call].body as usize] > 0;
        let outcome = match () {
            () if self.guarded && stands => Outcome::DuplicateOrder,
            () if !state.in_stock => Outcome::OutOfStock,
            () => Outcome::Made,
        };
        state.calls[call] = Phase::Executed(outcome);
        if self.has(Flaw::ForgetsRefusals) && outcome != Outcome::Made {
            state.release(call);
            state.calls[call] = Phase::Answering(Told::First(Execution { by: call, outcome }));
        }
    }

    fn commit(&self, state: &mut State, call: usize) -> Option<()> {
        let (Phase::Executed(outcome) | Phase::Recorded(outcome)) = state.calls[call] else { return None };
        let body = self.calls[call].body;
        state.claim = Some(body);
        state.orders[body as usize] += u8::from(outcome == Outcome::Made);
        state.executions.push(Execution { by: call, outcome });
        state.release(call);
        if matches!(state.calls[call], Phase::Recorded(_)) {
            state.save_reply(call, outcome);
        } else {
            state.result = None;
            state.calls[call] = Phase::Unrecorded(outcome);
        }
        Some(())
    }

    fn crash(&self, state: &mut State, process: usize) {
        let mut has_died = false;
        for call in 0..self.calls.len() {
            let is_idle = matches!(state.calls[call], Phase::Unsent | Phase::Ended(_));
            if self.calls[call].process == process && !is_idle {
                state.release(call);
                state.calls[call] = Phase::Ended(Told::Nothing);
                has_died = true;
            }
        }
        if process == 0 && state.cleaner == Cleaner::Deleted {
            (state.cleaner, state.lock) = (Cleaner::Idle, None);
            has_died = true;
        }
        state.crashes -= u8::from(has_died);
    }
}

impl State {
    /// Ends the hold of a call on the row of the claim.
    fn release(&mut self, call: usize) {
        if self.lock == Some(Holder::Call(call)) {
            self.lock = None;
        }
    }

    fn record(&mut self, call: usize) -> Option<()> {
        match self.calls[call] {
            Phase::Executed(outcome) => self.calls[call] = Phase::Recorded(outcome),
            Phase::Unrecorded(outcome) => self.save_reply(call, outcome),
            _ => return None,
        }
        Some(())
    }

    fn save_reply(&mut self, call: usize, outcome: Outcome) {
        // An order goes on to the ERP; a refusal is final at once.
        let age = if outcome == Outcome::Made { Age::Open } else { Age::Fresh };
        self.result = Some(Recorded { by: call, outcome, age, has_body: true });
        self.calls[call] = Phase::Answering(Told::First(Execution { by: call, outcome }));
    }

    fn forget(&mut self, call: usize) -> Option<()> {
        let Phase::Forgetting(tries) = self.calls[call] else { return None };
        if self.result.is_some_and(|result| result.age == Age::Forgotten) {
            self.lock = Some(Holder::Call(call));
        }
        self.calls[call] = Phase::again(tries);
        Some(())
    }

    fn grow_old(&mut self, age: Age) -> Option<()> {
        self.result.as_mut()?.age = age;
        Some(())
    }
}

impl Phase {
    /// The next round of `claim::take`, when there is one.
    fn again(tries: u8) -> Phase {
        if tries > 1 { Phase::Inserting(tries - 1) } else { Phase::Answering(Told::Bug) }
    }
}
