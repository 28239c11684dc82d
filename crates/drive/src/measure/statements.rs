//! Times of statements: every exchange of a transaction is timed, and counted under the statements
//! that it carried. Statements that differ in a number at the end of their names count as one
//! (`no_stock_01` to `no_stock_10`), repeated ones once: New-Orders of five and of fifteen lines
//! are the same batch.

use std::collections::{BTreeMap, HashMap};

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wire::{Answers, Error, Exchange, Param, Statement, StatementId};

use crate::{
    clock::Clock,
    error::RunError,
    measure::histogram::{ExactBelow, HIGHEST_NS, Summary, encode},
    schedule::slowdowns::Slowdowns,
};

/// Coarser than response times (1 %, 64 ns): there is a histogram for every statement, kind and
/// thread.
const DIGITS: u8 = 2;
const LOWEST_NS: u64 = 64;
/// Different batches of one kind; what goes beyond is counted as others.
const BATCHES_MAX: usize = 64;
const OTHERS: &str = "others";

/// A set of statements that count as one, by its number.
type Group = u16;

/// Which statements count as one.
#[derive(Clone, Debug)]
pub struct Groups {
    /// By statement.
    of: Vec<Group>,
    names: Vec<String>,
}

impl Groups {
    /// Of a workload's statements. What is prepared once for all transactions stands before theirs,
    /// while a reader looks for a COMMIT behind them.
    #[must_use]
    pub fn new(statements: &[Statement]) -> Self {
        let (last, others): (Vec<_>, Vec<_>) =
            statements.iter().partition(|statement| statement.sql == "COMMIT");
        let mut names: Vec<String> = Vec::new();
        let mut group = |statement: &Statement| {
            let name = without_number(&statement.name);
            let known = names.iter().position(|known| known == name);
            let at = known.unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            });
            Group::try_from(at).unwrap_or(Group::MAX)
        };
        for statement in others.into_iter().chain(last) {
            group(statement);
        }
        Self { of: statements.iter().map(group).collect(), names }
    }

    fn of(&self, statement: StatementId) -> Group {
        self.of.get(usize::from(statement.0)).copied().unwrap_or(Group::MAX)
    }

    fn name(&self, group: Group) -> &str {
        self.names.get(usize::from(group)).map_or(OTHERS, String::as_str)
    }
}

fn without_number(name: &str) -> &str {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match stem.strip_suffix('_') {
        Some(stem) if stem.len() + 1 < name.len() && !stem.is_empty() => stem,
        _ => name,
    }
}

/// Exchanges of one attempt; reused from request to request.
#[derive(Debug, Default)]
pub struct Laps {
    /// Groups of all exchanges, one after the other.
    groups: Vec<Group>,
    /// End of an exchange's groups, and how long it took.
    ends: Vec<(usize, u64)>,
    /// When the exchange began that has no answer yet.
    open_ns: Option<u64>,
}

impl Laps {
    fn clear(&mut self) {
        self.groups.clear();
        self.ends.clear();
        self.open_ns = None;
    }

    fn carry(&mut self, group: Group) {
        let begin = self.ends.last().map_or(0, |(end, _)| *end);
        if !self.groups[begin..].contains(&group) {
            self.groups.push(group);
        }
    }

    fn end(&mut self, ns: u64) {
        self.ends.push((self.groups.len(), ns));
        self.open_ns = None;
    }

    /// What the exchange without an answer carries, and when it began.
    fn open(&self) -> Option<(&[Group], u64)> {
        let begin = self.ends.last().map_or(0, |(end, _)| *end);
        Some((&self.groups[begin..], self.open_ns?))
    }

    fn iter(&self) -> impl Iterator<Item = (&[Group], u64)> {
        let mut begin = 0;
        self.ends.iter().map(move |&(end, ns)| {
            let groups = &self.groups[begin..end];
            begin = end;
            (groups, ns)
        })
    }
}

