//! What a run stands on: a database, the service's processes on it, an ERP, and the wires between them. All of it is new for
//! every run, and ends with it.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use tempfile::TempDir;

use crate::erp::{Erp, Promise};
use crate::faults::{Fault, Ground, Place, With};
use crate::harness::database::Database;
use crate::harness::ports::free_port;
use crate::harness::process::{self, Process, signal};
use crate::harness::proxy::Proxy;
use crate::nginx::Nginx;
use crate::postgres::{DATABASE, Postgres};
use crate::volume::Volume;
use crate::wire::Wire;

/// The tenant of every run.
pub const TENANT: &str = "acme";
const CLIENT: &str = "shop";
const SCOPES: &str = "orders:write,orders:read,payments:write,payments:read,stock:write,stock:read,operations:read";
const SECRET: (&str, &str) = ("ORDERS_SECRET_HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");

/// Waits short enough for a bench, and in the proportions of production: a request to the ERP ends before its lease, and
/// "not found" counts long after a request can still be under way. The replay window is shorter than the step of a clock.
const SETTINGS: [(&str, &str); 12] = [
    ("ORDERS_RELAY", "on"),
    ("ORDERS_CLEANER_INTERVAL", "1s"),
    ("ORDERS_REPLAY_WINDOW", "30m"),
    ("ORDERS_POOL_TIMEOUT", "1s"),
    ("ORDERS_ERP_ALLOW_PRIVATE", "on"),
    ("ORDERS_ERP_TIMEOUT", "1s"),
    ("ORDERS_ERP_SETTLE", "6s"),
    ("ORDERS_LEASE", "4s"),
    ("ORDERS_RETRY_BASE", "20ms"),
    ("ORDERS_RETRY_CAP", "500ms"),
    ("ORDERS_RETRY_ATTEMPTS", "1000"),
    ("ORDERS_RELAY_INTERVAL", "50ms"),
];

/// The stage. What is declared first is taken down first.
pub struct Stage {
    /// The wire of the shop.
    pub front: Wire,
    /// The proxy before the processes, where there is one.
    pub nginx: Option<Nginx>,
    /// The serving processes.
    pub services: Vec<Service>,
    /// The relay alone, where it works apart.
    pub relay: Option<Service>,
    /// The wire of the ERP.
    pub erp_wire: Wire,
    /// The ERP.
    pub erp: Erp,
    /// The wire to PostgreSQL, where there is one.
    pub database_wire: Option<Proxy>,
    /// The database server; the last one is the one to look at.
    pub servers: Vec<Postgres>,
    /// The file system of the database, where it is small.
    pub volume: Option<Volume>,
    /// The API key of the shop.
    pub api_key: String,
    /// What the ERP promises.
    pub promise: Promise,
    sqlite: Option<String>,
    home: TempDir,
}

/// A process of the service at a fixed address, which can be ended and started again.
pub struct Service {
    task: Task,
    url: String,
    settings: Vec<(String, String)>,
    /// Where it listens.
    pub address: SocketAddr,
    /// The file that its clock goes by, where it has one of its own.
    pub clock: Option<PathBuf>,
    process: Option<Process>,
}

#[derive(Clone, Copy)]
enum Task {
    Serve,
    Relay,
}

impl Stage {
    /// Sets the stage of a fault.
    pub fn set(fault: &Fault, ground: &Ground, seed: u64, promise: Promise) -> Self {
        let home = tempfile::Builder::new().prefix("orders-bench-").tempdir().expect("a directory for the run");
        let mut place = Premises::make(ground, home.path());
        let erp = Erp::start(home.path(), promise);
        let erp_wire = Wire::lay(seed, "erp", vec![erp.address()], fault.erp_breaks);
        let api_key = prepare(&place.url, &erp_wire, promise);
        let mut services: Vec<Service> = (0..ground.processes)
            .map(|number| Service::new(Task::Serve, &place.url, ground, (home.path(), number)))
            .collect();
        services.iter_mut().for_each(Service::start);
        let relay = (ground.with == With::RelayApart).then(|| {
            let mut relay = Service::new(Task::Relay, &place.url, ground, (home.path(), ground.processes));
            relay.start();
            relay
        });
        let addresses: Vec<SocketAddr> = services.iter().map(|service| service.address).collect();
        let nginx = (ground.with == With::Nginx).then(|| Nginx::start(&addresses));
        let targets = nginx.as_ref().map_or(addresses, |nginx| vec![nginx.address()]);
        Self {
            front: Wire::lay(seed, "shop", targets, fault.breaks),
            nginx,
            services,
            relay,
            erp_wire,
            erp,
            database_wire: place.wire.take(),
            servers: place.servers,
            volume: place.volume,
            api_key,
            promise,
            sqlite: place.sqlite,
            home,
        }
    }

    /// The directory of the run.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// A new look into the database, past every wire.
    pub fn look(&self) -> Database {
        match (&self.sqlite, self.servers.last()) {
            (Some(url), _) => Database::guest(url),
            (None, Some(server)) => server.look(DATABASE),
            (None, None) => panic!("a run has a database"),
        }
    }

    /// Where a client asks without the wire.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let direct = self.services.iter().map(|service| service.address);
        direct.chain(self.nginx.iter().map(Nginx::address)).collect()
    }

    /// What everybody has logged, for a run that failed.
    pub fn logs(&self) -> String {
        let services = self.services.iter().chain(&self.relay).map(Service::log);
        let nginx = self.nginx.iter().map(Nginx::log);
        services.chain(self.servers.iter().map(Postgres::log)).chain(nginx).collect::<Vec<_>>().join("\n----\n")
    }
}

