//! The input audit: what the terminals really asked for, against the bands that the text permits
//! (clause 9.2.2.5) or, where it gives none, against the band that holds 99.9 % of all cases.

use serde::{Deserialize, Serialize};

use super::{
    cardinalities::{CUSTOMERS, ITEMS},
    constants::Constants,
    input::{Customer, NewOrder, Payment, Request},
    kinds::KINDS,
    names::NAMES,
    spec::TpccSpec,
};
use crate::{
    chi_square::{binomial_band, by_likelihood, mean_band, real},
    nurand::NuRand,
    workload::{Audit, AuditLine, Outcome},
};

/// Classes into which values are grouped for chi-square.
const CLASSES: usize = 50;
/// Mean and variance of the number of lines: uniform in 5..=15.
const LINES_MEAN: f64 = 10.0;
const LINES_VARIANCE: f64 = 10.0;

/// Counts of finished requests.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct TpccAudit {
    kinds: [u64; 5],
    rolled_back: u64,
    /// New-Orders that came out otherwise than their input demands.
    surprises: u64,
    lines: u64,
    remote_lines: u64,
    line_counts: [u64; 11],
    payments_by_name: u64,
    remote_payments: u64,
    status_by_name: u64,
    deliveries_with_skips: u64,
    skipped_districts: u64,
    items: Tally,
    customers: Tally,
    last_names: Tally,
}

/// How often each value came; empty until the first.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Tally(Vec<u64>);

impl Tally {
    fn add(&mut self, index: i32, size: usize) {
        self.0.resize(size, 0);
        if let Some(count) = usize::try_from(index).ok().and_then(|index| self.0.get_mut(index)) {
            *count += 1;
        }
    }

    fn merge(&mut self, other: &Self) {
        let size = self.0.len().max(other.0.len());
        self.0.resize(size, 0);
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }
}

impl Audit for TpccAudit {
    type Request = Request;

    fn add(&mut self, request: &Request, outcome: Outcome) {
        self.kinds[kind(request)] += 1;
        match request {
            Request::NewOrder(order) => self.new_order(order, outcome),
            Request::Payment(payment) => self.payment(payment),
            Request::OrderStatus(status) => {
                self.status_by_name += u64::from(self.customer(status.customer));
            }
            Request::Delivery(_) => {
                if let Outcome::CommittedInPart { skipped } = outcome {
                    self.deliveries_with_skips += 1;
                    self.skipped_districts += u64::from(skipped);
                }
            }
            Request::StockLevel(_) => {}
        }
    }

    fn merge(&mut self, other: &Self) {
        for (count, more) in self.kinds.iter_mut().zip(other.kinds) {
            *count += more;
        }
        for (count, more) in self.line_counts.iter_mut().zip(other.line_counts) {
            *count += more;
        }
        self.rolled_back += other.rolled_back;
        self.surprises += other.surprises;
        self.lines += other.lines;
        self.remote_lines += other.remote_lines;
        self.payments_by_name += other.payments_by_name;
        self.remote_payments += other.remote_payments;
        self.status_by_name += other.status_by_name;
        self.deliveries_with_skips += other.deliveries_with_skips;
        self.skipped_districts += other.skipped_districts;
        self.items.merge(&other.items);
        self.customers.merge(&other.customers);
        self.last_names.merge(&other.last_names);
    }
}

fn kind(request: &Request) -> usize {
    match request {
        Request::NewOrder(_) => 0,
        Request::Payment(_) => 1,
        Request::OrderStatus(_) => 2,
        Request::Delivery(_) => 3,
        Request::StockLevel(_) => 4,
    }
}

impl TpccAudit {
    fn new_order(&mut self, order: &NewOrder, outcome: Outcome) {
        let rolled_back = outcome == Outcome::RolledBack;
        self.rolled_back += u64::from(rolled_back);
        self.surprises += u64::from(rolled_back != order.is_to_roll_back());
        self.customer(Customer::Id(order.customer));
        let count = order.lines().len();
        self.lines += count as u64;
        if let Some(orders) = count.checked_sub(5).and_then(|n| self.line_counts.get_mut(n)) {
            *orders += 1;
        }
        for line in order.lines() {
            self.remote_lines += u64::from(line.supply != order.warehouse);
            // The unused item lies outside and is not counted.
            self.items.add(line.item - 1, ITEMS.unsigned_abs() as usize);
        }
    }

    fn payment(&mut self, payment: &Payment) {
        self.payments_by_name += u64::from(self.customer(payment.customer));
        self.remote_payments += u64::from(payment.customer_warehouse != payment.warehouse);
    }

    /// Counts the customer; says whether it was named by last name.
    fn customer(&mut self, customer: Customer) -> bool {
        match customer {
            Customer::Id(id) => self.customers.add(id - 1, CUSTOMERS.unsigned_abs() as usize),
            Customer::LastName(name) => self.last_names.add(name, NAMES),
        }
        matches!(customer, Customer::LastName(_))
    }
}

