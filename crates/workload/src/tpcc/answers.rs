//! Statements asked one by one, and what must be in their answers.

use wire::{Answer, Error, Exchange, Fields, Param, Row, StatementId};

/// One execution, one round trip.
pub(super) async fn ask<'a, X: Exchange>(
    session: &'a mut X,
    statement: StatementId,
    params: &[Param<'_>],
) -> Result<Answer<'a>, Error> {
    session.queue(statement, params);
    Ok(session.exchange().await?.get(0))
}

/// The row that must be there, named by the table and its key.
pub(super) fn required<'a>(answer: Answer<'a>, table: &str, key: &[i32]) -> Result<Row<'a>, Error> {
    answer.row(0).ok_or_else(|| missing(table, key))
}

/// What is told of a row that must be there and is not.
pub(super) fn missing(table: &str, key: &[i32]) -> Error {
    Error::protocol(format!(
        "{table} has no row {key:?}: the database was loaded with fewer warehouses than the plan \
         says, or was changed by others"
    ))
}

/// Customers of one last name: the row at position n/2, rounded up (clause 2.5.2.2, case 2).
pub(super) fn middle(answer: Answer<'_>) -> Option<Row<'_>> {
    answer.row(answer.len().div_ceil(2).checked_sub(1)?)
}

/// Reads columns that a terminal would show and nothing here needs.
pub(super) fn shown(row: Row<'_>, columns: std::ops::Range<usize>) -> Result<(), Error> {
    let mut fields = row.fields();
    for _ in 0..columns.start {
        fields.bytes()?;
    }
    texts(&mut fields, columns.len())
}

/// As [`shown`], of the fields that come next.
pub(super) fn texts(fields: &mut Fields<'_>, count: usize) -> Result<(), Error> {
    for _ in 0..count {
        fields.text()?;
    }
    Ok(())
}