/// The database of a stage.
struct Premises {
    url: String,
    sqlite: Option<String>,
    servers: Vec<Postgres>,
    volume: Option<Volume>,
    wire: Option<Proxy>,
}

impl Premises {
    fn make(ground: &Ground, home: &Path) -> Self {
        let none = Self { url: String::new(), sqlite: None, servers: Vec::new(), volume: None, wire: None };
        let sqlite = |directory: &Path| format!("sqlite://{}", directory.join("orders.db").display());
        let postgres = |place: Option<&Path>| {
            let server = Postgres::start(place);
            (server.url(DATABASE), vec![server])
        };
        match ground.place {
            Place::Sqlite => Self { url: sqlite(home), sqlite: Some(sqlite(home)), ..none },
            Place::SqliteOnVolume => {
                let volume = Volume::mount(24);
                let url = sqlite(volume.path());
                Self { url: url.clone(), sqlite: Some(url), volume: Some(volume), ..none }
            }
            Place::Postgres => {
                let (url, servers) = postgres(None);
                Self { url, servers, ..none }
            }
            Place::PostgresOnVolume => {
                let volume = Volume::mount(128);
                let (url, servers) = postgres(Some(volume.path()));
                Self { url, servers, volume: Some(volume), ..none }
            }
            Place::PostgresBehindWire => {
                let (direct, servers) = postgres(None);
                let (wire, url) = Proxy::to(&direct);
                Self { url, servers, wire: Some(wire), ..none }
            }
            Place::PostgresPair => {
                let mut first = Postgres::start(None);
                let standby = first.standby();
                Self { url: first.url_with(&standby), servers: vec![first, standby], ..none }
            }
        }
    }
}

/// Migrates the database, makes the shop's API key and connects the ERP, all by the program itself.
fn prepare(url: &str, erp_wire: &Wire, promise: Promise) -> String {
    let settings = [SECRET, ("ORDERS_ERP_ALLOW_PRIVATE", "on")];
    let run = |arguments: &[&str]| {
        let done = process::run(url, arguments, &settings);
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    let api_key = run(&["key", "add", "--tenant", TENANT, "--client", CLIENT, "--scopes", SCOPES]);
    let hook = format!("http://{}/hooks", erp_wire.address());
    run(&[
        "erp",
        "set",
        "--tenant",
        TENANT,
        "--kind",
        "webhook",
        "--url",
        &hook,
        "--secret-env",
        SECRET.0,
        "--unknown-outcome",
        promise.word(),
    ]);
    api_key
}

impl Service {
    fn new(task: Task, url: &str, ground: &Ground, (home, number): (&Path, usize)) -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let own =
            [SECRET, ("ORDERS_BIND", &address.to_string())].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut settings: Vec<(String, String)> =
            SETTINGS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).chain(own).collect();
        let mut set = |name: &str, value: String| {
            settings.retain(|(known, _)| known != name);
            settings.push((name.to_owned(), value));
        };
        if ground.with == With::RelayApart && matches!(task, Task::Serve) {
            set("ORDERS_RELAY", "off".to_owned());
        }
        if ground.with == With::SmallPool {
            set("ORDERS_POOL_SIZE", "2".to_owned());
            set("ORDERS_POOL_TIMEOUT", "50ms".to_owned());
        }
        let clock = (ground.with == With::OwnClocks).then(|| home.join(format!("clock-{number}")));
        if let Some(file) = &clock {
            fs::write(file, "+0").expect("the directory is ours");
            set("LD_PRELOAD", library().expect("looked for before the run").display().to_string());
            set("FAKETIME_TIMESTAMP_FILE", file.display().to_string());
            set("FAKETIME_CACHE_DURATION", "1".to_owned());
            // A clock that is set is not the one that counts the time since the start.
            set("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned());
        }
        Self { task, url: url.to_owned(), settings, address, clock, process: None }
    }

    /// Starts it, and returns when it is ready.
    pub fn start(&mut self) {
        self.spawn();
        let process = self.process.as_mut().expect("it was started");
        match self.task {
            Task::Serve => process.until_ready(),
            Task::Relay => process.until_logged("bringing orders to the ERP"),
        }
    }

    /// Starts it, and waits for nothing.
    pub fn spawn(&mut self) {
        let settings: Vec<(&str, &str)> =
            self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        self.process = Some(match self.task {
            Task::Serve => Process::spawn(&self.url, &settings),
            Task::Relay => Process::relay(&self.url, &settings),
        });
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        self.process.as_mut().expect("it was started").wait()
    }

    /// Ends it at once (SIGKILL).
    pub fn kill(&mut self) {
        self.process.take().expect("it runs").kill();
    }

    /// Asks it to stop (SIGTERM), and returns how it ended.
    pub fn terminate(&mut self) -> ExitStatus {
        self.process.take().expect("it runs").terminate().0
    }

    /// Sends it a signal that it survives.
    pub fn signal(&self, name: &str) {
        let process = self.process.as_ref().expect("it runs");
        assert!(signal(name, process.id()), "the process is ours");
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.ended().is_none())
    }

    /// What it has logged since it was started last.
    pub fn log(&self) -> String {
        self.process.as_ref().map(Process::log).unwrap_or_default()
    }
}

/// The library that gives a process a clock of its own, where it is installed.
pub fn library() -> Option<PathBuf> {
    let places = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    places.map(|place| place.join("faketime/libfaketimeMT.so.1")).find(|file| file.is_file())
}
