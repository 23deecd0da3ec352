//! A real nginx before several processes, set to send a command to the next one when the first does not answer.

use std::fmt::Write;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::harness::ports::free_port;
use crate::progress::comes_true;

const LIMIT: Duration = Duration::from_secs(20);

/// The proxy. It is killed and reaped with this value.
pub struct Nginx {
    address: SocketAddr,
    process: Child,
    home: TempDir,
}

impl Nginx {
    /// Starts it before these processes.
    pub fn start(services: &[SocketAddr]) -> Self {
        let home = tempfile::Builder::new().prefix("orders-nginx-").tempdir().expect("a directory for nginx");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let place = home.path().display().to_string();
        let file = home.path().join("nginx.conf");
        fs::write(&file, configuration(&place, address, services)).expect("the directory is ours");
        let log = File::create(home.path().join("output")).expect("the directory is ours");
        let process = Command::new("nginx")
            .args(["-p", &place, "-c"])
            .arg(&file)
            .args(["-e", &format!("{place}/error.log")])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("nginx is installed: `sh tests/tools/need-bench.sh`");
        let nginx = Self { address, process, home };
        assert!(comes_true(LIMIT, || TcpStream::connect(address).is_ok()), "nginx listens: {}", nginx.log());
        nginx
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it says of its troubles.
    pub fn log(&self) -> String {
        ["output", "error.log"].map(|name| fs::read_to_string(self.home.path().join(name)).unwrap_or_default()).join("")
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Both fail only where it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One process without a master, so that one process id is all of it. The time-out is shorter than the shop's patience, so
/// that it is nginx who sends again.
fn configuration(home: &str, address: SocketAddr, services: &[SocketAddr]) -> String {
    let mut servers = String::new();
    for service in services {
        writeln!(servers, "        server {service} max_fails=0;").expect("a text takes all that is written");
    }
    format!(
        "daemon off;
master_process off;
pid {home}/pid;
error_log {home}/error.log warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {home}/body;
    proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/fastcgi;
    scgi_temp_path {home}/scgi;
    uwsgi_temp_path {home}/uwsgi;
    upstream orders {{
{servers}    }}
    server {{
        listen {address};
        location / {{
            proxy_pass http://orders;
            proxy_connect_timeout 1s;
            proxy_read_timeout 600ms;
            proxy_next_upstream error timeout http_502 http_503 non_idempotent;
            proxy_next_upstream_tries 3;
        }}
    }}
}}
"
    )
}
