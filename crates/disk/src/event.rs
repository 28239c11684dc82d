//! What was asked of a file system, one event at a time, and how it is written down.
//!
//! All numbers are little endian. An event is: its length in bytes (u32, all of it), its kind (u8),
//! its time (u64, ns of the monotonic clock), and its fields in the order of [`Event`]; bytes of
//! unknown length come last, or after their length (u16).

use std::fmt;

/// A file, folder or link below the data directory. Never used twice in one record.
pub type Ino = u64;

/// The data directory itself.
pub const ROOT: Ino = 1;

/// What an [`Ino`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
}

/// Whose something is, and who may do what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Permissions, without the file's kind.
    pub mode: u32,
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A name in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The folder.
    pub folder: Ino,
    /// The name in it.
    pub name: &'a [u8],
}

/// One call that changed something, or settled it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Something was made; it has no name yet.
    Made {
        /// Its number.
        ino: Ino,
        /// What it is.
        kind: Kind,
        /// Whose it is.
        rights: Rights,
        /// Where a link leads; else empty.
        target: &'a [u8],
    },
    /// It got a name.
    Added {
        /// What.
        ino: Ino,
        /// The name.
        place: Place<'a>,
    },
    /// It lost a name.
    Removed {
        /// What.
        ino: Ino,
        /// The name.
        place: Place<'a>,
    },
    /// It got another name; what had that one lost it.
    Moved {
        /// What.
        ino: Ino,
        /// The old name.
        from: Place<'a>,
        /// The new name.
        to: Place<'a>,
    },
    /// Rights were changed.
    Owned {
        /// Of what.
        ino: Ino,
        /// As they are now.
        rights: Rights,
    },
    /// A file was made shorter.
    Cut {
        /// The file.
        ino: Ino,
        /// Its size in bytes.
        size: u64,
    },
    /// A file was made longer, without data.
    Grown {
        /// The file.
        ino: Ino,
        /// Its size in bytes.
        size: u64,
    },
    /// Data were written.
    Written {
        /// The file.
        ino: Ino,
        /// Where the data begin.
        at: u64,
        /// The data.
        data: &'a [u8],
    },
    /// A sync of a file or folder began.
    SyncBegun {
        /// The file or folder.
        ino: Ino,
        /// Number of this sync.
        sync: u64,
    },
    /// The sync returned without an error.
    SyncEnded {
        /// The file or folder.
        ino: Ino,
        /// Number of this sync.
        sync: u64,
        /// Whether it was `fdatasync`.
        data_only: bool,
    },
    /// The load begins: whatever came before lies on the medium.
    Begun,
    /// Nothing more is recorded, since there was no room: later instants are not known.
    Full,
    /// The file system was unmounted.
    Ended,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable(pub String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

/// Bytes before the fields: length, kind, time.
pub const HEAD_BYTES: usize = 13;

impl Event<'_> {
    fn kind(&self) -> u8 {
        match self {
            Event::Made { .. } => 1,
            Event::Added { .. } => 2,
            Event::Removed { .. } => 3,
            Event::Moved { .. } => 4,
            Event::Owned { .. } => 5,
            Event::Cut { .. } => 6,
            Event::Grown { .. } => 7,
            Event::Written { .. } => 8,
            Event::SyncBegun { .. } => 9,
            Event::SyncEnded { .. } => 10,
            Event::Begun => 11,
            Event::Full => 12,
            Event::Ended => 13,
        }
    }

    /// Everything but the data of a write, which follow it.
    ///
    /// # Panics
    /// A name or an event is longer than the kernel lets any be.
    pub fn encode(&self, time_ns: u64, into: &mut Vec<u8>) {
        let (begin, data) = (into.len(), self.data().len());
        into.extend_from_slice(&[0; 4]);
        into.push(self.kind());
        into.extend_from_slice(&time_ns.to_le_bytes());
        self.encode_fields(into);
        let bytes = u32::try_from(into.len() - begin + data).expect("an event below 4 GiB");
        into[begin..begin + 4].copy_from_slice(&bytes.to_le_bytes());
    }

    fn encode_fields(&self, into: &mut Vec<u8>) {
        let number = |into: &mut Vec<u8>, value: u64| into.extend_from_slice(&value.to_le_bytes());
        let rights = |into: &mut Vec<u8>, of: &Rights| {
            for value in [of.mode, of.uid, of.gid] {
                into.extend_from_slice(&value.to_le_bytes());
            }
        };
        let place = |into: &mut Vec<u8>, of: &Place| {
            into.extend_from_slice(&of.folder.to_le_bytes());
            let bytes = u16::try_from(of.name.len()).expect("a name below 64 KiB");
            into.extend_from_slice(&bytes.to_le_bytes());
            into.extend_from_slice(of.name);
        };
        match self {
            Event::Made { ino, kind, rights: of, target } => {
                number(into, *ino);
                into.push(*kind as u8);
                rights(into, of);
                into.extend_from_slice(target);
            }
            Event::Added { ino, place: at } | Event::Removed { ino, place: at } => {
                number(into, *ino);
                place(into, at);
            }
            Event::Moved { ino, from, to } => {
                number(into, *ino);
                place(into, from);
                place(into, to);
            }
            Event::Owned { ino, rights: of } => {
                number(into, *ino);
                rights(into, of);
            }
            Event::Cut { ino, size } | Event::Grown { ino, size } => {
                number(into, *ino);
                number(into, *size);
            }
            Event::Written { ino, at, .. } => {
                number(into, *ino);
                number(into, *at);
            }
            Event::SyncBegun { ino, sync } => {
                number(into, *ino);
                number(into, *sync);
            }
            Event::SyncEnded { ino, sync, data_only } => {
                number(into, *ino);
                number(into, *sync);
                into.push(u8::from(*data_only));
            }
            Event::Begun | Event::Full | Event::Ended => {}
        }
    }

    /// What a write carries; of all others nothing.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        if let Event::Written { data, .. } = self { data } else { &[] }
    }
}

