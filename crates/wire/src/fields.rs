//! Values one after the other, each preceded by its length: the columns of a row, the elements of
//! an array. Reading them in order costs one pass, where [`crate::answer::Row`] looks for each
//! column anew.

use crate::{
    error::Error,
    statement::Kind,
    value::{Decimal, Timestamp},
};

/// What is left of a row or an array, in binary format.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    /// The next field's number, for errors.
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, at: 0 }
    }

    /// Bytes of the next field, `None` for NULL.
    ///
    /// # Errors
    ///
    /// There is no other field, or it is cut short.
    pub fn bytes(&mut self) -> Result<Option<&'a [u8]>, Error> {
        let cut = || Error::column(self.at);
        let (length, rest) = self.rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            (self.rest, self.at) = (rest, self.at + 1);
            return Ok(None);
        };
        let (value, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        (self.rest, self.at) = (rest, self.at + 1);
        Ok(Some(value))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let at = self.at;
        self.bytes()?.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| Error::column(at))
    }

    /// An `int4` that is not NULL.
    ///
    /// # Errors
    ///
    /// No other field, NULL, or another type.
    pub fn i32(&mut self) -> Result<i32, Error> {
        self.fixed().map(i32::from_be_bytes)
    }

    /// A `timestamp` that is not NULL.
    ///
    /// # Errors
    ///
    /// As [`Fields::i32`].
    pub fn timestamp(&mut self) -> Result<Timestamp, Error> {
        self.fixed().map(i64::from_be_bytes).map(Timestamp)
    }

    /// A `numeric` that is not NULL.
    ///
    /// # Errors
    ///
    /// As [`Fields::i32`]; also a value that an `i64` of its display scale cannot hold.
    pub fn decimal(&mut self) -> Result<Decimal, Error> {
        let at = self.at;
        self.bytes()?.and_then(Decimal::decode).ok_or_else(|| Error::column(at))
    }

    /// A string that is not NULL.
    ///
    /// # Errors
    ///
    /// As [`Fields::i32`]; also text that is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Error> {
        let at = self.at;
        let bytes = self.bytes()?.ok_or_else(|| Error::column(at))?;
        std::str::from_utf8(bytes).map_err(|_| Error::column(at))
    }

    /// What `read` takes from the next field, `None` for NULL.
    ///
    /// # Errors
    ///
    /// As `read`.
    pub fn nullable<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let mut after = *self;
        if after.bytes()?.is_none() {
            *self = after;
            return Ok(None);
        }
        read(self).map(Some)
    }

    /// Elements of an array of one dimension, and how many they are; NULL and the empty array have
    /// none.
    ///
    /// # Errors
    ///
    /// No other field, elements of another type, or more than one dimension.
    pub fn array(&mut self, element: Kind) -> Result<(usize, Self), Error> {
        let at = self.at;
        let Some(bytes) = self.bytes()? else { return Ok((0, Self::new(&[]))) };
        elements(bytes, element).ok_or_else(|| Error::column(at))
    }
}

/// Dimensions, whether there are NULLs, type of the elements; then for each dimension its length
/// and its lowest index; then the elements.
fn elements(bytes: &[u8], element: Kind) -> Option<(usize, Fields<'_>)> {
    let (head, rest) = bytes.split_first_chunk::<12>()?;
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    if word(8) != element.oid() {
        return None;
    }
    match word(0) {
        0 => Some((0, Fields::new(&[]))),
        1 => {
            let (dimension, rest) = rest.split_first_chunk::<8>()?;
            let [a, b, c, d, ..] = *dimension;
            let count = usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?;
            Some((count, Fields::new(rest)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Param;

    fn written(params: &[Param<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        for param in params {
            param.encode(&mut out);
        }
        out
    }

    #[test]
    fn fields_come_in_order_and_end() {
        let price = Decimal::new(1_234, 2);
        let bytes = written(&[
            Param::I32(-7),
            Param::Null,
            Param::Text("abc"),
            Param::Decimal(price),
            Param::Timestamp(Timestamp(99)),
        ]);
        let mut fields = Fields::new(&bytes);
        assert_eq!(fields.i32().ok(), Some(-7));
        assert_eq!(fields.nullable(Fields::i32).ok(), Some(None));
        assert_eq!(fields.nullable(Fields::text).ok(), Some(Some("abc")));
        assert_eq!(fields.decimal().ok(), Some(price));
        assert_eq!(fields.timestamp().ok(), Some(Timestamp(99)));
        let end = fields.i32().expect_err("nothing is left").to_string();
        assert_eq!(end, "column 5 is missing, null or of another type");
        let mut cut = Fields::new(&bytes[..6]);
        assert!(cut.i32().is_err());
    }

    #[test]
    fn arrays_are_read_and_checked() {
        let bytes = written(&[Param::I32s(&[5, 6, 7]), Param::I32s(&[]), Param::Null]);
        let mut fields = Fields::new(&bytes);
        let (count, mut elements) = fields.array(Kind::I32).expect("an array");
        let read: Vec<i32> = (0..count).map(|_| elements.i32().expect("an element")).collect();
        assert_eq!(read, [5, 6, 7]);
        assert!(elements.i32().is_err());
        assert_eq!(fields.array(Kind::I32).expect("empty").0, 0);
        assert_eq!(fields.array(Kind::I32).expect("null").0, 0);
        assert!(Fields::new(&bytes).array(Kind::Text).is_err());
        assert!(Fields::new(&bytes[..20]).array(Kind::I32).is_err());
    }
}
