//! The faults, each with the ground that it needs: the listing is what the bench can break.

use crate::crowds;
use crate::shop::Shop;
use crate::stage::{Stage, library};
use crate::strikes::Strike;
use crate::volume::Volume;
use crate::wire::{ALL, Break};

/// One fault, or several together.
pub struct Fault {
    /// Its name on the command line and in the report.
    pub name: &'static str,
    /// What happens, for the report.
    pub about: &'static str,
    /// What it happens on; each is a run of its own.
    pub grounds: &'static [Ground],
    /// What the wire of the shop does.
    pub breaks: &'static [Break],
    /// What the wire of the ERP does.
    pub erp_breaks: &'static [Break],
    /// What is done to the processes and to the database while the shop trades, one after the other, again and again.
    pub strikes: &'static [Strike],
    /// How many strikes a run has.
    pub most_strikes: usize,
    /// Whom the service meets.
    pub plot: Plot,
    /// Whether the short mix has it.
    pub short: bool,
}

/// Whom the service meets.
#[derive(Clone, Copy)]
pub enum Plot {
    /// A shop that trades with so many workers.
    Trade(usize),
    /// A crowd at one place; what it heard that it should not is the answer. It is given the scale of the run in percent.
    Crowd(fn(&Stage, &Shop, usize) -> Vec<String>),
}

/// What a run stands on.
#[derive(Clone, Copy)]
pub struct Ground {
    /// The database.
    pub place: Place,
    /// How many serving processes.
    pub processes: usize,
    /// What is special about it.
    pub with: With,
}

/// What is special about a ground.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum With {
    /// Nothing.
    Nothing,
    /// nginx stands before the processes.
    Nginx,
    /// The relay is a process of its own.
    RelayApart,
    /// Each process has a clock of its own.
    OwnClocks,
    /// The pool has two connections and little patience.
    SmallPool,
}

/// Where the database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A SQLite file.
    Sqlite,
    /// A SQLite file on a small volume.
    SqliteOnVolume,
    /// A PostgreSQL server.
    Postgres,
    /// The same, its data on a small volume.
    PostgresOnVolume,
    /// The same, behind a wire.
    PostgresBehindWire,
    /// The same, with a synchronous standby.
    PostgresPair,
}

impl Ground {
    const fn on(place: Place) -> Self {
        Self { place, processes: 1, with: With::Nothing }
    }

    const fn processes(self, processes: usize) -> Self {
        Self { processes, ..self }
    }

    /// Its name in the report.
    pub fn name(&self) -> &'static str {
        match self.place {
            Place::Sqlite | Place::SqliteOnVolume => "SQLite",
            _ => "PostgreSQL",
        }
    }

    /// What this machine lacks for it, if anything.
    pub fn lacking(&self) -> Option<&'static str> {
        match self.place {
            Place::SqliteOnVolume | Place::PostgresOnVolume => Volume::lacking(),
            _ if self.with == With::OwnClocks && library().is_none() => Some("libfaketime is not installed"),
            _ => None,
        }
    }
}

const SQLITE: Ground = Ground::on(Place::Sqlite);
const POSTGRES: Ground = Ground::on(Place::Postgres);
const BOTH: &[Ground] = &[SQLITE, POSTGRES.processes(2)];
const APART: &[Ground] =
    &[Ground { with: With::RelayApart, ..SQLITE }, Ground { with: With::RelayApart, ..POSTGRES.processes(2) }];
const BEHIND_NGINX: Ground = Ground { with: With::Nginx, ..POSTGRES.processes(3) };
/// Nothing doubled: an ERP that looks at no key would rightly make two documents of a message that comes twice.
const ERP_BREAKS: &[Break] =
    &[Break::BeforeWhole, Break::AfterWhole, Break::AnswerLost, Break::AnswerCut, Break::AnswerLate];

/// A run in which nothing happens; each fault of the list says what does.
pub const CALM: Fault = Fault {
    name: "",
    about: "",
    grounds: BOTH,
    breaks: &[],
    erp_breaks: &[],
    strikes: &[],
    most_strikes: 6,
    plot: Plot::Trade(12),
    short: false,
};

const fn wire(name: &'static str, about: &'static str, breaks: &'static [Break]) -> Fault {
    Fault { name, about, breaks, ..CALM }
}

const fn strikes(
    name: &'static str,
    about: &'static str,
    grounds: &'static [Ground],
    strikes: &'static [Strike],
) -> Fault {
    Fault { name, about, grounds, strikes, ..CALM }
}

const fn crowd(
    name: &'static str,
    about: &'static str,
    grounds: &'static [Ground],
    crowd: fn(&Stage, &Shop, usize) -> Vec<String>,
) -> Fault {
    Fault { name, about, grounds, plot: Plot::Crowd(crowd), ..CALM }
}

