//! However the bench ends, nothing that it started stays: it runs as a child in a process group of its own, and hears by the end
//! of its standard input that the one who waits for it is gone, by Ctrl-C or by a kill. Then it ends its group.

use std::env;
use std::io::{Read, stdin};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, Stdio, id};
use std::thread;

/// The argument that tells the child from the one who waits.
pub const GUARDED: &str = "--guarded";

/// Runs this program again with the same arguments, in a group of its own, and waits for it.
pub fn run_guarded() -> ExitCode {
    let own = env::current_exe().expect("a program has a file");
    let mut bench = Command::new(own);
    bench.args(env::args_os().skip(1)).arg(GUARDED).stdin(Stdio::piped()).process_group(0);
    let mut child = bench.spawn().expect("the bench can start itself");
    // It is held until the child has ended: its end is what the child listens for.
    let line = child.stdin.take();
    let status = child.wait().expect("the process is ours");
    drop(line);
    match status.code() {
        Some(code) => ExitCode::from(u8::try_from(code).unwrap_or(1)),
        None => ExitCode::from(u8::try_from(128 + status.signal().unwrap_or(0)).unwrap_or(1)),
    }
}

/// Ends the group of this process as soon as nobody waits for it any more.
pub fn listen_for_the_end() {
    thread::spawn(|| {
        // Nothing is ever written: the read returns when the other end is closed.
        drop(stdin().read(&mut [0; 1]));
        let group = format!("-{}", id());
        // Who kills is no member of the group, so that it lives to the end of its work.
        let mut shell = Command::new("sh");
        shell.args(["-c", "kill -KILL \"$1\"", "sh", &group]).process_group(0);
        drop(shell.status());
    });
}
