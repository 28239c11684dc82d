//! What terminals ask for (clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1, 2.8.1, 5.2): each request is a
//! function of seed, terminal and number. No statements, no clock.

use std::time::Duration;

use super::{
    cardinalities::{DISTRICTS, UNUSED_ITEM},
    constants::Constants,
    spec::{DeliveryMode, Home, TpccSpec},
};
use crate::{draw::Draw, workload::Timing};

/// Most lines of an order.
pub const LINES_MAX: usize = 15;

/// One request of a terminal.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub enum Request {
    /// Clause 2.4.
    NewOrder(NewOrder),
    /// Clause 2.5.
    Payment(Payment),
    /// Clause 2.6.
    OrderStatus(OrderStatus),
    /// Clause 2.7.
    Delivery(Delivery),
    /// Clause 2.8.
    StockLevel(StockLevel),
}

/// A line of an order to enter.
#[derive(Clone, Copy, Debug, Default, Hash, PartialEq, Eq)]
pub struct Line {
    /// `OL_I_ID`.
    pub item: i32,
    /// `OL_SUPPLY_W_ID`.
    pub supply: i32,
    /// `OL_QUANTITY`.
    pub quantity: i32,
}

/// An order to enter.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct NewOrder {
    /// Home warehouse.
    pub warehouse: i32,
    /// District.
    pub district: i32,
    /// Customer.
    pub customer: i32,
    lines: [Line; LINES_MAX],
    count: usize,
}

impl NewOrder {
    /// An order of these lines, at most [`LINES_MAX`].
    #[must_use]
    pub fn new(warehouse: i32, district: i32, customer: i32, lines: &[Line]) -> Self {
        let mut all = [Line::default(); LINES_MAX];
        all[..lines.len()].copy_from_slice(lines);
        Self { warehouse, district, customer, lines: all, count: lines.len() }
    }

    /// The lines, in the order in which the terminal's user entered them.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines[..self.count]
    }

    /// Whether the last item does not exist, so that the transaction must roll back.
    #[must_use]
    pub fn is_to_roll_back(&self) -> bool {
        self.lines().last().is_some_and(|line| line.item == UNUSED_ITEM)
    }
}

/// How a customer is named.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub enum Customer {
    /// By `C_ID`.
    Id(i32),
    /// By the number of the last name.
    LastName(i32),
}

/// A payment to book.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct Payment {
    /// Warehouse that receives the payment.
    pub warehouse: i32,
    /// District that receives the payment.
    pub district: i32,
    /// The customer's warehouse.
    pub customer_warehouse: i32,
    /// The customer's district.
    pub customer_district: i32,
    /// The customer.
    pub customer: Customer,
    /// `H_AMOUNT` in cents.
    pub amount_cents: i32,
}

/// A customer whose last order is asked for.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct OrderStatus {
    /// Home warehouse.
    pub warehouse: i32,
    /// District.
    pub district: i32,
    /// The customer.
    pub customer: Customer,
}

/// A warehouse whose oldest orders go out.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct Delivery {
    /// Home warehouse.
    pub warehouse: i32,
    /// `O_CARRIER_ID`.
    pub carrier: i32,
}

/// A district whose stock is examined.
#[derive(Clone, Debug, Hash, PartialEq, Eq)]
pub struct StockLevel {
    /// Home warehouse.
    pub warehouse: i32,
    /// The terminal's own district.
    pub district: i32,
    /// Items with less are counted.
    pub threshold: i32,
}

/// Stream of draws of the requests; the rows use 1 to 9.
const REQUESTS: u64 = 101;
/// Stream of draws of the think times, so that they are known without the request.
const THINKING: u64 = 102;

/// Keying time in seconds, constant (clause 5.2.5.2); by kind.
const KEYING_S: [f64; 5] = [18.0, 3.0, 2.0, 2.0, 2.0];
/// Mean think time in seconds (clause 5.2.5.7); by kind.
const THINK_S: [f64; 5] = [12.0, 12.0, 10.0, 5.0, 5.0];
/// Think times are cut at so many means (clause 5.2.5.4).
const THINK_CUT: f64 = 10.0;

/// Makes requests.
#[derive(Clone, Debug)]
pub struct Input {
    seed: u64,
    warehouses: i32,
    block_size: i32,
    home: Home,
    deferred: bool,
    keying_multiplier: f64,
    think_multiplier: f64,
    /// Upper ends of the kinds' shares; the last is 1.
    upto: [f64; 5],
    constants: Constants,
}

impl Input {
    /// Requests as the specification says.
    #[must_use]
    pub fn new(spec: &TpccSpec, constants: Constants) -> Self {
        let mut sum = 0.0;
        let upto = spec.mix.shares().map(|share| {
            sum += share;
            sum
        });
        Self {
            seed: spec.seed,
            warehouses: spec.warehouses,
            block_size: spec.block_size(),
            home: spec.home,
            deferred: spec.delivery == DeliveryMode::Deferred,
            keying_multiplier: spec.keying_multiplier,
            think_multiplier: spec.think_multiplier,
            upto,
            constants,
        }
    }

