//! Seeded chance: the same seed makes the same orders, breaks and strikes, however the threads are scheduled.

use fastrand::Rng;
use sha2::{Digest, Sha256};

/// Chance for one purpose, named by `parts`. It depends on nothing that happened before.
pub fn of(seed: u64, parts: &[&str]) -> Rng {
    let mut hash = Sha256::new();
    hash.update(seed.to_be_bytes());
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let first = hash.finalize();
    let bytes = first[..8].try_into().expect("a SHA-256 has more than eight bytes");
    Rng::with_seed(u64::from_be_bytes(bytes))
}
