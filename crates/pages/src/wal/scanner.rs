//! Page after page in, records out: the rules of PostgreSQL's `xlogreader.c`.
//!
//! Every call looks at one page and goes forward only, so that no input can make it go on for
//! ever; a record is gathered as its pages come, so that none can make it take much memory at once.

use std::fmt;

use crate::{
    bytes::u32_at,
    crc::crc32c_of,
    lsn::Lsn,
    wal::{
        kind::is_manager,
        page::{CONTINUES, Format, OVERWRITES, PageHead},
        record::{Block, Record, RecordHead, body},
    },
};

/// Records begin at multiples of it.
const ALIGNMENT: usize = 8;
const XLOG: u8 = 0;
const SWITCH: u8 = 0x40;

/// Where valid WAL ends, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The record, or the page, that is not valid.
    pub at: Lsn,
    /// What was found there, and what was expected.
    pub fact: String,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.fact)
    }
}

/// Whether more pages are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// The next page, please.
    On,
    /// The range's end was reached.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No record was met: the rest of one that began earlier is skipped.
    Start,
    /// The next record begins with the next page.
    Between,
    /// A record that began at `start` is being gathered.
    Within { start: Lsn, total: u32 },
    /// A switch: nothing follows up to the end of its segment.
    Switched,
}

/// Reads records out of pages.
#[derive(Debug)]
pub struct Scanner {
    format: Format,
    block_bytes: u16,
    from: Lsn,
    to: Lsn,
    state: State,
    /// Address of the page that is expected.
    expected: Lsn,
    timeline: u32,
    /// Begin of the last whole record.
    last: Option<Lsn>,
    /// End of the last whole record, and of what is known to be valid.
    end: Lsn,
    gathered: Vec<u8>,
    blocks: Vec<Block>,
    overwritten: u64,
}

impl Scanner {
    /// A scanner of the records that begin at `from` or later, and before `to`.
    ///
    /// `block_bytes` is the size of relations' pages. Pages are expected from that of `from` on.
    #[must_use]
    pub fn new(format: Format, block_bytes: u16, from: Lsn, to: Lsn) -> Self {
        let expected = from.floor(u64::from(format.page_bytes));
        Self {
            format,
            block_bytes,
            from,
            to,
            state: State::Start,
            expected,
            timeline: 0,
            last: None,
            end: from,
            gathered: Vec::new(),
            blocks: Vec::new(),
            overwritten: 0,
        }
    }

    /// Address of the page that is expected next.
    #[must_use]
    pub fn expected(&self) -> Lsn {
        self.expected
    }

    /// End of the last whole record.
    #[must_use]
    pub fn end(&self) -> Lsn {
        self.end
    }

    /// Timeline of the last page.
    #[must_use]
    pub fn timeline(&self) -> u32 {
        self.timeline
    }

    /// Records whose rest was lost in a crash, and that were given up.
    #[must_use]
    pub fn overwritten(&self) -> u64 {
        self.overwritten
    }

    /// Begin of a record whose rest is on pages to come.
    #[must_use]
    pub fn unfinished(&self) -> Option<Lsn> {
        match self.state {
            State::Within { start, .. } => Some(start),
            _ => None,
        }
    }

