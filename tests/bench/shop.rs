//! An e-shop that keeps its intents as it should: key and body are in its journal before the first send, and a command is sent
//! again, with the same key, until it has the answer that ends it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::chance;
use crate::http::{self, Message};
use crate::progress::{Progress, pause};

pub mod intent;
pub mod journal;

use intent::{Family, Intent};
use journal::{Entry, Journal};

/// How long the shop waits for one answer.
pub const PATIENCE: Duration = Duration::from_millis(1500);
/// The first pause may reach this; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// After this time an intent without an answer counts as lost.
const TOTAL: Duration = Duration::from_secs(90);
/// After so many requests, too.
const MOST_TRIES: u32 = 400;

/// An answer that ends an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// `Location`.
    pub location: Option<String>,
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// The body's bytes, which are text.
    pub body: String,
}

/// How an intent ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With the answer that the service has recorded.
    Answered(Answer),
    /// The key stands for another body.
    Conflict,
    /// With an answer that no honest client should get.
    Unexpected(String),
    /// Without an answer.
    GaveUp,
}

/// The shop.
pub struct Shop {
    /// Where its intents are.
    pub journal: Journal,
    /// How far it is.
    pub progress: Arc<Progress>,
    seed: u64,
    authorization: String,
}

impl Shop {
    /// A shop with this API key.
    pub fn new(journal: Journal, progress: Arc<Progress>, seed: u64, api_key: &str) -> Self {
        Self { journal, progress, seed, authorization: format!("Bearer {api_key}") }
    }

    /// Makes and carries out so many families of intents, by so many workers at a time.
    pub fn trade(&self, front: SocketAddr, families: usize, workers: usize, pays: bool) {
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for worker in 0..workers {
                let (next, client) = (&next, format!("worker-{worker}"));
                scope.spawn(move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        // One lost intent is a failure of the run; more of them would only take longer.
                        if number >= families || self.progress.counts().given_up > 0 {
                            return;
                        }
                        self.carry_out_family(&Family::new(self.seed, number, pays), front, &client);
                        self.progress.add(|counts| counts.families += 1);
                    }
                });
            }
        });
        self.progress.add(|counts| counts.over = true);
    }

    fn carry_out_family(&self, family: &Family, front: SocketAddr, client: &str) {
        let End::Answered(answer) = self.carry_out(&family.order, front, client) else { return };
        if let Some(follower) = family.follower(&answer) {
            self.carry_out(&follower, front, client);
        }
    }

    /// Writes the intent down, and sends it until it has ended.
    pub fn carry_out(&self, intent: &Intent, address: SocketAddr, client: &str) -> End {
        self.journal.intend(intent);
        self.pursue(intent, address, client)
    }

    /// Sends an intent that is written down, until it has ended.
    pub fn pursue(&self, intent: &Intent, address: SocketAddr, client: &str) -> End {
        let request = self.request(intent);
        let begun = Instant::now();
        let mut first_failure = None;
        for attempt in 1..=MOST_TRIES {
            let number = self.journal.invoke(intent, client, attempt);
            let answer = http::ask(address, &request, PATIENCE);
            self.progress.add(|counts| counts.sent += 1);
            match judge(answer.as_ref()) {
                Verdict::Recorded { answer, replayed } => {
                    self.journal.ok(intent, client, number, (&answer, replayed));
                    self.progress.add(|counts| {
                        counts.answered += 1;
                        counts.replays += u64::from(replayed);
                        let late = first_failure.map_or(Duration::ZERO, |failed: Instant| failed.elapsed());
                        counts.longest = counts.longest.max(late);
                    });
                    return End::Answered(answer);
                }
                Verdict::Conflict => {
                    self.journal.fail(intent, client, number, "IdempotencyKeyConflict");
                    return End::Conflict;
                }
                Verdict::Unexpected(what) => {
                    self.journal.fail(intent, client, number, &what);
                    return End::Unexpected(what);
                }
                Verdict::Again { after, unavailable } => {
                    self.journal.info(intent, client, number, answer.as_ref().map(Message::status));
                    first_failure.get_or_insert_with(Instant::now);
                    self.progress.add(|counts| {
                        counts.failed += 1;
                        counts.unavailable += u64::from(unavailable);
                    });
                    if begun.elapsed() > TOTAL {
                        break;
                    }
                    pause(self.pause(intent, attempt, after));
                }
            }
        }
        self.journal.gave_up(intent);
        self.progress.add(|counts| counts.given_up += 1);
        End::GaveUp
    }

    /// Full jitter: between nothing and a limit that doubles; never before the `Retry-After` of the answer.
    fn pause(&self, intent: &Intent, attempt: u32, after: Duration) -> Duration {
        let limit = FIRST_PAUSE.saturating_mul(1 << attempt.min(10)).min(LONGEST_PAUSE);
        let mut rng = chance::of(self.seed, &["pause", &intent.key, &attempt.to_string()]);
        after + limit.mul_f64(rng.f64())
    }

    /// The bytes of every attempt.
    pub fn request(&self, intent: &Intent) -> Vec<u8> {
        self.bytes(intent.method, &intent.path, &intent.key, &intent.body)
    }

    /// The bytes of one attempt more, made of what the journal says.
    pub fn request_again(&self, entry: &Entry) -> Vec<u8> {
        self.bytes(&entry.method, &entry.path, &entry.key, &entry.body)
    }

    fn bytes(&self, method: &str, path: &str, key: &str, body: &str) -> Vec<u8> {
        let headers = [("Authorization", self.authorization.as_str()), ("Idempotency-Key", key)];
        http::request(method, path, &headers, body)
    }

    /// Asks something that changes nothing.
    pub fn get(&self, address: SocketAddr, path: &str) -> Option<Message> {
        let headers = [("Authorization", self.authorization.as_str())];
        http::ask(address, &http::request("GET", path, &headers, ""), PATIENCE)
    }
}

/// What an answer, or none, means for the intent.
enum Verdict {
    Recorded { answer: Answer, replayed: bool },
    Conflict,
    Unexpected(String),
    Again { after: Duration, unavailable: bool },
}

fn judge(answer: Option<&Message>) -> Verdict {
    let Some(message) = answer else { return Verdict::Again { after: Duration::ZERO, unavailable: false } };
    let status = message.status();
    match message.header("idempotent-replayed").as_deref() {
        Some(replayed) if status != 202 => {
            return Verdict::Recorded { answer: recorded(message), replayed: replayed == "true" };
        }
        _ => {}
    }
    if matches!(status, 202 | 408 | 425 | 429 | 500..=599) {
        let seconds = message.header("retry-after").and_then(|seconds| seconds.parse().ok()).unwrap_or(0);
        return Verdict::Again { after: Duration::from_secs(seconds), unavailable: status >= 500 };
    }
    if status == 409 && message.body().contains(r#""error":"IdempotencyKeyConflict""#) {
        return Verdict::Conflict;
    }
    Verdict::Unexpected(format!("{status}: {}", message.body()))
}

/// The part of an answer that is recorded, and so has to be the same for ever.
pub fn recorded(message: &Message) -> Answer {
    Answer {
        status: message.status(),
        location: message.header("location"),
        content_type: message.header("content-type"),
        body: message.body(),
    }
}
