//! Delivery (clause 2.7.4): the oldest undelivered order of each of the ten districts, in one
//! transaction, which clause 2.7.4.1 permits. What is asked and what the answers mean; which of it
//! travels together is the face's.

use wire::{Answer, Decimal, Error, Exchange, Param, Timestamp};

use crate::tpcc::answers::{missing, required};
use crate::{
    tpcc::{
        input::Delivery,
        statements::{DEL_CUSTOMER, DEL_LINES, DEL_NEW_ORDER, DEL_ORDER},
    },
    workload::Outcome,
};

/// An order that goes out, as far as the answers have told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel {
    pub(super) district: i32,
    order: i32,
    customer: i32,
    sum: Decimal,
}

pub(super) fn ask_oldest<X: Exchange>(session: &mut X, delivery: &Delivery, district: i32) {
    session.queue(DEL_NEW_ORDER, &[delivery.warehouse, district].map(Param::I32));
}

/// The district's order; `None`: it has none to deliver.
pub(super) fn read_oldest(answer: Answer<'_>, district: i32) -> Result<Option<Parcel>, Error> {
    let Some(row) = answer.row(0) else { return Ok(None) };
    Ok(Some(Parcel { district, order: row.i32(0)?, customer: 0, sum: Decimal::new(0, 2) }))
}

/// What a Delivery of which so many districts had no order came to.
pub(super) fn outcome(skipped: u32) -> Outcome {
    if skipped == 0 { Outcome::Committed } else { Outcome::CommittedInPart { skipped } }
}

impl Parcel {
    fn key(&self, delivery: &Delivery) -> [i32; 3] {
        [delivery.warehouse, self.district, self.order]
    }

    pub(super) fn ask_order<X: Exchange>(&self, session: &mut X, delivery: &Delivery) {
        let [w, d, o] = self.key(delivery).map(Param::I32);
        session.queue(DEL_ORDER, &[w, d, o, Param::I32(delivery.carrier)]);
    }

    pub(super) fn read_order(
        &mut self,
        answer: Answer<'_>,
        delivery: &Delivery,
    ) -> Result<(), Error> {
        self.customer = required(answer, "orders", &self.key(delivery))?.i32(0)?;
        Ok(())
    }

    pub(super) fn ask_lines<X: Exchange>(
        &self,
        session: &mut X,
        delivery: &Delivery,
        now: Timestamp,
    ) {
        let [w, d, o] = self.key(delivery).map(Param::I32);
        session.queue(DEL_LINES, &[w, d, o, Param::Timestamp(now)]);
    }

    pub(super) fn read_lines(
        &mut self,
        answer: Answer<'_>,
        delivery: &Delivery,
    ) -> Result<(), Error> {
        let key = self.key(delivery);
        let row = required(answer, "order_line", &key)?;
        // The sum over no line at all is NULL.
        if row.bytes(0)?.is_none() {
            return Err(missing("order_line", &key));
        }
        self.sum = row.decimal(0)?;
        Ok(())
    }

    pub(super) fn ask_customer<X: Exchange>(&self, session: &mut X, delivery: &Delivery) {
        let [w, d, c] = [delivery.warehouse, self.district, self.customer].map(Param::I32);
        session.queue(DEL_CUSTOMER, &[w, d, c, Param::Decimal(self.sum)]);
    }

    pub(super) fn read_customer(
        &self,
        answer: Answer<'_>,
        delivery: &Delivery,
    ) -> Result<(), Error> {
        match answer.affected() {
            1 => Ok(()),
            _ => Err(missing("customer", &[delivery.warehouse, self.district, self.customer])),
        }
    }
}
