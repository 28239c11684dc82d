//! With whose rights files are changed where another user has a hand in it: with that user's.
//!
//! Whoever runs a server can put anything into a record that a library writes, and links into the
//! data directory while it is changed. So root does neither as itself: what a record asks for, and
//! what lies in such a folder, reaches no further than that user reaches anyway. The record stays
//! that user's when it has ended, since its owner tells this.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::event::{Kind, Rights};

/// A user other than us, and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// User.
    pub(crate) uid: u32,
    /// Group.
    pub(crate) gid: u32,
}

impl Owner {
    /// Whose something is that is open. None: root's, or we are not root, and have no more rights
    /// than anybody.
    ///
    /// # Errors
    /// Its facts cannot be read.
    pub(crate) fn other(of: BorrowedFd) -> io::Result<Option<Self>> {
        let facts = rustix::fs::fstat(of)?;
        let other = rustix::process::geteuid().is_root() && facts.st_uid != 0;
        Ok(other.then_some(Self { uid: facts.st_uid, gid: facts.st_gid }))
    }

    /// Whether this user could have given something these rights, to run as nobody else.
    pub(crate) fn can_give(self, rights: Rights, kind: Kind) -> bool {
        let runs_as_owner = kind == Kind::File && rights.mode & 0o6000 != 0;
        rights.uid == self.uid && rights.gid == self.gid && !runs_as_owner
    }

    fn ids(self) -> (Uid, Gid) {
        (Uid::from_raw(self.uid), Gid::from_raw(self.gid))
    }
}

/// Make something that is open a user's.
///
/// # Errors
/// The system says no.
pub(crate) fn give(what: BorrowedFd, owner: Option<Owner>) -> io::Result<()> {
    let Some((uid, gid)) = owner.map(Owner::ids) else { return Ok(()) };
    Ok(rustix::fs::fchown(what, Some(uid), Some(gid))?)
}

/// Do something with the rights of a user; None: with ours.
///
/// # Errors
/// They cannot be taken on, or it fails.
pub(crate) fn with_rights_of<T: Send>(
    owner: Option<Owner>,
    act: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let Some(owner) = owner else { return act() };
    // The kernel has rights by thread; what has given up root's ends with its work.
    std::thread::scope(|scope| {
        let acting = scope.spawn(move || {
            take_on(owner)?;
            act()
        });
        acting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn take_on(owner: Owner) -> io::Result<()> {
    let (uid, gid) = owner.ids();
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    Ok(set_thread_res_uid(uid, uid, uid)?)
}
