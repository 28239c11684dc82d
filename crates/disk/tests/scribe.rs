//! Records as a recorder would have written them, and the disks that come of them, in memory.

use std::collections::BTreeMap;

use disk::choice::{Spared, draw};
use disk::event::{Event, Ino, Kind, Place, ROOT, Rights};
use disk::file_data::Bytes;
use disk::record::Writer;
use disk::settle::{Device, Medium};

const RIGHTS: Rights = Rights { mode: 0o600, uid: 7, gid: 8 };

/// Writes events down, a nanosecond apart.
pub(crate) struct Scribe {
    writer: Writer<Vec<u8>>,
    pub(crate) now_ns: u64,
    syncs: u64,
    next: Ino,
}

/// What a disk holds: files by name (folders and files, `a/b`), with their bytes.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn place(name: &str) -> Place<'_> {
    Place { folder: ROOT, name: name.as_bytes() }
}

impl Scribe {
    /// An empty folder, in which the load begins.
    pub(crate) fn new() -> Self {
        let mut scribe = Self::unbegun();
        scribe.put(&Event::Begun);
        scribe
    }

    pub(crate) fn unbegun() -> Self {
        let writer = Writer::new(Vec::new(), u64::MAX).unwrap();
        Self { writer, now_ns: 1000, syncs: 0, next: ROOT + 1 }
    }

    pub(crate) fn put(&mut self, event: &Event) {
        self.now_ns += 1;
        self.writer.put(self.now_ns, event).unwrap();
    }

    pub(crate) fn make(&mut self, kind: Kind, place: Place) -> Ino {
        let ino = self.next;
        self.next += 1;
        self.put(&Event::Made { ino, kind, rights: RIGHTS, target: &[] });
        self.put(&Event::Added { ino, place });
        ino
    }

    pub(crate) fn create(&mut self, name: &str) -> Ino {
        self.make(Kind::File, place(name))
    }

    pub(crate) fn write(&mut self, ino: Ino, at: u64, data: &[u8]) {
        self.put(&Event::Written { ino, at, data });
    }

    /// Sectors of 512 bytes, all of this byte.
    pub(crate) fn fill(&mut self, ino: Ino, sectors: std::ops::Range<u64>, byte: u8) {
        let count = usize::try_from(sectors.end - sectors.start).unwrap();
        self.write(ino, sectors.start * 512, &vec![byte; count * 512]);
    }

    pub(crate) fn sync(&mut self, ino: Ino) {
        let sync = self.begin_sync(ino);
        self.end_sync(ino, sync, false);
    }

    pub(crate) fn begin_sync(&mut self, ino: Ino) -> u64 {
        self.syncs += 1;
        self.put(&Event::SyncBegun { ino, sync: self.syncs });
        self.syncs
    }

    pub(crate) fn end_sync(&mut self, ino: Ino, sync: u64, data_only: bool) {
        self.put(&Event::SyncEnded { ino, sync, data_only });
    }

    pub(crate) fn cut(&mut self, ino: Ino, size: u64) {
        self.put(&Event::Cut { ino, size });
    }

    pub(crate) fn rename(&mut self, ino: Ino, from: &str, to: &str) {
        self.put(&Event::Moved { ino, from: place(from), to: place(to) });
    }

    pub(crate) fn unlink(&mut self, ino: Ino, name: &str) {
        self.put(&Event::Removed { ino, place: place(name) });
    }

    /// The record, which reaches to now.
    pub(crate) fn record(mut self) -> Vec<u8> {
        self.writer.close(self.now_ns, &Event::Ended).unwrap();
        self.writer.into_inner()
    }
}

/// A disk of a record.
pub(crate) fn disk(record: &Vec<u8>, instant_ns: u64, seed: u64, device: Device) -> Files {
    let medium = Medium::at(record, instant_ns, device).unwrap();
    files(record, &medium, seed)
}

pub(crate) fn files(record: &Vec<u8>, medium: &Medium, seed: u64) -> Files {
    let drawn = draw(medium, seed, &Spared::default());
    let mut found = Files::new();
    let mut look = vec![(ROOT, String::new())];
    while let Some((folder, path)) = look.pop() {
        for ((_, name), ino) in drawn.names.iter().filter(|((above, _), _)| *above == folder) {
            let name = format!("{path}{}", String::from_utf8_lossy(name));
            if medium.nodes[ino].kind == Kind::Folder {
                look.push((*ino, format!("{name}/")));
                found.insert(format!("{name}/"), Vec::new());
                continue;
            }
            let content = &drawn.files[ino];
            let sector_bytes = medium.device.sector_bytes;
            let mut bytes = Vec::new();
            for sector in 0..content.size.div_ceil(sector_bytes) {
                let mut buffer = vec![0; usize::try_from(sector_bytes).unwrap()];
                let lies = content.sectors.get(&sector).copied().unwrap_or(Bytes::Zero);
                medium.read(record, lies, &mut buffer).unwrap();
                bytes.extend(buffer);
            }
            bytes.truncate(usize::try_from(content.size).unwrap());
            found.insert(name, bytes);
        }
    }
    found
}

/// A file of whole sectors, by the first byte of each; which must be all alike.
pub(crate) fn letters(bytes: &[u8]) -> String {
    let of = |sector: &[u8]| {
        assert!(sector.iter().all(|byte| *byte == sector[0]), "torn below the sector");
        if sector[0] == 0 { '0' } else { char::from(sector[0]) }
    };
    bytes.chunks(512).map(of).collect()
}
