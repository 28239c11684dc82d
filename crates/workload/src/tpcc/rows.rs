//! Rows of the initial database (clause 4.3.3.1) in binary COPY format. Batch `i` of a table
//! depends on the seed, the number of warehouses and `i` alone, so any worker can make it.
//!
//! Where the text says "10 % of the rows, selected at random", exactly a tenth of each batch is
//! selected, each subset with the same probability. Where it says "current date and time", a row
//! carries the load's time plus one microsecond for each row of its table before it: distinct,
//! ascending, and the same for the same seed and load time.

mod catalogue;
mod people;
mod sales;

use wire::Timestamp;

use super::{
    cardinalities::{CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, ORDERS},
    names::LastNames,
    spec::Schema,
};
use crate::{copy::Rows, dataset::Units, draw::Draw, nurand::NuRand};

/// A table to fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// `stock`.
    Stock,
    /// `order_line`.
    OrderLine,
    /// `customer`.
    Customer,
    /// `history`.
    History,
    /// `orders`.
    Orders,
    /// `item`.
    Item,
    /// `new_order`.
    NewOrder,
    /// `district`.
    District,
    /// `warehouse`.
    Warehouse,
}

impl Target {
    /// All tables, those with the most bytes first.
    pub const ALL: [Self; 9] = [
        Self::Stock,
        Self::OrderLine,
        Self::Customer,
        Self::History,
        Self::Orders,
        Self::Item,
        Self::NewOrder,
        Self::District,
        Self::Warehouse,
    ];

    /// Name of the table.
    #[must_use]
    pub fn table(self) -> &'static str {
        match self {
            Self::Stock => "stock",
            Self::OrderLine => "order_line",
            Self::Customer => "customer",
            Self::History => "history",
            Self::Orders => "orders",
            Self::Item => "item",
            Self::NewOrder => "new_order",
            Self::District => "district",
            Self::Warehouse => "warehouse",
        }
    }

    /// Batches of one warehouse; for `item`, which has none, of the whole table.
    ///
    /// A batch is some hundred kB, so that it stays in the cache between making and sending.
    #[must_use]
    pub fn batches_per_warehouse(self) -> u32 {
        match self {
            Self::Stock | Self::OrderLine => 100,
            Self::Customer => 60,
            Self::Item => 20,
            Self::History | Self::Orders => 10,
            Self::NewOrder | Self::District | Self::Warehouse => 1,
        }
    }

    /// Whether the table has rows for each warehouse.
    #[must_use]
    pub fn grows(self) -> bool {
        self != Self::Item
    }
}

/// Streams of draws; a number never changes its meaning.
mod stream {
    pub(super) const WAREHOUSE: u64 = 1;
    pub(super) const DISTRICT: u64 = 2;
    pub(super) const CUSTOMER: u64 = 3;
    pub(super) const HISTORY: u64 = 4;
    pub(super) const ORDER_LINE: u64 = 6;
    pub(super) const ITEM: u64 = 7;
    pub(super) const STOCK: u64 = 8;
    pub(super) const LINE_COUNTS: u64 = 9;
    pub(super) const CARRIERS: u64 = 10;
    pub(super) const CUSTOMERS: u64 = 11;
}

/// Orders whose lines are one batch of `order_line`.
const BLOCK_ORDERS: i32 = 300;

/// Makes rows.
#[derive(Clone, Debug)]
pub struct RowSource {
    seed: u64,
    schema: Schema,
    warehouses: i32,
    /// Warehouses that come before these, and are elsewhere.
    before: i32,
    last_name: NuRand,
    loaded_at: Timestamp,
    names: LastNames,
}

impl RowSource {
    /// Rows of so many warehouses; `c_last` is the load's constant for last names.
    #[must_use]
    pub fn new(seed: u64, warehouses: i32, c_last: i32, loaded_at: Timestamp) -> Self {
        let last_name = NuRand { a: 255, low: 0, high: 999, c: c_last };
        let schema = Schema::Spec;
        let names = LastNames::default();
        Self { seed, schema, warehouses, before: 0, last_name, loaded_at, names }
    }