/// All faults.
pub const FAULTS: &[Fault] = &[
    wire("cut-before-whole", "connection cut before the request is whole", &[Break::BeforeWhole]),
    wire("cut-after-whole", "connection cut after the request is whole", &[Break::AfterWhole]),
    wire("answer-lost", "connection cut after the commit, before the answer", &[Break::AnswerLost]),
    wire("answer-cut", "connection cut in the middle of the answer", &[Break::AnswerCut]),
    wire("answer-late", "answers later than the client's patience", &[Break::AnswerLate]),
    wire("request-doubled", "requests doubled by a proxy, together and one after the other", &[Break::Doubled]),
    Fault {
        erp_breaks: ERP_BREAKS,
        ..wire("erp-loses-answers", "requests to the ERP and its answers lost, cut or late", &[])
    },
    strikes("erp-killed", "ERP killed with -9", BOTH, &[Strike::KillErp]),
    Fault {
        erp_breaks: ERP_BREAKS,
        ..strikes("relay-killed", "relay process killed with -9, answers of the ERP lost", APART, &[Strike::KillRelay])
    },
    Fault {
        most_strikes: 10,
        ..strikes("service-killed", "service killed with -9, in the middle of writing", BOTH, &[Strike::KillService])
    },
    strikes("service-stopped", "service stopped with SIGTERM under load", BOTH, &[Strike::StopService]),
    strikes(
        "nginx-retries",
        "two to four processes behind nginx, which sends again; processes killed and frozen",
        &[
            Ground { with: With::Nginx, ..POSTGRES.processes(2) },
            BEHIND_NGINX,
            Ground { with: With::Nginx, ..POSTGRES.processes(4) },
        ],
        &[Strike::FreezeService, Strike::KillService],
    ),
    strikes("connection-ended", "pg_terminate_backend", &[POSTGRES.processes(2)], &[Strike::EndConnections]),
    Fault {
        short: true,
        ..strikes(
            "commit-lost",
            "connection to PostgreSQL lost at COMMIT, before and after the server hears of it",
            &[Ground::on(Place::PostgresBehindWire)],
            &[Strike::BreakCommit],
        )
    },
    strikes(
        "postgres-stopped",
        "PostgreSQL stopped (immediate) and started",
        &[POSTGRES.processes(2)],
        &[Strike::RestartPostgres],
    ),
    Fault {
        most_strikes: 1,
        short: true,
        ..strikes(
            "standby-promoted",
            "primary killed with -9, synchronous standby promoted",
            &[Ground::on(Place::PostgresPair).processes(2)],
            &[Strike::Promote],
        )
    },
    Fault {
        most_strikes: 3,
        ..strikes(
            "disk-full",
            "the database's volume full",
            &[Ground::on(Place::SqliteOnVolume), Ground::on(Place::PostgresOnVolume).processes(2)],
            &[Strike::FillDisk],
        )
    },
    Fault {
        most_strikes: 2,
        ..strikes(
            "file-read-only",
            "the database's file read-only at a start",
            &[Ground::on(Place::SqliteOnVolume)],
            &[Strike::MakeReadOnly],
        )
    },
    Fault {
        most_strikes: 3,
        ..strikes("orders-locked", "lock held on the orders table", &[POSTGRES.processes(2)], &[Strike::LockOrders])
    },
    strikes(
        "clock-stepped",
        "clock of a service's host stepped by an hour, forth and back",
        &[Ground { with: With::OwnClocks, ..POSTGRES.processes(2) }],
        &[Strike::StepClock],
    ),
    Fault {
        plot: Plot::Trade(40),
        most_strikes: 3,
        ..strikes(
            "pool-exhausted",
            "two connections for forty workers, and a lock",
            &[Ground { with: With::SmallPool, ..POSTGRES }],
            &[Strike::LockOrders],
        )
    },
    crowd(
        "one-key",
        "1,000 requests on one key at a time, over four processes",
        &[POSTGRES.processes(4)],
        crowds::on_one_key,
    ),
    Fault {
        short: true,
        ..crowd(
            "rivals",
            "200 keys, 20 rivals each, half of them with another body",
            &[SQLITE, POSTGRES.processes(4)],
            crowds::with_two_bodies,
        )
    },
    crowd(
        "opposite-orders",
        "commands on two orders and two SKUs in opposite order",
        &[SQLITE, POSTGRES.processes(2)],
        crowds::in_opposite_order,
    ),
    crowd("client-leaves", "a client that leaves at 200 points", BOTH, crowds::that_leaves),
    Fault {
        breaks: ALL,
        erp_breaks: ERP_BREAKS,
        short: true,
        ..strikes(
            "mixed-sqlite",
            "every break of both wires, the service and the ERP killed and stopped, mixed",
            &[SQLITE],
            &[Strike::KillService, Strike::KillErp, Strike::StopService],
        )
    },
    Fault {
        breaks: ALL,
        erp_breaks: ERP_BREAKS,
        most_strikes: 8,
        short: true,
        ..strikes(
            "mixed-postgres",
            "every break of both wires, three processes behind nginx killed, stopped and frozen, PostgreSQL restarted, locked and its connections ended, the ERP killed, mixed",
            &[BEHIND_NGINX],
            &[
                Strike::KillService,
                Strike::EndConnections,
                Strike::KillErp,
                Strike::FreezeService,
                Strike::RestartPostgres,
                Strike::StopService,
                Strike::LockOrders,
            ],
        )
    },
];
