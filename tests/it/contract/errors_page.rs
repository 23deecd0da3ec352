//! The page of all errors is the catalogue, word by word.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use order_service::problem::{CATALOGUE, Kept, Retry};
use order_service::schema::code;

use super::stored;

const HEAD: &str = "# Errors

Every problem is `application/problem+json` (RFC 9457). Branch on `error`; show `message` and `detail` to people, and name
`traceId` when you report one. A code keeps its meaning and its status for ever; later releases may add codes.

*Same key* means: send the same request with the same idempotency key again, after `Retry-After` where it is given. *No*
means: the same request gets the same answer. *Recorded* means: a command's answer is kept under its key and replayed, so
that a corrected request needs a new key. Reads record nothing.

| `error` | status | send again? | recorded | meaning | what to do |
|---|---|---|---|---|---|
";

const DETAILS: &str = "
## Faults of a body

`InvalidRequest` lists in `details` every fault at once, each with a JSON Pointer (RFC 6901), a code and a message. The codes
of bodies are: ";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for entry in CATALOGUE {
        let again = match entry.retry {
            Retry::SameKey => "same key",
            Retry::No => "no",
        };
        let recorded = match entry.kept {
            Kept::Recorded => "yes",
            Kept::NotRecorded => "no",
        };
        let (name, status, title, advice) = (entry.name, entry.status, entry.title, entry.advice);
        writeln!(page, "| `{name}` | {status} | {again} | {recorded} | {title} | {advice} |").expect("text takes text");
    }
    let codes = code::ALL.map(|code| format!("`{code}`")).join(", ");
    page + DETAILS + &codes + ".\n"
}

#[test]
fn the_page_of_errors_is_the_catalogue() {
    let page = page();
    if stored("docs/errors.md") != page {
        let right = Path::new(env!("CARGO_TARGET_TMPDIR")).join("errors.md");
        fs::write(&right, page).expect("the directory of the build is ours");
        panic!("docs/errors.md is not the catalogue: copy {} over it and look at the difference", right.display());
    }
}
