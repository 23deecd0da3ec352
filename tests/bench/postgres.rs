//! A PostgreSQL server of one run, whose postmaster is a child of the bench: it can be killed, stopped without a goodbye,
//! started again, copied to a synchronous standby, and promoted.
//!
//! Unlike the server of the integration tests it is set as in production: what is committed is on the disk.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::{Connection, PgConnection};
use tempfile::TempDir;

use crate::harness::cluster::{MISSING, find_programs, unprivileged_user};
use crate::harness::database::Database;
use crate::harness::ports::free_port;
use crate::harness::process::signal;
use crate::progress::comes_true;

/// A server on a busy machine, after a crash, takes some seconds.
const LIMIT: Duration = Duration::from_mins(1);

/// The database of a run.
pub const DATABASE: &str = "orders";

/// The server. It is killed and reaped with this value, and its directory removed.
pub struct Postgres {
    programs: PathBuf,
    data: PathBuf,
    port: u16,
    password: String,
    options: Vec<String>,
    postmaster: Option<Child>,
    home: TempDir,
}

impl Postgres {
    /// Makes a server, its data below `place` where one is given, starts it, and makes an empty database.
    pub fn start(place: Option<&Path>) -> Self {
        let home = home();
        let data = place.map_or_else(|| home.path().join("data"), |place| place.join("data"));
        let mut server = Self {
            programs: find_programs().expect(MISSING),
            data,
            port: free_port(),
            password: uuid::Uuid::new_v4().simple().to_string(),
            options: Vec::new(),
            postmaster: None,
            home,
        };
        let password_file = server.home.path().join("password");
        fs::write(&password_file, &server.password).expect("the directory is ours");
        give_away(&password_file);
        let mut initdb = server.program("initdb");
        initdb.args(["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"]);
        initdb.args(["--wal-segsize=1", "--pgdata"]).arg(&server.data).arg("--pwfile").arg(&password_file);
        run(initdb);
        server.configure();
        server.start_again();
        server.administer(&format!("CREATE DATABASE {DATABASE}"));
        server
    }

    fn configure(&self) {
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = ''\nmax_connections = 200\n\
             shared_buffers = 32MB\nwal_level = replica\nmax_wal_senders = 4\nmax_wal_size = 8MB\nmin_wal_size = 2MB\n\
             timezone = 'Asia/Kathmandu'\n",
            self.port
        );
        let file = self.data.join("postgresql.conf");
        let before = fs::read_to_string(&file).expect("initdb made it");
        fs::write(&file, before + &settings).expect("the directory is ours");
    }

    /// Starts it, after whatever it died of, and returns when it takes connections.
    pub fn start_again(&mut self) {
        let ready = comes_true(LIMIT, || {
            let running = self.postmaster.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
            if !running {
                // What is left of the last one may hold its memory a moment longer; then this one ends, and another is tried.
                self.postmaster = Some(self.spawn());
            }
            PgConnection::establish(&self.url("postgres")).is_ok()
        });
        assert!(ready, "PostgreSQL takes connections; its log:\n{}", self.log());
    }

    fn spawn(&self) -> Child {
        let log = File::options().create(true).append(true).open(self.log_file()).expect("the directory is ours");
        let mut postgres = self.program("postgres");
        postgres.arg("-D").arg(&self.data).args(&self.options);
        postgres.stdout(log.try_clone().expect("a file handle can be doubled")).stderr(log);
        postgres.spawn().expect("the program is there")
    }

    /// Ends it with a signal: `-KILL`, or `-QUIT`, which is the stop that PostgreSQL calls immediate.
    pub fn end(&mut self, name: &str) {
        let Some(mut postmaster) = self.postmaster.take() else { return };
        assert!(signal(name, postmaster.id()), "the process is ours");
        postmaster.wait().expect("the process is ours");
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.postmaster.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// Makes a standby of it, on which every commit waits from now on.
    pub fn standby(&mut self) -> Self {
        let home = home();
        let port = free_port();
        let mut standby = Self {
            programs: self.programs.clone(),
            data: home.path().join("data"),
            port,
            password: self.password.clone(),
            options: vec!["-p".to_owned(), port.to_string()],
            postmaster: None,
            home,
        };
        let mut copy = self.program("pg_basebackup");
        copy.args(["--host=127.0.0.1", "--username=postgres", "--wal-method=stream", "--write-recovery-conf"]);
        copy.args(["--checkpoint=fast", "--port"]).arg(self.port.to_string()).arg("--pgdata").arg(&standby.data);
        copy.env("PGPASSWORD", &self.password);
        run(copy);
        standby.start_again();
        // Only the first one waits for the second: a promoted standby has nobody to wait for.
        self.administer("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.administer("SELECT pg_reload_conf()");
        let look = self.look("postgres");
        let in_step = || !look.rows("SELECT pid FROM pg_stat_replication WHERE sync_state = 'sync'").is_empty();
        assert!(comes_true(LIMIT, in_step), "the standby is synchronous; its log:\n{}", standby.log());
        standby
    }

    /// Makes a standby the server.
    pub fn promote(&self) {
        self.administer("SELECT pg_promote()");
    }

    /// The URL of a database, with the password in it.
    pub fn url(&self, name: &str) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/{name}", self.password, self.port)
    }

    /// The URL of the run's database on this server or on the other, whichever takes writes.
    pub fn url_with(&self, other: &Self) -> String {
        format!(
            "postgres://postgres:{}@127.0.0.1:{},127.0.0.1:{}/{DATABASE}?target_session_attrs=read-write",
            self.password, self.port, other.port
        )
    }

    /// A look into a database.
    pub fn look(&self, name: &str) -> Database {
        Database::guest(&self.url(name))
    }

    fn administer(&self, sql: &str) {
        let mut admin = PgConnection::establish(&self.url("postgres")).expect("it takes connections");
        admin.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.env_clear().env("LC_ALL", "C").current_dir(self.home.path()).stdin(Stdio::null());
        if let Some((uid, gid)) = unprivileged_user() {
            command.uid(uid).gid(gid);
        }
        command
    }

    fn log_file(&self) -> PathBuf {
        self.home.path().join("log")
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let Some(mut postmaster) = self.postmaster.take() else { return };
        // The immediate stop takes its children along; both fail only where it has ended already.
        signal("-QUIT", postmaster.id());
        let _ = postmaster.wait();
    }
}

/// A directory that the server's user may use.
fn home() -> TempDir {
    let home = tempfile::Builder::new().prefix("orders-bench-").tempdir().expect("a directory for PostgreSQL");
    give_away(home.path());
    home
}

fn give_away(path: &Path) {
    if let Some((uid, gid)) = unprivileged_user() {
        chown(path, Some(uid), Some(gid)).expect("root gives it to the server's user");
    }
}

fn run(mut command: Command) {
    let done = command.output().expect("the program is there");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?} ended with {}:\n{said}", done.status);
}
