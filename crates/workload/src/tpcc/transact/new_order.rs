//! New-Order (clause 2.4.2): what is asked and what the answers mean. Which of it travels together
//! is the face's.

use wire::{Answer, Decimal, Error, Exchange, Kind, Param, Timestamp};

use crate::tpcc::answers::{missing, required, shown};
use crate::tpcc::{
    cardinalities::UNUSED_ITEM,
    input::{LINES_MAX, Line, NewOrder},
    statements::{
        NO_CUSTOMER, NO_DISTRICT, NO_ITEMS, NO_LINES, NO_NEW_ORDER, NO_ORDER, NO_WAREHOUSE,
        no_stock,
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
    lines: [ReplyLine; LINES_MAX],
    count: usize,
}

impl NewOrderReply {
    /// The lines in the order in which they were entered; those without an item are empty.
    #[must_use]
    pub fn lines(&self) -> &[ReplyLine] {
        &self.lines[..self.count]
    }
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

/// A found item.
#[derive(Clone, Copy, Debug, Default)]
struct Item {
    id: i32,
    price_cents: i64,
    original: bool,
}

/// An order being entered, as far as the answers have told.
#[derive(Debug)]
pub(super) struct Entry<'o> {
    order: &'o NewOrder,
    /// `O_ID`, once the district has given it.
    pub(super) number: i32,
    /// The three in 1/10000.
    warehouse_tax: i64,
    district_tax: i64,
    discount: i64,
    items: [Item; LINES_MAX],
    found: usize,
    /// By place of the line: whether its stock was taken, and what is known then.
    taken: [bool; LINES_MAX],
    lines: [ReplyLine; LINES_MAX],
    infos: [[u8; DIST_INFO_BYTES]; LINES_MAX],
}

impl<'o> Entry<'o> {
    pub(super) fn new(order: &'o NewOrder) -> Self {
        Self {
            order,
            number: 0,
            warehouse_tax: 0,
            district_tax: 0,
            discount: 0,
            items: [Item::default(); LINES_MAX],
            found: 0,
            lines: [ReplyLine::default(); LINES_MAX],
            taken: [false; LINES_MAX],
            infos: [[0; DIST_INFO_BYTES]; LINES_MAX],
        }
    }

    pub(super) fn ask_warehouse<X: Exchange>(&self, session: &mut X) {
        session.queue(NO_WAREHOUSE, &[Param::I32(self.order.warehouse)]);
    }

    pub(super) fn read_warehouse(&mut self, answer: Answer<'_>) -> Result<(), Error> {
        let row = required(answer, "warehouse", &[self.order.warehouse])?;
        self.warehouse_tax = units(row.decimal(0)?, 4)?;
        Ok(())
    }

    pub(super) fn ask_district<X: Exchange>(&self, session: &mut X) {
        session.queue(NO_DISTRICT, &[self.order.warehouse, self.order.district].map(Param::I32));
    }

    pub(super) fn read_district(&mut self, answer: Answer<'_>) -> Result<(), Error> {
        let row = required(answer, "district", &[self.order.warehouse, self.order.district])?;
        self.number = row.i32(0)?;
        self.district_tax = units(row.decimal(1)?, 4)?;
        Ok(())
    }

    pub(super) fn ask_customer<X: Exchange>(&self, session: &mut X) {
        let NewOrder { warehouse, district, customer, .. } = *self.order;
        session.queue(NO_CUSTOMER, &[warehouse, district, customer].map(Param::I32));
    }

    pub(super) fn read_customer(&mut self, answer: Answer<'_>) -> Result<(), Error> {
        let NewOrder { warehouse, district, customer, .. } = *self.order;
        let row = required(answer, "customer", &[warehouse, district, customer])?;
        self.discount = units(row.decimal(0)?, 4)?;
        shown(row, 1..3)
    }

    pub(super) fn ask_items<X: Exchange>(&self, session: &mut X) {
        let mut ids = [0; LINES_MAX];
        for (id, line) in ids.iter_mut().zip(self.order.lines()) {
            *id = line.item;
        }
        session.queue(NO_ITEMS, &[Param::I32s(&ids[..self.order.lines().len()])]);
    }

    /// The items of all lines; one that is ordered twice comes once.
    pub(super) fn read_items(&mut self, answer: Answer<'_>) -> Result<(), Error> {
        let (found, count) = (answer.len(), self.order.lines().len());
        if found > count {
            return Err(Error::protocol(format!("{found} items came for {count} lines")));
        }
        for (item, row) in self.items.iter_mut().zip(answer.rows()) {
            let mut fields = row.fields();
            let (id, price) = (fields.i32()?, fields.decimal()?);
            fields.text()?;
            let original = fields.text()?.contains(ORIGINAL);
            *item = Item { id, price_cents: units(price, 2)?, original };
        }
        self.found = found;
        Ok(())
    }

    /// The item of a line; `None`: the database has none of this number, so the order fails, after
    /// all its other lines.
    fn item(&self, place: usize) -> Result<Option<Item>, Error> {
        let wanted = self.order.lines()[place].item;
        let found = self.items[..self.found].iter().find(|item| item.id == wanted);
        match found {
            None if wanted != UNUSED_ITEM => Err(missing("item", &[wanted])),
            found => Ok(found.copied()),
        }
    }

    /// Whether the line has an item, whose stock is then to be taken.
    pub(super) fn has_item(&self, place: usize) -> Result<bool, Error> {
        Ok(self.item(place)?.is_some())
    }

    pub(super) fn ask_stock<X: Exchange>(&self, session: &mut X, place: usize) {
        let Line { item, supply, quantity } = self.order.lines()[place];
        let remote = i32::from(supply != self.order.warehouse);
        session.queue(
            no_stock(self.order.district),
            &[supply, item, quantity, remote].map(Param::I32),
        );
    }

    /// What was taken for a line. Without an item the answer is not looked at.
    pub(super) fn read_stock(&mut self, place: usize, answer: Answer<'_>) -> Result<(), Error> {
        let Some(item) = self.item(place)? else { return Ok(()) };
        let Line { item: id, supply, quantity } = self.order.lines()[place];
        let mut fields = required(answer, "stock", &[supply, id])?.fields();
        let stock = fields.i32()?;
        let info = fields.text()?;
        let brand = item.original && fields.text()?.contains(ORIGINAL);
        self.infos[place] = info.as_bytes().try_into().map_err(|_| {
            Error::protocol(format!(
                "district information of stock [{supply}, {id}] has {} bytes, expected \
                 {DIST_INFO_BYTES}",
                info.len()
            ))
        })?;
        let amount_cents = i64::from(quantity) * item.price_cents;
        let price_cents = item.price_cents;
        self.take(place, ReplyLine { stock, brand, price_cents, amount_cents });
        Ok(())
    }

    fn take(&mut self, place: usize, line: ReplyLine) {
        self.taken[place] = true;
        self.lines[place] = line;
    }

    /// Places of the lines whose stock was taken.
    fn taken(&self) -> impl Iterator<Item = usize> {
        self.taken.iter().enumerate().filter_map(|(place, taken)| taken.then_some(place))
    }

    /// Whether an item is missing, so that nothing may be committed.
    pub(super) fn is_to_roll_back(&self) -> bool {
        self.taken().count() < self.order.lines().len()
    }

    pub(super) fn ask_order<X: Exchange>(&self, session: &mut X, now: Timestamp) {
        let lines = self.order.lines();
        let params = [
            Param::I32(self.number),
            Param::I32(self.order.district),
            Param::I32(self.order.warehouse),
            Param::I32(self.order.customer),
            Param::Timestamp(now),
            Param::I32(i32::try_from(lines.len()).unwrap_or(i32::MAX)),
            Param::I32(all_local(self.order)),
        ];
        session.queue(NO_ORDER, &params);
    }

    pub(super) fn ask_new_order<X: Exchange>(&self, session: &mut X) {
        let key = [self.number, self.order.district, self.order.warehouse];
        session.queue(NO_NEW_ORDER, &key.map(Param::I32));
    }

    /// All lines by one statement. `OL_NUMBER` is the place at which the user entered the line, not
    /// the place in the locking order.
    pub(super) fn ask_lines<X: Exchange>(&self, session: &mut X) -> Result<(), Error> {
        let mut columns = [[0; LINES_MAX]; 4];
        let mut amounts = [Decimal::new(0, 2); LINES_MAX];
        let mut infos = [""; LINES_MAX];
        let mut count = 0;
        for place in self.taken() {
            let line = self.order.lines()[place];
            columns[0][count] = number_of(place);
            columns[1][count] = line.item;
            columns[2][count] = line.supply;
            columns[3][count] = line.quantity;
            amounts[count] = Decimal::new(self.lines[place].amount_cents, 2);
            infos[count] = std::str::from_utf8(&self.infos[place])
                .map_err(|_| Error::protocol("district information of stock is no UTF-8"))?;
            count += 1;
        }
        let params = [
            Param::I32(self.number),
            Param::I32(self.order.district),
            Param::I32(self.order.warehouse),
            Param::I32s(&columns[0][..count]),
            Param::I32s(&columns[1][..count]),
            Param::I32s(&columns[2][..count]),
            Param::I32s(&columns[3][..count]),
            Param::Decimals(&amounts[..count]),
            Param::Texts(&infos[..count]),
        ];
        session.queue(NO_LINES, &params);
        Ok(())
    }

    pub(super) fn read_lines(&self, answer: Answer<'_>) -> Result<(), Error> {
        let count = self.taken().count();
        match answer.affected() {
            entered if entered == count as u64 => Ok(()),
            entered => Err(Error::protocol(format!("{entered} of {count} lines were entered"))),
        }
    }

    pub(super) fn reply(&self) -> NewOrderReply {
        NewOrderReply {
            rolled_back: self.is_to_roll_back(),
            order: self.number,
            total_cents: self.total_cents(),
            lines: self.lines,
            count: self.order.lines().len(),
        }
    }

    /// `sum * (1 - C_DISCOUNT) * (1 + W_TAX + D_TAX)` in cents, rounded half up.
    fn total_cents(&self) -> i64 {
        const ONE: i64 = 10_000;
        let sum: i64 = self.lines.iter().map(|line| line.amount_cents).sum();
        let tax = ONE + self.warehouse_tax + self.district_tax;
        let scaled = sum * (ONE - self.discount) * tax;
        (scaled + ONE * ONE / 2) / (ONE * ONE)
    }
    /// Everything at once, as the procedure returns it.
    pub(super) fn read_all(&mut self, answer: Answer<'_>) -> Result<(), Error> {
        let mut fields = required(answer, "pgdyno_new_order", &[])?.fields();
        self.number = fields.i32()?;
        self.warehouse_tax = units(fields.decimal()?, 4)?;
        self.district_tax = units(fields.decimal()?, 4)?;
        self.discount = units(fields.decimal()?, 4)?;
        crate::tpcc::answers::texts(&mut fields, 2)?;
        let (count, mut numbers) = fields.array(Kind::I32)?;
        let (_, mut names) = fields.array(Kind::Text)?;
        let (_, mut prices) = fields.array(Kind::Decimal)?;
        let (_, mut stocks) = fields.array(Kind::I32)?;
        let (_, mut brands) = fields.array(Kind::I32)?;
        for _ in 0..count {
            let number = numbers.i32()?;
            names.text()?;
            let place = usize::try_from(number - 1).unwrap_or(usize::MAX);
            let line = self.order.lines().get(place).ok_or_else(|| {
                Error::protocol(format!("line {number} of an order without it was entered"))
            })?;
            let (price_cents, quantity) = (units(prices.decimal()?, 2)?, line.quantity);
            let amount_cents = i64::from(quantity) * price_cents;
            let (stock, brand) = (stocks.i32()?, brands.i32()? != 0);
            self.take(place, ReplyLine { stock, brand, price_cents, amount_cents });
        }
        let lacking = |(line, taken): (&Line, &bool)| !taken && line.item != UNUSED_ITEM;
        match self.order.lines().iter().zip(&self.taken).find(|pair| lacking(*pair)) {
            Some((line, _)) => Err(missing("item or stock", &[line.supply, line.item])),
            None => Ok(()),
        }
    }
}

/// `O_ALL_LOCAL`.
pub(super) fn all_local(order: &NewOrder) -> i32 {
    i32::from(order.lines().iter().all(|line| line.supply == order.warehouse))
}

/// `OL_NUMBER` of a line.
pub(super) fn number_of(place: usize) -> i32 {
    i32::try_from(place + 1).unwrap_or(i32::MAX)
}

/// Places of the lines in the order in which stock rows are locked. All New-Orders lock by the
/// same order, so two of them never wait for each other.
pub(in crate::tpcc) fn locking_order(order: &NewOrder) -> ([usize; LINES_MAX], usize) {
    let mut places = std::array::from_fn(|place| place);
    let count = order.lines().len();
    places[..count].sort_unstable_by_key(|&place: &usize| {
        let Line { item, supply, .. } = order.lines()[place];
        (supply, item, place)
    });
    (places, count)
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

    fn total(taxes: [i64; 2], discount: i64, amount_cents: i64) -> i64 {
        let order = NewOrder::new(1, 1, 1, &[Line::default()]);
        let mut entry = Entry::new(&order);
        [entry.warehouse_tax, entry.district_tax] = taxes;
        entry.discount = discount;
        entry.lines[0].amount_cents = amount_cents;
        entry.total_cents()
    }

    #[test]
    fn totals_are_exact_to_the_cent() {
        // 100.00 * 0.5 * 1.3
        assert_eq!(total([2000, 1000], 5000, 10_000), 6_500);
        // 50.00 * 1.0001 = 50.005
        assert_eq!(total([1, 0], 0, 5_000), 5_001);
    }

    #[test]
    fn units_are_exact_or_refused() {
        assert_eq!(units(Decimal::new(5, 1), 4).ok(), Some(5000));
        assert_eq!(units(Decimal::new(123_400, 4), 2).ok(), Some(1_234));
        assert!(units(Decimal::new(123_401, 4), 2).is_err());
    }
}
