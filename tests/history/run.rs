//! One mixed run: the program in processes of its own, killed and started again while the shops are at work; then the
//! check of every history, and of the rows that are left.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use order_service::api_key;
use order_service::db::Db;

use super::event::{self, Answer, Entry, Heard};
use super::linear::check;
use super::workload::{Draw, Ground, TENANTS, group};
use crate::harness::database::{Database, Dialect};
use crate::harness::http::Caller;
use crate::harness::orders::Tally;
use crate::harness::process::Process;
use crate::harness::settings::config;
use crate::harness::wait::until;

/// Groups that are at work at a time.
const SIDE_BY_SIDE: usize = 6;

/// Calls between two kills, about: what each group makes, times the groups of a third of the run.
const CALLS_OF_A_GROUP: usize = 40;

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_mins(5);

/// What kind of run it is.
pub struct Plan {
    pub dialect: Dialect,
    /// Processes on one database; on SQLite one.
    pub processes: usize,
    /// Groups of shops.
    pub groups: usize,
    /// How often a process is killed with -9 and started again.
    pub kills: usize,
    /// Settings of the service.
    pub settings: Vec<(&'static str, &'static str)>,
    /// Statements that are run on the database before the service starts.
    pub scene: &'static str,
}

impl Default for Plan {
    fn default() -> Self {
        Self { dialect: Dialect::Postgres, processes: 1, groups: 40, kills: 3, settings: Vec::new(), scene: "" }
    }
}

/// Runs and checks.
///
/// # Errors
/// What cannot be explained by the contract, with the seed and the place of the history.
pub fn history_of(plan: &Plan) -> Result<(), String> {
    let seed = seed();
    let judged = run(plan, seed);
    judged.map_err(|(fault, history)| {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("history-{seed}.jsonl"));
        fs::write(&file, event::lines(&history)).expect("the directory is there for this");
        format!("{fault}\nseed {seed} (HISTORY_SEED); the history is in {}", file.display())
    })
}

#[expect(clippy::disallowed_methods, reason = "the seed of a failed run is given to the test and not to the service")]
fn seed() -> u64 {
    let given = std::env::var("HISTORY_SEED").ok().map(|text| text.parse().expect("HISTORY_SEED is a number"));
    given.unwrap_or_else(|| getrandom::u64().expect("the system has randomness") % 1_000_000)
}

fn run(plan: &Plan, seed: u64) -> Result<(), (String, Vec<Entry>)> {
    let database = Database::migrated(plan.dialect);
    if !plan.scene.is_empty() {
        database.execute(plan.scene);
    }
    let start = || Process::serve(database.url(), &plan.settings);
    let processes: Vec<Process> = (0..plan.processes).map(|_| start()).collect();
    let addresses: Vec<SocketAddr> = processes.iter().map(Process::address).collect();
    let ground = Ground {
        callers: TENANTS.map(|tenant| client_of(&database, tenant, addresses[0])),
        addresses: Mutex::new(addresses),
        begin: Instant::now(),
        calls: AtomicUsize::new(0),
        kills: AtomicUsize::new(0),
    };
    let is_over = AtomicBool::new(false);
    let histories = std::thread::scope(|scope| {
        scope.spawn(|| kill_now_and_then(plan, processes, &ground, &is_over, start));
        let histories = play(plan, seed, &ground);
        is_over.store(true, Ordering::Relaxed);
        histories
    });
    let histories = histories.map_err(|fault| (fault, Vec::new()))?;
    let orders = judge(&database, &histories)?;
    let (history, kills) = (histories.concat(), ground.kills.into_inner());
    let found = variety(&history);
    println!("seed {seed}, {:?}: {} calls, {found:?}, {orders} orders, {kills} kills", plan.dialect, history.len());
    // A run in which nothing happens proves nothing.
    let is_full = found.values().all(|number| *number > 0) && kills == plan.kills;
    if is_full { Ok(()) } else { Err(("the run did not come to every case".to_owned(), history)) }
}

