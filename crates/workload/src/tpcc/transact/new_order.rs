//! New-Order (clause 2.4.2).

use wire::{Decimal, Error, Exchange, Param, Timestamp};

use super::{ask, missing, required};
use crate::tpcc::{
    input::{LINES_MAX, Line, NewOrder},
    schema::UNUSED_ITEM,
    statements::{
        BEGIN, COMMIT, NO_CUSTOMER, NO_DISTRICT, NO_ITEMS, NO_LINES, NO_NEW_ORDER, NO_ORDER,
        NO_WAREHOUSE, ROLLBACK, no_stock,
    },
};

/// Mark of the 10 % of items and stock that make a line "brand".
const ORIGINAL: &str = "ORIGINAL";
const DIST_INFO_BYTES: usize = 24;

/// What the terminal would show (clause 2.4.3.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrderReply {
    /// An item does not exist; nothing was entered.
    pub rolled_back: bool,
    /// `O_ID`.
    pub order: i32,
    /// Sum of the amounts, less discount, plus taxes, in cents, rounded half up.
    pub total_cents: i64,
    /// The lines in the order in which they were entered; those without an item are empty.
    pub lines: Vec<ReplyLine>,
}

/// A line as the terminal would show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyLine {
    /// `S_QUANTITY` after the order.
    pub stock: i32,
    /// Both `I_DATA` and `S_DATA` have ORIGINAL.
    pub brand: bool,
    /// `I_PRICE` in cents.
    pub price_cents: i64,
    /// `OL_AMOUNT` in cents: quantity times price, without tax or discount.
    pub amount_cents: i64,
}

/// What warehouse, district and customer add to the order.
#[derive(Clone, Copy, Debug)]
struct Terms {
    order: i32,
    /// All three in 1/10000.
    warehouse_tax: i64,
    district_tax: i64,
    discount: i64,
}

/// A found item.
#[derive(Clone, Copy, Debug, Default)]
struct Item {
    id: i32,
    price_cents: i64,
    original: bool,
}

pub(super) async fn perform<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
    now: Timestamp,
) -> Result<NewOrderReply, Error> {
    ask(session, BEGIN, &[]).await?;
    let terms = terms(session, order).await?;
    let (items, found) = items(session, order).await?;
    let items = &items[..found];

    let mut taken = Taken::new(order.lines().len());
    let (places, count) = locking_order(order);
    for &place in &places[..count] {
        let line = order.lines()[place];
        // An item that the database does not know: the order fails, after all its other lines.
        if let Some(item) = items.iter().find(|item| item.id == line.item) {
            taken.take(session, order, place, item).await?;
        } else if line.item != UNUSED_ITEM {
            return Err(missing("item", &[line.item]));
        }
    }
    let rolled_back = taken.places().count() < order.lines().len();
    enter(session, order, terms.order, now).await?;
    enter_lines(session, order, terms.order, &taken).await?;
    ask(session, if rolled_back { ROLLBACK } else { COMMIT }, &[]).await?;
    let total_cents = total(&terms, taken.lines.iter().map(|line| line.amount_cents).sum());
    Ok(NewOrderReply { rolled_back, order: terms.order, total_cents, lines: taken.lines })
}

async fn terms<X: Exchange>(session: &mut X, order: &NewOrder) -> Result<Terms, Error> {
    let (warehouse, district) = (order.warehouse, order.district);
    let answer = ask(session, NO_WAREHOUSE, &[Param::I32(warehouse)]).await?;
    let warehouse_tax = required(answer, "warehouse", &[warehouse])?.decimal(0)?;

    let key = [Param::I32(warehouse), Param::I32(district)];
    let answer = ask(session, NO_DISTRICT, &key).await?;
    let row = required(answer, "district", &[warehouse, district])?;
    let (number, district_tax) = (row.i32(0)?, row.decimal(1)?);

    let key = [Param::I32(warehouse), Param::I32(district), Param::I32(order.customer)];
    let answer = ask(session, NO_CUSTOMER, &key).await?;
    let row = required(answer, "customer", &[warehouse, district, order.customer])?;
    let discount = row.decimal(0)?;
    super::shown(row, 1..3)?;
    Ok(Terms {
        order: number,
        warehouse_tax: units(warehouse_tax, 4)?,
        district_tax: units(district_tax, 4)?,
        discount: units(discount, 4)?,
    })
}

