//! A session with no server behind it: keeps a log of what was asked, and answers with plausible
//! rows of a small imagined database.

use wire::{Answers, Decimal, Error, Exchange, Param, StatementId, Timestamp};
use workload::{Workload, tpcc::Tpcc};

use super::called;

/// A parameter as it was sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sent {
    Int(i32),
    Ints(Vec<i32>),
    Cents(i64),
    AllCents(Vec<i64>),
    Text(String),
    Texts(Vec<String>),
    Time(Timestamp),
    Null,
}

/// One execution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) params: Vec<Sent>,
}

impl Entry {
    pub(crate) fn int(&self, param: usize) -> i32 {
        match &self.params[param] {
            Sent::Int(value) => *value,
            other => panic!("{} sends {other:?}", self.name),
        }
    }

    pub(crate) fn ints(&self, param: usize) -> &[i32] {
        match &self.params[param] {
            Sent::Ints(values) => values,
            other => panic!("{} sends {other:?}", self.name),
        }
    }
}

/// The session.
pub(crate) struct Books {
    names: Vec<String>,
    queue: Vec<Entry>,
    answers: Answers,
    /// Everything that was asked, in order.
    pub(crate) log: Vec<Entry>,
    /// How many statements each round trip carried.
    pub(crate) trips: Vec<usize>,
    /// Items that exist.
    pub(crate) items: i32,
    /// Customers that share a last name; their numbers are 101, 102, …
    pub(crate) namesakes: i32,
    /// Districts without an undelivered order.
    pub(crate) delivered: Vec<i32>,
    /// Tables that are empty.
    pub(crate) lost: Option<&'static str>,
}

/// Tax of warehouse and of district, and the discount, in 1/10000.
pub(crate) const TAX: i64 = 1000;
pub(crate) const DISCOUNT: i64 = 2500;

/// Price of an item in cents.
pub(crate) fn price(item: i32) -> i64 {
    100 + i64::from(item % 9_000)
}

pub(crate) enum Field {
    Int(i32),
    Long(i64),
    Decimal(i64, u8),
    Text(String),
    Ints(Vec<i32>),
    AllCents(Vec<i64>),
    Texts(Vec<String>),
    /// So many timestamps, all NULL.
    NoDates(i32),
    Null,
}

impl Books {
    pub(crate) fn of(tpcc: &Tpcc) -> Self {
        Self {
            names: tpcc.statements().iter().map(|s| s.name.clone()).collect(),
            queue: Vec::new(),
            answers: Answers::default(),
            log: Vec::new(),
            trips: Vec::new(),
            items: 100_000,
            namesakes: 3,
            delivered: Vec::new(),
            lost: None,
        }
    }

    /// Names of the statements that were executed, in order.
    pub(crate) fn statements(&self) -> Vec<&str> {
        self.log.iter().map(|entry| entry.name.as_str()).collect()
    }

    /// The entries of a statement.
    pub(crate) fn of_statement<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Entry> {
        self.log.iter().filter(move |entry| entry.name.starts_with(prefix))
    }

    fn rows(&self, entry: &Entry) -> Vec<Vec<Field>> {
        if self.lost.is_some_and(|lost| entry.name.starts_with(lost)) {
            return Vec::new();
        }
        match entry.name.as_str() {
            "no_warehouse" => vec![vec![Field::Decimal(TAX, 4)]],
            "no_district" => vec![vec![Field::Int(3001), Field::Decimal(TAX, 4)]],
            "no_customer" => {
                vec![vec![Field::Decimal(DISCOUNT, 4), text("BARBARBAR"), text("GC")]]
            }
            "no_items" => self.item_rows(entry.ints(0)),
            name if name.starts_with("no_stock_") => {
                let original = if entry.int(1) % 3 == 0 { "xxORIGINALxx" } else { "plain" };
                let info = format!("{:024}", entry.int(1));
                vec![vec![Field::Int(42), text(&info), text(original)]]
            }
            "pay_warehouse" => vec![place("Ware")],
            "pay_district" => vec![place("Dist")],
            "pay_names" => (1..=self.namesakes).map(|n| vec![Field::Int(100 + n)]).collect(),
            "pay_customer" => vec![customer()],
            "os_customer" => vec![status(entry.int(2))],
            "os_names" => (1..=self.namesakes).map(|n| status(100 + n)).collect(),
            "os_order" => vec![vec![Field::Int(7), Field::Long(1), Field::Null]],
            "os_lines" => vec![vec![
                Field::Int(1),
                Field::Int(1),
                Field::Int(5),
                Field::Decimal(0, 2),
                Field::Null,
            ]],
            "del_new_order" if self.delivered.contains(&entry.int(1)) => Vec::new(),
            "del_new_order" => vec![vec![Field::Int(2101)]],
            "del_order" => vec![vec![Field::Int(77)]],
            "del_lines" => vec![vec![Field::Decimal(12_345, 2)]],
            "sl_district" => vec![vec![Field::Int(3001)]],
            "sl_count" => vec![vec![Field::Long(11)]],
            _ => called::rows(self, entry),
        }
    }

