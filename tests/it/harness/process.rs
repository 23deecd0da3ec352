//! The real program in a process of its own: for tests of what only a process can do, such as being killed.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::ports::free_port;
use super::raw::RawConnection;
use super::settings::QUIET;
use super::wait::until;

const PROGRAM: &str = env!("CARGO_BIN_EXE_order-service");

/// A debug build on a busy machine opens its database within a second or two; this is a limit for a start that hangs.
const START_LIMIT: Duration = Duration::from_mins(1);
/// Longer than the service waits for requests in flight when it is asked to stop.
const END_LIMIT: Duration = Duration::from_mins(1);

/// A running `order-service serve`. It is killed and reaped with this value, so a test that panics leaves none behind.
pub struct Process {
    child: Child,
    address: SocketAddr,
    log: PathBuf,
    /// Its working directory, empty, so that no `.env` of a developer reaches the service.
    _home: TempDir,
}

impl Process {
    /// Starts the service on a database and returns when `/readyz` says 200. `settings` come on top of a free port, and may
    /// name another one by `ORDERS_BIND`.
    pub fn serve(database_url: &str, settings: &[(&str, &str)]) -> Self {
        let mut process = Self::spawn(database_url, settings);
        process.until_ready();
        process
    }

    /// Waits until `/readyz` says 200, and fails the test when the process ends before.
    pub fn until_ready(&mut self) {
        self.until_started(Self::is_ready);
    }

    /// Waits until its log holds a text, and fails the test when the process ends before.
    #[allow(dead_code, reason = "the bench uses it")]
    pub fn until_logged(&mut self, text: &str) {
        self.until_started(|process| process.log().contains(text));
    }

    fn until_started(&mut self, started: impl Fn(&Self) -> bool) {
        let mut ended = None;
        until(START_LIMIT, "the service is ready or has ended", || {
            ended = self.ended();
            ended.is_some() || started(self)
        });
        if let Some(status) = ended {
            panic!("the service ended at its start, {status}:\n{}", self.log());
        }
    }

    /// Starts the service and does not wait for anything, for tests of a start that fails.
    pub fn spawn(database_url: &str, settings: &[(&str, &str)]) -> Self {
        Self::start("serve", database_url, settings)
    }

    /// Starts the relay alone.
    pub fn relay(database_url: &str, settings: &[(&str, &str)]) -> Self {
        Self::start("relay", database_url, settings)
    }

    fn start(task: &str, database_url: &str, settings: &[(&str, &str)]) -> Self {
        let home = tempfile::Builder::new().prefix("orders-process-").tempdir().expect("a directory for the process");
        let bind = settings.iter().find(|(name, _)| *name == "ORDERS_BIND");
        // A test of bad settings may name what is no address.
        let named = bind.and_then(|(_, address)| address.parse().ok());
        let address = named.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, free_port())));
        let log = home.path().join("log");
        let file = File::create(&log).expect("the directory is ours");
        let child = program(&home)
            .arg(task)
            .env("DATABASE_URL", database_url)
            .env("ORDERS_BIND", address.to_string())
            .envs(QUIET)
            .envs(settings.iter().copied())
            .stdout(file.try_clone().expect("a file handle can be doubled"))
            .stderr(file)
            .spawn()
            .expect("the program was built with the tests");
        Self { child, address, log, _home: home }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has written so far, standard output and standard error together.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("the log is text")
    }

    /// Ends it at once, as the kernel does to a process that takes too much memory (SIGKILL), and reaps it.
    pub fn kill(mut self) -> ExitStatus {
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process is ours")
    }

    /// Asks it to stop, as an operator does (SIGTERM), and returns how it ended and its whole log.
    pub fn terminate(mut self) -> (ExitStatus, String) {
        assert!(signal("-TERM", self.id()), "the process is ours and not yet reaped");
        let status = self.wait();
        (status, self.log())
    }

    /// How it ended, or nothing while it runs.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the process is ours")
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let mut ended = None;
        until(END_LIMIT, "the service has ended", || {
            ended = self.child.try_wait().expect("the process is ours");
            ended.is_some()
        });
        ended.expect("the condition above")
    }

    fn is_ready(&self) -> bool {
        // Until it listens, a connection is refused; that is an answer too, and not a failure of the test.
        if std::net::TcpStream::connect(self.address).is_err() {
            return false;
        }
        let mut connection = RawConnection::open(self.address);
        connection.send(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        connection.answer().status == Some(200)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only where it has ended and was reaped already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal, or only looks whether there is somebody to send it to (`-0`), a zombie included.
///
/// By the shell's own `kill`: a small system has no program of that name.
pub fn signal(name: &str, process_id: u32) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", "kill \"$1\" \"$2\"", "sh", name, &process_id.to_string()]).stderr(Stdio::null());
    shell.status().expect("every system has a shell").success()
}

/// Runs the program to its end with these arguments, such as `migrate` or `key add …`.
pub fn run(database_url: &str, arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let home = tempfile::Builder::new().prefix("orders-process-").tempdir().expect("a directory for the process");
    program(&home)
        .args(arguments)
        .env("DATABASE_URL", database_url)
        .envs(settings.iter().copied())
        .output()
        .expect("the program was built with the tests")
}

/// The program with an environment of its own: no setting of a developer's shell reaches it.
fn program(home: &TempDir) -> Command {
    let mut command = Command::new(PROGRAM);
    command.current_dir(home.path()).env_clear().env("RUST_LOG", "info").stdin(Stdio::null());
    command
}
