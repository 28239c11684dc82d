//! A disk that was drawn, as files in a folder.
//!
//! The folder is new, and all below is opened relative to it, without links: what a link in the
//! record names is never looked at.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice::{Content, Drawn, LostBlock, Spared, draw};
use crate::event::{Ino, Kind, ROOT, Rights, Unreadable, is_name};
use crate::file_data::Bytes;
use crate::names::{Entry, Survival};
use crate::owner::{Owner, give, with_rights_of};
use crate::record::Stored;
use crate::settle::{Device, Medium, Node, span};

const COPY_SECTORS: usize = 1024;
/// No data directory is so deep; what is could not be walked.
const DEPTH_MAX: usize = 256;

/// A disk that is wanted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MakeSpec {
    /// A folder that nobody else can change.
    pub folder: PathBuf,
    /// Name of the record in it.
    pub record: String,
    /// Name of the disk, which is made in it.
    pub disk: String,
    /// When the power goes, in ns of the monotonic clock.
    pub instant_ns: u64,
    /// Which disk of those that are possible.
    pub seed: u64,
    /// Bytes that the device writes whole or not at all.
    #[schemars(range(min = 512, max = 4096))]
    pub sector_bytes: u64,
    /// For so long the device forgets what it acknowledged; 0: it is honest.
    pub forgets_ns: u64,
    /// What is older is on the medium without a sync; None: nothing is.
    pub written_back_ns: Option<u64>,
    /// Whether names survive in their order, as with one journal.
    pub names_ordered: bool,
    /// Whether names and sizes are spared: as they were last, whatever was drawn.
    #[serde(default)]
    pub names_spared: bool,
    /// Blocks that are spared: from, to (not included), among those that were to lose something.
    #[serde(default)]
    pub blocks_spared: Vec<(u64, u64)>,
    /// How many of the blocks that lost something are to be named.
    #[serde(default)]
    pub named_max: usize,
}

/// How much was left to chance, and what came of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Made {
    /// Operations on names, and truncations, that could be lost.
    pub names_open: u64,
    /// Of these, lost.
    pub names_lost: u64,
    /// Sectors that had more than one state.
    pub sectors_open: u64,
    /// Of these, not as they were last.
    pub sectors_lost: u64,
    /// Blocks of 8 KiB whose sectors are of different times.
    pub blocks_torn: u64,
    /// Blocks that were to lose something, before any was spared.
    pub blocks_lost: u64,
    /// The first blocks that lost something.
    pub named: Vec<NamedBlock>,
}

/// A block of which something was lost.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NamedBlock {
    /// Path of its file.
    pub path: String,
    /// Number of the block of 8 KiB in it.
    pub block: u64,
    /// Sectors that had more than one state.
    pub sectors_open: u64,
    /// Of these, not as they were last.
    pub sectors_lost: u64,
}

/// The time in which cuts are possible.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecordSpan {
    /// When the load began, in ns of the monotonic clock.
    pub begun_ns: u64,
    /// Up to here everything is known.
    pub until_ns: u64,
    /// Whether there was no room for the rest.
    pub full: bool,
    /// Whether the recorder came to its end.
    pub ended: bool,
}

/// Make a disk as of an instant.
///
/// # Errors
/// The record cannot be read or does not reach so far, or the disk cannot be written; what is there
/// of it then is no disk.
pub fn make(spec: &MakeSpec) -> Result<Made, String> {
    let (folder, record) = opened(spec)?;
    let (medium, drawn) = drawn_of(spec, &record)?;
    let unwritten = |error| format!("disk {} cannot be written: {error}", spec.disk);
    rustix::fs::mkdirat(&folder, &spec.disk, Mode::RWXU)
        .map_err(io::Error::from)
        .map_err(unwritten)?;
    let disk = open_child(folder.as_fd(), OsStr::new(&spec.disk)).map_err(unwritten)?;
    let owner = Owner::other(record.as_fd()).map_err(unwritten)?;
    give(disk.as_fd(), owner).map_err(unwritten)?;
    with_rights_of(owner, || write_disk(&medium, &drawn, &record, disk.as_fd()))
        .map_err(unwritten)?;
    Ok(told(&drawn, spec.named_max))
}

