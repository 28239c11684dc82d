//! TPC-C as a workload: requests of its terminals, transactions through a face, the input audit.

use serde_json::Value;
use wire::{Error, Exchange, Statement, Timestamp};

use super::{
    audit::{self, TpccAudit},
    bmsql,
    constants::{self, Constants},
    dataset::TpccDataset,
    input::{Input, Request},
    kinds::KINDS,
    names::LastNames,
    plausible, procedures,
    rows::RowSource,
    spec::{Face, Rules, SpecError, TpccSpec},
    statements, transact, witness,
};
use crate::{
    digest,
    plausible::Plausible,
    witness::Witness,
    workload::{AuditLine, Outcome, Timing, Workload},
};

/// The workload.
#[derive(Clone, Debug)]
pub struct Tpcc {
    spec: TpccSpec,
    constants: Constants,
    kinds: Vec<String>,
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
            kinds: KINDS.map(str::to_owned).to_vec(),
            statements: match spec.rules {
                Rules::Text => statements::all(&spec),
                Rules::BenchmarkSql5 => bmsql::statements::all(),
            },
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
        RowSource::new(self.spec.seed, self.spec.warehouses_held(), c_last, loaded_at)
            .of_schema(self.spec.schema)
            .after(self.spec.warehouses_before())
    }

    /// What `BenchmarkSQL` keeps of a load, by its names: scale, and constants of `NURand`.
    #[must_use]
    pub fn config(&self) -> [(&'static str, i32); 4] {
        [
            ("warehouses", self.spec.warehouses_held()),
            ("nURandCLast", constants::of_load(&self.spec).c_last),
            ("nURandCC_ID", self.constants.customer.c),
            ("nURandCI_ID", self.constants.item.c),
        ]
    }

    /// What a loader must know; its rows carry this time.
    #[must_use]
    pub fn dataset(&self, loaded_at: Timestamp) -> TpccDataset {
        TpccDataset::new(self.spec.clone(), self.config(), self.rows(loaded_at))
    }
}

impl Workload for Tpcc {
    type Request = Request;
    type Audit = TpccAudit;

    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn setup(&self) -> Vec<String> {
        match self.spec.face {
            Face::Statement | Face::Pipeline => Vec::new(),
            Face::Procedure => procedures::setup(&self.spec),
        }
    }

    fn settings(&self) -> Vec<(String, String)> {
        match self.spec.face {
            Face::Statement | Face::Pipeline => Vec::new(),
            Face::Procedure => procedures::settings(self.spec.isolation),
        }
    }

    fn terminal(&self, part: u32, number: u32, all: u32) -> u32 {
        match self.spec.blocks {
            None => number.wrapping_add(part.wrapping_mul(all)),
            Some(_) => self.spec.terminal_of_block(part, number),
        }
    }

    fn request(&self, terminal: u32, number: u64) -> (Request, Timing) {
        self.input.request(terminal, number)
    }

    fn timing(&self, terminal: u32, number: u64) -> Timing {
        self.input.timing(terminal, number)
    }

    fn digest(&self, request: &Request) -> u64 {
        digest::of(request)
    }

    fn witness(&self, request: &Request, now: Timestamp) -> Option<Witness> {
        witness::of(request, now)
    }

    async fn perform<X: Exchange>(
        &self,
        session: &mut X,
        request: &Request,
        now: Timestamp,
    ) -> Result<Outcome, Error> {
        match self.spec.rules {
            Rules::Text => {
                transact::by_face(session, self.spec.face, &self.names, request, now).await
            }
            Rules::BenchmarkSql5 => bmsql::by_kind(session, &self.names, request, now).await,
        }
    }

    fn plausible(&self, statement: &Statement) -> Option<Plausible> {
        plausible::answer(&self.spec, &statement.name)
    }

    fn audit_lines(&self, audit: &TpccAudit) -> Vec<AuditLine> {
        audit::lines(&self.spec, &self.constants, audit)
    }
}
