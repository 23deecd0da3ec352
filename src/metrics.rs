//! What the service counts, for Prometheus. Each app has a registry of its own, so that many apps can run in one process;
//! labels come from closed sets (commands, outcomes, route templates), so that no client can make them grow.

use std::fmt;
use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};

/// Upper bounds in seconds: from a replay out of the cache (1 ms) to the longest wait that a client may ask for (60 s).
const DURATION_BUCKETS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// How a command ended, seen from the client that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was executed now, and did what it should.
    Executed,
    /// Its recorded answer was sent again.
    Replayed,
    /// The rules said no, now; the refusal is recorded.
    Refused,
    /// The key was used for another request.
    Conflict,
    /// The key was still at work when the wait was over.
    InProgress,
    /// The key is spent.
    Expired,
    /// The service failed; nothing is recorded.
    Fault,
}

impl Outcome {
    /// The value of the label `outcome`, and of the member of the log line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Executed => "executed",
            Outcome::Replayed => "replayed",
            Outcome::Refused => "refused",
            Outcome::Conflict => "conflict",
            Outcome::InProgress => "in_progress",
            Outcome::Expired => "expired",
            Outcome::Fault => "fault",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of the connection pool at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolConnections {
    /// Connections that wait for a request.
    pub idle: u32,
    /// Connections that are lent to a request.
    pub in_use: u32,
    /// Connections that the pool may have at most.
    pub max: u32,
}

/// The metrics of one app.
pub struct Metrics {
    registry: Registry,
    commands: IntCounterVec,
    requests: IntCounterVec,
    durations: HistogramVec,
    cleaned: IntCounterVec,
    sweeps: IntCounterVec,
    pool: IntGaugeVec,
    attempts: IntCounterVec,
    reclaimed: IntCounter,
    lost_leases: IntCounter,
    pool_now: Box<dyn Fn() -> PoolConnections + Send + Sync>,
}

impl Metrics {
    /// The `Content-Type` of [`Metrics::render`].
    pub const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

    /// Metrics that start at zero; `pool_now` is asked for the state of the pool at each scrape.
    ///
    /// # Panics
    /// Never: the names are constants, and the registry is new.
    #[must_use]
    pub fn new(pool_now: impl Fn() -> PoolConnections + Send + Sync + 'static) -> Metrics {
        let commands = counter("orders_commands_total", "Commands by name and outcome.", &["command", "outcome"]);
        let requests = counter(
            "orders_http_requests_total",
            "HTTP requests by method, route template and status; 499 is a client that left before the answer.",
            &["method", "route", "status"],
        );
        let opts = HistogramOpts::new(
            "orders_http_request_duration_seconds",
            "Seconds from the head of a request to the head of its answer, waiting for a rival included.",
        );
        let durations = HistogramVec::new(opts.buckets(DURATION_BUCKETS.to_vec()), &["route"]).expect(VALID);
        let cleaned = counter(
            "orders_cleaner_rows_total",
            "What the cleaner did: keys forgotten past the key memory, bodies dropped past the replay window.",
            &["step"],
        );
        let sweeps = counter("orders_cleaner_sweeps_total", "Sweeps of the cleaner: done or failed.", &["outcome"]);
        let opts = Opts::new(
            "orders_pool_connections",
            "Database connections of this process: idle, in_use, and max, the most there may be.",
        );
        let pool = IntGaugeVec::new(opts, &["state"]).expect(VALID);
        let attempts =
            counter("orders_erp_attempts_total", "Attempts by kind of message and outcome.", &["kind", "outcome"]);
        let reclaimed = IntCounter::new("orders_erp_reclaimed_total", "Messages taken over from a relay that stopped.");
        let lost =
            IntCounter::new("orders_erp_lost_leases_total", "Attempts that lost their lease before they were settled.");
        let (reclaimed, lost_leases) = (reclaimed.expect(VALID), lost.expect(VALID));
        let registry = Registry::new();
        registry.register(Box::new(attempts.clone())).expect(VALID);
        registry.register(Box::new(reclaimed.clone())).expect(VALID);
        registry.register(Box::new(lost_leases.clone())).expect(VALID);
        registry.register(Box::new(commands.clone())).expect(VALID);
        registry.register(Box::new(requests.clone())).expect(VALID);
        registry.register(Box::new(durations.clone())).expect(VALID);
        registry.register(Box::new(cleaned.clone())).expect(VALID);
        registry.register(Box::new(sweeps.clone())).expect(VALID);
        registry.register(Box::new(pool.clone())).expect(VALID);
        let pool_now = Box::new(pool_now);
        Metrics {
            registry,
            commands,
            requests,
            durations,
            cleaned,
            sweeps,
            pool,
            attempts,
            reclaimed,
            lost_leases,
            pool_now,
        }
    }

