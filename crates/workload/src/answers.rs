//! All plausible answers of a workload by the text of its statements: what a null server knows.

use std::{collections::HashMap, sync::Arc};

use serde_json::Value;

use crate::{
    catalogue::{self, Visitor},
    plausible::Plausible,
    spec::SpecError,
    workload::Workload,
};

/// The statements of a workload by their text, each with its answer.
#[derive(Clone, Debug)]
pub struct Answers(HashMap<String, Arc<Plausible>>);

impl Answers {
    /// Of every statement of the workload that a specification describes; `kind` names it.
    ///
    /// # Errors
    ///
    /// The workload refuses its specification, or has a statement without a plausible answer.
    pub fn of_spec(spec: &Value) -> Result<Self, SpecError> {
        catalogue::with(spec, Collect)?.map_err(|statement| {
            let fact = format!("statement {statement} of this workload has no plausible answer");
            SpecError { fact, hint: Some("Calibrate with tpcc, tpcb or select-only.".to_owned()) }
        })
    }

    /// The answer to a statement of the workload.
    #[must_use]
    pub fn find(&self, sql: &str) -> Option<Arc<Plausible>> {
        self.0.get(sql).cloned()
    }
}

/// Collects the answers of a workload; what fails is the name of a statement without one.
struct Collect;

impl Visitor for Collect {
    type Output = Result<Answers, String>;

    fn visit<W: Workload>(self, workload: W) -> Self::Output {
        let answer = |statement: &wire::Statement| match workload.plausible(statement) {
            Some(plausible) => Ok((statement.sql.clone(), Arc::new(plausible))),
            None => Err(statement.name.clone()),
        };
        workload.statements().iter().map(answer).collect::<Result<_, _>>().map(Answers)
    }
}
