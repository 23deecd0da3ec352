//! The shop's own memory: a file to which every intent is appended, and synced, before it is first sent.
//!
//! It is a history of the run, too. Each line is a JSON object with `event`, `at` (milliseconds), `key` and `body` (the
//! SHA-256 of the bytes): `intent`; `invoke` and how it ended, joined by `number`: `ok` with the recorded answer, `fail`
//! (it surely did nothing), `info` (nobody knows); `gave-up`.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::Answer;
use super::intent::Intent;

/// The journal, open for writing.
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    begun: Instant,
    number: AtomicU64,
}

impl Journal {
    /// Begins a journal in this directory.
    pub fn begin(home: &Path) -> Self {
        let path = home.join("journal");
        let file = OpenOptions::new().create_new(true).append(true).open(&path).expect("the directory is ours");
        Self { path, file: Mutex::new(file), begun: Instant::now(), number: AtomicU64::new(1) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes an intent down, so that it survives whatever comes.
    pub fn intend(&self, intent: &Intent) {
        let line =
            json!({"command": intent.command, "method": intent.method, "path": intent.path, "text": intent.body});
        self.write("intent", intent, &line, true);
    }

    /// A request goes out. Returns the number that joins it with its end.
    pub fn invoke(&self, intent: &Intent, client: &str, attempt: u32) -> u64 {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        self.write("invoke", intent, &json!({"client": client, "number": number, "attempt": attempt}), false);
        number
    }

    /// It has the recorded answer.
    pub fn ok(&self, intent: &Intent, client: &str, number: u64, (answer, replayed): (&Answer, bool)) {
        let line = json!({
            "client": client, "number": number, "status": answer.status, "location": answer.location,
            "contentType": answer.content_type, "answer": hash(&answer.body), "text": answer.body, "replayed": replayed,
        });
        self.write("ok", intent, &line, false);
    }

    /// It surely did nothing.
    pub fn fail(&self, intent: &Intent, client: &str, number: u64, why: &str) {
        self.write("fail", intent, &json!({"client": client, "number": number, "why": why}), false);
    }

    /// Nobody knows what became of it.
    pub fn info(&self, intent: &Intent, client: &str, number: u64, status: Option<u16>) {
        self.write("info", intent, &json!({"client": client, "number": number, "status": status}), false);
    }

    /// The shop has stopped asking.
    pub fn gave_up(&self, intent: &Intent) {
        self.write("gave-up", intent, &json!({}), false);
    }

    fn write(&self, event: &str, intent: &Intent, line: &Value, sync: bool) {
        let at = u64::try_from(self.begun.elapsed().as_millis()).expect("a run is shorter than an age");
        let mut whole = json!({"event": event, "at": at, "key": intent.key, "body": hash(&intent.body)});
        let members: Map<String, Value> = line.as_object().expect("a line is an object").clone();
        whole.as_object_mut().expect("a line is an object").extend(members);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(format!("{whole}\n").as_bytes()).expect("the journal can be written");
        if sync {
            file.sync_data().expect("the journal can be synced");
        }
    }
}

fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

/// An intent as the journal has it, and all that is known of it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The idempotency key.
    pub key: String,
    /// The command's name.
    pub command: String,
    /// The method.
    pub method: String,
    /// Where it was sent.
    pub path: String,
    /// The body.
    pub body: String,
    /// Every answer that ended an attempt.
    pub answers: Vec<Answer>,
    /// How often the key stood for another body.
    pub conflicts: u32,
    /// What no honest client should hear.
    pub unexpected: Vec<String>,
}

/// Reads a journal from its file: key and body make an intent.
pub fn read(path: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(path).expect("the journal can be read");
    let mut entries: BTreeMap<(String, String), Entry> = BTreeMap::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("a line of the journal is JSON");
        let word = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let name = (word("key"), word("body"));
        if word("event") == "intent" {
            entries.entry(name).or_insert_with(|| Entry {
                key: word("key"),
                command: word("command"),
                method: word("method"),
                path: word("path"),
                body: word("text"),
                answers: Vec::new(),
                conflicts: 0,
                unexpected: Vec::new(),
            });
            continue;
        }
        let entry = entries.get_mut(&name).expect("an intent is written down before it is sent");
        match word("event").as_str() {
            "ok" => entry.answers.push(Answer {
                status: line["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(0),
                location: line["location"].as_str().map(str::to_owned),
                content_type: line["contentType"].as_str().map(str::to_owned),
                body: word("text"),
            }),
            "fail" if word("why") == "IdempotencyKeyConflict" => entry.conflicts += 1,
            "fail" => entry.unexpected.push(word("why")),
            "gave-up" => entry.unexpected.push("no answer until the shop gave up".to_owned()),
            _ => {}
        }
    }
    entries.into_values().collect()
}