/// The audit as lines of the report; what never came has none.
pub(super) fn lines(spec: &TpccSpec, constants: &Constants, audit: &TpccAudit) -> Vec<AuditLine> {
    let mut lines = mix(spec, audit);
    let [orders, payments, statuses, ..] = audit.kinds;
    // With one warehouse, or one in each block, there is nothing remote.
    let remote = spec.block_size() > 1;
    lines.extend([
        share(
            "rolled back New-Orders",
            "9.2.2.5.1",
            (audit.rolled_back, orders),
            0.01,
            (0.009, 0.011),
        ),
        count(
            "New-Orders that ended otherwise than their input demands",
            "2.4.1.4",
            (audit.surprises, orders),
            0,
        ),
        lines_per_order(audit),
        skew("lines per order", "2.4.1.3", &[1; 11], &audit.line_counts),
        share(
            "remote order lines",
            "9.2.2.5.3",
            (audit.remote_lines, audit.lines),
            if remote { 0.01 } else { 0.0 },
            if remote { (0.0095, 0.0105) } else { (0.0, 0.0) },
        ),
        share(
            "remote payments",
            "9.2.2.5.4",
            (audit.remote_payments, payments),
            if remote { 0.15 } else { 0.0 },
            if remote { (0.14, 0.16) } else { (0.0, 0.0) },
        ),
        share(
            "payments by last name",
            "9.2.2.5.5",
            (audit.payments_by_name, payments),
            0.6,
            (0.57, 0.63),
        ),
        share(
            "order statuses by last name",
            "9.2.2.5.6",
            (audit.status_by_name, statuses),
            0.6,
            (0.57, 0.63),
        ),
        nurand("items", &constants.item, &audit.items),
        nurand("customers", &constants.customer, &audit.customers),
        nurand("last names", &constants.last_name, &audit.last_names),
    ]);
    lines.extend(deliveries(audit));
    lines.retain(|line| line.n > 0);
    lines
}

fn mix(spec: &TpccSpec, audit: &TpccAudit) -> Vec<AuditLine> {
    let all: u64 = audit.kinds.iter().sum();
    let shares = spec.mix.shares();
    KINDS
        .iter()
        .zip(audit.kinds)
        .zip(shares)
        .map(|((kind, count), expected)| {
            let (low, high) = if expected > 0.0 && expected < 1.0 {
                binomial_band(expected, all)
            } else {
                (expected, expected)
            };
            line(
                &format!("share of {kind}"),
                "the plan's mix, 99.9% binomial band",
                (real(count) / real(all), all),
                (low, high),
                "1",
            )
        })
        .collect()
}

/// A share against the text's band, widened where chance alone would leave it too often.
fn share(
    name: &str,
    clause: &str,
    (count, n): (u64, u64),
    expected: f64,
    text: (f64, f64),
) -> AuditLine {
    let chance = if expected > 0.0 { binomial_band(expected, n) } else { text };
    banded(name, clause, (real(count) / real(n), n), text, chance, "1")
}

fn lines_per_order(audit: &TpccAudit) -> AuditLine {
    let orders = audit.kinds[0];
    let chance = mean_band(LINES_MEAN, LINES_VARIANCE, orders);
    let measured = (real(audit.lines) / real(orders), orders);
    banded("mean of lines per order", "9.2.2.5.2", measured, (9.5, 10.5), chance, "lines")
}

fn banded(
    name: &str,
    clause: &str,
    measured: (f64, u64),
    text: (f64, f64),
    chance: (f64, f64),
    unit: &str,
) -> AuditLine {
    let band = (text.0.min(chance.0), text.1.max(chance.1));
    let source = if band == text {
        format!("clause {clause}: {} to {}", text.0, text.1)
    } else {
        let n = measured.1;
        format!("clause {clause}: {} to {}, widened to the 99.9% band of {n}", text.0, text.1)
    };
    line(name, &source, measured, band, unit)
}

/// A count that may not exceed a limit.
fn count(name: &str, clause: &str, (count, n): (u64, u64), limit: u64) -> AuditLine {
    let source = format!("clause {clause}");
    line(name, &source, (real(count), n), (0.0, real(limit)), "transactions")
}

/// Chi-square of what came against an exact distribution.
fn skew(name: &str, clause: &str, weights: &[u64], seen: &[u64]) -> AuditLine {
    let chi = by_likelihood(weights, seen, CLASSES);
    let n = seen.iter().sum();
    let source = format!(
        "clause {clause}, chi-square over {} classes of the exact distribution, 99.9% point",
        chi.classes
    );
    let name = format!("distribution of {name}");
    line(&name, &source, (chi.statistic, n), (0.0, chi.limit), "chi-square")
}

fn nurand(name: &str, function: &NuRand, tally: &Tally) -> AuditLine {
    if tally.0.is_empty() {
        return line(name, "", (0.0, 0), (0.0, 0.0), "chi-square");
    }
    skew(name, "2.1.6", &function.counts(), &tally.0)
}

/// Clause 2.7.4.2: at most 1 % of the deliveries, or one, may skip a district.
fn deliveries(audit: &TpccAudit) -> [AuditLine; 2] {
    let n = audit.kinds[3];
    let limit = (n / 100).max(1);
    let share = real(audit.deliveries_with_skips) / real(n);
    let band = (0.0, real(limit) / real(n));
    let source = "clauses 2.7.4.2 and 9.2.1.7: 1%, or one if that is more";
    let districts = (real(audit.skipped_districts), n);
    [
        line("deliveries that skipped a district", source, (share, n), band, "1"),
        line("skipped districts", source, districts, (0.0, real(10 * limit)), "districts"),
    ]
}

fn line(
    name: &str,
    source: &str,
    (measured, n): (f64, u64),
    (low, high): (f64, f64),
    unit: &str,
) -> AuditLine {
    AuditLine {
        name: name.to_owned(),
        source: source.to_owned(),
        measured,
        n,
        low,
        high,
        unit: unit.to_owned(),
    }
}
