//! Ports of 127.0.0.1 for servers that cannot tell which port the system gave them.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port handed out. The range lies below the ports that systems give to port 0 and to outgoing
/// connections (Linux: 32768 and up, elsewhere 49152 and up), so those never take a port between the look and the use.
const FIRST: u16 = 12_000;
/// How many ports there are before the range begins again.
const COUNT: u16 = 20_000;

/// A port that nothing listens on. Every call of one test run gives another one, and runs side by side begin at
/// different places.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = std::process::id().wrapping_mul(97);
    for _ in 0..COUNT {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let offset = begin.wrapping_add(step) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset).expect("the offset is below COUNT");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no port of 127.0.0.1 between {FIRST} and {} is free", FIRST + COUNT);
}