/// Lets the groups play, some at a time.
fn play(plan: &Plan, seed: u64, ground: &Ground) -> Result<Vec<Vec<Entry>>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime needs no more");
    let mut draw = Draw(seed);
    let draws: Vec<Draw> = (0..plan.groups).map(|_| Draw(draw.below(u64::MAX))).collect();
    runtime.block_on(async {
        let groups = draws.into_iter().enumerate().map(|(number, draw)| group(ground, number, draw));
        let played = stream::iter(groups).buffer_unordered(SIDE_BY_SIDE).try_collect();
        tokio::time::timeout(LIMIT, played)
            .await
            .unwrap_or_else(|_| Err(format!("the run does not end within {LIMIT:?}")))
    })
}

/// Kills one process after the other, each time when so many calls more were made, and starts another in its place.
fn kill_now_and_then(
    plan: &Plan,
    mut processes: Vec<Process>,
    ground: &Ground,
    is_over: &AtomicBool,
    start: impl Fn() -> Process,
) {
    for kill in 0..plan.kills {
        let calls = plan.groups * CALLS_OF_A_GROUP * (kill + 1) / (plan.kills + 1);
        let has_come = || ground.calls.load(Ordering::Relaxed) >= calls || is_over.load(Ordering::Relaxed);
        until(LIMIT, "enough calls were made for the next kill", has_come);
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        ground.kills.fetch_add(1, Ordering::Relaxed);
        let place = kill % processes.len();
        processes.remove(place).kill();
        let next = start();
        ground.addresses.lock().expect("no test panics with it")[place] = next.address();
        processes.insert(place, next);
    }
    until(LIMIT, "the run is over", || is_over.load(Ordering::Relaxed));
}

/// A client of a tenant, with a new API key.
fn client_of(database: &Database, tenant: &str, address: SocketAddr) -> Caller {
    let mut db = Db::open(&config(database.url(), &[]).database).expect("the database of the test takes connections");
    let api_key = api_key::issue(&mut db, tenant, "shop", &["orders:write", "orders:read"]);
    Caller::new(address, Some(api_key.unwrap_or_else(|error| panic!("a key can be issued: {error}"))))
}

/// Checks each history, and that the rows are those of the last states: nothing more, nothing less. Returns how many orders.
fn judge(database: &Database, histories: &[Vec<Entry>]) -> Result<usize, (String, Vec<Entry>)> {
    let (mut keys, mut orders) = (0, 0);
    for history in histories {
        let state = check(history).map_err(|fault| (fault, history.clone()))?;
        keys += state.count().0;
        orders += state.count().1;
    }
    let count = |number: usize| i64::try_from(number).expect("a run is small");
    let expected = Tally { claims: count(keys), operations: count(keys), ..Tally::orders(count(orders)) };
    let found = Tally::of(database);
    if found == expected {
        return Ok(orders);
    }
    Err((format!("the rows are {found:?}; what was heard makes {expected:?}"), histories.concat()))
}

/// How often each case happened.
fn variety(history: &[Entry]) -> BTreeMap<&'static str, usize> {
    let is_replay = |answer: &Answer| if answer.replayed { "replays" } else { "firsts" };
    let case = |entry: &Entry| match entry.end.as_ref().map(|(_, heard)| heard) {
        None => "without an answer",
        Some(Heard::Made(answer)) => is_replay(answer),
        Some(Heard::Duplicate(_)) => "duplicates",
        Some(Heard::Conflict) => "conflicts",
        Some(Heard::AtWork | Heard::Orders(_) | Heard::Known(_) | Heard::Other(_)) => "others",
    };
    let cases = ["without an answer", "replays", "firsts", "duplicates", "conflicts"];
    let mut found: BTreeMap<&'static str, usize> = cases.into_iter().map(|case| (case, 0)).collect();
    for entry in history {
        *found.entry(case(entry)).or_default() += 1;
    }
    found
}