/// What times a transaction's exchanges.
#[derive(Debug)]
pub struct Stopwatch<'a, K> {
    /// Of the driver.
    pub clock: &'a K,
    /// Of the workload.
    pub groups: &'a Groups,
    /// What the last attempt took.
    pub laps: &'a mut Laps,
    /// What makes exchanges slower on purpose.
    pub slower: Option<Slower<'a, K>>,
}

/// Makes exchanges slower on purpose, when it is time for that.
#[derive(Debug)]
pub struct Slower<'a, K> {
    /// When, and by how much.
    pub slowdowns: &'a Slowdowns,
    /// To sleep by; it has no other sleeper.
    pub timer: &'a K,
}

impl<K> Clone for Slower<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for Slower<'_, K> {}

impl<K: Clock> Slower<'_, K> {
    async fn pause(self, now_ns: u64) {
        let pause = self.slowdowns.at(now_ns);
        if pause.delay_ns > 0 {
            self.timer.sleep_until(now_ns + pause.delay_ns).await;
        }
        if pause.spin_ns > 0 {
            self.timer.spin_until(self.timer.now_ns() + pause.spin_ns);
        }
    }
}

impl<K: Clock> Stopwatch<'_, K> {
    /// The session, its exchanges timed from here on.
    pub fn watch<'s, X>(&'s mut self, session: &'s mut X) -> Timed<'s, X, K> {
        self.laps.clear();
        let (clock, groups, slower) = (self.clock, self.groups, self.slower);
        Timed { session, clock, groups, laps: self.laps, slower, since_ns: None }
    }
}

/// A session whose exchanges are timed.
#[derive(Debug)]
pub struct Timed<'a, X, K> {
    session: &'a mut X,
    clock: &'a K,
    groups: &'a Groups,
    laps: &'a mut Laps,
    slower: Option<Slower<'a, K>>,
    /// End of the exchange before, unless the transaction has paused since: the next one begins
    /// there, which saves a look at the clock.
    since_ns: Option<u64>,
}

impl<X: Exchange, K: Clock> Exchange for Timed<'_, X, K> {
    fn queue(&mut self, statement: StatementId, params: &[Param<'_>]) {
        self.laps.carry(self.groups.of(statement));
        self.session.queue(statement, params);
    }

    async fn exchange(&mut self) -> Result<&Answers, Error> {
        let begun_ns = self.since_ns.take().unwrap_or_else(|| self.clock.now_ns());
        self.laps.open_ns = Some(begun_ns);
        if let Some(slower) = self.slower {
            slower.pause(begun_ns).await;
        }
        let answers = self.session.exchange().await?;
        let ended_ns = self.clock.now_ns();
        self.laps.end(ended_ns - begun_ns);
        self.since_ns = Some(ended_ns);
        Ok(answers)
    }

    fn columns(&self, statement: StatementId) -> &[String] {
        self.session.columns(statement)
    }

    async fn pause(&mut self, time: std::time::Duration) -> Result<(), Error> {
        self.since_ns = None;
        self.session.pause(time).await
    }
}

/// Times of one kind's exchanges, by what they carried.
#[derive(Clone, Debug, Default)]
pub struct StatementTimes {
    /// One statement, by its group.
    single: Vec<Option<Histogram<u32>>>,
    batches: HashMap<Box<[Group]>, Histogram<u32>>,
    /// Of those that had no answer in the end.
    exact_below: BTreeMap<Vec<Group>, ExactBelow>,
}

impl StatementTimes {
    /// Adds an attempt's exchanges.
    pub fn add(&mut self, laps: &Laps) {
        for (groups, ns) in laps.iter() {
            record(self.of(groups), ns);
        }
    }

    /// Adds the exchanges of an attempt that had no answer; the last one took so long at least.
    pub fn add_unanswered(&mut self, laps: &Laps, now_ns: u64) {
        self.add(laps);
        let Some((groups, begun_ns)) = laps.open() else { return };
        let ns = now_ns.saturating_sub(begun_ns);
        record(self.of(groups), ns);
        self.exact_below.entry(self.key(groups).to_vec()).or_default().bound(ns);
    }

