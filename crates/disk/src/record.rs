//! The record: a file of [`Event`]s, written within a bound, read as a stream.
//!
//! It begins with [`MAGIC`]. A record whose writer was killed ends with a part of an event; what
//! comes before holds.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;

use crate::event::{Event, HEAD_BYTES, Unreadable, WRITTEN_FIELDS_BYTES, decode};

/// The first bytes of a record; the last is the version of its format.
pub const MAGIC: [u8; 8] = *b"pgdisk\0\x01";
const BUFFER_BYTES: usize = 1 << 20;
/// No event is longer: the kernel hands over writes of at most 16 MiB.
const EVENT_BYTES_MAX: usize = 32 << 20;
/// What [`Event::Full`] takes, so that it always fits, and [`Event::Ended`] after it.
const LAST_WORDS_BYTES: u64 = 2 * HEAD_BYTES as u64;

/// Where a record's bytes lie: a file, or memory.
pub trait Stored {
    /// Read at a place, as many bytes as there are; 0 at the end.
    ///
    /// # Errors
    /// They cannot be read.
    fn read_some(&self, into: &mut [u8], at: u64) -> io::Result<usize>;
}

impl Stored for File {
    fn read_some(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.read_at(into, at)
    }
}

impl Stored for Vec<u8> {
    fn read_some(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let rest = usize::try_from(at).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let bytes = rest.len().min(into.len());
        into[..bytes].copy_from_slice(&rest[..bytes]);
        Ok(bytes)
    }
}

/// Fill `into` from a place.
///
/// # Errors
/// They cannot be read, or there are fewer.
pub fn read_exact<S: Stored + ?Sized>(from: &S, into: &mut [u8], at: u64) -> io::Result<()> {
    let mut done = 0;
    while done < into.len() {
        match from.read_some(&mut into[done..], at + done as u64)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            bytes => done += bytes,
        }
    }
    Ok(())
}

/// Writes a record.
pub struct Writer<W: Write> {
    out: W,
    buffer: Vec<u8>,
    bytes: u64,
    bytes_max: u64,
    last_ns: u64,
    full: bool,
}

impl<W: Write> Writer<W> {
    /// Begin a record of at most so many bytes.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(mut out: W, bytes_max: u64) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        let bytes = MAGIC.len() as u64;
        Ok(Self { out, buffer: Vec::new(), bytes, bytes_max, last_ns: 0, full: false })
    }

    /// Write an event down; once the record is full, nothing.
    ///
    /// # Errors
    /// It cannot be written; then the record ends before.
    pub fn put(&mut self, time_ns: u64, event: &Event) -> io::Result<()> {
        if self.full {
            return Ok(());
        }
        let before = self.buffer.len();
        event.encode(time_ns, &mut self.buffer);
        let bytes = (self.buffer.len() - before + event.data().len()) as u64;
        if self.bytes + bytes + LAST_WORDS_BYTES > self.bytes_max {
            self.buffer.truncate(before);
            return self.close(time_ns, &Event::Full);
        }
        self.bytes += bytes;
        self.last_ns = time_ns;
        self.buffer.extend_from_slice(event.data());
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Write the last event, and everything that waits.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn close(&mut self, time_ns: u64, last: &Event) -> io::Result<()> {
        let before = self.buffer.len();
        last.encode(time_ns, &mut self.buffer);
        self.bytes += (self.buffer.len() - before) as u64;
        self.full |= *last == Event::Full;
        self.flush()
    }

    /// Write everything that waits.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        let wrote = self.out.write_all(&self.buffer);
        self.full |= wrote.is_err(); // what comes after a gap cannot be read
        self.buffer.clear();
        wrote
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the rest was left out.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// When the last event that was written down happened, in ns.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Where it was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Where it is written to.
    pub fn get_ref(&self) -> &W {
        &self.out
    }
}

/// Reads a record from its begin.
pub struct Reader<'a, S: Stored + ?Sized> {
    from: &'a S,
    chunk: Vec<u8>,
    chunk_at: u64,
    at: u64,
}

/// An event as it was read.
pub struct Entry<'a> {
    /// What happened.
    pub event: Event<'a>,
    /// When, in ns of the monotonic clock.
    pub time_ns: u64,
    /// Where in the record it begins.
    pub at: u64,
    /// Where in the record the data of a write begin.
    pub data_at: u64,
}

impl<'a, S: Stored + ?Sized> Reader<'a, S> {
    /// Begin to read.
    ///
    /// # Errors
    /// It is no record, or one of another version.
    pub fn new(from: &'a S) -> Result<Self, Unreadable> {
        let mut magic = [0; MAGIC.len()];
        let read = read_exact(from, &mut magic, 0);
        if read.is_err() || magic != MAGIC {
            return Err(Unreadable("it does not begin as a record of a disk".into()));
        }
        Ok(Self { from, chunk: Vec::new(), chunk_at: 0, at: MAGIC.len() as u64 })
    }

    /// The next event; None at the end, be it in the middle of an event.
    ///
    /// # Errors
    /// It cannot be read, or is no event.
    pub fn next_entry(&mut self) -> Result<Option<Entry<'_>>, Unreadable> {
        let at = self.at;
        let Some(head) = self.window(at, HEAD_BYTES)? else { return Ok(None) };
        let bytes = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if !(HEAD_BYTES..=EVENT_BYTES_MAX).contains(&bytes) {
            return Err(Unreadable(format!("the event at byte {at} has a length of {bytes}")));
        }
        if self.window(at, bytes)?.is_none() {
            return Ok(None);
        }
        self.at = at + bytes as u64;
        let whole = self.window(at, bytes)?.unwrap_or_default();
        let mut time = [0; 8];
        time.copy_from_slice(&whole[5..HEAD_BYTES]);
        let event = decode(whole[4], &whole[HEAD_BYTES..])
            .map_err(|error| Unreadable(format!("the event at byte {at}: {error}")))?;
        let data_at = at + (HEAD_BYTES + WRITTEN_FIELDS_BYTES) as u64;
        Ok(Some(Entry { event, time_ns: u64::from_le_bytes(time), at, data_at }))
    }

    /// Bytes from a place; None where the record ends before.
    fn window(&mut self, at: u64, bytes: usize) -> Result<Option<&[u8]>, Unreadable> {
        let begin = usize::try_from(at - self.chunk_at).unwrap_or(usize::MAX);
        if begin.checked_add(bytes).is_none_or(|end| end > self.chunk.len()) {
            self.chunk = vec![0; bytes.max(BUFFER_BYTES)];
            self.chunk_at = at;
            let mut filled = 0;
            while filled < self.chunk.len() {
                let into = &mut self.chunk[filled..];
                match self.from.read_some(into, at + filled as u64) {
                    Ok(0) => break,
                    Ok(more) => filled += more,
                    Err(error) => return Err(Unreadable(error.to_string())),
                }
            }
            self.chunk.truncate(filled);
            return Ok(self.chunk.get(..bytes));
        }
        Ok(self.chunk.get(begin..begin + bytes))
    }
}