    fn item_rows(&self, ids: &[i32]) -> Vec<Vec<Field>> {
        let mut known: Vec<i32> = ids.iter().copied().filter(|id| *id <= self.items).collect();
        // As a server does: each row once, in an order of its own.
        known.sort_unstable_by(|a, b| b.cmp(a));
        known.dedup();
        let row = |id: i32| {
            let data = if id % 2 == 0 { "ORIGINAL" } else { "plain" };
            vec![Field::Int(id), Field::Decimal(price(id), 2), text("name"), text(data)]
        };
        known.into_iter().map(row).collect()
    }

    fn affected(&self, entry: &Entry, rows: usize) -> u64 {
        match entry.name.as_str() {
            name if self.lost == Some(name) => 0,
            "no_lines" => entry.ints(3).len() as u64,
            "del_customer" => 1,
            _ => rows as u64,
        }
    }
}

pub(crate) fn text(value: &str) -> Field {
    Field::Text(value.to_owned())
}

pub(crate) fn place(name: &str) -> Vec<Field> {
    vec![text(name), text("s1"), text("s2"), text("city"), text("ST"), text("123411111")]
}

pub(crate) fn status(id: i32) -> Vec<Field> {
    vec![Field::Int(id), Field::Decimal(-1000, 2), text("first"), text("OE"), text("last")]
}

pub(crate) fn customer() -> Vec<Field> {
    let mut row: Vec<Field> = (0..9).map(|_| text("x")).collect();
    row.extend([Field::Long(0), text("BC"), Field::Decimal(5_000_000, 2)]);
    row.extend([Field::Decimal(1, 4), Field::Decimal(-1000, 2), text("data")]);
    row
}

fn sent(param: &Param<'_>) -> Sent {
    match param {
        Param::I32(value) => Sent::Int(*value),
        Param::I32s(values) => Sent::Ints(values.to_vec()),
        Param::Decimal(value) => Sent::Cents(cents(*value)),
        Param::Decimals(values) => Sent::AllCents(values.iter().copied().map(cents).collect()),
        Param::Text(value) => Sent::Text((*value).to_owned()),
        Param::Texts(values) => Sent::Texts(values.iter().map(|&text| text.to_owned()).collect()),
        Param::Timestamp(value) => Sent::Time(*value),
        Param::Null => Sent::Null,
        Param::I64(_) | Param::F64(_) | Param::Inferred(_) | Param::Timestamps(_) => {
            panic!("TPC-C sends no {param:?}")
        }
    }
}

fn cents(value: Decimal) -> i64 {
    assert_eq!(value.scale, 2, "amounts have two places");
    value.unscaled
}

fn encode(row: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in row {
        match field {
            Field::Int(value) => Param::I32(*value).encode(&mut out),
            Field::Long(value) => Param::I64(*value).encode(&mut out),
            Field::Text(value) => Param::Text(value).encode(&mut out),
            Field::Decimal(unscaled, scale) => {
                Param::Decimal(Decimal::new(*unscaled, *scale)).encode(&mut out);
            }
            Field::Ints(values) => Param::I32s(values).encode(&mut out),
            Field::AllCents(values) => {
                let values: Vec<Decimal> = values.iter().map(|&v| Decimal::new(v, 2)).collect();
                Param::Decimals(&values).encode(&mut out);
            }
            Field::Texts(values) => {
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                Param::Texts(&values).encode(&mut out);
            }
            Field::NoDates(count) => {
                let words = [20 + 4 * count, 1, 1, 1114, *count, 1];
                out.extend(words.into_iter().flat_map(i32::to_be_bytes));
                out.extend((0..*count).flat_map(|_| (-1_i32).to_be_bytes()));
            }
            Field::Null => Param::Null.encode(&mut out),
        }
    }
    out
}

impl Exchange for Books {
    fn queue(&mut self, statement: StatementId, params: &[Param<'_>]) {
        let name = self.names[usize::from(statement.0)].clone();
        self.queue.push(Entry { name, params: params.iter().map(sent).collect() });
    }

    async fn exchange(&mut self) -> Result<&Answers, Error> {
        self.trips.push(self.queue.len());
        self.answers.clear();
        for entry in std::mem::take(&mut self.queue) {
            let rows = self.rows(&entry);
            for row in &rows {
                self.answers.push_row(&encode(row));
            }
            self.answers.finish(self.affected(&entry, rows.len()));
            self.log.push(entry);
        }
        Ok(&self.answers)
    }
}
