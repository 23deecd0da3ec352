//! The promises of the layout, read from the sources, so that they cannot rot.
//!
//! Every rule carries a piece of source that breaks it and one that keeps it, and both are tried: a check that
//! cannot fail is none.

mod layers;
mod source;
mod style;

use source::Source;

/// A promise that every source file keeps.
struct Rule {
    /// The promise, as a sentence.
    name: &'static str,
    /// Whether it is about the tests too, or about the service alone.
    scope: Scope,
    /// The faults it finds in one file.
    check: fn(&Source) -> Vec<Fault>,
    /// Sources that break it, each with the path it would have.
    bad: &'static [(&'static str, &'static str)],
    /// Sources that look alike and keep it.
    good: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Service,
    ServiceAndTests,
}

/// Where a rule is broken and what to do.
struct Fault {
    line: usize,
    advice: String,
}

fn rules() -> impl Iterator<Item = &'static Rule> {
    layers::RULES.iter().chain(style::RULES)
}

#[test]
fn the_sources_keep_every_rule() {
    let mut sources = source::read("src");
    assert!(sources.len() > 5, "the sources were not found");
    sources.extend(source::read("tests"));

    let mut report = Vec::new();
    for rule in rules() {
        for file in sources.iter().filter(|file| rule.scope == Scope::ServiceAndTests || !file.is_test()) {
            let faults = (rule.check)(file);
            report.extend(
                faults.iter().map(|fault| format!("{}:{}: {}: {}", file.path, fault.line, rule.name, fault.advice)),
            );
        }
    }
    assert!(report.is_empty(), "\n{}", report.join("\n"));
}

#[test]
fn every_rule_can_fail() {
    for rule in rules() {
        assert!(!rule.bad.is_empty(), "{}: no source that breaks it", rule.name);
        for (path, text) in rule.bad {
            let faults = (rule.check)(&Source::parse(path, text));
            assert!(!faults.is_empty(), "{}: finds nothing wrong in {path}:\n{text}", rule.name);
        }
        for (path, text) in rule.good {
            let faults = (rule.check)(&Source::parse(path, text));
            let advice: Vec<_> = faults.iter().map(|fault| &fault.advice).collect();
            assert!(advice.is_empty(), "{}: {advice:?} in {path}:\n{text}", rule.name);
        }
    }
}
