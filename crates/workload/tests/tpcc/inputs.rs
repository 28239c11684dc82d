//! Traps in what terminals ask for.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use workload::{
    Audit, Outcome, Workload,
    chi_square::{by_likelihood, real},
    tpcc::{
        audit::TpccAudit,
        constants::{is_permitted_delta, of_load},
        input::{Customer, Request},
    },
};

use super::tpcc;

/// Requests of some terminals, so many of each.
fn requests(tpcc: &workload::tpcc::Tpcc, terminals: u32, each: u64) -> Vec<Request> {
    let of = |terminal| (0..each).map(move |number| (terminal, number));
    (0..terminals).flat_map(of).map(|(t, n)| tpcc.request(t, n).0).collect()
}

fn audited(tpcc: &workload::tpcc::Tpcc, requests: &[Request]) -> Vec<workload::AuditLine> {
    let mut audit = TpccAudit::default();
    for request in requests {
        let rolls_back = matches!(request, Request::NewOrder(o) if o.is_to_roll_back());
        let outcome = if rolls_back { Outcome::RolledBack } else { Outcome::Committed };
        audit.add(request, outcome);
    }
    tpcc.audit_lines(&audit)
}

#[test]
fn trap_01_one_constant_for_all_terminals_and_the_whole_run() {
    let tpcc = tpcc(json!({"warehouses": 3}));
    let item = tpcc.constants().item;
    for terminals in [0..40, 1000..1040] {
        let mut seen = vec![0; 100_000];
        for terminal in terminals {
            for number in 0..200 {
                if let (Request::NewOrder(order), _) = tpcc.request(terminal, number) {
                    for line in order.lines().iter().filter(|line| line.item <= 100_000) {
                        seen[usize::try_from(line.item - 1).expect("from 1")] += 1;
                    }
                }
            }
        }
        let chi = by_likelihood(&item.counts(), &seen, 50);
        assert!(chi.statistic < chi.limit, "{chi:?}");
        let uniform = by_likelihood(&vec![1; 100_000], &seen, 50);
        assert!(uniform.statistic > uniform.limit, "items would be uniform: {uniform:?}");
    }
}

#[test]
fn trap_02_the_runs_constant_keeps_its_distance_from_the_loads() {
    for c_last in 0..=255 {
        for seed in 0..5 {
            let tpcc = tpcc(json!({"seed": seed, "c_load": {"c_last": c_last}}));
            let run = tpcc.constants().last_name.c;
            assert!(is_permitted_delta(run, c_last), "load {c_last}, run {run}");
        }
    }
    assert!(!is_permitted_delta(0, 64) && is_permitted_delta(0, 65));
    assert!(!is_permitted_delta(0, 96) && !is_permitted_delta(112, 0));
    assert!(is_permitted_delta(119, 0) && !is_permitted_delta(120, 0));
    // Without the load's constant it follows from the seed, and is what the loader records.
    let tpcc = tpcc(json!({"seed": 77}));
    assert_eq!(tpcc.particulars().c_load, of_load(tpcc.spec()));
}

#[test]
fn trap_04_customers_come_by_last_name_in_60_of_100_cases() {
    let tpcc = tpcc(json!({"warehouses": 5}));
    let lines = audited(&tpcc, &requests(&tpcc, 30, 1000));
    for name in ["payments by last name", "order statuses by last name"] {
        let line = lines.iter().find(|line| line.name == name).expect("an audit line");
        assert!((line.low..=line.high).contains(&line.measured), "{line:?}");
        assert!((line.measured - 0.6).abs() < 0.02, "{line:?}");
    }
}

#[test]
fn trap_05_one_order_in_a_hundred_has_an_unused_item_as_its_last() {
    let tpcc = tpcc(json!({"warehouses": 5}));
    let (mut orders, mut unused) = (0_u64, 0_u64);
    for request in requests(&tpcc, 40, 1000) {
        let Request::NewOrder(order) = request else { continue };
        let (last, others) = order.lines().split_last().expect("five lines or more");
        assert!(others.iter().all(|line| (1..=100_000).contains(&line.item)));
        assert_eq!(order.is_to_roll_back(), last.item > 100_000);
        orders += 1;
        unused += u64::from(order.is_to_roll_back());
    }
    let (low, high) = workload::chi_square::binomial_band(0.01, orders);
    assert!((low..=high).contains(&(real(unused) / real(orders))), "{unused} of {orders}");
}

#[test]
fn trap_06_one_line_in_a_hundred_is_remote_and_never_from_home() {
    let many = tpcc(json!({"warehouses": 4}));
    let mut suppliers = BTreeMap::new();
    let (mut lines, mut remote) = (0_u64, 0_u64);
    for request in requests(&many, 40, 1000) {
        let Request::NewOrder(order) = request else { continue };
        for line in order.lines() {
            lines += 1;
            if line.supply != order.warehouse {
                remote += 1;
                *suppliers.entry((order.warehouse, line.supply)).or_insert(0_u64) += 1;
            }
        }
    }
    // Were home among the drawn, only 0.75 % would be remote.
    let (low, high) = workload::chi_square::binomial_band(0.01, lines);
    assert!((low..=high).contains(&(real(remote) / real(lines))), "{remote} of {lines}");
    assert_eq!(suppliers.len(), 12, "every other warehouse supplies");
    let seen: Vec<u64> = suppliers.into_values().collect();
    let chi = by_likelihood(&[1; 12], &seen, 12);
    assert!(chi.statistic < chi.limit, "{chi:?}");

    let one = tpcc(json!({"warehouses": 1}));
    for request in requests(&one, 10, 500) {
        if let Request::NewOrder(order) = request {
            assert!(order.lines().iter().all(|line| line.supply == 1));
        }
    }
}

