//! What a run asked for, in one number.

use crate::schedule::queue::Head;

/// A sum over requests in any order: equal where two runs performed the same ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// Requests in it.
    pub requests: u64,
    /// Sum of their hashes.
    pub sum: u128,
}

impl Digest {
    /// Adds a request that ended; `asked` is the workload's hash of what it asked for.
    pub fn add(&mut self, head: &Head, asked: u64) {
        self.requests += 1;
        let kind = head.kind as u64;
        let hash = workload::digest::mix(&[head.id.into(), head.number, kind, asked]);
        self.sum = self.sum.wrapping_add(hash.into());
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}
