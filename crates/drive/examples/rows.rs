//! How fast rows are made: megabytes of COPY data a second on one core, by table. Nothing is sent.
//!
//! ```text
//! cargo run --release -p pgdyno-drive --example rows [warehouses]
//! ```
//!
//! Each table is made `ROUNDS` times in turn with the others; the median round counts, the lowest
//! and highest are shown beside it. Times are CPU times of the process, which has one thread.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

use drive::measure::cpu::Account;
use serde_json::json;
use wire::Timestamp;
use workload::tpcc::{Tpcc, rows::Target};

const ROUNDS: usize = 5;
const LOADED_AT: Timestamp = Timestamp(800_000_000_000_000);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let warehouses: u32 = std::env::args().nth(1).map_or(Ok(4), |text| text.parse())?;
    let spec = json!({"kind": "tpcc", "warehouses": warehouses});
    let source = Tpcc::from_spec(&spec)?.rows(LOADED_AT);
    let mut buffer = Vec::new();
    let mut seconds = vec![Vec::new(); Target::ALL.len()];
    let mut bytes = [0_u64; Target::ALL.len()];
    for _ in 0..ROUNDS {
        for (at, target) in Target::ALL.into_iter().enumerate() {
            let before = Account::read(&[])?;
            bytes[at] = 0;
            for batch in 0..source.batches(target) {
                source.batch(target, batch, &mut buffer);
                bytes[at] += buffer.len() as u64;
            }
            let cost = before.until(&Account::read(&[])?, 1);
            seconds[at].push(cost.user_s + cost.system_s);
        }
    }
    println!("{:12} {:>10} {:>8} {:>8} {:>8}", "table", "bytes", "MB/s", "lowest", "highest");
    let mut total_s = 0.0;
    for (at, target) in Target::ALL.into_iter().enumerate() {
        seconds[at].sort_by(f64::total_cmp);
        total_s += seconds[at][ROUNDS / 2];
        line(target.table(), bytes[at], &seconds[at]);
    }
    line("all", bytes.iter().sum(), &[total_s]);
    Ok(())
}

/// One line of the table; `seconds` ascend.
fn line(name: &str, bytes: u64, seconds: &[f64]) {
    #[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
    let rate = |seconds: f64| bytes as f64 / 1e6 / seconds.max(1e-9);
    let [median, fastest, slowest] =
        [seconds.len() / 2, 0, seconds.len() - 1].map(|at| seconds[at]);
    println!(
        "{name:12} {bytes:10} {:8.0} {:8.0} {:8.0}",
        rate(median),
        rate(slowest),
        rate(fastest)
    );
}