#[test]
fn trap_07_15_of_100_payments_are_for_a_customer_of_another_warehouse() {
    let tpcc = tpcc(json!({"warehouses": 5}));
    let (mut payments, mut remote) = (0_u64, 0_u64);
    let mut districts = BTreeSet::new();
    for request in requests(&tpcc, 30, 1000) {
        let Request::Payment(payment) = request else { continue };
        payments += 1;
        if payment.customer_warehouse == payment.warehouse {
            assert_eq!(payment.customer_district, payment.district);
        } else {
            remote += 1;
            districts.insert((payment.district, payment.customer_district));
        }
        assert!((100..=500_000).contains(&payment.amount_cents));
    }
    let (low, high) = workload::chi_square::binomial_band(0.15, payments);
    assert!((low..=high).contains(&(real(remote) / real(payments))), "{remote} of {payments}");
    assert_eq!(districts.len(), 100, "the customer's district is any");
}

#[test]
fn trap_16_deliveries_are_deferred_unless_the_plan_says_otherwise() {
    for (delivery, deferred) in [("deferred", true), ("inline", false)] {
        let tpcc = tpcc(json!({"delivery": delivery}));
        for number in 0..500 {
            let (request, timing) = tpcc.request(3, number);
            let is_delivery = matches!(request, Request::Delivery(_));
            assert_eq!(timing.deferred, is_delivery && deferred);
        }
    }
}

#[test]
fn trap_17_stock_level_examines_the_terminals_own_district() {
    let tpcc = tpcc(json!({"warehouses": 3}));
    for terminal in 0..30 {
        let mut places = BTreeSet::new();
        for request in requests_of(&tpcc, terminal, 500) {
            if let Request::StockLevel(level) = request {
                places.insert((level.warehouse, level.district));
                assert!((10..=20).contains(&level.threshold));
            }
        }
        let own = i32::try_from(terminal).expect("small");
        assert_eq!(places, BTreeSet::from([(own % 3 + 1, own / 3 % 10 + 1)]));
    }
}

fn requests_of(
    tpcc: &workload::tpcc::Tpcc,
    terminal: u32,
    count: u64,
) -> impl Iterator<Item = Request> {
    (0..count).map(move |number| tpcc.request(terminal, number).0)
}

#[test]
fn digests_tell_requests_apart() {
    let tpcc = tpcc(json!({}));
    let digest = |terminal, number| tpcc.digest(&tpcc.request(terminal, number).0);
    let mut seen: Vec<u64> = (0..5000).map(|number| digest(3, number)).collect();
    assert_eq!(seen[7], digest(3, 7));
    seen.sort_unstable();
    seen.dedup();
    // A Delivery has ten carriers, a Stock-Level eleven thresholds: 8 % of 5000 requests repeat.
    assert!((4500..4750).contains(&seen.len()), "{}", seen.len());
}

#[test]
fn trap_18_keying_is_constant_and_thinking_exponential_cut_at_ten_means() {
    let tpcc = tpcc(json!({"keying_multiplier": 1.0, "think_multiplier": 1.0}));
    let keying_s = [18, 3, 2, 2, 2];
    let think_s = [12.0, 12.0, 10.0, 5.0, 5.0];
    let mut thought: [Vec<f64>; 5] = Default::default();
    for terminal in 0..20 {
        for number in 0..2000 {
            let (_, timing) = tpcc.request(terminal, number);
            assert_eq!(timing, tpcc.timing(terminal, number), "also without the request");
            assert_eq!(timing.keying_ns, keying_s[timing.kind] * 1_000_000_000);
            thought[timing.kind].push(real(timing.think_ns) / 1e9);
        }
    }
    for (times, mean_s) in thought.iter().zip(think_s) {
        let n = times.len() as u64;
        let mean = times.iter().sum::<f64>() / real(n);
        // Cutting at ten means takes e^-10 of the mean away: nothing that can be seen.
        let (low, high) = workload::chi_square::mean_band(mean_s, mean_s * mean_s, n);
        assert!((low..=high).contains(&mean), "mean {mean}, expected {mean_s}");
        assert!(times.iter().all(|time| *time <= 10.0 * mean_s + 1e-6));
        let over = times.iter().filter(|time| **time > mean_s).count() as u64;
        let (low, high) = workload::chi_square::binomial_band((-1.0_f64).exp(), n);
        assert!((low..=high).contains(&(real(over) / real(n))), "not exponential: {over} of {n}");
    }
    let idle = super::tpcc(json!({}));
    let (_, timing) = idle.request(0, 0);
    assert_eq!((timing.keying_ns, timing.think_ns), (0, 0), "the default has no pauses");
}

