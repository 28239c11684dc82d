//! Where this workload differs from the text, and why. Printed with every result.

use super::{
    bmsql,
    spec::{DeliveryMode, Home, Isolation, Rules, Schema, TpccSpec},
};
use crate::description::Deviation;

const ALWAYS: [(&str, &str, &str); 10] = [
    (
        "the driver talks to the database itself: no remote terminals, no screens, no menu",
        "the database server is what is measured",
        "2.2, 5.2",
    ),
    (
        "what a terminal would show is fetched and decoded, but not formatted or displayed",
        "as above",
        "2.4.3 to 2.8.3",
    ),
    (
        "deliveries write no result file; their response times and skipped districts are counted",
        "as above",
        "2.7.2.2, 2.7.3.4",
    ),
    (
        "windows of seconds or minutes instead of at least two hours with a checkpoint every half \
         hour",
        "a plan compares stages; the report says which part of a checkpoint cycle a window holds",
        "5.5",
    ),
    (
        "no room is kept for 60 days of 8 hours",
        "the disk of the machine under test is what it is",
        "4.2.3",
    ),
    (
        "no ACID tests, no price, no availability date, no audit, no full disclosure",
        "it is not a TPC result",
        "3, 6, 7, 8, 9",
    ),
    (
        "kinds are drawn independently by fixed weights, without adjustment during the run",
        "the same seed gives the same requests whatever the server's speed",
        "5.2.4",
    ),
    (
        "exactly a tenth of each batch of rows has bad credit or ORIGINAL, instead of about a \
         tenth of all",
        "the load can be checked exactly",
        "4.3.3.1",
    ),
    (
        "dates of loaded rows are the load's time plus a microsecond for each row, not read from \
         the clock row by row",
        "the same seed and load time give the same bytes",
        "4.3.3.1",
    ),
    (
        "condition 11 is checked as count(orders) - count(new_order) = 2100 + deliveries",
        "as the text has it, it holds only until the first delivery",
        "3.3.2.11",
    ),
];

/// All differences of a workload with these parameters.
#[must_use]
pub fn deviations(spec: &TpccSpec) -> Vec<Deviation> {
    let mut found: Vec<Deviation> =
        ALWAYS.iter().map(|(what, why, clause)| Deviation::new(*what, why, clause)).collect();
    if !is_one(spec.keying_multiplier) || !is_one(spec.think_multiplier) {
        let what = format!(
            "keying times are multiplied by {}, think times by {}; more than 12.86 New-Orders per \
             minute and warehouse are possible",
            spec.keying_multiplier, spec.think_multiplier
        );
        found.push(Deviation::new(
            what,
            "a small database can load a large server",
            "5.2.5, 4.1.3",
        ));
    }
    if spec.home == Home::Random {
        let what = "each request goes to a random warehouse and district";
        found.push(Deviation::new(what, "the plan says so", "2.4.1.1, 2.8.1.1"));
    }
    found.extend(of_blocks(spec));
    if spec.delivery == DeliveryMode::Inline {
        let what = "terminals wait for their deliveries";
        found.push(Deviation::new(what, "the plan says so", "2.7.2"));
    }
    if spec.schema == Schema::Bmsql {
        found.extend(bmsql::OF_SCHEMA.iter().map(|(what, why, at)| Deviation::new(*what, why, at)));
    }
    if spec.rules == Rules::BenchmarkSql5 {
        found.extend(bmsql::OF_RULES.iter().map(|(what, why, at)| Deviation::new(*what, why, at)));
    } else if spec.isolation == Isolation::ReadCommitted {
        let what = "transactions run at READ COMMITTED; updates compute from the locked row, and \
                    Order-Status reads one snapshot";
        let why = "no anomaly that the text forbids remains: each row that is read and then \
                   written is locked by the same statement";
        found.push(Deviation::new(what, why, "3.4"));
    }
    let [_, payment, order_status, delivery, stock_level] = spec.mix.shares();
    let minima = [(payment, 0.43), (order_status, 0.04), (delivery, 0.04), (stock_level, 0.04)];
    // A rounding of the shares is no deviation.
    if minima.iter().any(|(share, minimum)| *share < minimum - 1e-9) {
        let what = format!("the mix is {:?} by weight", spec.mix.weights());
        found.push(Deviation::new(what, "the plan says so", "5.2.3"));
    }
    found
}

/// What the text has cross from one server to another, and what of it is not done.
fn of_blocks(spec: &TpccSpec) -> Option<Deviation> {
    let count = spec.blocks?.count;
    let (own, across) = (spec.block_size(), 100.0 * spec.share_across());
    let (payments, lines) = (0.15 * across, 0.01 * across);
    let drawn = if own > 1 { "is drawn among those of the same server" } else { "is not drawn" };
    let what = format!(
        "{count} servers hold {own} of {} warehouses each, and another warehouse {drawn}: without \
         blocks {payments:.2}% of the payments and {lines:.2}% of the order lines would go to \
         another server's, here none does",
        spec.warehouses
    );
    let why = "no transaction reaches two servers: nothing here commits on several";
    Some(Deviation::new(what, why, "2.4.1.5, 2.5.1.2"))
}

fn is_one(multiplier: f64) -> bool {
    (multiplier - 1.0).abs() < f64::EPSILON
}
