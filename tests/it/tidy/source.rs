//! A source file as the rules see it: its text, its syntax, and every path of names that it mentions.
//!
//! Paths are taken from the tokens and not from the syntax tree, so that the inside of a macro call counts too.

use std::fs;
use std::path::Path;

use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};

/// One file of Rust.
pub struct Source {
    /// From the root of the repository, with slashes: `src/api/body.rs`.
    pub path: String,
    /// The text as it is.
    pub text: String,
    /// What the text means.
    pub syntax: syn::File,
    /// The paths of names it mentions.
    pub mentions: Vec<Mention>,
}

/// A path of names, such as `crate::db::Db`: groups are taken apart, and `super` and `self` are resolved to `crate::…`.
#[derive(Debug, PartialEq, Eq)]
pub struct Mention {
    /// The names, from left to right.
    pub names: Vec<String>,
    /// The line of its last name.
    pub line: usize,
}

/// Reads every Rust file below a directory of the repository.
pub fn read(directory: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut open = vec![root.join(directory)];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("the directory is part of the repository") {
            let path = entry.expect("a directory can be read to its end").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).expect("it is below the root").to_string_lossy().replace('\\', "/");
                found.push(Source::parse(&name, &fs::read_to_string(&path).expect("a source is text")));
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

impl Source {
    /// Reads one file's text.
    pub fn parse(path: &str, text: &str) -> Self {
        let syntax = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
        let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut reader = Reader { module: module_path(path), mentions: Vec::new() };
        reader.read(tokens);
        Self { path: path.to_owned(), text: text.to_owned(), syntax, mentions: reader.mentions }
    }

    /// Whether it is a file of unit tests, which follow the rules of tests.
    pub fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.ends_with("/tests.rs")
    }

    /// The room the file belongs to, its first module: `api` for `src/api/body.rs`, `main` and `lib` for themselves.
    pub fn room(&self) -> &str {
        let inside = self.path.strip_prefix("src/").unwrap_or(&self.path);
        let end = inside.find(['/', '.']).unwrap_or(inside.len());
        &inside[..end]
    }
}

impl Mention {
    /// Whether these names stand next to each other in it.
    pub fn has(&self, names: &[&str]) -> bool {
        self.names.windows(names.len()).any(|window| window == names)
    }

    /// The path as it would be written.
    pub fn text(&self) -> String {
        self.names.join("::")
    }
}

/// The module a file is: `["api", "body"]` for `src/api/body.rs`, nothing for the root.
fn module_path(path: &str) -> Vec<String> {
    let inside = path.strip_prefix("src/").unwrap_or(path);
    match inside.trim_end_matches(".rs") {
        "lib" | "main" => Vec::new(),
        module => module.split('/').map(str::to_owned).collect(),
    }
}

/// Walks the tokens of one file.
struct Reader {
    module: Vec<String>,
    mentions: Vec<Mention>,
}

impl Reader {
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = match &tokens[at..] {
                [TokenTree::Punct(hash), TokenTree::Group(attribute), TokenTree::Ident(keyword), ..]
                    if hash.as_char() == '#' && *keyword == "mod" && is_test_only(attribute) =>
                {
                    // Unit tests follow the rules of tests: the attribute, `mod`, the name and the body are passed over.
                    at + 5
                }
                [TokenTree::Ident(keyword), TokenTree::Ident(name), TokenTree::Group(body), ..]
                    if *keyword == "mod" =>
                {
                    self.module.push(name.to_string());
                    self.read(body.stream());
                    self.module.pop();
                    at + 3
                }
                [TokenTree::Ident(first), ..] => self.read_path(&tokens, at, first, &[]),
                [TokenTree::Group(group), ..] => {
                    self.read(group.stream());
                    at + 1
                }
                _ => at + 1,
            };
        }
    }

    /// Reads the path that begins at `at`, in a group of the path `before`, and returns where the tokens go on.
    fn read_path(&mut self, tokens: &[TokenTree], mut at: usize, first: &Ident, before: &[String]) -> usize {
        let mut names = before.to_vec();
        names.push(first.to_string());
        let mut line = first.span().start().line;
        at += 1;
        while is_separator(tokens, at) {
            match tokens.get(at + 2) {
                Some(TokenTree::Ident(name)) => {
                    names.push(name.to_string());
                    line = name.span().start().line;
                    at += 3;
                }
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    self.read_branches(group, &names);
                    return at + 3;
                }
                _ => break,
            }
        }
        let names = self.resolve(names);
        self.mentions.push(Mention { names, line });
        at
    }

    /// Reads `{a, b::{c, d}}` behind a path.
    fn read_branches(&mut self, group: &Group, before: &[String]) {
        let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = match &tokens[at] {
                TokenTree::Ident(first) => self.read_path(&tokens, at, first, before),
                _ => at + 1,
            };
        }
    }

    /// Turns `super::…` and `self::…` into `crate::…`.
    fn resolve(&self, names: Vec<String>) -> Vec<String> {
        let climbs = names.iter().take_while(|name| *name == "super").count();
        let begins = names.first().map(String::as_str);
        if names.len() < 2 || !matches!(begins, Some("super" | "self")) {
            return names;
        }
        let kept = self.module.len().saturating_sub(climbs);
        let rest = names.into_iter().skip(climbs.max(1));
        ["crate".to_owned()].into_iter().chain(self.module[..kept].iter().cloned()).chain(rest).collect()
    }
}

fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
    colon(at) && colon(at + 1)
}

fn is_test_only(attribute: &Group) -> bool {
    attribute.stream().to_string().replace(' ', "") == "cfg(test)"
}