/// The folder, and the record in it.
///
/// # Errors
/// They cannot be opened, or the disk's name is a path.
pub(crate) fn opened(spec: &MakeSpec) -> Result<(OwnedFd, File), String> {
    require_name(&spec.disk)?;
    let folder = open_folder(&spec.folder)?;
    let record = open_record(folder.as_fd(), &spec.record)?;
    Ok((folder, record))
}

/// What the record tells of the instant, and the disk that the seed draws of it.
///
/// # Errors
/// The record cannot be read or does not reach so far, or tells what its owner could not have done.
pub(crate) fn drawn_of(spec: &MakeSpec, record: &File) -> Result<(Medium, Drawn), String> {
    if ![512, 4096].contains(&spec.sector_bytes) {
        return Err(format!("a sector has 512 or 4096 bytes, not {}", spec.sector_bytes));
    }
    let survival = if spec.names_ordered { Survival::Ordered } else { Survival::Alone };
    let device = Device {
        sector_bytes: spec.sector_bytes,
        forgets_ns: spec.forgets_ns,
        written_back_ns: spec.written_back_ns,
        names: survival,
    };
    let unreadable = |error| format!("record {} cannot be read: {error}", spec.record);
    let medium = Medium::at(record, spec.instant_ns, device).map_err(unreadable)?;
    let spared = Spared {
        names: spec.names_spared,
        blocks: spec.blocks_spared.iter().map(|(from, to)| *from..*to).collect(),
    };
    let drawn = draw(&medium, spec.seed, &spared);
    let owner = Owner::other(record.as_fd())
        .map_err(|error| format!("record {} cannot be read: {error}", spec.record))?;
    require_tree(&medium, &drawn.names).map_err(unreadable)?;
    require_possible(owner, &medium, &drawn.names).map_err(unreadable)?;
    Ok((medium, drawn))
}

/// Refuse folders that lie in themselves or in several, or too deep to be walked.
///
/// # Errors
/// There are such.
pub(crate) fn require_tree(
    medium: &Medium,
    names: &BTreeMap<Entry, Ino>,
) -> Result<(), Unreadable> {
    let (mut seen, mut look) = (BTreeSet::from([ROOT]), vec![(ROOT, 0)]);
    while let Some((folder, depth)) = look.pop() {
        for (_, ino) in entries(names, folder) {
            if medium.nodes.get(ino).is_none_or(|node| node.kind != Kind::Folder) {
                continue;
            }
            if !seen.insert(*ino) {
                return Err(Unreadable(format!("folder {ino} lies in several folders")));
            }
            if depth == DEPTH_MAX {
                return Err(Unreadable(format!("folder {ino} lies below {DEPTH_MAX} others")));
            }
            look.push((*ino, depth + 1));
        }
    }
    Ok(())
}

/// Refuse rights that the user who can write the record could not have given.
fn require_possible(
    owner: Option<Owner>,
    medium: &Medium,
    names: &BTreeMap<Entry, Ino>,
) -> Result<(), Unreadable> {
    let Some(owner) = owner else { return Ok(()) };
    for ino in std::iter::once(&ROOT).chain(names.values()) {
        let Some(node) = medium.nodes.get(ino) else { continue };
        if !owner.can_give(node.rights, node.kind) {
            let (Rights { mode, uid, gid }, Owner { uid: user, gid: group }) = (node.rights, owner);
            return Err(Unreadable(format!(
                "file {ino} has user {uid}, group {gid} and mode {mode:o}, which user {user} of \
                 group {group}, who can write the record, could not have given it"
            )));
        }
    }
    Ok(())
}