    /// The same rows with what another schema has in addition.
    #[must_use]
    pub fn of_schema(self, schema: Schema) -> Self {
        Self { schema, ..self }
    }

    /// Rows of as many warehouses, numbered after others that are elsewhere.
    #[must_use]
    pub fn after(self, before: i32) -> Self {
        Self { before, ..self }
    }

    /// Whose columns the rows have: those of [`Schema::copy_columns`].
    #[must_use]
    pub fn schema(&self) -> Schema {
        self.schema
    }

    /// Scale.
    #[must_use]
    pub fn warehouses(&self) -> i32 {
        self.warehouses
    }

    /// The load's constant for last names.
    #[must_use]
    pub fn c_last(&self) -> i32 {
        self.last_name.c
    }

    /// How many batches a table has.
    #[must_use]
    pub fn batches(&self, target: Target) -> u32 {
        let warehouses = if target.grows() { self.warehouses } else { 1 };
        target.batches_per_warehouse() * warehouses.unsigned_abs()
    }

    /// Exact number of rows of a table after the load.
    #[must_use]
    pub fn rows(&self, target: Target) -> u64 {
        let per_warehouse = match target {
            Target::OrderLine => return self.order_lines(),
            Target::Item => return wide(ITEMS),
            Target::Stock => wide(ITEMS),
            Target::Customer | Target::History => wide(CUSTOMERS * DISTRICTS),
            Target::Orders => wide(ORDERS * DISTRICTS),
            Target::NewOrder => wide((ORDERS - FIRST_NEW_ORDER + 1) * DISTRICTS),
            Target::District => wide(DISTRICTS),
            Target::Warehouse => 1,
        };
        per_warehouse * wide(self.warehouses)
    }

    fn order_lines(&self) -> u64 {
        let own = self.before + 1..=self.before + self.warehouses;
        own.map(|warehouse| self.lines_of_warehouse(warehouse)).sum()
    }

    /// Replaces `out` by the rows of a batch, without header and trailer; returns how many.
    ///
    /// # Panics
    ///
    /// If the table has no such batch.
    pub fn batch(&self, target: Target, number: u32, out: &mut Vec<u8>) -> u32 {
        assert!(number < self.batches(target), "{target:?} has no batch {number}");
        out.clear();
        let part = Part::of(target, number, self.before);
        let mut rows = Rows::new(out);
        match target {
            Target::Stock => self.stock(part, &mut rows),
            Target::Item => self.items(part, &mut rows),
            Target::Customer => self.customers(part, &mut rows),
            Target::History => self.history(part, &mut rows),
            Target::Orders => self.orders(part, &mut rows),
            Target::OrderLine => self.lines(part, &mut rows),
            Target::NewOrder => Self::new_orders(part, &mut rows),
            Target::District => self.districts(part, &mut rows),
            Target::Warehouse => self.warehouse(part, &mut rows),
        }
    }

    /// As [`RowSource::batch`], of the warehouses `units` (from 0) only, with their orders as they
    /// arrived: by number, of all districts. Other tables have one warehouse after the other.
    ///
    /// # Panics
    ///
    /// If the table has no such batch of these warehouses.
    pub fn arrived(
        &self,
        target: Target,
        units: &Units,
        number: u32,
        out: &mut Vec<u8>,
    ) -> Option<u32> {
        let first = match target {
            Target::Orders | Target::OrderLine => 1,
            Target::NewOrder => FIRST_NEW_ORDER,
            _ => return None,
        };
        let per_batch =
            wide((ORDERS - first + 1) * DISTRICTS) / u64::from(target.batches_per_warehouse());
        let places = u64::from(number) * per_batch..u64::from(number + 1) * per_batch;
        out.clear();
        let mut rows = Rows::new(out);
        Some(match target {
            Target::Orders => self.arrived_orders(units, places, &mut rows),
            Target::OrderLine => self.arrived_lines(units, places, &mut rows),
            _ => self.arrived_new_orders(units, places, &mut rows),
        })
    }

