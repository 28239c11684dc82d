//! TPC-C 5.11: schema, rows, requests, transactions, consistency conditions, input audit.
//!
//! TPC-C-like: results are no TPC results; the deviations from the text are listed in
//! [`deviations`].

pub mod audit;
pub mod consistency;
pub mod constants;
pub mod describe;
pub mod deviations;
pub mod input;
pub mod names;
pub mod rows;
pub mod schema;
pub mod spec;
pub mod statements;
pub mod transact;

use serde_json::Value;
use wire::{Error, Exchange, Statement, Timestamp};

pub use spec::{SpecError, TpccSpec};

use crate::{AuditLine, Outcome, Timing, Workload};
use audit::TpccAudit;
use constants::Constants;
use input::{Input, Request};
use names::LastNames;
use rows::RowSource;

/// Transaction kinds, in the order of their index.
pub const KINDS: [&str; 5] = ["new_order", "payment", "order_status", "delivery", "stock_level"];

/// Raised whenever the rows loaded, the requests or the statements change: results of different
/// versions are never compared, fixtures of another version never reused.
pub const VERSION: u32 = 1;

/// The workload.
#[derive(Clone, Debug)]
pub struct Tpcc {
    spec: TpccSpec,
    constants: Constants,
    statements: Vec<Statement>,
    input: Input,
    names: LastNames,
}

impl Tpcc {
    /// From the JSON of a [`TpccSpec`].
    ///
    /// # Errors
    ///
    /// As [`TpccSpec::from_json`].
    pub fn from_spec(spec: &Value) -> Result<Self, SpecError> {
        Ok(Self::new(TpccSpec::from_json(spec)?))
    }

    /// From a checked specification.
    #[must_use]
    pub fn new(spec: TpccSpec) -> Self {
        let constants = constants::of_run(&spec);
        Self {
            constants,
            statements: statements::all(spec.isolation),
            input: Input::new(&spec, constants),
            names: LastNames::default(),
            spec,
        }
    }

    /// The specification.
    #[must_use]
    pub fn spec(&self) -> &TpccSpec {
        &self.spec
    }

    /// The run's constants.
    #[must_use]
    pub fn constants(&self) -> Constants {
        self.constants
    }

    /// The rows of the initial database.
    #[must_use]
    pub fn rows(&self, loaded_at: Timestamp) -> RowSource {
        let c_last = constants::of_load(&self.spec).c_last;
        RowSource::new(self.spec.seed, self.spec.warehouses, c_last, loaded_at)
    }
}

impl Workload for Tpcc {
    type Request = Request;
    type Audit = TpccAudit;

    fn kinds(&self) -> &'static [&'static str] {
        &KINDS
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn request(&self, terminal: u32, number: u64) -> (Request, Timing) {
        self.input.request(terminal, number)
    }

    async fn perform<X: Exchange>(
        &self,
        session: &mut X,
        request: &Request,
        now: Timestamp,
    ) -> Result<Outcome, Error> {
        transact::perform(session, &self.names, request, now).await
    }

    fn audit_lines(&self, audit: &TpccAudit) -> Vec<AuditLine> {
        audit::lines(self, audit)
    }
}
