//! The README does what it says: its curl lines run against a fresh service, and each answer that it shows is the answer.

use std::collections::HashMap;
use std::process::Command;

use regex::Regex;

use crate::harness::database::{Database, Dialect};
use crate::harness::process::Process;

const README: &str = include_str!("../../README.md");

/// Where the README expects the service.
const ADDRESS: &str = "127.0.0.1:8080";

/// A command of the README and the answer that follows it.
struct Example {
    command: String,
    answer: String,
}

fn examples(text: &str) -> Vec<Example> {
    let fences = Regex::new("(?s)```(sh|http)\n(.*?)```").expect("the pattern is valid");
    let blocks: Vec<(&str, &str)> =
        fences.captures_iter(text).map(|block| block.extract::<2>().1).map(|[kind, text]| (kind, text)).collect();
    blocks
        .chunks(2)
        .map(|pair| match pair {
            [("sh", command), ("http", answer)] => {
                Example { command: (*command).to_owned(), answer: (*answer).to_owned() }
            }
            _ => panic!("every command of the README is followed by its answer"),
        })
        .collect()
}

/// Gives ids the number of their first appearance, and times no value, so that two runs can be compared.
#[derive(Default)]
struct Numbered(HashMap<String, usize>);

impl Numbered {
    fn normalise(&mut self, text: &str) -> String {
        let ids = Regex::new("(ord|op)_[0-9a-f]{32}").expect("the pattern is valid");
        let text = ids.replace_all(text, |found: &regex::Captures<'_>| {
            let next = self.0.len();
            let number = *self.0.entry(found[0].to_owned()).or_insert(next);
            format!("{}#{number}", &found[1])
        });
        let passing = "[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z|[0-9a-f]{32}|SANDBOX-[0-9A-F]{8}";
        Regex::new(passing).expect("the pattern is valid").replace_all(&text, "(passing)").replace('\r', "")
    }
}

fn run(command: &str, address: &str, key: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", &command.replace(ADDRESS, address)])
        .env("KEY", key)
        .output()
        .expect("every system has a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "is curl installed? (apt-get install curl)\n{command}\n{said}");
    String::from_utf8(output.stdout).expect("the answer is text")
}

#[test]
fn the_examples_of_the_readme_get_the_answers_that_it_shows() {
    let database = Database::empty(Dialect::Sqlite);
    let service = Process::serve(database.url(), &[("ORDERS_DEMO", "on"), ("ORDERS_RELAY", "on")]);
    let key = Regex::new("osk_[0-9a-f]{64}").expect("the pattern is valid");
    let log = service.log();
    let key = key.find(&log).expect("the first start prints the key of the demo tenant").as_str();
    let (mut expected, mut actual) = (Numbered::default(), Numbered::default());
    let examples = examples(README);
    assert_eq!(examples.len(), 4, "an order, its replay, a conflict and a poll");
    for example in examples {
        let answer = actual.normalise(&run(&example.command, &service.address().to_string(), key));
        for line in expected.normalise(&example.answer).lines() {
            assert!(answer.lines().any(|real| real == line), "{}\nlacks\n{line}\nand is\n{answer}", example.command);
        }
    }
}

#[test]
fn an_answer_that_is_not_the_real_one_is_noticed() {
    let mut numbered = Numbered::default();
    let (one, two) = (format!("ord_{}", "0".repeat(32)), format!("ord_{}", "1".repeat(32)));
    assert_eq!(numbered.normalise(&format!("{one} {two} {one}")), "ord#0 ord#1 ord#0");
    assert_ne!(numbered.normalise("status 201"), numbered.normalise("status 200"));
}
