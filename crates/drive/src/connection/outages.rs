//! Times in which connections were gone: after a crash, during a failover. Kept as they happen, of
//! bounded size, and never touched while all connections stand.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schedule::timeline::Timeline;

/// More gaps than a reader can look at; further ones are merged into the last.
const KEPT_MAX: usize = 10_000;

/// A time in which the same number of connections was gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    from_ns: u64,
    until_ns: u64,
    gone: usize,
}

/// One of the result's gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct GapResult {
    /// Its begin.
    pub start_unix_ns: u64,
    /// Its end; none if it lasted to the end of the window.
    pub end_unix_ns: Option<u64>,
    /// How many connections were gone.
    pub connections: usize,
}

/// How many connections are gone, and were when.
#[derive(Debug, Default)]
pub struct Outages {
    gone: usize,
    since_ns: u64,
    kept: Vec<Gap>,
}

impl Outages {
    /// A connection was lost.
    pub fn lost(&mut self, now_ns: u64) {
        self.close(now_ns);
        self.gone += 1;
    }

    /// A lost connection was replaced.
    pub fn replaced(&mut self, now_ns: u64) {
        self.close(now_ns);
        self.gone = self.gone.saturating_sub(1);
    }

    /// Threads read the clock before they get here: time never goes back.
    fn close(&mut self, now_ns: u64) {
        let until_ns = now_ns.max(self.since_ns);
        let gap = Gap { from_ns: self.since_ns, until_ns, gone: self.gone };
        self.since_ns = until_ns;
        if gap.gone == 0 || gap.from_ns == gap.until_ns {
            return;
        }
        let full = self.kept.len() == KEPT_MAX;
        match self.kept.last_mut() {
            Some(last) if full => {
                last.until_ns = gap.until_ns;
                last.gone = last.gone.max(gap.gone);
            }
            _ => self.kept.push(gap),
        }
    }

    /// The gaps before `until_ns`, the end of the window.
    #[must_use]
    pub fn result(&self, timeline: &Timeline, until_ns: u64) -> Vec<GapResult> {
        let open = Gap { from_ns: self.since_ns, until_ns: u64::MAX, gone: self.gone };
        let all = self.kept.iter().copied().chain((self.gone > 0).then_some(open));
        all.filter(|gap| gap.from_ns < until_ns)
            .map(|gap| GapResult {
                start_unix_ns: timeline.unix_ns(gap.from_ns),
                end_unix_ns: (gap.until_ns < until_ns).then(|| timeline.unix_ns(gap.until_ns)),
                connections: gap.gone,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::timeline::Window;

    const UNIX_NS: u64 = 1_000_000;

    fn seen(gaps: &Outages, until_ns: u64) -> Vec<(u64, Option<u64>, usize)> {
        let window = Window { from_ns: 0, until_ns };
        let timeline = Timeline { start_ns: 0, start_unix_ns: UNIX_NS, window, drain_ns: 0 };
        let relative = |gap: GapResult| {
            let end = gap.end_unix_ns.map(|end| end - UNIX_NS);
            (gap.start_unix_ns - UNIX_NS, end, gap.connections)
        };
        gaps.result(&timeline, until_ns).into_iter().map(relative).collect()
    }

    #[test]
    fn a_gap_lasts_as_long_as_its_number_of_connections_is_gone() {
        let mut gaps = Outages::default();
        assert!(seen(&gaps, 1_000).is_empty());
        gaps.lost(100);
        gaps.lost(100);
        gaps.lost(110);
        gaps.replaced(150);
        gaps.replaced(155);
        gaps.replaced(160);
        gaps.lost(400);
        let expected = [
            (100, Some(110), 2),
            (110, Some(150), 3),
            (150, Some(155), 2),
            (155, Some(160), 1),
            (400, None, 1),
        ];
        assert_eq!(seen(&gaps, 1_000), expected);
        assert_eq!(seen(&gaps, 300), expected[..4], "what is lost after the window is no gap");
        assert_eq!(seen(&gaps, 120), [(100, Some(110), 2), (110, None, 3)]);
    }

    #[test]
    fn a_clock_read_too_early_makes_no_negative_gap() {
        let mut gaps = Outages::default();
        gaps.lost(100);
        gaps.replaced(90);
        gaps.lost(200);
        gaps.replaced(250);
        assert_eq!(seen(&gaps, 1_000), [(200, Some(250), 1)]);
    }

    #[test]
    fn its_size_is_bounded_and_nothing_is_left_out() {
        let mut gaps = Outages::default();
        for n in 0..20_000 {
            gaps.lost(10 * n);
            gaps.replaced(10 * n + 5);
        }
        let seen = seen(&gaps, u64::MAX);
        assert_eq!(seen.len(), KEPT_MAX);
        assert_eq!(seen.last(), Some(&(99_990, Some(199_995), 1)));
    }
}
