//! A small file system in memory, which can be filled to the last byte and made read-only. Only root may make one.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::harness::cluster::unprivileged_user;

/// The volume. It is taken away with this value, when nobody uses it any more.
pub struct Volume(TempDir);

impl Volume {
    /// Why none can be made here, if so.
    pub fn lacking() -> Option<&'static str> {
        unprivileged_user().is_none().then_some("only root may mount the small file system that it needs")
    }

    /// Makes one of so many mebibytes, for the user that PostgreSQL runs as.
    pub fn mount(mebibytes: u32) -> Self {
        let place = tempfile::Builder::new().prefix("orders-volume-").tempdir().expect("a directory to mount on");
        let size = format!("size={mebibytes}m");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "orders-bench"]).arg(place.path()).status();
        assert!(mounted.is_ok_and(|status| status.success()), "a tmpfs of {mebibytes} MiB can be mounted");
        let (uid, gid) = unprivileged_user().expect("only root makes a volume");
        chown(place.path(), Some(uid), Some(gid)).expect("root gives it to the server's user");
        Self(place)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Takes all space that is left.
    pub fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("a full volume still has room for a name");
        for size in [1024 * 1024, 4096, 1] {
            let block = vec![1; size];
            while filler.write_all(&block).is_ok() {}
        }
    }

    /// Gives it back.
    pub fn free(&self) {
        fs::remove_file(self.filler()).expect("the filler is there");
    }

    /// Lets nobody write any more, or everybody again. Nobody may have a file open for writing.
    pub fn make_read_only(&self, read_only: bool) {
        let option = if read_only { "remount,ro" } else { "remount,rw" };
        let done = Command::new("mount").args(["-o", option]).arg(self.path()).status();
        assert!(done.is_ok_and(|status| status.success()), "{option} of a volume that nobody writes to");
    }

    fn filler(&self) -> std::path::PathBuf {
        self.path().join("filler")
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let done = Command::new("umount").arg("-l").arg(self.path()).status();
        assert!(done.is_ok_and(|status| status.success()) || std::thread::panicking(), "the volume can be taken away");
    }
}
