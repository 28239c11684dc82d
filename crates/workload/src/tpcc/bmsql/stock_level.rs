//! Stock-Level: 2 exchanges.

use wire::{Error, Exchange, Param};

use super::{
    session::begin,
    statements::{ROLLBACK, SL_COUNT},
};
use crate::{
    tpcc::{
        answers::{ask, required},
        input::StockLevel,
    },
    workload::Outcome,
};

pub(super) async fn stock_level<X: Exchange>(
    session: &mut X,
    level: &StockLevel,
) -> Result<Outcome, Error> {
    let key = [level.warehouse, level.district];
    let [w, d] = key.map(Param::I32);
    let answer = begin(session, SL_COUNT, &[w, Param::I32(level.threshold), w, d]).await?;
    required(answer, "bmsql_stock", &key)?.i64(0)?;
    ask(session, ROLLBACK, &[]).await?;
    Ok(Outcome::Committed)
}
