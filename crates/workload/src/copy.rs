//! PostgreSQL's binary COPY format, written straight into a buffer. No sockets, no schema.

use wire::{Decimal, Timestamp};

/// Begins a COPY: signature, no flags, no extension.
pub const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Ends a COPY.
pub const TRAILER: &[u8; 2] = &[0xff, 0xff];

/// Appends rows, field by field in the order of the table's columns.
#[derive(Debug)]
pub struct Rows<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Rows<'a> {
    /// Appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Begins a row of so many fields.
    #[inline]
    pub fn begin(&mut self, fields: u16) {
        self.out.extend_from_slice(&fields.to_be_bytes());
    }

    /// An `integer`.
    #[inline]
    pub fn int(&mut self, value: i32) {
        let [v0, v1, v2, v3] = value.to_be_bytes();
        self.out.extend_from_slice(&[0, 0, 0, 4, v0, v1, v2, v3]);
    }

    /// NULL of any type.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(&(-1_i32).to_be_bytes());
    }

    /// A `timestamp`.
    #[inline]
    pub fn timestamp(&mut self, value: Timestamp) {
        self.out.extend_from_slice(&[0, 0, 0, 8]);
        self.out.extend_from_slice(&value.0.to_be_bytes());
    }

    /// A `numeric`.
    #[inline]
    pub fn decimal(&mut self, value: Decimal) {
        self.sized(|out| value.encode(out));
    }

    /// A string.
    #[inline]
    pub fn text(&mut self, value: &[u8]) {
        self.sized(|out| out.extend_from_slice(value));
    }

    /// A field whose bytes `write` appends.
    #[inline]
    pub fn sized(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        write(self.out);
        // A field is far below 2 GiB: rows are made here, from bounded lengths.
        let length = i32::try_from(self.out.len() - at - 4).unwrap_or(i32::MAX);
        self.out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}
