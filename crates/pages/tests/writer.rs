//! Writes WAL as PostgreSQL of any major would: what the tests read.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use pages::{Lsn, Major, crc32c, wal::Format};

pub(crate) const SYSTEM: u64 = 7_300_000_000_000_000_001;
pub(crate) const HEAP: u8 = 10;

/// Headers and payload of a record's body.
#[derive(Clone, Default)]
pub(crate) struct Body {
    headers: Vec<u8>,
    payload: Vec<u8>,
}

/// A page's image: bytes, offset of the hole, flags, bytes of the hole where they are written.
pub(crate) struct Picture {
    pub(crate) bytes: u16,
    pub(crate) hole_at: u16,
    pub(crate) info: u8,
    pub(crate) hole_bytes: Option<u16>,
}

impl Body {
    /// A block of relation 1663/5/`relation`; `flags` without those of image and data.
    pub(crate) fn block(
        mut self,
        id: u8,
        flags: u8,
        relation: u32,
        number: u32,
        data: &[u8],
        image: Option<Picture>,
    ) -> Self {
        let has = u8::from(image.is_some()) << 4 | u8::from(!data.is_empty()) << 5;
        self.headers.extend([id, flags | has]);
        self.headers.extend(u16::try_from(data.len()).unwrap().to_le_bytes());
        if let Some(image) = image {
            self.headers.extend(image.bytes.to_le_bytes());
            self.headers.extend(image.hole_at.to_le_bytes());
            self.headers.push(image.info);
            self.headers.extend(image.hole_bytes.iter().flat_map(|bytes| bytes.to_le_bytes()));
            self.payload.extend((0..image.bytes).map(|at| at.to_le_bytes()[0]));
        }
        if flags & 0x80 == 0 {
            self.headers.extend([1663, 5, relation].iter().flat_map(|oid: &u32| oid.to_le_bytes()));
        }
        self.headers.extend(number.to_le_bytes());
        self.payload.extend(data);
        self
    }

    /// Bytes among the headers.
    pub(crate) fn header(mut self, bytes: &[u8]) -> Self {
        self.headers.extend(bytes);
        self
    }

    /// Main data, which comes last.
    pub(crate) fn data(mut self, data: &[u8]) -> Vec<u8> {
        match u8::try_from(data.len()) {
            Ok(0) => {}
            Ok(bytes) => self.headers.extend([255, bytes]),
            Err(_) => {
                self.headers.push(254);
                self.headers.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
            }
        }
        [self.headers, self.payload, data.to_vec()].concat()
    }
}

/// WAL from the beginning of a segment on.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) format: Format,
    pub(crate) timeline: u32,
    pub(crate) begin: u64,
    pub(crate) bytes: Vec<u8>,
    /// Of the transaction whose records follow.
    pub(crate) xid: u32,
    prev: u64,
}

impl Writer {
    pub(crate) fn new(major: u16, segment_bytes: u32, page_bytes: u32) -> Self {
        let major = Major::of(major).unwrap();
        let format = Format { major, system_identifier: SYSTEM, segment_bytes, page_bytes };
        let begin = u64::from(segment_bytes);
        Self { format, timeline: 1, begin, bytes: Vec::new(), xid: 731, prev: begin - 100 }
    }

    pub(crate) fn at(&self) -> Lsn {
        Lsn(self.begin + u64::try_from(self.bytes.len()).unwrap())
    }

    /// A record; gives where it begins.
    pub(crate) fn record(&mut self, manager: u8, info: u8, body: &[u8]) -> Lsn {
        self.align(0, 0);
        let start = self.at();
        let record = self.bytes_of(manager, info, body);
        self.put(&record);
        self.prev = start.0;
        start
    }

    /// The first page's worth of a record whose rest a crash took, and the page that says so.
    pub(crate) fn lost_record(&mut self, body: &[u8]) -> Lsn {
        self.align(0, 0);
        let start = self.at();
        let record = self.bytes_of(HEAP, 0, body);
        let page = usize::try_from(self.format.page_bytes).unwrap();
        let room = page - self.bytes.len() % page;
        assert!(record.len() > room, "all of it fits");
        self.bytes.extend(&record[..room]);
        self.align(0x8, 0);
        start
    }

    /// A switch to the next segment.
    pub(crate) fn switch(&mut self) {
        self.record(0, 0x40, &[]);
        let segment = usize::try_from(self.format.segment_bytes).unwrap();
        let end = self.bytes.len().div_ceil(segment) * segment;
        self.bytes.resize(end, 0);
    }

    /// Pages, the last one filled with zeroes.
    pub(crate) fn pages(&self) -> Vec<u8> {
        let page = usize::try_from(self.format.page_bytes).unwrap();
        let mut bytes = self.bytes.clone();
        bytes.resize(bytes.len().div_ceil(page) * page, 0);
        bytes
    }

    pub(crate) fn bytes_of(&self, manager: u8, info: u8, body: &[u8]) -> Vec<u8> {
        let mut record = u32::try_from(24 + body.len()).unwrap().to_le_bytes().to_vec();
        record.extend(self.xid.to_le_bytes());
        record.extend(self.prev.to_le_bytes());
        record.extend([info, manager, 0, 0]);
        let crc = crc32c(&[body, &record].concat());
        record.extend(crc.to_le_bytes());
        record.extend(body);
        record
    }

    fn put(&mut self, record: &[u8]) {
        for (at, byte) in record.iter().enumerate() {
            if at > 0 {
                self.head_if_due(0x1, u32::try_from(record.len() - at).unwrap());
            }
            self.bytes.push(*byte);
        }
    }

    fn align(&mut self, flags: u16, remaining: u32) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.head_if_due(flags, remaining);
    }

    fn head_if_due(&mut self, flags: u16, remaining: u32) {
        let at = u64::try_from(self.bytes.len()).unwrap();
        if at % u64::from(self.format.page_bytes) != 0 {
            return;
        }
        let is_long = at % u64::from(self.format.segment_bytes) == 0;
        self.bytes.extend(self.format.major.magic().to_le_bytes());
        self.bytes.extend((flags | u16::from(is_long) << 1).to_le_bytes());
        self.bytes.extend(self.timeline.to_le_bytes());
        self.bytes.extend((self.begin + at).to_le_bytes());
        self.bytes.extend(remaining.to_le_bytes());
        self.bytes.extend([0; 4]);
        if is_long {
            self.bytes.extend(SYSTEM.to_le_bytes());
            self.bytes.extend(self.format.segment_bytes.to_le_bytes());
            self.bytes.extend(self.format.page_bytes.to_le_bytes());
        }
    }
}
