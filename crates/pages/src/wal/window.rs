//! A range of WAL out of its segments' files, one after the other.

use std::{fs::File, io, os::unix::fs::FileExt};

use crate::{
    error::Error,
    lsn::Lsn,
    wal::{
        page::{Format, PageHead},
        record::Record,
        scanner::{Flaw, Scanner, Went},
    },
};

/// Bytes that are read at once, in whole pages.
const CHUNK_BYTES: usize = 1 << 18;

/// From where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Records that begin here or later.
    pub from: Lsn,
    /// Records that begin before it, but for a last one whose rest behind it is not valid WAL;
    /// `None`: up to the end of valid WAL.
    pub to: Option<Lsn>,
}

/// Whether the next segment is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is.
    More,
    /// The range's end was reached, or that of valid WAL.
    Done,
}

/// A range that is being read.
#[derive(Debug)]
pub struct Window {
    format: Format,
    range: Range,
    scanner: Scanner,
    chunk: Vec<u8>,
    is_done: bool,
    end: Option<(String, Flaw)>,
}

/// What the first page of a segment says.
///
/// # Errors
///
/// It cannot be read, or is none of WAL; `name` is said with it.
pub fn head_of(name: &str, file: &File) -> Result<(Format, PageHead), Error> {
    let mut page = [0; 40];
    let got = fill(file, &mut page, 0).map_err(|e| unread(name, &e))?;
    Format::read(page.get(..got).unwrap_or_default())
        .map_err(|e| Error { fact: format!("{name}: {}", e.fact), hint: e.hint })
}

impl Window {
    /// A range of WAL of this format; `block_bytes` is the size of relations' pages.
    #[must_use]
    pub fn new(format: Format, block_bytes: u16, range: Range) -> Self {
        let to = range.to.unwrap_or(Lsn(u64::MAX));
        let scanner = Scanner::new(format, block_bytes, range.from, to);
        Self { format, range, scanner, chunk: Vec::new(), is_done: false, end: None }
    }

    /// Its format.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Its end, as it was asked for.
    #[must_use]
    pub fn to(&self) -> Option<Lsn> {
        self.range.to
    }

    /// What reads it.
    #[must_use]
    pub fn scanner(&self) -> &Scanner {
        &self.scanner
    }

    /// Reads what the next segment holds of it.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is not the next segment, or WAL is damaged: it ends before the
    /// range does, or in the middle of what is there.
    pub fn segment(
        &mut self,
        name: &str,
        file: &File,
        visit: &mut impl FnMut(&Record<'_>),
    ) -> Result<Step, Error> {
        if self.is_done {
            return Ok(Step::Done);
        }
        if let Some((file_before, flaw)) = &self.end {
            let is_next = self.begins(name, file)?;
            self.is_done = true;
            return if is_next { Err(damaged(file_before, flaw, name)) } else { Ok(Step::Done) };
        }
        match self.pages(name, file, visit)? {
            Ok(Went::On) => Ok(Step::More),
            Ok(Went::Done) => {
                self.is_done = true;
                Ok(Step::Done)
            }
            Err(flaw) => {
                if let Some(to) = self.range.to {
                    return Err(ended(name, &flaw, to));
                }
                self.end = Some((name.to_owned(), flaw));
                Ok(Step::More)
            }
        }
    }

    /// Says where valid WAL ended, once there is no other segment; `None`: the range did.
    ///
    /// # Errors
    ///
    /// The range goes beyond it.
    pub fn finish(&mut self) -> Result<Option<(String, Flaw)>, Error> {
        if self.end.is_none() && (self.is_done || self.scanner.lacks_a_rest()) {
            return Ok(None);
        }
        let (name, flaw) = self.end.clone().unwrap_or_else(|| {
            let at = self.scanner.unfinished().unwrap_or(self.scanner.end());
            let fact = match self.scanner.unfinished() {
                Some(_) => "record is continued in a segment that is not there",
                None => "no segment follows",
            };
            ("the last segment".to_owned(), Flaw { at, fact: fact.to_owned() })
        });
        match self.range.to {
            Some(to) => Err(ended(&name, &flaw, to)),
            None => Ok(Some((name, flaw))),
        }
    }

    /// Reads pages up to the file's end; the outer error is that of the file.
    fn pages(
        &mut self,
        name: &str,
        file: &File,
        visit: &mut impl FnMut(&Record<'_>),
    ) -> Result<Result<Went, Flaw>, Error> {
        let page_bytes = usize::try_from(self.format.page_bytes).unwrap_or(usize::MAX);
        let segment_bytes = u64::from(self.format.segment_bytes);
        let base = self.scanner.expected().floor(segment_bytes);
        self.chunk.resize(CHUNK_BYTES.max(page_bytes), 0);
        let mut at = self.scanner.expected().0 - base.0;
        while at < segment_bytes {
            let left = usize::try_from(segment_bytes - at).unwrap_or(usize::MAX);
            let wanted = self.chunk.len().min(left);
            let got = fill(file, &mut self.chunk[..wanted], at).map_err(|e| unread(name, &e))?;
            for page in self.chunk[..got].chunks_exact(page_bytes) {
                match self.scanner.page(page, visit) {
                    Ok(Went::On) => {}
                    ended => return Ok(ended),
                }
            }
            if got < wanted {
                let whole = at + u64::try_from(got).unwrap_or(0);
                let fact = format!("file has {whole} bytes, expected {segment_bytes}");
                return Ok(Err(Flaw { at: self.scanner.expected(), fact }));
            }
            at += u64::try_from(got).unwrap_or(segment_bytes);
        }
        Ok(Ok(Went::On))
    }

    /// Whether a file begins as the segment after the one where WAL ended.
    fn begins(&self, name: &str, file: &File) -> Result<bool, Error> {
        let mut page = [0; 40];
        let got = fill(file, &mut page, 0).map_err(|e| unread(name, &e))?;
        let Some(head) = page.get(..got).and_then(PageHead::read) else { return Ok(false) };
        let size = u64::from(self.format.segment_bytes);
        let at = self.end.as_ref().map_or(Lsn::ZERO, |(_, flaw)| flaw.at);
        // A flaw at a segment's very beginning is one of this segment or of the one before.
        let next = at.floor(size).after(size);
        Ok(next.is_some_and(|next| head.flaw(&self.format, next).is_none()))
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        let place = at + u64::try_from(got).unwrap_or(0);
        match file.read_at(&mut buffer[got..], place) {
            Ok(0) => break,
            Ok(bytes) => got += bytes,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

fn unread(name: &str, error: &io::Error) -> Error {
    Error::new(format!("cannot read {name}: {error}"))
}

fn ended(name: &str, flaw: &Flaw, to: Lsn) -> Error {
    Error::hinted(
        format!("WAL ends in {name} before {to}, at {flaw}"),
        "Name an earlier end, or none: then what is there is read.",
    )
}

fn damaged(name: &str, flaw: &Flaw, next: &str) -> Error {
    Error::hinted(
        format!("WAL is damaged in {name} at {flaw}; segment {next} after it is WAL again"),
        "Name a range without it. A crash leaves no WAL behind its end.",
    )
}