    /// The source of a batch's values.
    fn draw(&self, stream: u64, part: Part) -> Draw {
        Draw::new(self.seed, stream, wide(part.warehouse), u64::from(part.index))
    }

    /// The load's time for the `number`-th row of a table.
    fn time_of_row(&self, number: i64) -> Timestamp {
        Timestamp(self.loaded_at.0 + number)
    }
}

/// A batch: of which warehouse (1 for `item`), and which of its batches, from 0.
#[derive(Clone, Copy, Debug)]
struct Part {
    warehouse: i32,
    index: u32,
    of: u32,
}

impl Part {
    fn of(target: Target, number: u32, before: i32) -> Self {
        let of = target.batches_per_warehouse();
        let before = if target.grows() { before } else { 0 };
        let warehouse = i32::try_from(number / of).map_or(i32::MAX, |own| before + own + 1);
        Self { warehouse, index: number % of, of }
    }

    /// This batch's share of `count` things, as numbers from 1.
    fn slice(self, count: i32) -> std::ops::RangeInclusive<i32> {
        let size = count / narrow(self.of);
        let first = size * narrow(self.index) + 1;
        first..=first + size - 1
    }

    /// District of this batch and its place within the district, where districts have the same
    /// number of batches.
    fn district(self) -> (i32, i32) {
        let per_district = self.of / DISTRICTS.unsigned_abs();
        (narrow(self.index / per_district) + 1, narrow(self.index % per_district))
    }
}

/// Selects exactly `chosen` of `among` rows one by one, every subset with the same probability
/// (Fan, Muller and Rezucha, 1962).
#[derive(Debug)]
struct Selection {
    chosen: i32,
    among: i32,
}

impl Selection {
    fn tenth(among: i32) -> Self {
        Self { chosen: among / 10, among }
    }

    fn next(&mut self, draw: &mut Draw) -> bool {
        let selected = draw.int(1, self.among) <= self.chosen;
        self.among -= 1;
        self.chosen -= i32::from(selected);
        selected
    }
}

/// An identifier or count, never negative.
fn wide(value: i32) -> u64 {
    u64::from(value.unsigned_abs())
}

/// A number of batches, always small.
fn narrow(value: u32) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// A whole amount of money, to two places.
fn money(whole: i64) -> wire::Decimal {
    wire::Decimal::new(whole * 100, 2)
}

/// An a-string of `low..=high` characters as a field.
fn string(rows: &mut Rows<'_>, draw: &mut Draw, low: i32, high: i32) {
    let length = length(draw, low, high);
    rows.sized(|out| draw.alphanumeric(out, length));
}

fn length(draw: &mut Draw, low: i32, high: i32) -> usize {
    usize::try_from(draw.int(low, high)).unwrap_or(0)
}

/// `I_DATA` and `S_DATA`: 26 to 50 characters, a tenth with ORIGINAL at a random place.
fn data(rows: &mut Rows<'_>, draw: &mut Draw, original: bool) {
    const ORIGINAL: &[u8] = b"ORIGINAL";
    let length = length(draw, 26, 50);
    let place = if original { draw.below((length - ORIGINAL.len() + 1) as u64) } else { 0 };
    rows.sized(|out| {
        let start = out.len();
        draw.alphanumeric(out, length);
        if original {
            let at = start + usize::try_from(place).unwrap_or(0);
            out[at..at + ORIGINAL.len()].copy_from_slice(ORIGINAL);
        }
    });
}

/// Two streets, city, state and zip (clauses 4.3.2.7 and 4.3.3.1).
fn address(rows: &mut Rows<'_>, draw: &mut Draw) {
    string(rows, draw, 10, 20);
    string(rows, draw, 10, 20);
    string(rows, draw, 10, 20);
    rows.sized(|out| {
        for _ in 0..2 {
            out.push(b'A' + u8::try_from(draw.below(26)).unwrap_or(0));
        }
    });
    rows.sized(|out| {
        draw.digits(out, 4);
        out.extend_from_slice(b"11111");
    });
}
