//! Which break the tests of the tests ask for. This file is compiled with the feature `deliberate-breaks` alone, which a
//! release build refuses.

use std::sync::LazyLock;

#[cfg(not(debug_assertions))]
compile_error!("the feature deliberate-breaks is for tests; it must not get into a release build");

/// One way to break the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliberateBreak {
    /// `select-then-insert`: a key is looked for, and claimed where it is not there; nothing guards the time between.
    SelectThenInsert,
    /// `commit-before-reply`: claim and effects commit, and the reply is saved in a second transaction.
    CommitBeforeReply,
    /// `scope-without-tenant`: a key of one tenant is found by another.
    ScopeWithoutTenant,
}

/// The break of this process: the variable `DELIBERATE_BREAK`, which is no setting. `None`: the service is whole.
#[must_use]
pub fn chosen() -> Option<DeliberateBreak> {
    *CHOSEN
}

static CHOSEN: LazyLock<Option<DeliberateBreak>> = LazyLock::new(|| {
    #[expect(clippy::disallowed_methods, reason = "it is no setting, and no program for use knows it")]
    let name = std::env::var("DELIBERATE_BREAK").ok()?;
    log::error!("this process breaks the service on purpose: {name}");
    match name.as_str() {
        "select-then-insert" => Some(DeliberateBreak::SelectThenInsert),
        "commit-before-reply" => Some(DeliberateBreak::CommitBeforeReply),
        "scope-without-tenant" => Some(DeliberateBreak::ScopeWithoutTenant),
        _ => panic!("there is no break named {name}"),
    }
});