#[test]
fn trap_19_a_terminal_keeps_to_its_warehouse_and_ten_make_a_warehouse_full() {
    let fixed = tpcc(json!({"warehouses": 7}));
    let mut terminals = BTreeMap::new();
    for terminal in 0..70 {
        let mut homes = BTreeSet::new();
        homes.extend(requests_of(&fixed, terminal, 100).map(|request| home(&request)));
        assert_eq!(homes.len(), 1, "terminal {terminal}");
        *terminals.entry(homes.pop_first()).or_insert(0) += 1;
    }
    assert!(terminals.len() == 7 && terminals.values().all(|count| *count == 10));

    let random = tpcc(json!({"warehouses": 7, "home": "random"}));
    let homes: BTreeSet<i32> = requests_of(&random, 0, 300).map(|r| home(&r)).collect();
    assert_eq!(homes.len(), 7);
}

fn home(request: &Request) -> i32 {
    match request {
        Request::NewOrder(order) => order.warehouse,
        Request::Payment(payment) => payment.warehouse,
        Request::OrderStatus(status) => status.warehouse,
        Request::Delivery(delivery) => delivery.warehouse,
        Request::StockLevel(level) => level.warehouse,
    }
}

#[test]
fn the_same_seed_gives_the_same_requests() {
    let spec = json!({"warehouses": 3, "seed": 5});
    let (first, second) = (tpcc(spec.clone()), tpcc(spec));
    for terminal in 0..5 {
        for number in 0..50 {
            assert_eq!(first.request(terminal, number), second.request(terminal, number));
        }
    }
    let other = tpcc(json!({"warehouses": 3, "seed": 6}));
    assert_ne!(requests(&first, 2, 20), requests(&other, 2, 20));
}

#[test]
fn kinds_come_by_their_weights_and_never_at_weight_zero() {
    let field_reports = json!({"new_order": 40, "payment": 36, "order_status": 8,
                               "delivery": 8, "stock_level": 8});
    let tpcc1 = tpcc(json!({"mix": field_reports}));
    for line in audited(&tpcc1, &requests(&tpcc1, 20, 1000)) {
        assert!((line.low..=line.high).contains(&line.measured), "{line:?}");
    }
    let only = json!({"new_order": 0, "payment": 0, "order_status": 3, "delivery": 0,
                      "stock_level": 0});
    let tpcc2 = tpcc(json!({"mix": only}));
    let all = requests(&tpcc2, 5, 200);
    assert!(all.iter().all(|request| matches!(request, Request::OrderStatus(_))));
}

#[test]
fn the_audit_tells_wrong_inputs() {
    let good = tpcc(json!({"warehouses": 5}));
    let outside = |lines: Vec<workload::AuditLine>| -> Vec<String> {
        let out = |line: &workload::AuditLine| !(line.low..=line.high).contains(&line.measured);
        lines.into_iter().filter(out).map(|line| line.name).collect()
    };
    let mut requests = requests(&good, 40, 1000);
    assert_eq!(outside(audited(&good, &requests)), [""; 0]);

    // The same requests under other constants and another mix.
    let other = tpcc(json!({"warehouses": 5, "seed": 43, "mix": {"new_order": 44, "payment": 44,
                            "order_status": 4, "delivery": 4, "stock_level": 4}}));
    let names = outside(audited(&other, &requests));
    for name in [
        "distribution of items",
        "distribution of customers",
        "distribution of last names",
        "share of payment",
    ] {
        assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
    }
    // A driver that never names a customer, and never goes elsewhere.
    for request in &mut requests {
        if let Request::Payment(payment) = request {
            payment.customer = Customer::Id(1);
            payment.customer_warehouse = payment.warehouse;
        }
    }
    let names = outside(audited(&good, &requests));
    for name in ["payments by last name", "remote payments", "distribution of customers"] {
        assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
    }
}

#[test]
fn audits_add_up() {
    let tpcc = tpcc(json!({"warehouses": 5}));
    let requests = requests(&tpcc, 10, 200);
    let count = |requests: &[Request]| {
        let mut audit = TpccAudit::default();
        for request in requests {
            let skips = matches!(request, Request::Delivery(_));
            let part = Outcome::CommittedInPart { skipped: 2 };
            audit.add(request, if skips { part } else { Outcome::Committed });
        }
        audit
    };
    let (first, second) = requests.split_at(700);
    let mut merged = count(first);
    merged.merge(&count(second));
    let lines = tpcc.audit_lines(&merged);
    assert_eq!(lines, tpcc.audit_lines(&count(&requests)));
    let skipped = lines.iter().find(|line| line.name == "skipped districts").expect("a line");
    assert!(skipped.measured > skipped.high, "all deliveries skipped two: {skipped:?}");
    // Orders that should have rolled back came out committed.
    let wrong = lines.iter().find(|line| line.name.contains("otherwise")).expect("a line");
    assert!(wrong.measured > 0.0 && wrong.high == 0.0, "{wrong:?}");
}