/// The items of all lines by one statement; an item that is ordered twice comes once.
async fn items<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
) -> Result<([Item; LINES_MAX], usize), Error> {
    let mut ids = [0; LINES_MAX];
    for (id, line) in ids.iter_mut().zip(order.lines()) {
        *id = line.item;
    }
    let count = order.lines().len();
    let answer = ask(session, NO_ITEMS, &[Param::I32s(&ids[..count])]).await?;
    let mut items = [Item::default(); LINES_MAX];
    let found = answer.len();
    if found > count {
        return Err(Error::protocol(format!("{found} items came for {count} lines")));
    }
    for (item, row) in items.iter_mut().zip(answer.rows()) {
        let (id, price) = (row.i32(0)?, row.decimal(1)?);
        row.text(2)?;
        let original = row.text(3)?.contains(ORIGINAL);
        *item = Item { id, price_cents: units(price, 2)?, original };
    }
    Ok((items, found))
}

/// Places of the lines in the order in which stock rows are locked. All New-Orders lock by the
/// same order, so two of them never wait for each other.
fn locking_order(order: &NewOrder) -> ([usize; LINES_MAX], usize) {
    let mut places = std::array::from_fn(|place| place);
    let count = order.lines().len();
    places[..count].sort_unstable_by_key(|&place: &usize| {
        let Line { item, supply, .. } = order.lines()[place];
        (supply, item, place)
    });
    (places, count)
}

/// What was taken from the stock, by place of the line.
struct Taken {
    lines: Vec<ReplyLine>,
    infos: [Option<[u8; DIST_INFO_BYTES]>; LINES_MAX],
}

impl Taken {
    fn new(count: usize) -> Self {
        Self { lines: vec![ReplyLine::default(); count], infos: [None; LINES_MAX] }
    }

    async fn take<X: Exchange>(
        &mut self,
        session: &mut X,
        order: &NewOrder,
        place: usize,
        item: &Item,
    ) -> Result<(), Error> {
        let Line { item: id, supply, quantity } = order.lines()[place];
        let remote = i32::from(supply != order.warehouse);
        let params = [supply, id, quantity, remote].map(Param::I32);
        let answer = ask(session, no_stock(order.district), &params).await?;
        let row = required(answer, "stock", &[supply, id])?;
        let stock = row.i32(0)?;
        let info = row.text(1)?;
        let brand = item.original && row.text(2)?.contains(ORIGINAL);
        self.infos[place] = Some(info.as_bytes().try_into().map_err(|_| {
            Error::protocol(format!(
                "district information of stock [{supply}, {id}] has {} bytes, expected \
                 {DIST_INFO_BYTES}",
                info.len()
            ))
        })?);
        let amount_cents = i64::from(quantity) * item.price_cents;
        self.lines[place] = ReplyLine { stock, brand, price_cents: item.price_cents, amount_cents };
        Ok(())
    }

    /// Places of the lines that have an item, with their district information.
    fn places(&self) -> impl Iterator<Item = (usize, &[u8; DIST_INFO_BYTES])> {
        self.infos.iter().enumerate().filter_map(|(place, info)| Some((place, info.as_ref()?)))
    }
}

