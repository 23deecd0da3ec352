//! How a file looks: its length, its opening words, its name, and what does not belong into it.

use syn::visit::{self, Visit};

use super::source::{Mention, Source};
use super::{Fault, Rule, Scope};

/// A function fits on a screen.
const FUNCTION_LINES: usize = 70;
/// A file is read in one go.
const FILE_LINES: usize = 400;
/// A module doc says what the room is for; what is longer belongs into docs/.
const DOC_LINES: usize = 10;
/// The doc of the crate tells the life of a command, and may take a page for it.
const CRATE_DOC_LINES: usize = 60;
/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "common", "manager", "service", "types", "misc"];
/// Marks of unfinished work, written so that this file does not contain them.
const MARKS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("HA", "CK")];
/// Macros that stand for unfinished work or for a look at values while searching a fault.
const MACROS: &[&str] = &["todo", "unimplemented", "dbg"];

/// Ten ends of lines, for the examples of what is too long.
macro_rules! ten {
    () => {
        "\n\n\n\n\n\n\n\n\n\n"
    };
}
macro_rules! hundred {
    () => {
        concat!(ten!(), ten!(), ten!(), ten!(), ten!(), ten!(), ten!(), ten!(), ten!(), ten!())
    };
}

pub const RULES: &[Rule] = &[
    Rule {
        name: "a function has at most 70 lines",
        scope: Scope::ServiceAndTests,
        check: long_functions,
        bad: &[
            ("src/a.rs", concat!("fn f() {", ten!(), ten!(), ten!(), ten!(), ten!(), ten!(), ten!(), "}")),
            ("src/a.rs", concat!("impl A { fn f() {", hundred!(), "} }")),
            ("src/a.rs", concat!("trait A { fn f() {", hundred!(), "} }")),
            ("src/a.rs", concat!("fn f() { fn inner() {", hundred!(), "} }")),
        ],
        good: &[
            (
                "src/a.rs",
                concat!("\n\nfn f() {", ten!(), ten!(), ten!(), ten!(), ten!(), ten!(), "\n\n\n\n\n\n\n\n\n}"),
            ),
            ("src/a.rs", concat!("fn f() {}", hundred!())),
        ],
    },
    Rule {
        name: "a file has at most 400 lines",
        scope: Scope::ServiceAndTests,
        check: long_file,
        bad: &[("src/a.rs", concat!(hundred!(), hundred!(), hundred!(), hundred!(), "//"))],
        good: &[("src/a.rs", concat!(hundred!(), hundred!(), hundred!(), hundred!()))],
    },
    Rule {
        name: "a file opens with what it is for, in at most ten lines",
        scope: Scope::ServiceAndTests,
        check: module_doc,
        bad: &[
            ("src/a.rs", "use std::fs;"),
            ("src/a.rs", "//!\n//!\n"),
            ("src/a.rs", "//! 1\n//! 2\n//! 3\n//! 4\n//! 5\n//! 6\n//! 7\n//! 8\n//! 9\n//! 10\n//! 11\n"),
        ],
        good: &[("src/a.rs", "//! 1\n//! 2\n//! 3\n//! 4\n//! 5\n//! 6\n//! 7\n//! 8\n//! 9\n//! 10\n\nfn f() {}")],
    },
    Rule {
        name: "a module's name says what is in it",
        scope: Scope::ServiceAndTests,
        check: empty_name,
        bad: &[
            ("src/utils.rs", ""),
            ("src/api/types.rs", ""),
            ("src/common/mod.rs", ""),
            ("src/a.rs", "mod helpers { fn f() {} }"),
        ],
        good: &[("src/order/line.rs", "mod service_level {}")],
    },
    Rule {
        name: "no unfinished work",
        scope: Scope::ServiceAndTests,
        check: unfinished,
        bad: &[
            ("src/a.rs", concat!("// TO", "DO: the rest")),
            ("src/a.rs", "fn f() { todo!() }"),
            ("src/a.rs", "fn f() { std::unimplemented!(\"later\") }"),
            ("src/a.rs", "fn f() { g(dbg!(1)) }"),
        ],
        good: &[("src/a.rs", "//! Todos os pedidos.\nfn dbg() {}")],
    },
    Rule {
        name: "no thread of the service sleeps",
        scope: Scope::Service,
        check: |file| {
            forbidden(file, |mention| mention.has(&["thread", "sleep"]), "wait for what is awaited, with a deadline")
        },
        bad: &[
            ("src/relay.rs", "fn f() { std::thread::sleep(a); }"),
            ("src/relay.rs", "use std::thread::{self, sleep};"),
        ],
        good: &[("src/relay.rs", "fn f() { tokio::time::timeout(a, b); }")],
    },
    Rule {
        name: "no unwrap, which says nothing when it fails",
        scope: Scope::Service,
        check: |file| {
            let found = |mention: &Mention| mention.names.last().is_some_and(|name| name == "unwrap");
            forbidden(file, found, "return the error, or say in expect() why it cannot happen")
        },
        bad: &[("src/a.rs", "fn f() { g().unwrap(); }"), ("src/a.rs", "fn f() { g().map(Option::unwrap); }")],
        good: &[("src/a.rs", "fn f() { g().unwrap_or(1); } #[cfg(test)] mod tests { fn f() { g().unwrap(); } }")],
    },
];

