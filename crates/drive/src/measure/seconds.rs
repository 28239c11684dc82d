//! Counts of events by the second in which they happened.

/// Events per second since the start of the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seconds(pub Vec<u64>);

impl Seconds {
    pub(crate) fn add(&mut self, second: usize, count: u64) {
        if self.0.len() <= second {
            self.0.resize(second + 1, 0);
        }
        self.0[second] += count;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (second, &count) in other.0.iter().enumerate() {
            self.add(second, count);
        }
    }

    pub(crate) fn at(&self, second: usize) -> u64 {
        self.0.get(second).copied().unwrap_or(0)
    }
}
