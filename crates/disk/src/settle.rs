//! A record, event by event, into what lies on the medium at an instant and what may.
//!
//! `docs/concepts/power-cuts.md` says what settles what; nothing is drawn here.

use std::collections::BTreeMap;

use crate::event::{Event, Ino, Kind, Place, ROOT, Rights, Unreadable};
use crate::file_data::{Bytes, FileData, Order};
use crate::names::{Names, Survival};
use crate::record::{Entry, Reader, Stored, read_exact};

/// The kernel makes no file longer.
const SIZE_MAX: u64 = i64::MAX.cast_unsigned();

/// What the disk is like, and when its power goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Bytes that are written whole or not at all: 512 or 4096.
    pub sector_bytes: u64,
    /// A sync settles only if it returned so long before the cut: 0 where the device is honest.
    pub forgets_ns: u64,
    /// What is older is settled without a sync; None: nothing is.
    pub written_back_ns: Option<u64>,
    /// Which names may survive without others.
    pub names: Survival,
}

impl Device {
    /// An honest one, whose sectors are as small as they come.
    pub const HONEST: Device = Device {
        sector_bytes: 512,
        forgets_ns: 0,
        written_back_ns: None,
        names: Survival::Ordered,
    };
}

/// A file, folder or link.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is.
    pub kind: Kind,
    /// Whose it is.
    pub rights: Rights,
    /// Where a link leads.
    pub target: Vec<u8>,
    /// A file's data.
    pub data: FileData,
}

/// Everything below the data directory at an instant.
pub struct Medium {
    /// What the disk is like.
    pub device: Device,
    /// By number.
    pub nodes: BTreeMap<Ino, Node>,
    /// Their names.
    pub names: Names,
    /// Sectors that were written in part, as they then were.
    pub patched: Vec<Box<[u8]>>,
    syncs: BTreeMap<u64, Order>,
    order: Order,
}

/// The span of a record in which cuts are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When the load began, in ns of the monotonic clock.
    pub begun_ns: u64,
    /// Up to here everything is known.
    pub until_ns: u64,
    /// Whether there was no room for the rest.
    pub full: bool,
    /// Whether its writer came to the end.
    pub ended: bool,
}

/// What time a record spans.
///
/// # Errors
/// It cannot be read, or ends before the load began.
pub fn span<S: Stored + ?Sized>(record: &S) -> Result<Span, Unreadable> {
    let mut reader = Reader::new(record)?;
    let mut begun = None;
    let mut found = Span { begun_ns: 0, until_ns: 0, full: false, ended: false };
    while let Some(entry) = reader.next_entry()? {
        found.until_ns = entry.time_ns;
        match entry.event {
            Event::Begun => begun = Some(entry.time_ns),
            Event::Full => found.full = true,
            Event::Ended => found.ended = true,
            _ => {}
        }
        if found.full {
            break;
        }
    }
    match begun {
        Some(begun_ns) => Ok(Span { begun_ns, ..found }),
        None => Err(Unreadable("the record ends before the load begins".into())),
    }
}

impl Medium {
    /// Read a record up to an instant.
    ///
    /// # Errors
    /// It cannot be read, or does not reach so far.
    pub fn at<S: Stored + ?Sized>(
        record: &S,
        instant_ns: u64,
        device: Device,
    ) -> Result<Self, Unreadable> {
        let mut medium = Self::empty(device);
        let mut reader = Reader::new(record)?;
        let sure_ns = instant_ns.saturating_sub(device.forgets_ns);
        let old_ns = device.written_back_ns.map(|ns| instant_ns.saturating_sub(ns));
        let (mut aged, mut begun, mut known_ns) = (old_ns.is_none(), false, 0);
        while let Some(entry) = reader.next_entry()? {
            known_ns = entry.time_ns;
            if entry.event == Event::Full {
                known_ns = known_ns.saturating_sub(1); // what was left out happened then
                break;
            }
            if entry.time_ns > instant_ns {
                break;
            }
            if !aged && old_ns.is_some_and(|old_ns| entry.time_ns > old_ns) {
                medium.settle_all();
                aged = true;
            }
            begun |= entry.event == Event::Begun;
            medium.take(record, &entry, entry.time_ns <= sure_ns)?;
        }
        if !aged {
            medium.settle_all();
        }
        if !begun {
            return Err(Unreadable(format!("at {instant_ns} ns the load had not begun")));
        }
        if instant_ns > known_ns {
            return Err(Unreadable(format!(
                "the record ends at {known_ns} ns, before the instant {instant_ns} ns"
            )));
        }
        Ok(medium)
    }

    fn empty(device: Device) -> Self {
        let rights = Rights { mode: 0o700, uid: 0, gid: 0 };
        let root = Node { kind: Kind::Folder, rights, target: vec![], data: FileData::default() };
        Self {
            device,
            nodes: BTreeMap::from([(ROOT, root)]),
            names: Names::new(device.names),
            patched: Vec::new(),
            syncs: BTreeMap::new(),
            order: 0,
        }
    }

