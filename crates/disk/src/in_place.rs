//! The disk of a live cut, made in place: what was recorded is itself brought to what the power
//! left, and handed back.
//!
//! [`crate::make`] writes a disk anew; this changes what differs, in place, so that the two can be
//! held against each other: they are equal where the record has all that was asked of the folder.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::choice::{Content, Drawn, Spared, draw};
use crate::event::{Ino, Kind, ROOT};
use crate::file_data::Bytes;
use crate::make::{
    Made, MakeSpec, Out, drawn_of, entries, joined, open_child, opened, require_tree, told,
};
use crate::owner::{Owner, with_rights_of};
use crate::record::Stored;
use crate::settle::Medium;

/// Bring a folder to what the power left of it.
///
/// # Errors
/// The record cannot be read, does not reach so far, or is not that of the folder; or the folder
/// cannot be changed: it is no disk then.
pub fn hand_back(spec: &MakeSpec) -> Result<Made, String> {
    let (folder, record) = opened(spec)?;
    let (medium, drawn) = drawn_of(spec, &record)?;
    let disk = open_child(folder.as_fd(), OsStr::new(&spec.disk));
    let done = disk.and_then(|disk| {
        let owner = Owner::other(disk.as_fd())?;
        with_rights_of(owner, || changed(&medium, &drawn, &record, disk.as_fd()))
    });
    done.map_err(|error| format!("disk {} cannot be handed back: {error}", spec.disk))?;
    Ok(told(&drawn, spec.named_max))
}

/// Change a folder that is as it was last into a disk that was drawn.
///
/// # Errors
/// The system says no, or the folder is another.
pub fn changed<S: Stored + ?Sized>(
    medium: &Medium,
    drawn: &Drawn,
    record: &S,
    folder: BorrowedFd,
) -> io::Result<()> {
    let everything = std::iter::once(0..u64::MAX).collect();
    let last = draw(medium, 0, &Spared { names: true, blocks: everything });
    require_tree(medium, &last.names).map_err(io::Error::other)?;
    let out = Out::new(medium, drawn, record, folder);
    let mut change = Change { medium, drawn, record, last, out };
    change.keep(ROOT, OsStr::new(""));
    change.remove(ROOT, folder)?;
    change.write(ROOT, folder, OsStr::new(""))
}

struct Change<'a, S: Stored + ?Sized> {
    medium: &'a Medium,
    drawn: &'a Drawn,
    record: &'a S,
    /// As it was last.
    last: Drawn,
    out: Out<'a, S>,
}

impl<S: Stored + ?Sized> Change<'_, S> {
    /// Names of a folder that stay, and lead to what they led to.
    fn kept(&self, folder: Ino) -> BTreeMap<OsString, Ino> {
        entries(&self.drawn.names, folder)
            .filter(|(entry, ino)| self.last.names.get(entry) == Some(ino))
            .map(|((_, name), ino)| (OsStr::from_bytes(name).to_os_string(), *ino))
            .collect()
    }

    fn kind(&self, ino: Ino) -> Option<Kind> {
        self.medium.nodes.get(&ino).map(|node| node.kind)
    }

    /// What stays may get further names.
    fn keep(&mut self, folder: Ino, path: &OsStr) {
        for (name, ino) in self.kept(folder) {
            let path = joined(path, &name);
            if self.kind(ino) == Some(Kind::Folder) {
                self.keep(ino, &path);
            }
            self.out.written.insert(ino, path);
        }
    }

    /// Remove what is not there on the disk.
    fn remove(&self, folder: Ino, handle: BorrowedFd) -> io::Result<()> {
        let kept = self.kept(folder);
        for ((_, name), ino) in entries(&self.last.names, folder) {
            let name = OsStr::from_bytes(name);
            let is_folder = self.kind(*ino) == Some(Kind::Folder);
            if kept.contains_key(name) {
                if is_folder {
                    self.remove(*ino, open_child(handle, name)?.as_fd())?;
                }
                continue;
            }
            if is_folder {
                self.clear(*ino, open_child(handle, name)?.as_fd())?;
            }
            let how = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            rustix::fs::unlinkat(handle, name, how)?;
        }
        Ok(())
    }

    /// Remove all that lies in a folder that goes.
    fn clear(&self, folder: Ino, handle: BorrowedFd) -> io::Result<()> {
        for ((_, name), ino) in entries(&self.last.names, folder) {
            let name = OsStr::from_bytes(name);
            let is_folder = self.kind(*ino) == Some(Kind::Folder);
            if is_folder {
                self.clear(*ino, open_child(handle, name)?.as_fd())?;
            }
            let how = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            rustix::fs::unlinkat(handle, name, how)?;
        }
        Ok(())
    }

    /// Change what stays, and add what is missing.
    fn write(&mut self, folder: Ino, handle: BorrowedFd, path: &OsStr) -> io::Result<()> {
        let kept = self.kept(folder);
        let drawn = self.drawn;
        for ((_, name), ino) in entries(&drawn.names, folder) {
            let name = OsStr::from_bytes(name);
            let path = joined(path, name);
            match (kept.contains_key(name), self.kind(*ino)) {
                (false, _) => self.out.entry(*ino, handle, name, path)?,
                (true, Some(Kind::Folder)) => {
                    let below = open_child(handle, name)?;
                    self.write(*ino, below.as_fd(), &path)?;
                }
                (true, Some(Kind::File)) => self.patch(*ino, handle, name)?,
                (true, _) => {}
            }
        }
        Ok(())
    }

    fn patch(&self, ino: Ino, above: BorrowedFd, name: &OsStr) -> io::Result<()> {
        let nothing = Content { size: 0, sectors: BTreeMap::new() };
        let was = self.last.files.get(&ino).unwrap_or(&nothing);
        let becomes = self.drawn.files.get(&ino).unwrap_or(&nothing);
        if was == becomes {
            return Ok(());
        }
        let how = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(above, name, how, Mode::empty())?);
        if file.metadata()?.len() != was.size {
            return Err(io::Error::other(format!(
                "{} has not the {} bytes of the record",
                name.display(),
                was.size
            )));
        }
        file.set_len(becomes.size)?;
        let sector_bytes = self.medium.device.sector_bytes;
        let mut buffer = vec![0; usize::try_from(sector_bytes).unwrap_or(0)];
        let sectors: BTreeSet<u64> =
            was.sectors.keys().chain(becomes.sectors.keys()).copied().collect();
        for sector in sectors {
            let at = sector * sector_bytes;
            let bytes = becomes.sectors.get(&sector).copied();
            if bytes == was.sectors.get(&sector).copied() || at >= becomes.size {
                continue;
            }
            let read = self.medium.read(self.record, bytes.unwrap_or(Bytes::Zero), &mut buffer);
            read.map_err(io::Error::other)?;
            let length = usize::try_from(sector_bytes.min(becomes.size - at)).unwrap_or(0);
            file.write_all_at(&buffer[..length], at)?;
        }
        Ok(())
    }
}
