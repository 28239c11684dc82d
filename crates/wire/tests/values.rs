//! Values survive the binary format, and what is not of the format is refused.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use proptest::prelude::*;
use wire::{Answers, Decimal, Param, Timestamp};

fn encoded(value: Decimal) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

/// The format spelled out: count of digits, weight, sign, display scale, digits.
fn numeric(weight: i16, sign: u16, scale: u16, digits: &[u16]) -> Vec<u8> {
    let count = u16::try_from(digits.len()).unwrap();
    let mut out = count.to_be_bytes().to_vec();
    out.extend(weight.to_be_bytes());
    out.extend(sign.to_be_bytes());
    out.extend(scale.to_be_bytes());
    out.extend(digits.iter().flat_map(|digit| digit.to_be_bytes()));
    out
}

/// What `numeric_send` of PostgreSQL 18 returned for these values.
#[test]
fn numeric_is_encoded_as_the_server_does() {
    let cases = [
        (Decimal::new(0, 0), numeric(0, 0, 0, &[])),
        (Decimal::new(0, 2), numeric(0, 0, 2, &[])),
        (Decimal::new(1, 0), numeric(0, 0, 0, &[1])),
        (Decimal::new(1234, 2), numeric(0, 0, 2, &[12, 3400])),
        (Decimal::new(-1000, 2), numeric(0, 0x4000, 2, &[10])),
        (Decimal::new(10_000, 0), numeric(1, 0, 0, &[1])),
        (Decimal::new(1, 4), numeric(-1, 0, 4, &[1])),
        (Decimal::new(1, 5), numeric(-2, 0, 5, &[1000])),
        (Decimal::new(30_000_000, 2), numeric(1, 0, 2, &[30])),
        (Decimal::new(123_456_789, 4), numeric(1, 0, 4, &[1, 2345, 6789])),
    ];
    for (value, bytes) in cases {
        assert_eq!(encoded(value), bytes, "{value:?}");
        assert_eq!(Decimal::decode(&bytes), Some(value));
    }
}

#[test]
fn numeric_out_of_reach_is_refused() {
    let refused = [
        numeric(0, 0xC000, 0, &[]),           // NaN
        numeric(0, 0xD000, 0, &[]),           // Infinity
        numeric(0, 0, 300, &[1]),             // scale
        numeric(0, 0, 0, &[10_000]),          // not a digit of base 10000
        numeric(0, 0, 1, &[1, 2345]),         // digits beyond the scale
        numeric(4, 0, 0, &[923, 0, 0, 0, 0]), // 9.23e18 is more than an i64 has
        numeric(i16::MAX, 0, 0, &[1]),
        numeric(i16::MIN, 0, 0, &[1]),
        vec![0; 7],
        [numeric(0, 0, 0, &[1]), vec![0]].concat(),
    ];
    for bytes in refused {
        assert_eq!(Decimal::decode(&bytes), None, "{bytes:?}");
    }
}

fn read_back(param: Param<'_>) -> Answers {
    let mut field = Vec::new();
    param.encode(&mut field);
    let mut answers = Answers::default();
    answers.push_row(&field);
    answers.finish(1);
    answers
}

proptest! {
    #[test]
    fn numeric_survives(unscaled: i64, scale in 0_u8..=255) {
        let value = Decimal::new(unscaled, scale);
        prop_assert_eq!(Decimal::decode(&encoded(value)), Some(value));
    }

    /// The digits say the value, whatever the code thinks: sum of digit * 10000^(weight - n).
    #[test]
    fn numeric_means_its_value(unscaled in -(1_i64 << 52)..(1_i64 << 52), scale in 0_u8..=20) {
        let bytes = encoded(Decimal::new(unscaled, scale));
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let weight = i32::from(i16::from_be_bytes([bytes[2], bytes[3]]));
        let mut value = 0.0;
        for (n, digit) in (8..bytes.len()).step_by(2).map(word).enumerate() {
            value += f64::from(digit) * 10_000_f64.powi(weight - i32::try_from(n).unwrap());
        }
        #[allow(clippy::cast_precision_loss, reason = "52 bits are exact")]
        let wanted = unscaled.unsigned_abs() as f64 / 10_f64.powi(i32::from(scale));
        prop_assert!((value - wanted).abs() <= wanted * 1e-12, "{} is not {}", value, wanted);
        prop_assert_eq!(word(4) == 0x4000, unscaled < 0);
        // The server keeps no zero digit at either end.
        prop_assert!(bytes.len() == 8 || (word(8) != 0 && word(bytes.len() - 2) != 0));
    }

    #[test]
    fn numeric_decoding_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _refused_or_not = Decimal::decode(&bytes);
    }

    #[test]
    fn scalars_survive(small: i32, large: i64, text in "\\PC*") {
        prop_assert_eq!(read_back(Param::I32(small)).get(0).row(0).unwrap().i32(0).unwrap(), small);
        prop_assert_eq!(read_back(Param::I64(large)).get(0).row(0).unwrap().i64(0).unwrap(), large);
        let answers = read_back(Param::Text(&text));
        prop_assert_eq!(answers.get(0).row(0).unwrap().text(0).unwrap(), &text);
        let time = Timestamp(large);
        let answers = read_back(Param::Timestamp(time));
        prop_assert_eq!(answers.get(0).row(0).unwrap().timestamp(0).unwrap(), time);
    }

    #[test]
    fn rows_cut_anywhere_are_errors(cut in 0_usize..12, column in 0_usize..5) {
        let mut field = Vec::new();
        Param::Text("abcdefgh").encode(&mut field);
        let mut answers = Answers::default();
        answers.push_row(&field[..cut]);
        answers.finish(0);
        prop_assert!(answers.get(0).row(0).unwrap().bytes(column).is_err());
    }
}

/// One dimension, no NULLs, element OID, bounds, then the elements: `array_recv`.
#[test]
fn arrays_are_one_dimensional() {
    let mut out = Vec::new();
    Param::I32s(&[7, -1]).encode(&mut out);
    let words: Vec<i32> =
        out.chunks_exact(4).map(|word| i32::from_be_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words, [36, 1, 0, 23, 2, 1, 4, 7, 4, -1]);

    out.clear();
    Param::Texts(&[]).encode(&mut out);
    let words: Vec<i32> =
        out.chunks_exact(4).map(|word| i32::from_be_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words, [12, 0, 0, 25]);
}

#[test]
fn null_has_no_value() {
    let answers = read_back(Param::Null);
    let row = answers.get(0).row(0).unwrap();
    assert_eq!(row.bytes(0).unwrap(), None);
    assert!(row.i32(0).is_err());
}

#[test]
fn epochs_are_thirty_years_apart() {
    assert_eq!(Timestamp::from_unix_micros(946_684_800_000_000), Timestamp(0));
    assert_eq!(Timestamp(-5).unix_micros(), 946_684_799_999_995);
}