    fn take<S: Stored + ?Sized>(
        &mut self,
        record: &S,
        entry: &Entry,
        sure: bool,
    ) -> Result<(), Unreadable> {
        self.order += 1;
        let order = self.order;
        match entry.event {
            Event::Made { ino, kind, rights, target } => {
                let data = FileData::default();
                self.nodes.insert(ino, Node { kind, rights, target: target.to_vec(), data });
            }
            Event::Owned { ino, rights } => self.node(ino)?.rights = rights,
            Event::Added { ino, place } => {
                self.names.put(order, ino, vec![(own(place), Some(ino))]);
            }
            Event::Removed { ino, place } => self.names.put(order, ino, vec![(own(place), None)]),
            Event::Moved { ino, from, to } => {
                self.names.put(order, ino, vec![(own(from), None), (own(to), Some(ino))]);
            }
            Event::Cut { ino, size } => self.cut(record, order, ino, size)?,
            Event::Grown { ino, size } => self.node(ino)?.data.grow(order, size),
            Event::Written { ino, at, data } => {
                self.write(record, order, ino, at, data, entry.data_at)?;
            }
            Event::SyncBegun { sync, .. } => {
                self.syncs.insert(sync, order);
            }
            Event::SyncEnded { ino, sync, data_only } => {
                let begun = self.syncs.remove(&sync);
                if let Some(begun) = begun.filter(|_| sure) {
                    self.settle(ino, begun, data_only);
                }
            }
            Event::Begun => self.settle_all(),
            Event::Full | Event::Ended => {}
        }
        Ok(())
    }

    fn node(&mut self, ino: Ino) -> Result<&mut Node, Unreadable> {
        self.nodes.get_mut(&ino).ok_or_else(|| Unreadable(format!("file {ino} was never made")))
    }

    fn write<S: Stored + ?Sized>(
        &mut self,
        record: &S,
        order: Order,
        ino: Ino,
        at: u64,
        data: &[u8],
        data_at: u64,
    ) -> Result<(), Unreadable> {
        let sector_bytes = self.device.sector_bytes;
        let end = at.saturating_add(data.len() as u64);
        if end > SIZE_MAX {
            return Err(Unreadable(format!("file {ino} has no byte {end}")));
        }
        for sector in at / sector_bytes..end.div_ceil(sector_bytes) {
            let (begin, stop) = (sector * sector_bytes, (sector + 1) * sector_bytes);
            let bytes = if at <= begin && stop <= end {
                Bytes::Record(data_at + (begin - at))
            } else {
                let (from, to) = (begin.max(at), stop.min(end));
                let part = &data[index(from - at)..index(to - at)];
                self.patch(record, ino, sector, from - begin, part)?
            };
            self.node(ino)?.data.write(order, sector, bytes);
        }
        self.node(ino)?.data.grow(order, end);
        Ok(())
    }

    /// A sector of which a part is written over.
    fn patch<S: Stored + ?Sized>(
        &mut self,
        record: &S,
        ino: Ino,
        sector: u64,
        at: u64,
        part: &[u8],
    ) -> Result<Bytes, Unreadable> {
        let sector_bytes = self.device.sector_bytes;
        let newest = self.node(ino)?.data.newest(sector, sector_bytes);
        let mut whole = vec![0; index(sector_bytes)];
        self.read(record, newest, &mut whole)?;
        whole[index(at)..index(at) + part.len()].copy_from_slice(part);
        self.patched.push(whole.into());
        Ok(Bytes::Patched(self.patched.len() - 1))
    }

    /// The bytes of a sector, or of several that follow each other in the record.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn read<S: Stored + ?Sized>(
        &self,
        record: &S,
        bytes: Bytes,
        into: &mut [u8],
    ) -> Result<(), Unreadable> {
        match bytes {
            Bytes::Zero => into.fill(0),
            Bytes::Patched(number) => into.copy_from_slice(&self.patched[number]),
            Bytes::Record(at) => {
                read_exact(record, into, at).map_err(|error| Unreadable(error.to_string()))?;
            }
        }
        Ok(())
    }

    fn cut<S: Stored + ?Sized>(
        &mut self,
        record: &S,
        order: Order,
        ino: Ino,
        size: u64,
    ) -> Result<(), Unreadable> {
        let sector_bytes = self.device.sector_bytes;
        let within = size % sector_bytes;
        if within != 0 && size < self.node(ino)?.data.size() {
            let zeroes = vec![0; index(sector_bytes - within)];
            let bytes = self.patch(record, ino, size / sector_bytes, within, &zeroes)?;
            self.node(ino)?.data.write(order, size / sector_bytes, bytes);
        }
        self.node(ino)?.data.cut(order, size);
        self.names.put(order, ino, vec![]);
        Ok(())
    }

    /// A sync of a file or folder that began then has returned.
    fn settle(&mut self, ino: Ino, begun: Order, data_only: bool) {
        let folder = self.nodes.get(&ino).is_some_and(|node| node.kind == Kind::Folder);
        self.settle_names(|one| {
            let its =
                one.ino == ino || one.entries.iter().any(|(_, becomes)| *becomes == Some(ino));
            let within = folder && one.entries.iter().any(|((of, _), _)| *of == ino);
            one.order < begun && (within || its && (!data_only || one.entries.is_empty()))
        });
        if let Some(node) = self.nodes.get_mut(&ino) {
            node.data.settle(begun);
        }
    }

    fn settle_names(&mut self, wanted: impl Fn(&crate::names::Operation) -> bool) {
        for operation in self.names.settle(wanted) {
            if let Some(node) = self.nodes.get_mut(&operation.ino)
                && operation.entries.is_empty()
            {
                node.data.settle_cut(operation.order, self.device.sector_bytes);
            }
        }
    }

    fn settle_all(&mut self) {
        let before = self.order + 1;
        self.settle_names(|_| true);
        for node in self.nodes.values_mut() {
            node.data.settle(before);
        }
    }
}

fn own(place: Place) -> (Ino, Vec<u8>) {
    (place.folder, place.name.to_vec())
}

/// An offset within something that lies in memory.
fn index(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