    /// Takes the next page, and gives the records that end on it.
    ///
    /// # Errors
    ///
    /// Valid WAL ends on this page; records before that were given.
    pub fn page(&mut self, page: &[u8], visit: &mut impl FnMut(&Record<'_>)) -> Result<Went, Flaw> {
        let is_rest = self.lacks_a_rest();
        match self.valid_page(page, visit) {
            Err(_) if is_rest => Ok(Went::Done),
            found => found,
        }
    }

    /// Whether all that is wanted still is the rest, beyond the range, of its last record.
    ///
    /// A server that commits asynchronously flushes whole pages, so the end of what it has flushed
    /// may lie within a record. Then that record is not there yet; those before it are.
    pub(crate) fn lacks_a_rest(&self) -> bool {
        self.unfinished().is_some() && self.expected >= self.to
    }

    fn valid_page(
        &mut self,
        page: &[u8],
        visit: &mut impl FnMut(&Record<'_>),
    ) -> Result<Went, Flaw> {
        let at = self.expected;
        let page_bytes = usize::try_from(self.format.page_bytes).unwrap_or(usize::MAX);
        if page.len() != page_bytes {
            return Err(flaw(at, format!("page has {} bytes, expected {page_bytes}", page.len())));
        }
        self.expected = at
            .after(u64::from(self.format.page_bytes))
            .ok_or_else(|| flaw(at, "page is the last that can be".to_owned()))?;
        if self.state == State::Switched {
            if !at.0.is_multiple_of(u64::from(self.format.segment_bytes)) {
                return Ok(self.went());
            }
            self.state = State::Between;
        }
        let head = self.head(page, at)?;
        let begin = match self.state {
            State::Start => self.skipped(&head, page.len()),
            State::Within { start, total } => {
                self.continued(&head, page, at, start, total, visit)?
            }
            _ if head.is(CONTINUES) => {
                let fact = format!(
                    "page continues a record of which {} bytes are left, expected a new record",
                    head.remaining
                );
                return Err(flaw(at, fact));
            }
            _ => Some(head.bytes()),
        };
        if let Some(begin) = begin {
            self.records(page, at, begin, visit)?;
        }
        Ok(self.went())
    }

    /// Whether a record of the range may still come.
    fn went(&self) -> Went {
        let is_within = matches!(self.state, State::Within { .. });
        if self.expected >= self.to && !is_within { Went::Done } else { Went::On }
    }

    fn head(&mut self, page: &[u8], at: Lsn) -> Result<PageHead, Flaw> {
        let head = PageHead::read(page)
            .ok_or_else(|| flaw(at, format!("page has {} bytes", page.len())))?;
        if let Some(fact) = head.flaw(&self.format, at) {
            return Err(flaw(at, fact));
        }
        if head.timeline < self.timeline {
            let fact = format!("page is of timeline {}, after {}", head.timeline, self.timeline);
            return Err(flaw(at, fact));
        }
        self.timeline = head.timeline;
        Ok(head)
    }

    /// Where the first record begins, behind the rest of one that began on pages not given.
    fn skipped(&mut self, head: &PageHead, page_bytes: usize) -> Option<usize> {
        if !head.is(CONTINUES) {
            return Some(head.bytes());
        }
        let rest = usize::try_from(head.remaining).unwrap_or(usize::MAX);
        let begin = rest.checked_add(head.bytes() + ALIGNMENT - 1)? & !(ALIGNMENT - 1);
        if begin < page_bytes {
            return Some(begin);
        }
        if begin == page_bytes {
            self.state = State::Between;
        }
        None
    }

    /// Takes the part of a record that a page begins with; gives where the next one begins.
    fn continued(
        &mut self,
        head: &PageHead,
        page: &[u8],
        at: Lsn,
        start: Lsn,
        total: u32,
        visit: &mut impl FnMut(&Record<'_>),
    ) -> Result<Option<usize>, Flaw> {
        if head.is(OVERWRITES) {
            self.overwritten += 1;
            self.state = State::Between;
            return Ok(Some(head.bytes()));
        }
        if !head.is(CONTINUES) {
            let fact = format!("record of {total} bytes is not continued on the page at {at}");
            return Err(flaw(start, fact));
        }
        let missing = usize::try_from(total).unwrap_or(usize::MAX) - self.gathered.len();
        if usize::try_from(head.remaining) != Ok(missing) {
            return Err(flaw(
                start,
                format!(
                    "{} bytes of the record are left by the page at {at}, expected {missing}",
                    head.remaining
                ),
            ));
        }
        let room = page.len() - head.bytes();
        let here = missing.min(room);
        let knew_head = self.gathered.len() >= RecordHead::BYTES;
        self.gathered.extend_from_slice(&page[head.bytes()..head.bytes() + here]);
        if !knew_head && let Some(record) = RecordHead::read(&self.gathered) {
            self.require_head(&record, start)?;
        }
        if here < missing {
            return Ok(None);
        }
        let begin = aligned(head.bytes() + here);
        let end = Lsn(at.0 + offset(begin));
        self.state = State::Between;
        let gathered = std::mem::take(&mut self.gathered);
        let went = self.record(&gathered, start, end, visit);
        self.gathered = gathered;
        went?;
        Ok((self.state != State::Switched && begin < page.len()).then_some(begin))
    }

    /// Gives the records that begin on a page, from a place on.
    fn records(
        &mut self,
        page: &[u8],
        at: Lsn,
        begin: usize,
        visit: &mut impl FnMut(&Record<'_>),
    ) -> Result<(), Flaw> {
        let mut place = begin;
        self.state = State::Between;
        while place < page.len() {
            let start = Lsn(at.0 + offset(place));
            if start >= self.to {
                break;
            }
            let rest = &page[place..];
            let total = u32_at(rest, 0).unwrap_or(0);
            let bytes = usize::try_from(total).unwrap_or(usize::MAX);
            if bytes < RecordHead::BYTES {
                let fact = match total {
                    0 => "no record follows".to_owned(),
                    _ => format!("record has {total} bytes, expected at least 24"),
                };
                return Err(flaw(start, fact));
            }
            if let Some(head) = RecordHead::read(rest) {
                self.require_head(&head, start)?;
            }
            let Some(record) = rest.get(..bytes) else {
                self.gathered.clear();
                self.gathered.extend_from_slice(rest);
                self.state = State::Within { start, total };
                return Ok(());
            };
            place = aligned(place + bytes);
            self.record(record, start, Lsn(at.0 + offset(place)), visit)?;
            if self.state == State::Switched {
                break;
            }
        }
        Ok(())
    }

    /// What can be told of a record before all of it is there.
    fn require_head(&self, head: &RecordHead, start: Lsn) -> Result<(), Flaw> {
        if !is_manager(self.format.major, head.manager) {
            let fact = format!("record is of resource manager {}, which is none", head.manager);
            return Err(flaw(start, fact));
        }
        match self.last {
            Some(last) if head.prev != last => {
                Err(flaw(start, format!("record follows {}, expected {last}", head.prev)))
            }
            None if head.prev >= start => {
                Err(flaw(start, format!("record follows {}, which is not before it", head.prev)))
            }
            _ => Ok(()),
        }
    }

    /// Checks a whole record and gives it.
    fn record(
        &mut self,
        bytes: &[u8],
        start: Lsn,
        end: Lsn,
        visit: &mut impl FnMut(&Record<'_>),
    ) -> Result<(), Flaw> {
        let head = RecordHead::read(bytes)
            .ok_or_else(|| flaw(start, format!("record has {} bytes", bytes.len())))?;
        let crc = crc32c_of(&[&bytes[RecordHead::BYTES..], &bytes[..RecordHead::BYTES - 4]]);
        if crc != head.crc {
            let fact = format!("record has the CRC {:08x}, its bytes have {crc:08x}", head.crc);
            return Err(flaw(start, fact));
        }
        let body = body(bytes, self.format.major, self.block_bytes, &mut self.blocks)
            .map_err(|fact| flaw(start, fact))?;
        self.last = Some(start);
        self.end = end;
        if head.manager == XLOG && head.info & 0xF0 == SWITCH {
            self.state = State::Switched;
            // The rest of the segment belongs to it.
            let size = u64::from(self.format.segment_bytes);
            self.end = Lsn(end.0.div_ceil(size).saturating_mul(size));
        }
        if start >= self.from {
            visit(&Record {
                start,
                end: self.end,
                head,
                blocks: &self.blocks,
                origin: body.origin,
                top_xid: body.top_xid,
                data: bytes.get(body.data).unwrap_or_default(),
                bytes,
            });
        }
        Ok(())
    }
}

fn flaw(at: Lsn, fact: String) -> Flaw {
    Flaw { at, fact }
}

fn aligned(place: usize) -> usize {
    (place + ALIGNMENT - 1) & !(ALIGNMENT - 1)
}

/// A place on a page, as a number of bytes.
fn offset(place: usize) -> u64 {
    u64::try_from(place).unwrap_or(u64::MAX)
}
