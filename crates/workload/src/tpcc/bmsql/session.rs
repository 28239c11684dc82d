//! As JDBC's driver does it: what travels together, and how numbers are read.

use wire::{Answer, Decimal, Error, Exchange, Param, StatementId};

use super::statements::BEGIN;

/// Opens a transaction with its first statement: JDBC's driver sends both at once.
pub(super) async fn begin<'a, X: Exchange>(
    session: &'a mut X,
    statement: StatementId,
    params: &[Param<'_>],
) -> Result<Answer<'a>, Error> {
    session.queue(BEGIN, &[]);
    session.queue(statement, params);
    Ok(session.exchange().await?.get(1))
}

/// As JDBC's `getDouble` reads a `numeric`.
#[expect(clippy::cast_precision_loss, reason = "amounts have far fewer than 53 bits")]
pub(super) fn double(value: Decimal) -> f64 {
    value.unscaled as f64 / 10_f64.powi(i32::from(value.scale))
}
