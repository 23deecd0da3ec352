//! What is done to a run while the shop trades. A strike ends when its cause is gone; it checks by itself that it was real.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection};
use fastrand::Rng;

use crate::harness::proxy::Mode;
use crate::http;
use crate::postgres::DATABASE;
use crate::progress::{Progress, comes_true, pause};
use crate::stage::{Service, Stage};

/// A cause that stands in the way of nobody ends after this time.
const LONGEST: Duration = Duration::from_secs(3);
/// How long something on this machine may take that surely comes.
const LIMIT: Duration = Duration::from_secs(20);

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strike {
    /// A serving process is killed with -9 and started again.
    KillService,
    /// It is stopped with SIGTERM, must end with success, and is started again.
    StopService,
    /// It stands still for longer than nginx waits, and goes on.
    FreezeService,
    /// The relay is killed with -9 and started again.
    KillRelay,
    /// The ERP is killed with -9 and started again.
    KillErp,
    /// Some of the connections to PostgreSQL, any six, are ended by the server.
    EndConnections,
    /// The next COMMIT, or its answer, does not arrive.
    BreakCommit,
    /// PostgreSQL is stopped without a goodbye and started again.
    RestartPostgres,
    /// The primary is killed with -9 and the standby promoted.
    Promote,
    /// The volume is full, and has room again.
    FillDisk,
    /// The service is killed, cannot be started because the file is read-only, and is started when it is not any more.
    MakeReadOnly,
    /// Somebody holds a lock on the table of orders.
    LockOrders,
    /// The clock of one process is an hour ahead, or an hour behind.
    StepClock,
}

/// Strikes, and returns when the cause was gone: when the database takes connections again, when the lock is released, when
/// the start of a process that was killed began, because that start is part of its recovery.
pub fn strike(strike: Strike, stage: &mut Stage, progress: &Progress, rng: &mut Rng) -> Instant {
    let one = rng.usize(0..stage.services.len());
    match strike {
        Strike::KillService => {
            stage.services[one].kill();
            wait_for_failures(progress, rng.u64(0..4));
            again(|| stage.services[one].start())
        }
        Strike::StopService => {
            let status = stage.services[one].terminate();
            assert!(status.success(), "a service that is asked to stop ends in order: {status}");
            again(|| stage.services[one].start())
        }
        Strike::FreezeService => {
            stage.services[one].signal("-STOP");
            pause(Duration::from_millis(rng.u64(700..1500)));
            stage.services[one].signal("-CONT");
            Instant::now()
        }
        Strike::KillRelay => {
            let relay = stage.relay.as_mut().expect("the relay works apart");
            relay.kill();
            again(|| relay.start())
        }
        Strike::KillErp => {
            stage.erp.kill();
            pause(Duration::from_millis(rng.u64(0..400)));
            again(|| stage.erp.start_again())
        }
        Strike::EndConnections => end_connections(stage),
        Strike::BreakCommit => break_commit(stage, progress, rng),
        Strike::RestartPostgres => {
            let server = stage.servers.last_mut().expect("a run on PostgreSQL");
            server.end("-QUIT");
            wait_for_failures(progress, rng.u64(1..8));
            server.start_again();
            Instant::now()
        }
        Strike::Promote => {
            stage.servers.first_mut().expect("a primary").end("-KILL");
            wait_for_failures(progress, rng.u64(1..8));
            stage.servers.last().expect("a standby").promote();
            Instant::now()
        }
        Strike::FillDisk => fill_disk(stage, progress),
        Strike::MakeReadOnly => make_read_only(stage, one),
        Strike::LockOrders => lock_orders(stage, progress),
        Strike::StepClock => step_clock(&stage.services[one], rng),
    }
}

/// Starts a process again, and tells since when.
fn again(start: impl FnOnce()) -> Instant {
    let begun = Instant::now();
    start();
    begun
}

/// Waits until the shop has felt it so often, or nobody does.
fn wait_for_failures(progress: &Progress, count: u64) -> bool {
    let before = progress.counts().failed;
    progress.wait(LONGEST, |counts| counts.failed >= before + count || counts.over)
}

fn end_connections(stage: &Stage) -> Instant {
    let ended = stage.look().rows(
        "SELECT pg_terminate_backend(pid) AS ended FROM (SELECT pid FROM pg_stat_activity \
         WHERE datname = current_database() AND pid <> pg_backend_pid() ORDER BY random() LIMIT 6) AS chosen",
    );
    assert!(!ended.is_empty(), "there is a connection to end");
    Instant::now()
}

fn break_commit(stage: &Stage, progress: &Progress, rng: &mut Rng) -> Instant {
    let wire = stage.database_wire.as_ref().expect("PostgreSQL is behind a wire");
    wire.set(if rng.bool() { Mode::BreakAfterCommit } else { Mode::BreakBeforeCommit });
    // The relay commits, too, and may be the one who feels it.
    wait_for_failures(progress, 1);
    Instant::now()
}

fn fill_disk(stage: &mut Stage, progress: &Progress) -> Instant {
    let volume = stage.volume.as_ref().expect("the database is on a small volume");
    volume.fill();
    let before = progress.counts().failed;
    wait_for_failures(progress, 5);
    let felt = progress.counts().failed > before || progress.counts().over;
    volume.free();
    assert!(felt, "a full volume is felt");
    // PostgreSQL gives up when it cannot even recover; then it has to be started, as its own supervisor would.
    if let Some(server) = stage.servers.last_mut() {
        comes_true(Duration::from_millis(500), || server.has_ended());
        server.start_again();
    }
    Instant::now()
}

fn make_read_only(stage: &mut Stage, one: usize) -> Instant {
    let volume = stage.volume.as_ref().expect("the database is on a small volume");
    let service = &mut stage.services[one];
    service.kill();
    volume.make_read_only(true);
    service.spawn();
    let status = service.wait();
    let log = service.log();
    volume.make_read_only(false);
    assert!(!status.success() && log.contains("DATABASE_URL"), "{status}: a start that says what is wrong: {log}");
    again(|| service.start())
}

fn lock_orders(stage: &Stage, progress: &Progress) -> Instant {
    let url = stage.servers.last().expect("a run on PostgreSQL").url(DATABASE);
    let mut rival = PgConnection::establish(&url).expect("it takes connections");
    rival.batch_execute("BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE").expect("every transaction ends soon");
    wait_for_failures(progress, 5);
    rival.batch_execute("ROLLBACK").expect("the transaction is open");
    Instant::now()
}

fn step_clock(service: &Service, rng: &mut Rng) -> Instant {
    let clock = service.clock.as_ref().expect("the process has a clock of its own");
    let step = if rng.bool() { 3600 } else { -3600 };
    fs::write(clock, format!("{step:+}")).expect("the directory is ours");
    let stepped = comes_true(LIMIT, || {
        let asked = http::request("GET", "/healthz", &[], "");
        let answer = http::ask(service.address, &asked, LIMIT).and_then(|answer| answer.header("date"));
        let shown = answer.and_then(|date| DateTime::parse_from_rfc2822(&date).ok());
        shown.is_some_and(|shown| (shown.timestamp() - now() - step).abs() < 60)
    });
    assert!(stepped, "the clock of the process is {step} seconds off");
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the true time is what the stepped clock is compared with")]
fn now() -> i64 {
    Utc::now().timestamp()
}

/// How many processors there are, for the report.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
