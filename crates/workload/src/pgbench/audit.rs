//! The input audit: pgbench draws everything uniformly, and so must we.

use serde::{Deserialize, Serialize};

use super::{
    request::{DELTA_MAX, Request},
    schema::{ACCOUNTS, TELLERS},
    spec::{Kind, PgbenchSpec},
};
use crate::{
    chi_square::by_likelihood,
    workload::{Audit, AuditLine, Outcome},
};

/// Classes of neighbouring values whose counts are compared.
const CLASSES: usize = 50;
/// What is drawn, in the order of the counts.
const DRAWN: [&str; 4] = ["accounts", "branches", "tellers", "deltas"];

/// Counts of finished requests by class of their values.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct PgbenchAudit([Classes; DRAWN.len()]);

/// As text a list: serde knows arrays of up to 32.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
struct Classes([u64; CLASSES]);

impl TryFrom<Vec<u64>> for Classes {
    type Error = String;

    fn try_from(counts: Vec<u64>) -> Result<Self, String> {
        let classes = |odd: Vec<u64>| format!("classes are {}, not {CLASSES}", odd.len());
        counts.try_into().map(Self).map_err(classes)
    }
}

impl From<Classes> for Vec<u64> {
    fn from(classes: Classes) -> Self {
        classes.0.to_vec()
    }
}

impl Default for Classes {
    fn default() -> Self {
        Self([0; CLASSES])
    }
}

impl Audit for PgbenchAudit {
    type Request = Request;

    fn add(&mut self, request: &Request, _: Outcome) {
        let Request { aid, bid, tid, delta, scale } = *request;
        let values = [aid - 1, (bid - 1).into(), (tid - 1).into(), (delta + DELTA_MAX).into()];
        let drawn = self.0.iter_mut().zip(values).zip(spans(scale));
        for ((counts, value), span) in drawn {
            let class = value.unsigned_abs() * CLASSES as u64 / span;
            if let Some(count) = usize::try_from(class).ok().and_then(|at| counts.0.get_mut(at)) {
                *count += 1;
            }
        }
    }

    fn merge(&mut self, other: &Self) {
        for (mine, other) in self.0.iter_mut().zip(&other.0) {
            for (count, more) in mine.0.iter_mut().zip(other.0) {
                *count += more;
            }
        }
    }
}

/// How many values each of them can have.
fn spans(scale: i32) -> [u64; DRAWN.len()] {
    let scale = u64::from(scale.unsigned_abs());
    let deltas = u64::from((2 * DELTA_MAX + 1).unsigned_abs());
    [scale * u64::from(ACCOUNTS), scale, scale * u64::from(TELLERS.unsigned_abs()), deltas]
}

/// Values of each class, exactly: their number need not be a multiple of that of the classes.
fn weights(span: u64) -> Vec<u64> {
    let classes = CLASSES as u64;
    let first = |class: u64| (class * span).div_ceil(classes);
    (0..classes).map(|class| first(class + 1) - first(class)).collect()
}

/// What was drawn; values that no statement uses are left out.
pub(super) fn lines(spec: &PgbenchSpec, audit: &PgbenchAudit) -> Vec<AuditLine> {
    let drawn = if spec.kind == Kind::SelectOnly { 1 } else { DRAWN.len() };
    let line = |((name, counts), span): ((&&str, &Classes), u64)| {
        let chi = by_likelihood(&weights(span), &counts.0, CLASSES);
        AuditLine {
            name: format!("distribution of {name}"),
            source: format!(
                "pgbench's random(): uniform; chi-square over {} classes, 99.9% point",
                chi.classes
            ),
            measured: chi.statistic,
            n: counts.0.iter().sum(),
            low: 0.0,
            high: chi.limit,
            unit: "chi-square".into(),
        }
    };
    let lines = DRAWN.iter().zip(&audit.0).zip(spans(spec.scale)).take(drawn).map(line);
    lines.filter(|line| line.n > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{pgbench::Pgbench, workload::Workload};
    use proptest::prelude::*;
    use serde_json::json;

    fn audited(scale: i32, change: impl Fn(&mut Request)) -> Vec<AuditLine> {
        let spec = json!({"kind": "tpcb", "scale": scale});
        let pgbench = Pgbench::from_spec(&spec).expect("a workload");
        let mut halves = [PgbenchAudit::default(); 2];
        for number in 0..20_000 {
            let (mut request, _) = pgbench.request(3, number);
            change(&mut request);
            halves[usize::from(number % 2 == 1)].add(&request, Outcome::Committed);
        }
        let [mut all, half] = halves;
        all.merge(&half);
        pgbench.audit_lines(&all)
    }

    #[test]
    fn what_is_drawn_is_uniform_at_every_scale() {
        for scale in [1, 3, 50, 77, 25_000] {
            let lines = audited(scale, |_| {});
            assert_eq!(lines.len(), 4);
            for line in lines {
                assert!(line.measured <= line.high, "scale {scale}: {line:?}");
            }
        }
    }

    #[test]
    fn a_skew_is_seen() {
        let lines = audited(77, |request| {
            request.aid = request.aid / 2 + 1;
            request.delta -= i32::from(request.delta > 0) * 100;
        });
        assert!(lines[0].measured > lines[0].high, "{:?}", lines[0]);
        assert!(lines[3].measured > lines[3].high, "{:?}", lines[3]);
        assert!(lines[1].measured <= lines[1].high, "{:?}", lines[1]);
    }

    proptest! {
        #[test]
        fn classes_hold_all_values(span in 1_u64..1_000_000) {
            let weights = weights(span);
            prop_assert_eq!(weights.iter().sum::<u64>(), span);
            for value in [0, span / 3, span - 1] {
                let class = usize::try_from(value * CLASSES as u64 / span).expect("small");
                prop_assert!(weights[class] > 0);
            }
        }
    }
}