/// An event from its kind and its fields.
///
/// # Errors
/// They are not those of an event.
pub fn decode(kind: u8, fields: &[u8]) -> Result<Event<'_>, Unreadable> {
    let mut rest = Fields { rest: fields };
    let event = match kind {
        1 => Event::Made {
            ino: rest.number()?,
            kind: match rest.byte()? {
                0 => Kind::File,
                1 => Kind::Folder,
                2 => Kind::Link,
                other => return Err(Unreadable(format!("{other} is no kind of file"))),
            },
            rights: rest.rights()?,
            target: rest.all(),
        },
        2 => Event::Added { ino: rest.number()?, place: rest.place()? },
        3 => Event::Removed { ino: rest.number()?, place: rest.place()? },
        4 => Event::Moved { ino: rest.number()?, from: rest.place()?, to: rest.place()? },
        5 => Event::Owned { ino: rest.number()?, rights: rest.rights()? },
        6 => Event::Cut { ino: rest.number()?, size: rest.number()? },
        7 => Event::Grown { ino: rest.number()?, size: rest.number()? },
        8 => Event::Written { ino: rest.number()?, at: rest.number()?, data: rest.all() },
        9 => Event::SyncBegun { ino: rest.number()?, sync: rest.number()? },
        10 => Event::SyncEnded {
            ino: rest.number()?,
            sync: rest.number()?,
            data_only: rest.byte()? != 0,
        },
        11 => Event::Begun,
        12 => Event::Full,
        13 => Event::Ended,
        other => return Err(Unreadable(format!("{other} is no kind of event"))),
    };
    if rest.rest.is_empty() {
        return Ok(event);
    }
    Err(Unreadable(format!("an event of kind {kind} has {} bytes too many", rest.rest.len())))
}

/// Whether a folder can have something by this name: it is no path, and leads nowhere else.
#[must_use]
pub fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

/// Bytes of a write before its data.
pub const WRITTEN_FIELDS_BYTES: usize = 16;

struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Unreadable> {
        let Some((taken, rest)) = self.rest.split_at_checked(bytes) else {
            return Err(Unreadable(format!("an event lacks {bytes} bytes")));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    fn number(&mut self) -> Result<u64, Unreadable> {
        Ok(u64::from_le_bytes(self.fixed()?))
    }

    fn byte(&mut self) -> Result<u8, Unreadable> {
        Ok(self.fixed::<1>()?[0])
    }

    fn rights(&mut self) -> Result<Rights, Unreadable> {
        let mut one = || Ok(u32::from_le_bytes(self.fixed()?));
        Ok(Rights { mode: one()?, uid: one()?, gid: one()? })
    }

    fn place(&mut self) -> Result<Place<'a>, Unreadable> {
        let folder = self.number()?;
        let bytes = u16::from_le_bytes(self.fixed()?);
        let name = self.take(bytes.into())?;
        if !is_name(name) {
            let name = String::from_utf8_lossy(name);
            return Err(Unreadable(format!("{name:?} is no name in a folder")));
        }
        Ok(Place { folder, name })
    }

    fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}
