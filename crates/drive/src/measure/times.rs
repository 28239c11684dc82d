//! Response times by the second in which their requests ended: counts are exact, times are known
//! to half an octave. What a whole window's histogram averages away is seen here where it was.

use super::histogram::HIGHEST_NS;

/// Times below 2^12 ns, which is 4 µs, are not told apart.
const LOWEST_OCTAVE: u32 = 12;
/// Two columns for each octave up to the one of an hour, and one for what lies below all.
pub const COLUMNS: usize = 61;
/// Beyond them, two hours, seconds are joined two by two: a thread keeps 2 MB of a run of a week.
const ROWS_MAX: usize = 7_200;

/// Coarse histograms of response times, one for each second since the start of the warm-up, or for
/// each 2, 4, 8 … of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Row by row. That many requests of a thread in minutes as would not fit would be a defect,
    /// and found: [`Times::total`] is held against what ended.
    counts: Vec<u32>,
    /// A row holds 2 to the power of it seconds.
    joined: u32,
}

impl Times {
    /// Nothing counted yet; room for so many seconds.
    #[must_use]
    pub fn for_seconds(seconds: usize) -> Self {
        Self { counts: Vec::with_capacity(seconds.min(ROWS_MAX) * COLUMNS), joined: 0 }
    }

    /// Counts a request that ended in this second; beyond an hour as an hour.
    pub fn add(&mut self, second: usize, ns: u64) {
        let mut row = second >> self.joined;
        while row >= ROWS_MAX {
            self.join();
            row = second >> self.joined;
        }
        *self.at(row, column(ns)) += 1;
    }

    /// Adds another thread's counts, whose seconds began at the same instant.
    pub fn merge(&mut self, other: &Self) {
        while self.joined < other.joined {
            self.join();
        }
        for (number, row) in other.counts.chunks_exact(COLUMNS).enumerate() {
            let own = number >> (self.joined - other.joined);
            for (column, count) in row.iter().enumerate() {
                *self.at(own, column) += count;
            }
        }
    }

    /// Seconds that each row holds.
    #[must_use]
    pub fn step_s(&self) -> u64 {
        1 << self.joined
    }

    /// Rows to the last request that ended.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.counts.len() / COLUMNS
    }

    /// A column, of the length of all of them.
    #[must_use]
    pub fn column(&self, number: usize) -> Vec<u64> {
        self.counts.chunks_exact(COLUMNS).map(|row| row[number].into()).collect()
    }

    /// All that was counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    fn at(&mut self, row: usize, column: usize) -> &mut u32 {
        if self.rows() <= row {
            self.counts.resize((row + 1) * COLUMNS, 0);
        }
        &mut self.counts[row * COLUMNS + column]
    }

    /// Makes one row of each two; none is lost.
    fn join(&mut self) {
        let rows = self.rows();
        for row in 0..rows {
            for column in 0..COLUMNS {
                let count = std::mem::take(&mut self.counts[row * COLUMNS + column]);
                self.counts[row / 2 * COLUMNS + column] += count;
            }
        }
        self.counts.truncate(rows.div_ceil(2) * COLUMNS);
        self.joined += 1;
    }
}

/// Joins the rows of a column two by two, as often as `steps` says.
#[must_use]
pub fn joined(column: &[u64], steps: u32) -> Vec<u64> {
    column.chunks(1 << steps).map(|rows| rows.iter().sum()).collect()
}

/// Bounds of the columns in ns: each holds what is not below one, and below the next.
#[must_use]
pub fn edges_ns() -> Vec<u64> {
    (0..=COLUMNS).map(edge_ns).collect()
}

fn edge_ns(column: usize) -> u64 {
    let Some(half) = column.checked_sub(1) else { return 0 };
    (2 + half as u64 % 2) << (LOWEST_OCTAVE as usize + half / 2 - 1)
}

fn column(ns: u64) -> usize {
    let ns = ns.min(HIGHEST_NS);
    match (ns | 1).ilog2() {
        octave if octave < LOWEST_OCTAVE => 0,
        octave => 1 + 2 * (octave - LOWEST_OCTAVE) as usize + (ns >> (octave - 1) & 1) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns(times: &Times) -> Vec<Vec<u64>> {
        (0..COLUMNS).map(|number| times.column(number)).collect()
    }

    #[test]
    fn columns_lie_between_their_edges_and_leave_nothing_out() {
        let edges = edges_ns();
        assert_eq!(edges[..6], [0, 4_096, 6_144, 8_192, 12_288, 16_384]);
        assert!(edges[COLUMNS] > HIGHEST_NS && edges[COLUMNS - 1] < HIGHEST_NS);
        for (number, pair) in edges.windows(2).enumerate() {
            let least = pair[0];
            let greatest = (pair[1] - 1).min(HIGHEST_NS);
            assert_eq!((column(least), column(greatest)), (number, number), "{least} ns");
            assert!(number == 0 || 2 * pair[1] <= 3 * pair[0], "half an octave at most");
        }
        assert_eq!(column(u64::MAX), COLUMNS - 1);
    }

    #[test]
    fn beyond_two_hours_seconds_are_joined_and_none_is_lost() {
        let mut times = Times::for_seconds(10);
        for second in 0..=2 * ROWS_MAX {
            times.add(second, 1_000_000 * (1 + second as u64 % 7));
        }
        assert_eq!((times.step_s(), times.rows()), (4, ROWS_MAX / 2 + 1));
        assert_eq!(times.total(), 2 * ROWS_MAX as u64 + 1);
        let rows = (0..times.rows())
            .map(|row| -> u64 { columns(&times).iter().map(|column| column[row]).sum() });
        assert_eq!(rows.take(3).collect::<Vec<_>>(), [4, 4, 4]);
        times.add(usize::MAX, 5);
        assert_eq!(times.total(), 2 * ROWS_MAX as u64 + 2);
        assert!(times.rows() <= ROWS_MAX);
    }

    proptest! {
        /// However requests fall to threads, and whatever these had to join: they are one's.
        #[test]
        fn merged_times_are_those_of_one_thread(
            ended in prop::collection::vec((0_usize..60_000, 1_u64..5_000_000_000), 0..60),
            threads in 1_usize..4,
        ) {
            let mut one = Times::default();
            let mut each = vec![Times::default(); threads];
            for (number, &(second, ns)) in ended.iter().enumerate() {
                one.add(second, ns);
                each[number % threads].add(second, ns);
            }
            let mut sum = Times::default();
            for thread in &each {
                sum.merge(thread);
            }
            prop_assert_eq!(sum.total(), ended.len() as u64);
            prop_assert_eq!(sum, one);
        }
    }
}
