//! What is merged is what one host would have told.

use super::*;
use crate::measure::{
    histogram::{empty, quantiles, record},
    times::edges_ns,
};
use proptest::prelude::*;

const SHARES: [f64; 8] = [0.0, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0];

fn text(values: &[u64]) -> String {
    let mut histogram = empty();
    for ns in values {
        record(&mut histogram, *ns);
    }
    encode(&histogram).expect("a histogram is written")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))] // each reads and writes 300 KB a host
    /// Whatever values a host had: quantiles of all are those of one host that had them all.
    #[test]
    fn merged_times_are_those_of_all_recordings(
        hosts in prop::collection::vec(
            prop::collection::vec(1_u64..4_000_000_000_000, 0..60), 1..12),
        bounds in prop::collection::vec(prop::option::of(1_u64..1_000_000), 12),
    ) {
        let texts: Vec<String> = hosts.iter().map(|values| text(values)).collect();
        let joined = text(&hosts.concat());
        let all = encode(&sum(texts.iter()).expect("added")).expect("written");
        let at = |text: &str| quantiles(text, &SHARES).expect("read");
        prop_assert_eq!(at(&all), at(&joined));
        let below = |bound: Option<u64>| {
            let mut below = ExactBelow::default();
            if let Some(ns) = bound { below.bound(ns); }
            below
        };
        let summaries: Vec<Summary> = texts
            .iter()
            .zip(&bounds)
            .map(|(text, bound)| Summary::of(&decode(text).expect("read"), below(*bound)))
            .collect();
        let least = bounds[..hosts.len()].iter().flatten().min().copied();
        let wanted = Summary::of(&decode(&joined).expect("read"), below(least));
        prop_assert_eq!(summary(texts.iter().zip(&summaries)).expect("merged"), wanted);
    }
}

#[test]
fn quantiles_of_a_hundred_hosts_are_those_of_one() {
    let values: Vec<u64> = (1..=20_000_u64).map(|n| n * n * 7_919 % 900_000_007 + 1).collect();
    let one = quantiles(&text(&values), &SHARES).expect("read");
    for hosts in [1, 3, 7, 100] {
        let dealt = |host: usize| -> Vec<u64> {
            values.iter().skip(host).step_by(hosts).copied().collect()
        };
        let texts: Vec<String> = (0..hosts).map(|host| text(&dealt(host))).collect();
        let all = encode(&sum(texts.iter()).expect("added")).expect("written");
        assert_eq!(quantiles(&all, &SHARES).expect("read"), one, "{hosts} hosts");
    }
}

proptest! {
    /// At every instant so many connections are gone as of all hosts together.
    #[test]
    fn merged_gaps_hold_as_many_connections_as_all_hosts(
        gaps_of in prop::collection::vec(
            (0_u64..40, prop::option::of(1_u64..20), 1_usize..5), 0..9),
    ) {
        let given: Vec<GapResult> = gaps_of
            .iter()
            .map(|&(start, length, connections)| GapResult {
                start_unix_ns: start,
                end_unix_ns: length.map(|length| start + length),
                connections,
            })
            .collect();
        let merged = gaps(given.iter());
        let gone = |of: &[GapResult], at: u64| -> usize {
            let holds = |gap: &&GapResult| {
                gap.start_unix_ns <= at && gap.end_unix_ns.is_none_or(|end| at < end)
            };
            of.iter().filter(holds).map(|gap| gap.connections).sum()
        };
        for at in 0..70 {
            prop_assert_eq!(gone(&merged, at), gone(&given, at), "at {}", at);
        }
        for pair in merged.windows(2) {
            prop_assert!(pair[0].end_unix_ns.is_some_and(|end| end <= pair[1].start_unix_ns));
        }
    }
}

/// Who ran for longer may hold more seconds in a row; the sum holds them all, at their own time.
#[test]
fn hosts_that_joined_more_seconds_than_others_are_added_in_step() {
    let of = |step_s: u64, rows: &[u64]| TimesResult {
        step_s,
        edges_ns: edges_ns(),
        counts: vec![Vec::new(), rows.to_vec()],
    };
    let sum = times(&[&of(1, &[1, 2, 3, 4, 5]), &of(4, &[10, 20, 30]), &of(2, &[100])]);
    assert_eq!(sum.step_s, 4);
    assert_eq!(sum.counts, [vec![], vec![1 + 2 + 3 + 4 + 10 + 100, 5 + 20, 30]]);
}
