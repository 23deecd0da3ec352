//! Connections and the turns to use them. A caller waits for its turn as a future, without a thread; only then does it take
//! a connection and a blocking thread, so that a crowd can neither exhaust the threads nor queue without end.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::{Db, Fault};
use crate::config::DatabaseUrl;

/// Makes and checks the connections of one database.
struct Manager(DatabaseUrl);

impl r2d2::ManageConnection for Manager {
    type Connection = Db;
    type Error = ManageError;

    fn connect(&self) -> Result<Db, ManageError> {
        Ok(Db::connect(&self.0)?)
    }

    fn is_valid(&self, db: &mut Db) -> Result<(), ManageError> {
        Ok(db.ping()?)
    }

    /// A connection that is still inside a transaction (a panic, a failed rollback) is dropped: the database undoes it.
    fn has_broken(&self, db: &mut Db) -> bool {
        !db.is_idle()
    }
}

#[derive(Debug, thiserror::Error)]
enum ManageError {
    #[error("{0}")]
    Connect(#[from] diesel::ConnectionError),
    #[error("{0}")]
    Ping(#[from] diesel::result::Error),
}

/// A bounded number of connections to one database, each used by one piece of work at a time.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "it would print nothing that helps")]
pub struct Pool {
    connections: r2d2::Pool<Manager>,
    turns: Arc<Semaphore>,
    size: u32,
    patience: Duration,
}

impl Pool {
    fn new(url: &DatabaseUrl, size: u32, patience: Duration) -> Pool {
        Pool {
            connections: r2d2::Pool::builder()
                .max_size(size)
                .min_idle(Some(1))
                .connection_timeout(patience.max(Duration::from_millis(1)))
                .build_unchecked(Manager(url.clone())),
            turns: Arc::new(Semaphore::new(size as usize)),
            size,
            patience,
        }
    }

    /// One connection of its own, for a program that has no other.
    #[must_use]
    pub fn single(url: &DatabaseUrl, patience: Duration) -> Pool {
        Pool::new(url, 1, patience)
    }

    /// Waits for a turn, then runs `work` on a blocking thread with a connection of its own.
    ///
    /// Once begun, `work` runs to its end even when the caller goes away. Waiting costs no thread and no connection.
    ///
    /// # Errors
    /// [`Fault::Busy`] when no turn came within the pool's patience, [`Fault::Unreachable`] when the database is away,
    /// [`Fault::Bug`] when `work` panicked, else what `work` says.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Db) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let turn = tokio::time::timeout(self.patience, Arc::clone(&self.turns).acquire_owned())
            .await
            .map_err(|_| Fault::Busy)?
            .expect("the semaphore is never closed");
        let connections = self.connections.clone();
        tokio::task::spawn_blocking(move || {
            let result = connect(&connections).and_then(|mut db| work(&mut db));
            drop(turn);
            result
        })
        .await
        .unwrap_or_else(|panic| Err(Fault::Bug(format!("the work on the database panicked: {panic}"))))
    }

    /// Its connections at this moment.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let state = self.connections.state();
        Usage { max: self.size, open: state.connections, idle: state.idle_connections }
    }
}

/// A connection of the pool. Who has a turn finds one, unless the database is away.
fn connect(connections: &r2d2::Pool<Manager>) -> Result<r2d2::PooledConnection<Manager>, Fault> {
    connections.get().map_err(|error| Fault::Unreachable(one_line(&error.to_string())))
}

/// How many connections there are.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// The most there may be.
    pub max: u32,
    /// Those that are open.
    pub open: u32,
    /// Those of the open ones that nobody uses.
    pub idle: u32,
}

/// The two ways to the database. On PostgreSQL they are one pool. SQLite has one writer by nature: a pool of one for
/// writing makes rivals queue in order instead of failing with "database is locked".
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "it would print nothing that helps")]
pub struct Pools {
    /// For work that only reads.
    pub reads: Pool,
    /// For work that writes.
    pub writes: Pool,
    /// SQLite: the lock that keeps a second serving process away from the file, held as long as the pools live.
    serving: Option<Arc<File>>,
}