    /// Under what an exchange is counted: its own groups, or the others.
    fn key<'a>(&self, groups: &'a [Group]) -> &'a [Group] {
        let full = self.batches.len() >= BATCHES_MAX;
        if groups.len() != 1 && full && !self.batches.contains_key(groups) {
            return &[];
        }
        groups
    }

    fn of(&mut self, groups: &[Group]) -> &mut Histogram<u32> {
        if let [group] = groups {
            let at = usize::from(*group);
            if self.single.len() <= at {
                self.single.resize(at + 1, None);
            }
            return self.single[at].get_or_insert_with(empty);
        }
        let key = self.key(groups);
        if !self.batches.contains_key(key) {
            self.batches.insert(key.into(), empty());
        }
        self.batches.entry(key.into()).or_insert_with(empty)
    }

    /// Adds another thread's times.
    ///
    /// # Panics
    ///
    /// Never: all histograms grow.
    pub fn merge(&mut self, other: &Self) {
        for (key, theirs) in other.all() {
            self.of(&key).add(theirs).expect("histograms that grow can be added");
        }
        for (key, theirs) in &other.exact_below {
            self.exact_below.entry(self.key(key).to_vec()).or_default().add(*theirs);
        }
    }

    /// What was recorded, in the order of the statements.
    fn all(&self) -> BTreeMap<Vec<Group>, &Histogram<u32>> {
        let single = self.single.iter().enumerate().filter_map(|(group, histogram)| {
            Some((vec![Group::try_from(group).ok()?], histogram.as_ref()?))
        });
        single.chain(self.batches.iter().map(|(key, one)| (key.to_vec(), one))).collect()
    }
}

fn empty() -> Histogram<u32> {
    let mut histogram = Histogram::new_with_bounds(LOWEST_NS, 2 * LOWEST_NS, DIGITS)
        .expect("constant bounds are valid");
    histogram.auto(true);
    histogram
}

fn record(histogram: &mut Histogram<u32>, ns: u64) {
    histogram.record(ns.min(HIGHEST_NS)).expect("an hour can be recorded");
}

/// Times of an exchange.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct StatementResult {
    /// The statement's name; of a batch, those of its statements, shortened.
    pub name: String,
    /// Names of all the statements that it carried.
    pub statements: Vec<String>,
    /// How many exchanges.
    pub count: u64,
    /// Histogram of their times from sending to the last answer, base64 of V2 deflate, ns.
    pub histogram: String,
    /// These times at a glance.
    pub ns: Summary,
}

impl StatementResult {
    /// Of one kind of transaction.
    ///
    /// # Errors
    ///
    /// A histogram cannot be written.
    pub fn all(times: &StatementTimes, groups: &Groups) -> Result<Vec<Self>, RunError> {
        let one = |(key, histogram): (Vec<Group>, &Histogram<u32>)| {
            let exact_below = times.exact_below.get(&key).copied().unwrap_or_default();
            let statements: Vec<String> =
                key.iter().map(|group| groups.name(*group).to_owned()).collect();
            Ok(Self {
                name: short(&statements),
                statements,
                count: histogram.len(),
                histogram: encode(histogram)?,
                ns: Summary::of(histogram, exact_below),
            })
        };
        times.all().into_iter().map(one).collect()
    }
}

