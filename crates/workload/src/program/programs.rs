//! All programs of a workload, and which of them a request performs.

use std::collections::{BTreeMap, HashMap};

use wire::Statement;

use super::{steps::Program, value::Value};
use crate::draw::Draw;

/// Streams of draws; a number never changes its meaning.
const STREAM_CHOICE: u64 = 201;
pub(super) const STREAM_VALUES: u64 = 202;
/// Terminals are fewer than 2^24: their numbers and those of their requests share 64 bits.
const TERMINAL_BITS: u32 = 24;

/// Programs, and what they share.
#[derive(Clone, Debug)]
pub struct Programs {
    pub(super) kinds: Vec<String>,
    pub(super) all: Vec<Program>,
    pub(super) statements: Vec<Statement>,
    pub(super) seed: u64,
    pub(super) names: Vec<String>,
    pub(super) slots: HashMap<String, usize>,
    /// Values that variables have at the start; scripts may change them.
    pub(super) initial: Vec<Option<Value>>,
    /// Slots of what is different in each request.
    pub(super) client_id: usize,
    pub(super) request_id: usize,
    pub(super) default_seed: i64,
}

/// A request: everything else follows from its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which program.
    pub program: usize,
    /// Whose.
    pub terminal: u32,
    /// The how-manieth of this terminal, from 0.
    pub number: u64,
}

impl Request {
    /// A number that no other request of a run has; a repetition has the same.
    #[must_use]
    pub fn ident(&self) -> i64 {
        ((self.number << TERMINAL_BITS) | u64::from(self.terminal)).cast_signed()
    }
}

impl Programs {
    /// The programs.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.all
    }

    /// Shares of the programs, by name.
    #[must_use]
    pub fn shares(&self) -> BTreeMap<String, f64> {
        let sum: f64 = self.all.iter().map(|program| program.weight).sum();
        let share = |program: &Program| (program.name.clone(), program.weight / sum);
        self.all.iter().map(share).collect()
    }

    pub(super) fn choose(&self, terminal: u32, number: u64) -> usize {
        let sum: f64 = self.all.iter().map(|program| program.weight).sum();
        let mut draw = Draw::new(self.seed, STREAM_CHOICE, u64::from(terminal), number);
        let mut left = draw.share() * sum;
        for (at, program) in self.all.iter().enumerate() {
            left -= program.weight;
            if left <= 0.0 && program.weight > 0.0 {
                return at;
            }
        }
        self.all.iter().rposition(|program| program.weight > 0.0).unwrap_or(0)
    }
}
