//! Stock-Level (clause 2.8.2).

use wire::{Error, Exchange, Param};

use super::{ask, required};
use crate::{
    Outcome,
    tpcc::{
        input::StockLevel,
        statements::{BEGIN, COMMIT, SL_COUNT, SL_DISTRICT},
    },
};

pub(super) async fn perform<X: Exchange>(
    session: &mut X,
    level: &StockLevel,
) -> Result<Outcome, Error> {
    let key = [level.warehouse, level.district];
    let [w, d] = key.map(Param::I32);
    ask(session, BEGIN, &[]).await?;
    let answer = ask(session, SL_DISTRICT, &[w, d]).await?;
    let next = required(answer, "district", &key)?.i32(0)?;
    let params = [w, d, Param::I32(next), Param::I32(level.threshold)];
    let answer = ask(session, SL_COUNT, &params).await?;
    required(answer, "stock", &key)?.i64(0)?;
    ask(session, COMMIT, &[]).await?;
    Ok(Outcome::Committed)
}
