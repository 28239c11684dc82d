//! What the three faces cost in round trips, by transaction, BEGIN and COMMIT included. The tests
//! count them on what is really sent.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    kinds::KINDS,
    spec::{Face, Rules},
};

/// Fewest and most round trips of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RoundTrips {
    /// The customer is named by number, an order has five lines, one of them with an unused item,
    /// no district has an order to deliver.
    pub least: u32,
    /// By last name, fifteen lines, all ten districts.
    pub most: u32,
}

pub(super) const fn trips(least: u32, most: u32) -> RoundTrips {
    RoundTrips { least, most }
}

impl Face {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Statement, Self::Pipeline, Self::Procedure];

    /// By transaction, in the order of the kinds.
    #[must_use]
    pub fn round_trips(self) -> [RoundTrips; 5] {
        match self {
            Self::Statement => {
                [trips(13, 24), trips(6, 7), trips(5, 5), trips(12, 42), trips(4, 4)]
            }
            Self::Pipeline => [trips(2, 2), trips(1, 2), trips(2, 3), trips(2, 3), trips(2, 2)],
            Self::Procedure => [trips(1, 1); 5],
        }
    }
}

/// For every face and kind, as these rules have it.
pub(super) fn round_trips(rules: Rules) -> BTreeMap<String, BTreeMap<String, RoundTrips>> {
    let faces: &[Face] = match rules {
        Rules::Text => &Face::ALL,
        Rules::BenchmarkSql5 => &[Face::Statement],
    };
    let of_face = |&face: &Face| {
        let trips = match rules {
            Rules::Text => face.round_trips(),
            Rules::BenchmarkSql5 => OF_BENCHMARKSQL,
        };
        let of_kind = |(kind, trips): (&&str, RoundTrips)| ((*kind).to_owned(), trips);
        (face.name().to_owned(), KINDS.iter().zip(trips).map(of_kind).collect())
    };
    faces.iter().map(of_face).collect()
}

/// Fewest and most round trips, in the order of the kinds: of an order of five lines, the first of
/// which in the order of locks is the unused item, and of one of fifteen; of districts without an
/// order, and of ten that have one which nobody else takes first.
const OF_BENCHMARKSQL: [RoundTrips; 5] =
    [trips(7, 38), trips(8, 10), trips(4, 5), trips(11, 71), trips(2, 2)];