async fn enter<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
    number: i32,
    now: Timestamp,
) -> Result<(), Error> {
    let (warehouse, district) = (Param::I32(order.warehouse), Param::I32(order.district));
    let lines = order.lines();
    let count = i32::try_from(lines.len()).unwrap_or(i32::MAX);
    let all_local = i32::from(lines.iter().all(|line| line.supply == order.warehouse));
    let params = [
        Param::I32(number),
        district,
        warehouse,
        Param::I32(order.customer),
        Param::Timestamp(now),
        Param::I32(count),
        Param::I32(all_local),
    ];
    ask(session, NO_ORDER, &params).await?;
    ask(session, NO_NEW_ORDER, &[Param::I32(number), district, warehouse]).await?;
    Ok(())
}

/// All lines by one statement. `OL_NUMBER` is the place at which the user entered the line, not the
/// place in the locking order.
async fn enter_lines<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
    number: i32,
    taken: &Taken,
) -> Result<(), Error> {
    let mut columns = [[0; LINES_MAX]; 4];
    let mut amounts = [Decimal::new(0, 2); LINES_MAX];
    let mut infos = [""; LINES_MAX];
    let mut count = 0;
    for (place, info) in taken.places() {
        let line = order.lines()[place];
        columns[0][count] = i32::try_from(place + 1).unwrap_or(i32::MAX);
        columns[1][count] = line.item;
        columns[2][count] = line.supply;
        columns[3][count] = line.quantity;
        amounts[count] = Decimal::new(taken.lines[place].amount_cents, 2);
        infos[count] = std::str::from_utf8(info)
            .map_err(|_| Error::protocol("district information of stock is no UTF-8"))?;
        count += 1;
    }
    let params = [
        Param::I32(number),
        Param::I32(order.district),
        Param::I32(order.warehouse),
        Param::I32s(&columns[0][..count]),
        Param::I32s(&columns[1][..count]),
        Param::I32s(&columns[2][..count]),
        Param::I32s(&columns[3][..count]),
        Param::Decimals(&amounts[..count]),
        Param::Texts(&infos[..count]),
    ];
    let entered = ask(session, NO_LINES, &params).await?.affected();
    if entered != count as u64 {
        return Err(Error::protocol(format!("{entered} of {count} order lines were entered")));
    }
    Ok(())
}

/// `sum * (1 - C_DISCOUNT) * (1 + W_TAX + D_TAX)` in cents, rounded half up.
fn total(terms: &Terms, sum_cents: i64) -> i64 {
    const ONE: i64 = 10_000;
    let scaled =
        sum_cents * (ONE - terms.discount) * (ONE + terms.warehouse_tax + terms.district_tax);
    (scaled + ONE * ONE / 2) / (ONE * ONE)
}

/// A decimal as a count of `10^-scale`.
fn units(value: Decimal, scale: u8) -> Result<i64, Error> {
    let digits = u32::from(scale.abs_diff(value.scale));
    let factor = 10_i64.pow(digits.min(18));
    let units = if value.scale <= scale {
        value.unscaled.checked_mul(factor)
    } else {
        (value.unscaled % factor == 0).then_some(value.unscaled / factor)
    };
    units
        .ok_or_else(|| Error::protocol(format!("{value:?} has not {scale} digits after the point")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_exact_to_the_cent() {
        let terms = Terms { order: 1, warehouse_tax: 2000, district_tax: 1000, discount: 5000 };
        // 100.00 * 0.5 * 1.3
        assert_eq!(total(&terms, 10_000), 6_500);
        let terms = Terms { order: 1, warehouse_tax: 1, district_tax: 0, discount: 0 };
        // 50.00 * 1.0001 = 50.005
        assert_eq!(total(&terms, 5_000), 5_001);
    }

    #[test]
    fn units_are_exact_or_refused() {
        assert_eq!(units(Decimal::new(5, 1), 4).ok(), Some(5000));
        assert_eq!(units(Decimal::new(123_400, 4), 2).ok(), Some(1_234));
        assert!(units(Decimal::new(123_401, 4), 2).is_err());
    }
}