/// `a+b+c`; of more than three the first two and the last.
fn short(names: &[String]) -> String {
    match names {
        [] => OTHERS.to_owned(),
        [first, second, .., last] if names.len() > 3 => {
            format!("{first}+{second}+…+{last} ({})", names.len())
        }
        names => names.join("+"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups() -> Groups {
        let names = ["begin", "stock_01", "stock_02", "stock_", "_7", "a.sql:12", "end"];
        let statement = |name: &&str| Statement {
            name: (*name).to_owned(),
            sql: String::new(),
            params: Vec::new(),
            results: wire::Results::Binary,
        };
        Groups::new(&names.iter().map(statement).collect::<Vec<_>>())
    }

    fn laps(exchanges: &[(&[u16], u64)]) -> Laps {
        let groups = groups();
        let mut laps = Laps::default();
        for (statements, ns) in exchanges {
            for statement in *statements {
                laps.carry(groups.of(StatementId(*statement)));
            }
            laps.end(*ns);
        }
        laps
    }

    #[test]
    fn statements_that_differ_by_a_number_are_one() {
        let names = ["begin", "stock", "stock_", "_7", "a.sql:12", "end"];
        assert_eq!(groups().names, names);
    }

    #[test]
    fn exchanges_are_counted_under_what_they_carried() {
        let mut times = StatementTimes::default();
        times.add(&laps(&[(&[0], 1_000), (&[1, 2, 1], 2_000), (&[2], 4_000), (&[0, 1, 6], 9_000)]));
        let mut other = StatementTimes::default();
        other.add(&laps(&[(&[0, 2, 1, 6], 11_000), (&[0, 5, 4, 6], 1)]));
        times.merge(&other);
        let results = StatementResult::all(&times, &groups()).expect("results");
        let shown: Vec<(&str, u64)> =
            results.iter().map(|one| (one.name.as_str(), one.count)).collect();
        let want =
            [("begin", 1), ("begin+stock+end", 2), ("begin+a.sql:12+…+end (4)", 1), ("stock", 2)];
        assert_eq!(shown, want);
        assert_eq!(results[2].statements, ["begin", "a.sql:12", "_7", "end"]);
    }

    #[test]
    fn an_exchange_without_an_answer_took_so_long_at_least() {
        let mut times = StatementTimes::default();
        times.add(&laps(&[(&[0], 1_000), (&[1, 2], 2_000)]));
        let mut cut = laps(&[(&[0], 3_000)]);
        cut.carry(groups().of(StatementId(1)));
        cut.carry(groups().of(StatementId(6)));
        let mut waits = StatementTimes::default();
        waits.add_unanswered(&cut, 9_000_000);
        cut.open_ns = Some(2_000_000);
        waits.add_unanswered(&cut, 9_000_000);
        times.merge(&waits);
        let results = StatementResult::all(&times, &groups()).expect("results");
        let shown: Vec<(&str, u64, bool)> = (results.iter())
            .map(|one| {
                let json = serde_json::to_value(one.ns).expect("a summary");
                (one.name.as_str(), one.count, json.get("exact_below").is_some())
            })
            .collect();
        assert_eq!(shown, [("begin", 3, false), ("stock", 1, false), ("stock+end", 1, true)]);
        let json = serde_json::to_value(results[2].ns).expect("a summary");
        assert_eq!(json["exact_below"], 7_000_000);
        assert!(cut.open().is_some() && laps(&[(&[0], 1)]).open().is_none());
    }

    #[test]
    fn times_are_within_one_per_cent() {
        let mut times = StatementTimes::default();
        for ns in [15_000, 1_234_567, 3_600_000_000_000, u64::MAX] {
            times.add(&laps(&[(&[0], ns)]));
        }
        let all = times.all();
        let histogram = all[&vec![0]];
        for (share, ns) in [(0.25, 15_000.0), (0.5, 1_234_567.0), (1.0, 3.6e12)] {
            #[expect(clippy::cast_precision_loss, reason = "a test's times are small")]
            let got = histogram.value_at_quantile(share) as f64;
            assert!((got / ns - 1.0).abs() < 0.01, "{got} instead of {ns}");
        }
    }

    #[test]
    fn there_are_no_more_batches_than_fit() {
        let mut times = StatementTimes::default();
        for first in 0..200_u16 {
            let mut laps = Laps::default();
            laps.carry(first);
            laps.carry(first + 1);
            laps.end(100);
            times.add(&laps);
        }
        assert_eq!(times.batches.len(), BATCHES_MAX + 1);
        let others = &times.batches[&[][..]];
        assert_eq!(others.len(), 200 - u64::try_from(BATCHES_MAX).expect("small"));
    }
}
