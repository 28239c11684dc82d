//! Stock-Level (clause 2.8.2): what is asked and what the answers mean. Which of it travels
//! together is the face's.

use wire::{Answer, Error, Exchange, Param};

use crate::tpcc::answers::required;
use crate::tpcc::{
    input::StockLevel,
    statements::{SL_COUNT, SL_DISTRICT},
};

pub(super) fn ask_district<X: Exchange>(session: &mut X, level: &StockLevel) {
    session.queue(SL_DISTRICT, &[level.warehouse, level.district].map(Param::I32));
}

/// `D_NEXT_O_ID`.
pub(super) fn read_district(answer: Answer<'_>, level: &StockLevel) -> Result<i32, Error> {
    required(answer, "district", &[level.warehouse, level.district])?.i32(0)
}

pub(super) fn ask_count<X: Exchange>(session: &mut X, level: &StockLevel, next: i32) {
    let StockLevel { warehouse, district, threshold } = *level;
    session.queue(SL_COUNT, &[warehouse, district, next, threshold].map(Param::I32));
}

/// How many items are low.
pub(super) fn read_count(answer: Answer<'_>, level: &StockLevel) -> Result<i64, Error> {
    required(answer, "stock", &[level.warehouse, level.district])?.i64(0)
}