    /// Counts an attempt to deliver a message to an ERP.
    pub fn count_attempt(&self, kind: &str, outcome: &str) {
        self.attempts.with_label_values(&[kind, outcome]).inc();
    }

    /// Counts a message that was taken over from a relay that did not settle in time.
    pub fn count_reclaimed(&self) {
        self.reclaimed.inc();
    }

    /// Counts an attempt that could not be settled because its lease was over.
    pub fn count_lost_lease(&self) {
        self.lost_leases.inc();
    }

    /// Counts a command that ended.
    pub fn count_command(&self, command: &str, outcome: Outcome) {
        self.commands.with_label_values(&[command, outcome.as_str()]).inc();
    }

    /// Counts a request that ended. `route` is a template, never a path.
    pub fn count_request(&self, method: &str, route: &str, status: u16, took: Duration) {
        self.requests.with_label_values(&[method, route, &status.to_string()]).inc();
        self.durations.with_label_values(&[route]).observe(took.as_secs_f64());
    }

    /// Counts what a batch of the cleaner did. `step` is `keys` or `bodies`.
    pub fn count_cleaned(&self, step: &str, rows: usize) {
        self.cleaned.with_label_values(&[step]).inc_by(rows as u64);
    }

    /// Counts a sweep of the cleaner that has ended, well or not.
    pub fn count_sweep(&self, done: bool) {
        self.sweeps.with_label_values(&[if done { "done" } else { "failed" }]).inc();
    }

    /// Everything, in the text format of Prometheus.
    ///
    /// # Panics
    /// Never: the registry leaves out what has no values, which is all that the encoder refuses.
    #[must_use]
    pub fn render(&self) -> String {
        let now = (self.pool_now)();
        for (state, connections) in [("idle", now.idle), ("in_use", now.in_use), ("max", now.max)] {
            self.pool.with_label_values(&[state]).set(connections.into());
        }
        TextEncoder::new().encode_to_string(&self.registry.gather()).expect("every gathered family has a value")
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

const VALID: &str = "the name is a valid constant and registered once";

fn counter(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    IntCounterVec::new(Opts::new(name, help), labels).expect(VALID)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::{Metrics, Outcome, PoolConnections};

    #[test]
    fn what_was_counted_is_rendered_with_its_help() {
        let metrics = Metrics::new(|| PoolConnections { idle: 5, in_use: 3, max: 8 });
        metrics.count_command("orders.create", Outcome::Executed);
        metrics.count_command("orders.create", Outcome::Replayed);
        metrics.count_command("orders.create", Outcome::Replayed);
        metrics.count_request("POST", "/v1/orders", 201, Duration::from_millis(3));
        let text = metrics.render();
        for line in [
            "# HELP orders_commands_total Commands by name and outcome.",
            r#"orders_commands_total{command="orders.create",outcome="executed"} 1"#,
            r#"orders_commands_total{command="orders.create",outcome="replayed"} 2"#,
            r#"orders_http_requests_total{method="POST",route="/v1/orders",status="201"} 1"#,
            r#"orders_http_request_duration_seconds_bucket{route="/v1/orders",le="0.0025"} 0"#,
            r#"orders_http_request_duration_seconds_bucket{route="/v1/orders",le="0.005"} 1"#,
            r#"orders_pool_connections{state="idle"} 5"#,
            r#"orders_pool_connections{state="in_use"} 3"#,
            r#"orders_pool_connections{state="max"} 8"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
        }
    }

    #[test]
    fn the_pool_is_asked_at_each_scrape() {
        let in_use = Arc::new(AtomicU32::new(1));
        let asked = Arc::clone(&in_use);
        let now = move || PoolConnections { in_use: asked.load(Ordering::Relaxed), ..PoolConnections::default() };
        let metrics = Metrics::new(now);
        assert!(metrics.render().contains(r#"orders_pool_connections{state="in_use"} 1"#));
        in_use.store(2, Ordering::Relaxed);
        assert!(metrics.render().contains(r#"orders_pool_connections{state="in_use"} 2"#));
    }

    #[test]
    fn two_apps_in_one_process_count_apart() {
        let (one, two) = (Metrics::new(PoolConnections::default), Metrics::new(PoolConnections::default));
        one.count_command("stock.put", Outcome::Fault);
        assert!(one.render().contains("stock.put"));
        assert!(!two.render().contains("stock.put"));
    }
}
