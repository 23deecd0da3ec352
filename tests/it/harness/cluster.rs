//! One private PostgreSQL server per test run, made at the first test that asks for it.
//!
//! Every test gets a database of its own, cloned from a template that was migrated once. The server belongs to a
//! small shell script (`tests/tools/keep-postgres.sh`), which removes it as soon as the test process is gone.

use std::env;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection, QueryResult};
use order_service::db::migrate;

use super::ports::free_port;
use super::settings::config;

const KEEPER: &str = include_str!("../../tools/keep-postgres.sh");
const PROGRAMS: [&str; 3] = ["initdb", "pg_ctl", "postgres"];
const TEMPLATE: &str = "orders_template";
/// What to do where the server programs are missing.
pub const MISSING: &str = "PostgreSQL 13 or newer was not found, and the tests need its server programs (initdb, pg_ctl, postgres). \
    Debian, Ubuntu: sudo apt-get install postgresql. Fedora: sudo dnf install postgresql-server. \
    macOS: brew install postgresql. `make test` installs it where it may.";

/// The running server. It lives as long as the test process; see the module's text for its end.
pub struct Cluster {
    address: String,
    home: PathBuf,
    admin: Mutex<PgConnection>,
    /// Its standard input is the line on which the script hears that this process is gone.
    _keeper: Child,
}

impl Cluster {
    /// The server of this test run, started at the first call.
    pub fn shared() -> &'static Self {
        static CLUSTER: OnceLock<Cluster> = OnceLock::new();
        CLUSTER.get_or_init(Self::start)
    }

    /// Makes a database with the tables of the newest migration and no rows, and returns its name.
    pub fn clone_template(&self) -> String {
        static READY: OnceLock<()> = OnceLock::new();
        READY.get_or_init(|| self.make_template());
        self.create(&format!("TEMPLATE \"{TEMPLATE}\""))
    }

    /// Makes a database without tables, for tests of the migrations themselves, and returns its name.
    pub fn empty_database(&self) -> String {
        self.create("")
    }

    /// Removes a database and cuts off who is still connected to it.
    pub fn drop_database(&self, name: &str) -> QueryResult<()> {
        self.administer(&format!("DROP DATABASE \"{name}\" WITH (FORCE)"))
    }

    /// The URL of a database, with the password in it.
    pub fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.address)
    }

    /// Where it keeps everything.
    pub fn home(&self) -> &Path {
        &self.home
    }

    fn start() -> Self {
        let programs = find_programs().expect(MISSING);
        let user = unprivileged_user();
        let home = tempfile::Builder::new()
            .prefix("orders-postgres-")
            .tempdir()
            .expect("a directory for the PostgreSQL of the tests")
            .keep();
        if let Some((uid, gid)) = user {
            chown(&home, Some(uid), Some(gid)).expect("root gives the directory to the server's user");
        }
        let password = uuid::Uuid::new_v4().simple().to_string();
        let port = free_port();
        let keeper = start_keeper(&programs, &home, port, user, &password);

        let address = format!("postgres://postgres:{password}@127.0.0.1:{port}");
        let admin = PgConnection::establish(&format!("{address}/postgres")).expect("the server just said it is ready");
        Self { address, home, admin: Mutex::new(admin), _keeper: keeper }
    }

    fn make_template(&self) {
        self.administer(&format!("CREATE DATABASE \"{TEMPLATE}\"")).expect("a new server has room for the template");
        migrate(&config(&self.url(TEMPLATE), &[]).database).expect("the migrations apply to an empty database");
    }

    fn create(&self, options: &str) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let name = format!("orders_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.administer(&format!("CREATE DATABASE \"{name}\" {options}"))
            .expect("the server makes a database for every test");
        name
    }

    /// Runs one statement as the superuser, one at a time: PostgreSQL refuses to clone a template in use.
    fn administer(&self, sql: &str) -> QueryResult<()> {
        let mut admin = self.admin.lock().unwrap_or_else(PoisonError::into_inner);
        admin.batch_execute(sql)
    }
}

