//! A session with no server behind it: keeps a log of what was asked, exchange by exchange.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use wire::{Answers, Decimal, Error, Exchange, Param, StatementId};
use workload::tpcc::bmsql::statements;

/// Items that exist.
const ITEMS: i32 = 100_000;

/// One execution: the statement's name, and what was bound, as text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) name: String,
    pub(crate) params: Vec<String>,
}

/// The session.
pub(crate) struct Session {
    names: Vec<String>,
    queue: Vec<Asked>,
    answers: Answers,
    /// Every exchange, with its executions.
    pub(crate) log: Vec<Vec<Asked>>,
    /// `S_QUANTITY` of every item.
    pub(crate) stock: i32,
    /// `C_CREDIT` of every customer.
    pub(crate) credit: &'static str,
    /// Districts without an undelivered order.
    pub(crate) delivered: Vec<i32>,
    /// How many times another Delivery takes the order first.
    pub(crate) snatched: u32,
}

impl Session {
    pub(crate) fn new() -> Self {
        Self {
            names: statements::all().into_iter().map(|statement| statement.name).collect(),
            queue: Vec::new(),
            answers: Answers::default(),
            log: Vec::new(),
            stock: 50,
            credit: "GC",
            delivered: Vec::new(),
            snatched: 0,
        }
    }

    /// Names of the statements, one string for each exchange.
    pub(crate) fn exchanges(&self) -> Vec<String> {
        let names = |asked: &Vec<Asked>| {
            asked.iter().map(|one| one.name.clone()).collect::<Vec<String>>().join(" ")
        };
        self.log.iter().map(names).collect()
    }

    /// All executions of a statement.
    pub(crate) fn of(&self, name: &str) -> Vec<&Asked> {
        self.log.iter().flatten().filter(|asked| asked.name == name).collect()
    }

    fn rows(&self, asked: &Asked) -> Vec<Vec<Field>> {
        use Field::{Cents, Int, Long, Null, Text};
        let int = |at: usize| asked.params[at].parse::<i32>().expect("a number");
        let place = || vec![Text("name"); 6];
        match asked.name.as_str() {
            "no_district" => vec![vec![Cents(10), Int(3001)]],
            "no_customer" => vec![vec![Cents(5), Text("BAR"), Text("GC"), Cents(10)]],
            "no_item" if int(0) > ITEMS => Vec::new(),
            "no_item" => vec![vec![Cents(i64::from(int(0))), Text("item"), Text("data")]],
            "no_stock" => {
                let infos = (0..10).map(|_| Text("info"));
                vec![[Int(self.stock), Text("data")].into_iter().chain(infos).collect()]
            }
            "pay_district_read" | "pay_warehouse_read" => vec![place()],
            "names" => [11, 22, 33, 44].map(|id| vec![Int(id)]).to_vec(),
            "pay_customer_read" => {
                let mut row = vec![Text("x"); 9];
                row.extend([Long(0), Text(self.credit), Cents(1), Cents(2), Cents(3)]);
                vec![row]
            }
            "pay_data_read" => vec![vec![Text("old")]],
            "os_customer" => vec![vec![Text("f"), Text("OE"), Text("l"), Cents(-1000)]],
            "os_order" => vec![vec![Int(7), Long(1), Null]],
            "os_lines" => vec![vec![Int(1), Int(1), Int(5), Cents(0), Null]],
            "sl_count" => vec![vec![Long(3)]],
            "del_new_orders" if self.delivered.contains(&int(1)) => Vec::new(),
            "del_new_orders" => (2101..=3000).map(|order| vec![Int(order)]).collect(),
            "del_order_read" => vec![vec![Int(77)]],
            "del_sum" => vec![vec![Cents(12_345)]],
            _ => Vec::new(),
        }
    }
}

#[derive(Clone, Debug)]
enum Field {
    Int(i32),
    Long(i64),
    Cents(i64),
    Text(&'static str),
    Null,
}

fn encode(row: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in row {
        let param = match *field {
            Field::Int(value) => Param::I32(value),
            Field::Long(value) => Param::I64(value),
            Field::Cents(value) => Param::Decimal(Decimal::new(value, 2)),
            Field::Text(value) => Param::Text(value),
            Field::Null => Param::Null,
        };
        param.encode(&mut out);
    }
    out
}

fn shown(param: &Param<'_>) -> String {
    match param {
        Param::I32(value) => value.to_string(),
        Param::F64(value) => format!("{value:.2}"),
        Param::Text(value) => (*value).to_owned(),
        Param::Timestamp(value) => value.0.to_string(),
        other => panic!("BenchmarkSQL sends no {other:?}"),
    }
}

impl Exchange for Session {
    fn queue(&mut self, statement: StatementId, params: &[Param<'_>]) {
        let all = statements::all();
        let declared = &all[usize::from(statement.0)].params;
        let kinds: Vec<_> = params.iter().filter_map(Param::kind).collect();
        assert_eq!(&kinds, declared, "{}", self.names[usize::from(statement.0)]);
        let name = self.names[usize::from(statement.0)].clone();
        self.queue.push(Asked { name, params: params.iter().map(shown).collect() });
    }

    async fn exchange(&mut self) -> Result<&Answers, Error> {
        assert!(!self.queue.is_empty(), "an exchange carries something");
        self.answers.clear();
        for asked in &self.queue {
            let rows = self.rows(asked);
            for row in &rows {
                self.answers.push_row(&encode(row));
            }
            let snatched = asked.name == "del_take" && self.snatched > 0;
            if snatched {
                self.snatched -= 1;
            }
            self.answers.finish(u64::from(!snatched));
        }
        self.log.push(std::mem::take(&mut self.queue));
        Ok(&self.answers)
    }
}

/// Runs a future that never waits.
pub(crate) fn finish<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("this session keeps nobody waiting"),
    }
}
