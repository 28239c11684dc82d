//! Rows as lines of CSV, made from the binary COPY format in which the sources make them. No files,
//! no schema.

use wire::{Decimal, Timestamp};

/// How NULL is written: without quotes, as `BenchmarkSQL` does and `COPY … NULL 'NULL'` reads.
pub const NULL: &str = "NULL";
/// No table has more columns.
const COLUMNS_MAX: usize = 32;

/// What the bytes of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `integer`.
    Int,
    /// `numeric`.
    Decimal,
    /// `timestamp`.
    Timestamp,
    /// Any string.
    Text,
}

impl Kind {
    /// By the name of a column's type, with whatever follows it: `numeric(4,4) NOT NULL`.
    #[must_use]
    pub fn of(column_type: &str) -> Self {
        let starts = |name: &str| column_type.starts_with(name);
        if starts("integer") {
            Self::Int
        } else if starts("numeric") {
            Self::Decimal
        } else if starts("timestamp") {
            Self::Timestamp
        } else {
            Self::Text
        }
    }
}

/// A column of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its place in the binary rows, from 0.
    pub place: usize,
    /// Its type.
    pub kind: Kind,
}

/// Appends rows of the binary COPY format, without header and trailer, as lines.
///
/// # Panics
///
/// Bytes that are no such rows, or of other types: a bug of whoever made them.
pub fn append(binary: &[u8], columns: &[Column], out: &mut Vec<u8>) {
    let mut rest = binary;
    while !rest.is_empty() {
        let mut fields = [None; COLUMNS_MAX];
        let count = usize::from(u16::from_be_bytes(*take(&mut rest)));
        for field in &mut fields[..count] {
            let length = i32::from_be_bytes(*take(&mut rest));
            if let Ok(length) = usize::try_from(length) {
                let (value, tail) = rest.split_at(length);
                *field = Some(value);
                rest = tail;
            }
        }
        for (number, column) in columns.iter().enumerate() {
            if number > 0 {
                out.push(b',');
            }
            match fields[..count][column.place] {
                Some(value) => write(column.kind, value, out),
                None => out.extend_from_slice(NULL.as_bytes()),
            }
        }
        out.push(b'\n');
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> &'a [u8; N] {
    let split = rest.split_first_chunk::<N>();
    assert!(split.is_some(), "a row of the binary format is cut short");
    let (head, tail) = split.unwrap_or((&[0; N], &[]));
    *rest = tail;
    head
}

fn write(kind: Kind, value: &[u8], out: &mut Vec<u8>) {
    match kind {
        Kind::Int => number(i64::from(i32::from_be_bytes(fixed(value))), out),
        Kind::Timestamp => timestamp(Timestamp(i64::from_be_bytes(fixed(value))), out),
        Kind::Decimal => {
            let value = Decimal::decode(value);
            assert!(value.is_some(), "a numeric of ours fits a decimal");
            decimal(value.unwrap_or(Decimal::new(0, 0)), out);
        }
        Kind::Text => text(value, out),
    }
}

fn fixed<const N: usize>(value: &[u8]) -> [u8; N] {
    let bytes = value.try_into();
    assert!(bytes.is_ok(), "{N} bytes expected, {} are there", value.len());
    bytes.unwrap_or([0; N])
}

fn number(value: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(value.to_string().as_bytes());
}

/// With all digits of its scale: `0.0500`.
fn decimal(value: Decimal, out: &mut Vec<u8>) {
    if value.unscaled < 0 {
        out.push(b'-');
    }
    let digits = value.unscaled.unsigned_abs();
    let unit = 10_u64.pow(u32::from(value.scale));
    out.extend_from_slice((digits / unit).to_string().as_bytes());
    if value.scale > 0 {
        let width = usize::from(value.scale);
        out.extend_from_slice(format!(".{:0width$}", digits % unit).as_bytes());
    }
}

/// Quoted only where it must be.
fn text(value: &[u8], out: &mut Vec<u8>) {
    let special = |byte: &u8| matches!(byte, b',' | b'"' | b'\n' | b'\r');
    if value != NULL.as_bytes() && !value.is_empty() && !value.iter().any(special) {
        out.extend_from_slice(value);
        return;
    }
    out.push(b'"');
    for byte in value {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}

/// As Java's `Timestamp.toString` has it, in UTC: a fraction of at least one digit, without
/// trailing zeros.
fn timestamp(value: Timestamp, out: &mut Vec<u8>) {
    const DAY_MICROS: i64 = 86_400_000_000;
    let micros = value.unix_micros();
    let (year, month, day) = date(micros.div_euclid(DAY_MICROS));
    let of_day = micros.rem_euclid(DAY_MICROS);
    let (seconds, fraction) = (of_day / 1_000_000, of_day % 1_000_000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = format!("{fraction:06}");
    let fraction = match fraction.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    let text =
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{fraction}");
    out.extend_from_slice(text.as_bytes());
}

/// The Gregorian date of a day since 1970-01-01 (H. Hinnant, "chrono-compatible low-level date
/// algorithms": years begin in March, so that the leap day is their last).
fn date(day: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097; // of 400 years
    let from_march = day + 719_468; // since 0000-03-01
    let era = from_march.div_euclid(ERA_DAYS);
    let of_era = from_march.rem_euclid(ERA_DAYS);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153; // from March
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let calendar = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(calendar <= 2), calendar, of_month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::Rows;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn columns_come_in_the_order_of_the_file() {
        let mut binary = Vec::new();
        let mut rows = Rows::new(&mut binary);
        for id in [-7, 8] {
            rows.begin(4);
            rows.int(id);
            rows.null();
            rows.decimal(Decimal::new(-5, 2));
            rows.text(b"a,b");
        }
        let columns = [(3, Kind::Text), (0, Kind::Int), (1, Kind::Timestamp), (2, Kind::Decimal)]
            .map(|(place, kind)| Column { place, kind });
        let text = written(|out| append(&binary, &columns, out));
        assert_eq!(text, "\"a,b\",-7,NULL,-0.05\n\"a,b\",8,NULL,-0.05\n");
    }

    #[test]
    fn strings_that_could_be_misread_are_quoted() {
        for (value, expected) in
            [("ab", "ab"), ("", "\"\""), ("NULL", "\"NULL\""), ("a\"b", "\"a\"\"b\"")]
        {
            assert_eq!(written(|out| text(value.as_bytes(), out)), expected);
        }
    }

    #[test]
    fn decimals_have_all_digits_of_their_scale() {
        for (value, expected) in [((500, 4), "0.0500"), ((-1000, 2), "-10.00"), ((7, 0), "7")] {
            let value = Decimal::new(value.0, value.1);
            assert_eq!(written(|out| decimal(value, out)), expected);
        }
    }

    #[test]
    fn timestamps_are_those_of_java() {
        for (micros, expected) in [
            (0, "1970-01-01 00:00:00.0"),
            (951_782_399_999_999, "2000-02-28 23:59:59.999999"),
            (951_782_400_000_000, "2000-02-29 00:00:00.0"),
            (1_735_689_599_120_000, "2024-12-31 23:59:59.12"),
            (4_107_542_400_000_001, "2100-03-01 00:00:00.000001"),
            (-1, "1969-12-31 23:59:59.999999"),
        ] {
            let value = Timestamp::from_unix_micros(micros);
            assert_eq!(written(|out| timestamp(value, out)), expected);
        }
    }

    #[test]
    fn kinds_follow_from_the_types_of_the_columns() {
        for (name, kind) in [
            ("integer NOT NULL", Kind::Int),
            ("numeric(4,4)", Kind::Decimal),
            ("timestamp", Kind::Timestamp),
            ("char(2)", Kind::Text),
        ] {
            assert_eq!(Kind::of(name), kind);
        }
    }
}
