//! What the functions of face `procedure` return on the books: the same imagined database as for
//! the statements, a call at a time.

use super::books::{
    Books, DISCOUNT, Entry, Field, Sent, TAX, customer, place, price, status, text,
};

/// Rows of a call; none if it is none.
pub(crate) fn rows(books: &Books, entry: &Entry) -> Vec<Vec<Field>> {
    match entry.name.as_str() {
        "new_order" => vec![new_order(books, entry)],
        "payment" => {
            let mut row = place("Ware").split_off(1);
            row.extend(place("Dist").split_off(1));
            row.push(Field::Int(named(books, entry, 4)));
            row.extend(customer());
            vec![row]
        }
        "order_status" => {
            let mut row = status(named(books, entry, 2));
            row.extend([Field::Int(7), Field::Long(1), Field::Null]);
            row.extend([Field::Ints(vec![1]), Field::Ints(vec![1]), Field::Ints(vec![5])]);
            row.extend([Field::AllCents(vec![0]), Field::NoDates(1)]);
            vec![row]
        }
        "delivery" => {
            vec![vec![Field::Int(i32::try_from(books.delivered.len()).expect("few"))]]
        }
        "stock_level" => vec![vec![Field::Long(11)]],
        _ => Vec::new(),
    }
}

/// The customer: the number that was sent, or the middle one of the name.
fn named(books: &Books, entry: &Entry, at: usize) -> i32 {
    match &entry.params[at] {
        Sent::Int(id) => *id,
        _ => 100 + (books.namesakes + 1) / 2,
    }
}

fn new_order(books: &Books, entry: &Entry) -> Vec<Field> {
    let lines =
        || entry.ints(5).iter().zip(entry.ints(6)).filter(|(_, item)| **item <= books.items);
    let brand = |item: i32| i32::from(item % 2 == 0 && item % 3 == 0);
    vec![
        Field::Int(3001),
        Field::Decimal(TAX, 4),
        Field::Decimal(TAX, 4),
        Field::Decimal(DISCOUNT, 4),
        text("BARBARBAR"),
        text("GC"),
        Field::Ints(lines().map(|(number, _)| *number).collect()),
        Field::Texts(lines().map(|_| "name".to_owned()).collect()),
        Field::AllCents(lines().map(|(_, item)| price(*item)).collect()),
        Field::Ints(lines().map(|_| 42).collect()),
        Field::Ints(lines().map(|(_, item)| brand(*item)).collect()),
    ]
}