/// What is told of a disk.
pub(crate) fn told(drawn: &Drawn, named_max: usize) -> Made {
    let figures = drawn.figures;
    Made {
        names_open: figures.names_open,
        names_lost: figures.names_lost,
        sectors_open: figures.sectors_open,
        sectors_lost: figures.sectors_lost,
        blocks_torn: figures.blocks_torn,
        blocks_lost: figures.blocks_lost,
        named: drawn.lost.iter().take(named_max).map(|one| named(drawn, one)).collect(),
    }
}

fn named(drawn: &Drawn, lost: &LostBlock) -> NamedBlock {
    NamedBlock {
        path: path_of(&drawn.names, lost.ino),
        block: lost.block,
        sectors_open: lost.sectors_open,
        sectors_lost: lost.sectors_lost,
    }
}

/// One of its paths.
fn path_of(names: &BTreeMap<Entry, Ino>, ino: Ino) -> String {
    let mut parts = Vec::new();
    let mut at = ino;
    // What lies in no folder that is there may lie in itself.
    while at != ROOT && parts.len() < DEPTH_MAX {
        let Some(((folder, name), _)) = names.iter().find(|(_, child)| **child == at) else {
            break;
        };
        parts.push(String::from_utf8_lossy(name).into_owned());
        at = *folder;
    }
    parts.reverse();
    parts.join("/")
}

/// What time a record spans.
///
/// # Errors
/// It cannot be read.
pub fn record_span(folder: &Path, record: &str) -> Result<RecordSpan, String> {
    let folder = open_folder(folder)?;
    let file = open_record(folder.as_fd(), record)?;
    let found = span(&file).map_err(|error| format!("record {record} cannot be read: {error}"))?;
    // What was left out happened then.
    let until_ns = found.until_ns.saturating_sub(u64::from(found.full));
    let (begun_ns, full, ended) = (found.begun_ns, found.full, found.ended);
    Ok(RecordSpan { begun_ns, until_ns, full, ended })
}

fn open_folder(path: &Path) -> Result<OwnedFd, String> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, how, Mode::empty())
        .map_err(|error| format!("folder {} cannot be opened: {error}", path.display()))
}

fn open_record(folder: BorrowedFd, name: &str) -> Result<File, String> {
    require_name(name)?;
    let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, how, Mode::empty())
        .map(File::from)
        .map_err(|error| format!("record {name} cannot be opened: {error}"))
}

/// Refuse what is a path.
///
/// # Errors
/// It is no plain name.
pub fn require_name(name: &str) -> Result<(), String> {
    if !is_name(name.as_bytes()) {
        return Err(format!("{name:?} is no name in a folder"));
    }
    Ok(())
}

pub(crate) fn open_child(folder: BorrowedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(folder, name, how, Mode::empty())?)
}

/// Write a disk into an empty folder.
///
/// # Errors
/// The system says no.
pub fn write_disk<S: Stored + ?Sized>(
    medium: &Medium,
    drawn: &Drawn,
    record: &S,
    folder: BorrowedFd,
) -> io::Result<()> {
    let mut out = Out::new(medium, drawn, record, folder);
    out.folder(ROOT, folder, &OsString::new())?;
    own(folder, medium.nodes[&ROOT].rights)
}

/// Writes parts of a disk.
pub(crate) struct Out<'a, S: Stored + ?Sized> {
    medium: &'a Medium,
    drawn: &'a Drawn,
    record: &'a S,
    top: BorrowedFd<'a>,
    /// Where a file or folder got its first name.
    pub(crate) written: HashMap<Ino, OsString>,
}

impl<'a, S: Stored + ?Sized> Out<'a, S> {
    /// Below a folder.
    pub(crate) fn new(
        medium: &'a Medium,
        drawn: &'a Drawn,
        record: &'a S,
        top: BorrowedFd<'a>,
    ) -> Self {
        Self { medium, drawn, record, top, written: HashMap::new() }
    }

    fn folder(&mut self, ino: Ino, above: BorrowedFd, path: &OsStr) -> io::Result<()> {
        let drawn = self.drawn;
        for ((_, name), child) in entries(&drawn.names, ino) {
            let name = OsStr::from_bytes(name);
            self.entry(*child, above, name, joined(path, name))?;
        }
        Ok(())
    }