/// Starts the script and returns when the server takes connections.
fn start_keeper(programs: &Path, home: &Path, port: u16, user: Option<(u32, u32)>, password: &str) -> Child {
    let mut command = Command::new("sh");
    command
        .args(["-c", KEEPER, "keep-postgres"])
        .arg(programs)
        .arg(home)
        .arg(port.to_string())
        .current_dir(home)
        // PGPORT, PGDATA and the like of a developer's shell must not reach this server.
        .env_clear()
        .env("PATH", search_path())
        .env("HOME", home)
        .env("LC_ALL", "C")
        // A database that is set to another locale than C speaks German, where the translations are installed.
        .env("LANGUAGE", "de")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0);
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    let mut keeper = command.spawn().expect("sh starts");
    let input = keeper.stdin.as_mut().expect("standard input is a pipe");
    writeln!(input, "{password}").expect("the script reads the password");

    let mut output = keeper.stdout.take().expect("standard output is a pipe");
    let mut first = [0; 6];
    let started = output.read_exact(&mut first).is_ok() && &first == b"ready\n";
    if !started {
        let mut rest = Vec::new();
        // What can still be read of the log is wanted, whatever the read ends with.
        let _ = output.read_to_end(&mut rest);
        panic!(
            "the PostgreSQL of the tests did not start:\n{}{}",
            String::from_utf8_lossy(&first),
            String::from_utf8_lossy(&rest)
        );
    }
    keeper
}

/// The directory that holds all of PostgreSQL's server programs; of several the one found first.
pub fn find_programs() -> Option<PathBuf> {
    candidates().into_iter().find(|directory| PROGRAMS.iter().all(|program| directory.join(program).is_file()))
}

/// Where the server programs may be: what `pg_config` says, then the places of the packagers, newest first, then `PATH`.
fn candidates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Ok(answer) = Command::new("pg_config").arg("--bindir").output() {
        found.push(PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim()));
    }
    found.extend(versions_in("/usr/lib/postgresql", "").into_iter().map(|version| version.join("bin")));
    found.extend(versions_in("/usr", "pgsql-").into_iter().map(|version| version.join("bin")));
    for cellar in ["/opt/homebrew/opt", "/usr/local/opt"] {
        found.extend(versions_in(cellar, "postgresql@").into_iter().map(|version| version.join("bin")));
    }
    // A link in PATH is followed, because initdb looks for its neighbours where it lies.
    let path = search_path();
    let linked = env::split_paths(&path).filter_map(|directory| directory.join("initdb").canonicalize().ok());
    found.extend(linked.filter_map(|program| program.parent().map(Path::to_path_buf)));
    found
}

/// Where programs are looked for.
#[expect(clippy::disallowed_methods, reason = "it is the machine's setting and not one of the service")]
fn search_path() -> OsString {
    env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into())
}

/// The directories `<parent>/<prefix><number>`, the highest number first.
fn versions_in(parent: &str, prefix: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let number = name.strip_prefix(prefix)?.parse().ok()?;
            Some((number, entry.path()))
        })
        .collect();
    versions.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    versions.into_iter().map(|(_, path)| path).collect()
}

/// The user and group to run the server as, when the tests run as root, as which PostgreSQL refuses to run.
pub fn unprivileged_user() -> Option<(u32, u32)> {
    if id(&["-u"]) != Some(0) {
        return None;
    }
    let number = |user: &str| Some((id(&["-u", user])?, id(&["-g", user])?));
    Some(number("postgres").or_else(|| number("nobody")).expect("a system has a user postgres or nobody"))
}

/// What `id` answers, when it answers with a number.
fn id(arguments: &[&str]) -> Option<u32> {
    let answer = Command::new("id").args(arguments).output().ok()?;
    String::from_utf8_lossy(&answer.stdout).trim().parse().ok()
}
