//! The constants C of the three `NURand` functions: those of the load, and those of the run, which
//! follow from them (clause 2.1.6.1).

use super::{
    cardinalities::{CUSTOMERS, ITEMS},
    spec::{LoadConstants, TpccSpec},
};
use crate::{draw::Draw, nurand::NuRand};

/// Streams of draws; a number never changes its meaning.
const LOAD: u64 = 102;
const RUN: u64 = 103;

/// The three functions of a run, the same on all terminals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Last names: `NURand(255, 0, 999)`.
    pub last_name: NuRand,
    /// Customers: `NURand(1023, 1, 3000)`.
    pub customer: NuRand,
    /// Items: `NURand(8191, 1, 100000)`.
    pub item: NuRand,
}

/// The load's constants: as given, else as they follow from the seed.
#[must_use]
pub fn of_load(spec: &TpccSpec) -> LoadConstants {
    spec.c_load.unwrap_or_else(|| {
        let mut draw = Draw::new(spec.seed, LOAD, 0, 0);
        LoadConstants { c_last: draw.int(0, 255), c_delivery_cnt: 0 }
    })
}

/// The run's constants.
#[must_use]
pub fn of_run(spec: &TpccSpec) -> Constants {
    let mut draw = Draw::new(spec.seed, RUN, 0, 0);
    let load = of_load(spec).c_last;
    let permitted: Vec<i32> = (0..=255).filter(|&c| is_permitted_delta(c, load)).collect();
    // Never empty: 65 more or 65 less is always in 0..=255.
    let choice = draw.below(permitted.len() as u64);
    let c_last = permitted[usize::try_from(choice).unwrap_or(0)];
    Constants {
        last_name: NuRand { a: 255, low: 0, high: 999, c: c_last },
        customer: NuRand { a: 1023, low: 1, high: CUSTOMERS, c: draw.int(0, 1023) },
        item: NuRand { a: 8191, low: 1, high: ITEMS, c: draw.int(0, 8191) },
    }
}

/// Whether the constants of run and load may go together (clause 2.1.6.1).
#[must_use]
pub fn is_permitted_delta(run: i32, load: i32) -> bool {
    let delta = (run - load).abs();
    (65..=119).contains(&delta) && delta != 96 && delta != 112
}