    /// One name of a folder, and all that lies below.
    ///
    /// # Errors
    /// The system says no.
    pub(crate) fn entry(
        &mut self,
        ino: Ino,
        above: BorrowedFd,
        name: &OsStr,
        path: OsString,
    ) -> io::Result<()> {
        let Some(node) = self.medium.nodes.get(&ino) else { return Ok(()) };
        match node.kind {
            Kind::Folder if self.written.contains_key(&ino) => {} // a record of nobody's
            Kind::Folder => {
                self.written.insert(ino, path.clone());
                rustix::fs::mkdirat(above, name, Mode::RWXU)?;
                let made = open_child(above, name)?;
                self.folder(ino, made.as_fd(), &path)?;
                own(made.as_fd(), node.rights)?;
            }
            Kind::Link => {
                rustix::fs::symlinkat(OsStr::from_bytes(&node.target), above, name)?;
                let (user, group) = owner(node.rights);
                rustix::fs::chownat(above, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            Kind::File => self.file(ino, node, above, name, path)?,
        }
        Ok(())
    }

    fn file(
        &mut self,
        ino: Ino,
        node: &Node,
        above: BorrowedFd,
        name: &OsStr,
        path: OsString,
    ) -> io::Result<()> {
        if let Some(first) = self.written.get(&ino) {
            return Ok(rustix::fs::linkat(self.top, first, above, name, AtFlags::empty())?);
        }
        let how =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(above, name, how, Mode::RUSR | Mode::WUSR)?);
        if let Some(content) = self.drawn.files.get(&ino) {
            self.content(content, &file)?;
        }
        self.written.insert(ino, path);
        own(file.as_fd(), node.rights)
    }

    fn content(&self, content: &Content, file: &File) -> io::Result<()> {
        let sector_bytes = self.medium.device.sector_bytes;
        file.set_len(content.size)?;
        let mut buffer = Vec::new();
        let sectors: Vec<(u64, Bytes)> =
            content.sectors.iter().map(|(at, one)| (*at, *one)).collect();
        for run in sectors.chunk_by(|one, next| follows(*one, *next, sector_bytes)) {
            for part in run.chunks(COPY_SECTORS) {
                let at = part[0].0 * sector_bytes;
                let bytes = (part.len() as u64 * sector_bytes).min(content.size - at);
                buffer.resize(part.len() * usize::try_from(sector_bytes).unwrap_or(0), 0);
                self.medium.read(self.record, part[0].1, &mut buffer).map_err(io::Error::other)?;
                file.write_all_at(&buffer[..usize::try_from(bytes).unwrap_or(0)], at)?;
            }
        }
        Ok(())
    }
}

/// Whether a sector lies behind another, in its file and in the record.
fn follows(one: (u64, Bytes), next: (u64, Bytes), sector_bytes: u64) -> bool {
    match (one.1, next.1) {
        (Bytes::Record(at), Bytes::Record(then)) => {
            next.0 == one.0 + 1 && then == at + sector_bytes
        }
        _ => false,
    }
}

/// A path with one more name.
pub(crate) fn joined(path: &OsStr, name: &OsStr) -> OsString {
    let mut below = path.to_os_string().into_vec();
    if !below.is_empty() {
        below.push(b'/');
    }
    below.extend_from_slice(name.as_bytes());
    OsString::from_vec(below)
}

/// The names of a folder.
pub(crate) fn entries(
    names: &BTreeMap<Entry, Ino>,
    folder: Ino,
) -> impl Iterator<Item = (&Entry, &Ino)> {
    names.range((folder, Vec::new())..).take_while(move |((of, _), _)| *of == folder)
}

fn owner(rights: Rights) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(rights.uid)), Some(Gid::from_raw(rights.gid)))
}

fn own(what: BorrowedFd, rights: Rights) -> io::Result<()> {
    let (user, group) = owner(rights);
    rustix::fs::fchown(what, user, group)?;
    Ok(rustix::fs::fchmod(what, Mode::from_raw_mode(rights.mode & 0o7777))?)
}