    /// The `number`-th request of a terminal, and its timing.
    #[must_use]
    pub fn request(&self, terminal: u32, number: u64) -> (Request, Timing) {
        let mut draw = Draw::new(self.seed, REQUESTS, terminal.into(), number);
        let kind = self.kind(&mut draw);
        let (warehouse, district) = self.place(terminal, &mut draw);
        let request = match kind {
            0 => Request::NewOrder(self.new_order(warehouse, &mut draw)),
            1 => Request::Payment(self.payment(warehouse, &mut draw)),
            2 => Request::OrderStatus(self.order_status(warehouse, &mut draw)),
            3 => Request::Delivery(Delivery { warehouse, carrier: draw.int(1, 10) }),
            _ => {
                let threshold = draw.int(10, 20);
                Request::StockLevel(StockLevel { warehouse, district, threshold })
            }
        };
        (request, self.timing_of(kind, terminal, number))
    }

    /// The timing alone of the same request.
    #[must_use]
    pub fn timing(&self, terminal: u32, number: u64) -> Timing {
        let kind = self.kind(&mut Draw::new(self.seed, REQUESTS, terminal.into(), number));
        self.timing_of(kind, terminal, number)
    }

    fn timing_of(&self, kind: usize, terminal: u32, number: u64) -> Timing {
        Timing {
            kind,
            keying_ns: nanoseconds(KEYING_S[kind] * self.keying_multiplier),
            think_ns: self.think_ns(kind, terminal, number),
            deferred: kind == 3 && self.deferred,
        }
    }

    /// Kind by weight. A kind of weight 0 has an empty interval and is never drawn.
    fn kind(&self, draw: &mut Draw) -> usize {
        let share = draw.share();
        let found = self.upto.iter().position(|&upto| share <= upto);
        // The sum of the shares may miss 1 by a rounding: that belongs to the last kind with any.
        found.unwrap_or_else(|| {
            (0..self.upto.len())
                .rev()
                .find(|&k| k == 0 || self.upto[k] > self.upto[k - 1])
                .unwrap_or(0)
        })
    }

    /// Home warehouse and own district. Consecutive terminals go to different warehouses, so that
    /// few terminals touch many; the district changes when all warehouses have one more terminal.
    fn place(&self, terminal: u32, draw: &mut Draw) -> (i32, i32) {
        match self.home {
            Home::Fixed => {
                let warehouses = self.warehouses.unsigned_abs();
                let district = terminal / warehouses % DISTRICTS.unsigned_abs();
                (one_based(terminal % warehouses), one_based(district))
            }
            Home::Random => (draw.int(1, self.warehouses), draw.int(1, DISTRICTS)),
        }
    }

    fn new_order(&self, warehouse: i32, draw: &mut Draw) -> NewOrder {
        let district = draw.int(1, DISTRICTS);
        let customer = self.constants.customer.draw(draw);
        let count = usize::try_from(draw.int(5, 15)).unwrap_or(LINES_MAX);
        let roll_back = draw.int(1, 100) == 1;
        let mut lines = [Line::default(); LINES_MAX];
        for line in &mut lines[..count] {
            let item = self.constants.item.draw(draw);
            let remote = draw.int(1, 100) == 1;
            let supply = if remote { self.other_warehouse(warehouse, draw) } else { warehouse };
            *line = Line { item, supply, quantity: draw.int(1, 10) };
        }
        if roll_back {
            lines[count - 1].item = UNUSED_ITEM;
        }
        NewOrder { warehouse, district, customer, lines, count }
    }

    fn payment(&self, warehouse: i32, draw: &mut Draw) -> Payment {
        let district = draw.int(1, DISTRICTS);
        let customer = self.customer(draw);
        let local = draw.int(1, 100) <= 85;
        let (customer_warehouse, customer_district) = if local {
            (warehouse, district)
        } else {
            (self.other_warehouse(warehouse, draw), draw.int(1, DISTRICTS))
        };
        let amount_cents = draw.int(100, 500_000);
        Payment {
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer,
            amount_cents,
        }
    }

    fn order_status(&self, warehouse: i32, draw: &mut Draw) -> OrderStatus {
        let district = draw.int(1, DISTRICTS);
        OrderStatus { warehouse, district, customer: self.customer(draw) }
    }

    /// 60 % by last name, 40 % by number (clauses 2.5.1.2 and 2.6.1.2).
    fn customer(&self, draw: &mut Draw) -> Customer {
        if draw.int(1, 100) <= 60 {
            Customer::LastName(self.constants.last_name.draw(draw))
        } else {
            Customer::Id(self.constants.customer.draw(draw))
        }
    }

    /// A warehouse of the same block other than the given one, uniformly; itself where there is no
    /// other.
    fn other_warehouse(&self, warehouse: i32, draw: &mut Draw) -> i32 {
        let size = self.block_size;
        if size == 1 {
            if self.warehouses > 1 {
                // What is drawn after it stays as it is without blocks.
                let _elsewhere = draw.int(1, self.warehouses - 1);
            }
            return warehouse;
        }
        let before = (warehouse - 1) / size * size;
        let other = before + draw.int(1, size - 1);
        other + i32::from(other >= warehouse)
    }

    fn think_ns(&self, kind: usize, terminal: u32, number: u64) -> u64 {
        if self.think_multiplier <= 0.0 {
            return 0;
        }
        let mut draw = Draw::new(self.seed, THINKING, terminal.into(), number);
        let means = (-draw.share().ln()).min(THINK_CUT);
        nanoseconds(means * THINK_S[kind] * self.think_multiplier)
    }
}

fn one_based(index: u32) -> i32 {
    i32::try_from(index).map_or(i32::MAX, |index| index + 1)
}

fn nanoseconds(seconds: f64) -> u64 {
    u64::try_from(Duration::from_secs_f64(seconds).as_nanos()).unwrap_or(u64::MAX)
}