fn long_functions(file: &Source) -> Vec<Fault> {
    let mut functions = Functions(Vec::new());
    functions.visit_file(&file.syntax);
    functions.0
}

/// Collects the functions that are too long.
struct Functions(Vec<Fault>);

impl Functions {
    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span.start().line;
        let lines = block.brace_token.span.close().end().line + 1 - first;
        if lines > FUNCTION_LINES {
            self.0.push(Fault { line: first, advice: format!("`{}` has {lines}; split it", signature.ident) });
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

fn long_file(file: &Source) -> Vec<Fault> {
    let lines = file.text.lines().count();
    if lines <= FILE_LINES {
        return Vec::new();
    }
    vec![Fault { line: FILE_LINES, advice: format!("it has {lines}; split it into rooms") }]
}

fn module_doc(file: &Source) -> Vec<Fault> {
    let doc: Vec<&str> = file.text.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let limit = if file.path == "src/lib.rs" { CRATE_DOC_LINES } else { DOC_LINES };
    if doc.iter().all(|line| line.trim().is_empty()) {
        return vec![Fault { line: 1, advice: "begin it with //! and a sentence".to_owned() }];
    }
    if doc.len() > limit {
        return vec![Fault { line: limit, advice: format!("it has {} lines, the limit is {limit}", doc.len()) }];
    }
    Vec::new()
}

fn empty_name(file: &Source) -> Vec<Fault> {
    let of_path = file.path.trim_end_matches(".rs").split('/').map(str::to_owned);
    let mut modules = Modules(of_path.collect());
    modules.visit_file(&file.syntax);
    let empty = modules.0.into_iter().filter(|name| EMPTY_NAMES.contains(&name.as_str()));
    empty.map(|name| Fault { line: 1, advice: format!("`{name}` could hold anything; name what it holds") }).collect()
}

/// Collects the names of modules.
struct Modules(Vec<String>);

impl<'ast> Visit<'ast> for Modules {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        self.0.push(module.ident.to_string());
        visit::visit_item_mod(self, module);
    }
}

fn unfinished(file: &Source) -> Vec<Fault> {
    let marked = |line: &str| MARKS.iter().any(|mark| line.contains(mark));
    let lines = file.text.lines().enumerate().filter(|(_, line)| marked(line));
    let mut faults: Vec<Fault> =
        lines.map(|(index, _)| Fault { line: index + 1, advice: "finish it, or file an issue".to_owned() }).collect();
    let mut calls = Macros(Vec::new());
    calls.visit_file(&file.syntax);
    faults.append(&mut calls.0);
    faults
}

/// Collects the calls of macros that must not stay.
struct Macros(Vec<Fault>);

impl<'ast> Visit<'ast> for Macros {
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let last = &call.path.segments.last().expect("a macro has a name").ident;
        let name = last.to_string();
        if MACROS.contains(&name.as_str()) {
            self.0.push(Fault { line: last.span().start().line, advice: format!("remove `{name}!`") });
        }
        visit::visit_macro(self, call);
    }
}

fn forbidden(file: &Source, found: impl Fn(&Mention) -> bool, advice: &str) -> Vec<Fault> {
    let faults = file.mentions.iter().filter(|mention| found(mention));
    faults.map(|mention| Fault { line: mention.line, advice: format!("`{}`: {advice}", mention.text()) }).collect()
}
