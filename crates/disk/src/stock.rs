//! What lies in the folder when a record begins.

use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::OFlags;

use crate::below::{Below, Listed, bytes, kind_of, rights_of};
use crate::event::{Event, Ino, Kind, Place, ROOT};
use crate::log::Log;

/// All that lies below at the beginning, written down as settled.
///
/// # Errors
/// It cannot be read, or holds what no data directory does.
pub(crate) fn take_stock(below: &mut Below, log: &Log) -> io::Result<()> {
    let facts = below.facts(ROOT)?;
    log.put(&Event::Owned { ino: ROOT, rights: rights_of(&facts) });
    stock_of(below, log, ROOT)?;
    log.put(&Event::Begun);
    Ok(())
}

fn stock_of(below: &mut Below, log: &Log, folder: Ino) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    for Listed { name, .. } in below.list(folder)? {
        let (ino, facts) = below.look(folder, &name)?;
        let kind = kind_of(&facts).ok_or(io::ErrorKind::Unsupported)?;
        let target = if kind == Kind::Link { below.target(ino)? } else { Vec::new() };
        let place = Place { folder, name: bytes(&name) };
        if log.is_new(ino) {
            log.put(&Event::Made { ino, kind, rights: rights_of(&facts), target: &target });
            if kind == Kind::File {
                let file = below.open(ino, OFlags::RDONLY)?;
                let mut at = 0;
                loop {
                    let read = file.read_at(&mut buffer, at)?;
                    if read == 0 {
                        break;
                    }
                    log.put(&Event::Written { ino, at, data: &buffer[..read] });
                    at += read as u64;
                }
            }
        }
        log.put(&Event::Added { ino, place });
        if kind == Kind::Folder {
            stock_of(below, log, ino)?;
        }
        below.forget(ino, 1);
    }
    Ok(())
}
