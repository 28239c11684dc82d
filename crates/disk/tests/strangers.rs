//! Records that somebody else could write: what they ask for reaches nothing but their own.
//!
//! As root, they belong to another user, as those of a library do.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use disk::event::{Event, Ino, Kind, Place, ROOT, Rights};
use disk::in_place::hand_back;
use disk::make::{MakeSpec, make, record_span};
use disk::preloaded::begin;
use disk::record::Writer;
use disk::recording::RecordSpec;

use crate::scribe::{Scribe, place};

const STRANGER: u32 = 65534;
const THEIRS: Rights = Rights { mode: 0o700, uid: STRANGER, gid: STRANGER };
static NEXT: AtomicU64 = AtomicU64::new(0);

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A folder of ours, which is gone at the end, with `data` of theirs.
struct Held(PathBuf);

impl Held {
    fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pgdyno-strangers-{}-{number}", std::process::id());
        let held = Self(std::env::temp_dir().join(name));
        fs::create_dir(&held.0).unwrap();
        fs::create_dir(held.path("data")).unwrap();
        held.give("data");
        held
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn give(&self, name: &str) {
        if is_root() {
            chown(self.path(name), Some(STRANGER), Some(STRANGER)).unwrap();
        }
    }

    fn put(&self, name: &str, bytes: &[u8], mode: u32) {
        fs::write(self.path(name), bytes).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn record(&self, record: &[u8]) {
        self.put("record", record, 0o600);
        self.give("record");
    }

    fn spec(&self, disk: &str, instant_ns: u64, seed: u64) -> MakeSpec {
        MakeSpec {
            folder: self.0.clone(),
            record: "record".into(),
            disk: disk.into(),
            instant_ns,
            seed,
            sector_bytes: 512,
            forgets_ns: 0,
            written_back_ns: None,
            names_ordered: true,
            names_spared: false,
            blocks_spared: Vec::new(),
            named_max: 3,
        }
    }

    /// What making a disk and handing one back say of a record.
    fn refusals(&self, scribe: Scribe) -> [String; 2] {
        let now_ns = scribe.now_ns;
        self.record(&scribe.record());
        let made = make(&self.spec("disk", now_ns, 1)).map(|_| "it was made".to_owned());
        let back =
            hand_back(&self.spec("data", now_ns, 1)).map(|_| "it was handed back".to_owned());
        [made.unwrap_or_else(|fact| fact), back.unwrap_or_else(|fact| fact)]
    }

    /// Nothing is here but what was put here.
    fn assert_untouched(&self) {
        let names = |path: &Path| {
            let mut found: Vec<_> = fs::read_dir(path).unwrap().map(|one| one.unwrap()).collect();
            found.sort_by_key(fs::DirEntry::file_name);
            found.iter().map(|one| one.file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(names(&self.0), ["data", "record"]);
        assert_eq!(names(&self.path("data")), [""; 0]);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A record of theirs that begins as each does.
fn theirs() -> Scribe {
    let mut scribe = Scribe::unbegun();
    scribe.put(&Event::Owned { ino: ROOT, rights: THEIRS });
    scribe.put(&Event::Begun);
    scribe
}

fn made(scribe: &mut Scribe, ino: Ino, kind: Kind, place: Place) {
    scribe.put(&Event::Made { ino, kind, rights: THEIRS, target: &[] });
    scribe.put(&Event::Added { ino, place });
    scribe.sync(ino);
}

#[test]
fn a_name_that_leads_elsewhere_is_none() {
    for name in ["", ".", "..", "/", "../out", "a/b", "/tmp/pgdyno-out", "a\0b"] {
        let held = Held::new();
        let mut scribe = theirs();
        made(&mut scribe, 8, Kind::File, place(name));
        scribe.write(8, 0, b"theirs");
        scribe.sync(8);

        for refusal in held.refusals(scribe) {
            assert!(refusal.contains("is no name in a folder"), "{name:?}: {refusal}");
        }
        held.assert_untouched();
        assert!(!Path::new("/tmp/pgdyno-out").exists());
    }
    for event in [
        Event::Removed { ino: 8, place: place("../data") },
        Event::Moved { ino: 8, from: place("a"), to: place("../b") },
        Event::Moved { ino: 8, from: place("../a"), to: place("b") },
    ] {
        let held = Held::new();
        let mut scribe = theirs();
        made(&mut scribe, 8, Kind::File, place("a"));
        scribe.put(&event);

        for refusal in held.refusals(scribe) {
            assert!(refusal.contains("is no name in a folder"), "{event:?}: {refusal}");
        }
        held.assert_untouched();
    }
}

#[test]
fn rights_of_others_than_the_writer_are_refused() {
    if !is_root() {
        return; // then the kernel gives nobody any but ours
    }
    for rights in [
        Rights { mode: 0o644, uid: 0, gid: STRANGER },
        Rights { mode: 0o644, uid: STRANGER, gid: 0 },
        Rights { mode: 0o4755, uid: 0, gid: 0 },
        Rights { mode: 0o4755, ..THEIRS },
        Rights { mode: 0o2755, ..THEIRS },
        Rights { mode: u32::MAX, ..THEIRS },
        Rights { mode: 0o644, uid: u32::MAX, gid: u32::MAX },
    ] {
        for ino in [ROOT, 8] {
            if ino == ROOT && rights.uid == STRANGER && rights.gid == STRANGER {
                continue; // a folder runs as nobody
            }
            let held = Held::new();
            let mut scribe = theirs();
            made(&mut scribe, 8, Kind::File, place("a"));
            scribe.put(&Event::Owned { ino, rights });

            for refusal in held.refusals(scribe) {
                assert!(refusal.contains("could not have given it"), "{rights:?}: {refusal}");
            }
            held.assert_untouched();
        }
    }
}

#[test]
fn a_disk_of_theirs_is_theirs() {
    let held = Held::new();
    let mut scribe = theirs();
    made(&mut scribe, 7, Kind::Folder, place("base"));
    made(&mut scribe, 8, Kind::File, Place { folder: 7, name: b"a" });
    scribe.put(&Event::Added { ino: 8, place: place("b") });
    let link = Event::Made { ino: 9, kind: Kind::Link, rights: THEIRS, target: b"/etc/shadow" };
    scribe.put(&link);
    scribe.put(&Event::Added { ino: 9, place: place("l") });
    scribe.sync(ROOT);
    scribe.fill(8, 0..2, b'A');
    scribe.sync(8);
    if !is_root() {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let rights = Rights { mode: 0o700, uid: uid.as_raw(), gid: gid.as_raw() };
        for ino in [ROOT, 7, 8, 9] {
            scribe.put(&Event::Owned { ino, rights });
        }
    }
    let now_ns = scribe.now_ns;
    held.record(&scribe.record());

    make(&held.spec("disk", now_ns, 1)).unwrap();

    assert_eq!(fs::read(held.path("disk/b")).unwrap(), [b'A'; 1024]);
    for name in ["disk", "disk/base", "disk/base/a", "disk/b", "disk/l"] {
        let (facts, data) = (held.path(name).symlink_metadata().unwrap(), held.path("data"));
        assert_eq!(facts.uid(), data.metadata().unwrap().uid(), "{name}");
    }
}

#[test]
fn what_is_not_theirs_is_not_written_by_a_link_in_their_folder() {
    if !is_root() {
        return; // nothing can be written that they could not write
    }
    let held = Held::new();
    held.put("secret", &[b'B'; 1024], 0o600);
    fs::hard_link(held.path("secret"), held.path("data/a")).unwrap();
    let mut scribe = theirs();
    made(&mut scribe, 8, Kind::File, place("a"));
    scribe.fill(8, 0..2, b'A');
    scribe.sync(8);
    scribe.fill(8, 0..2, b'B');
    let now_ns = scribe.now_ns;
    held.record(&scribe.record());
    chown(held.path("record"), Some(0), Some(0)).unwrap(); // not even by a record of ours

    let told: Vec<_> =
        (0..20).map(|seed| hand_back(&held.spec("data", now_ns, seed)).map(|_| ())).collect();

    assert_eq!(fs::read(held.path("secret")).unwrap(), [b'B'; 1024]);
    let denied = |one: &Result<(), String>| {
        one.as_ref().is_err_and(|fact| fact.contains("Permission denied"))
    };
    assert!(told.iter().any(denied), "some disk has A again: {told:?}");
}

#[test]
fn what_they_cannot_read_is_not_written_into_a_record_of_theirs() {
    if !is_root() {
        return; // we can read no more than they
    }
    let held = Held::new();
    held.put("secret", b"of root", 0o600);
    fs::hard_link(held.path("secret"), held.path("data/a")).unwrap();
    let spec = RecordSpec {
        folder: held.0.clone(),
        data: "data".into(),
        record: "record".into(),
        bytes_max: 1 << 20,
    };

    let refusal = begin(&spec).unwrap_err();

    assert!(refusal.contains("Permission denied"), "{refusal}");
}

#[test]
fn folders_that_lie_in_themselves_or_too_deep_are_refused() {
    let in_itself = |scribe: &mut Scribe| {
        made(scribe, 7, Kind::Folder, place("f"));
        scribe.put(&Event::Added { ino: 7, place: Place { folder: 7, name: b"f" } });
        scribe.sync(7);
    };
    let in_two = |scribe: &mut Scribe| {
        made(scribe, 7, Kind::Folder, place("f"));
        made(scribe, 7, Kind::Folder, place("g"));
    };
    let is_the_top = |scribe: &mut Scribe| made(scribe, ROOT, Kind::Folder, place("f"));
    let too_deep = |scribe: &mut Scribe| {
        for depth in 0..1000 {
            let folder = if depth == 0 { ROOT } else { 10 + depth };
            made(scribe, 11 + depth, Kind::Folder, Place { folder, name: b"f" });
        }
    };
    let broken: [&dyn Fn(&mut Scribe); 4] = [&in_itself, &in_two, &is_the_top, &too_deep];
    for (number, tell) in broken.into_iter().enumerate() {
        let held = Held::new();
        let mut scribe = theirs();
        tell(&mut scribe);

        for refusal in held.refusals(scribe) {
            let why = ["several folders", "several folders", "several folders", "below 256 others"];
            assert!(refusal.contains(why[number]), "{number}: {refusal}");
        }
        held.assert_untouched();
    }
}

#[test]
fn a_file_in_folders_that_lie_in_each_other_has_a_name_that_ends() {
    let held = Held::new();
    let mut scribe = theirs();
    made(&mut scribe, 5, Kind::Folder, Place { folder: 6, name: b"f" });
    made(&mut scribe, 6, Kind::Folder, Place { folder: 5, name: b"f" });
    made(&mut scribe, 8, Kind::File, Place { folder: 6, name: b"a" });
    scribe.fill(8, 0..2, b'A');
    scribe.sync(8);
    scribe.fill(8, 0..2, b'B');
    if !is_root() {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let rights = Rights { mode: 0o700, uid: uid.as_raw(), gid: gid.as_raw() };
        scribe.put(&Event::Owned { ino: ROOT, rights });
    }
    let now_ns = scribe.now_ns;
    held.record(&scribe.record());

    let mut named = (0..20)
        .flat_map(|seed| make(&held.spec(&format!("disk{seed}"), now_ns, seed)).unwrap().named);

    assert!(named.any(|one| one.path.ends_with("f/a")));
}

#[test]
fn times_and_sizes_that_nothing_has_are_errors() {
    let held = Held::new();
    let mut writer = Writer::new(Vec::new(), u64::MAX).unwrap();
    for event in [Event::Owned { ino: ROOT, rights: THEIRS }, Event::Begun, Event::Full] {
        writer.put(0, &event).unwrap();
    }
    writer.flush().unwrap();
    held.record(&writer.into_inner());
    let span = record_span(&held.0, "record");
    assert_eq!(span.unwrap().until_ns, 0);

    for event in [
        Event::Grown { ino: 8, size: u64::MAX },
        Event::Cut { ino: 8, size: u64::MAX },
        Event::Written { ino: 8, at: u64::MAX - 1, data: b"abc" },
    ] {
        let held = Held::new();
        let mut scribe = theirs();
        made(&mut scribe, 8, Kind::File, place("a"));
        scribe.put(&event);
        scribe.sync(8);
        let [refusal, _] = held.refusals(scribe); // nothing of it changes what is there
        assert!(refusal.contains("cannot be"), "{event:?}: {refusal}");
    }
}
