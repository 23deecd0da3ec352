//! Small models of the two protocols that the service stands on, checked exhaustively: every order of steps, every crash.
//!
//! Each model is checked twice. As the service does it, no step may break a promise of the contract, and every interesting
//! case must really be reached. With one deliberate flaw, the checker must find the steps that break a promise: a model
//! that no flaw can break proves nothing.

mod claim;
mod delivery;