/// Why the database could not be opened for serving.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory of the SQLite file does not exist.
    #[error("DATABASE_URL: the directory {0:?} does not exist; create it, or name another path")]
    NoDirectory(std::path::PathBuf),
    /// Another process serves this SQLite file.
    #[error("DATABASE_URL: another process serves {0:?}; a SQLite file has one serving process, PostgreSQL any number")]
    AlreadyServed(std::path::PathBuf),
    /// The lock file beside the SQLite file cannot be made.
    #[error("DATABASE_URL: cannot lock {0:?}: {1}")]
    Lock(std::path::PathBuf, std::io::Error),
    /// The database did not let us in.
    #[error("DATABASE_URL: cannot connect: {0}")]
    Connect(String),
}

impl Pools {
    /// Opens the pools for a serving process: `size` connections, and at most `patience` for a turn.
    ///
    /// # Errors
    /// When the first connection cannot be made, or another process serves the same SQLite file.
    pub fn open(url: &DatabaseUrl, size: u32, patience: Duration) -> Result<Pools, OpenError> {
        let serving = match url {
            DatabaseUrl::Sqlite(path) => {
                require_directory(url)?;
                Some(Arc::new(lock_file(path)?))
            }
            DatabaseUrl::Postgres(_) => None,
        };
        Db::open(url)?;
        let reads = Pool::new(url, size, patience);
        let writes = match url {
            DatabaseUrl::Sqlite(_) => Pool::new(url, 1, patience),
            DatabaseUrl::Postgres(_) => reads.clone(),
        };
        Ok(Pools { reads, writes, serving })
    }

    /// One further connection, for work that goes on beside the requests. On SQLite it takes turns with their writer, so
    /// that each waits for one transaction of the other and then goes on at once, instead of polling for the file's lock.
    #[must_use]
    pub fn beside(&self, url: &DatabaseUrl) -> Pool {
        let single = Pool::single(url, self.writes.patience);
        match url {
            DatabaseUrl::Sqlite(_) => Pool { turns: Arc::clone(&self.writes.turns), ..single },
            DatabaseUrl::Postgres(_) => single,
        }
    }

    /// The connections of both ways together.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let reads = self.reads.usage();
        if self.serving.is_none() {
            return reads;
        }
        let writes = self.writes.usage();
        Usage { max: reads.max + writes.max, open: reads.open + writes.open, idle: reads.idle + writes.idle }
    }
}

impl Db {
    /// Opens one connection outside any pool, for the commands of the command line and for tests.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub fn open(url: &DatabaseUrl) -> Result<Db, OpenError> {
        require_directory(url)?;
        Db::connect(url).map_err(|error| OpenError::Connect(one_line(&error.to_string())))
    }
}

/// The directory of the default file is made here; any other has to exist, so that a typing error makes no new database.
fn require_directory(url: &DatabaseUrl) -> Result<(), OpenError> {
    let DatabaseUrl::Sqlite(path) = url else { return Ok(()) };
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => return Ok(()),
    };
    if url.is_default() {
        // A failure shows at once below, with the path.
        let _ = std::fs::create_dir_all(directory);
    }
    if directory.is_dir() { Ok(()) } else { Err(OpenError::NoDirectory(directory.to_owned())) }
}

/// The lock is beside the file itself, whichever link it was named by.
fn lock_file(path: &std::path::Path) -> Result<File, OpenError> {
    let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let mut name = file.into_os_string();
    name.push(".serving");
    let lock = std::path::PathBuf::from(name);
    let file = File::create(&lock).map_err(|error| OpenError::Lock(lock.clone(), error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(OpenError::AlreadyServed(path.to_owned())),
        Err(std::fs::TryLockError::Error(error)) => Err(OpenError::Lock(lock, error)),
    }
}

/// Messages of the database client have line breaks; a start that fails says one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sqlite_file_is_served_once_by_whichever_name() {
        let home = tempfile::tempdir().unwrap();
        let (file, link) = (home.path().join("orders.db"), home.path().join("link.db"));
        File::create(&file).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let served = lock_file(&file).unwrap();
        assert!(matches!(lock_file(&link), Err(OpenError::AlreadyServed(_))));
        drop(served);
        assert!(lock_file(&link).is_ok());
    }
}
