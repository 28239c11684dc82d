//! What redo of a crashed cluster needs: which blocks, from where, up to where.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{collections::BTreeMap, fs, fs::File, os::fd::AsRawFd, path::PathBuf};

use pages::{
    Error, Lsn,
    wal::{Redo, RedoNeeds, RedoSpec, Step, WalHead},
};

use crate::{
    control,
    writer::{Body, HEAP, Picture, SYSTEM, Writer},
};

const MIB: u32 = 1 << 20;
const BTREE: u8 = 11;
const INIT: u8 = 0x40;

/// A crashed cluster of 18, removed at the end.
struct Cluster {
    folder: PathBuf,
    names: Vec<String>,
    label: Option<String>,
}

impl Cluster {
    /// Whose redo begins at `redo`, with the checkpoint at `record`.
    fn of(test: &str, writer: &Writer, redo: Lsn, record: Lsn) -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("redo-{test}"));
        fs::create_dir_all(&folder).unwrap();
        let mut names = Vec::new();
        for (at, bytes) in writer.pages().chunks(usize::try_from(MIB).unwrap()).enumerate() {
            let name = format!("{:08X}{:08X}{:08X}", 1, 0, at + 1);
            let mut whole = bytes.to_vec();
            whole.resize(usize::try_from(MIB).unwrap(), 0);
            fs::write(folder.join(&name), whole).unwrap();
            names.push(name);
        }
        let mut file = control::file(1800, 202_506_291, 292);
        file[..8].copy_from_slice(&SYSTEM.to_le_bytes());
        file[32..40].copy_from_slice(&record.0.to_le_bytes());
        file[40..48].copy_from_slice(&redo.0.to_le_bytes());
        file[48..52].copy_from_slice(&1_u32.to_le_bytes());
        file[228..232].copy_from_slice(&MIB.to_le_bytes());
        file[220..224].copy_from_slice(&100_u32.to_le_bytes());
        fs::write(folder.join("pg_control"), control::sealed(file, 292)).unwrap();
        Self { folder, names, label: None }
    }

    fn needs(&self) -> Result<RedoNeeds, Error> {
        let control = File::open(self.folder.join("pg_control")).unwrap();
        let handle = u32::try_from(control.as_raw_fd()).unwrap();
        let mut redo = Redo::start(&RedoSpec {
            names: self.names.clone(),
            histories: BTreeMap::new(),
            control: WalHead { name: "pg_control".to_owned(), handle },
            backup_label: self.label.clone(),
        })?;
        for name in redo.segments().collect::<Vec<_>>() {
            let file = File::open(self.folder.join(&name)).unwrap();
            if redo.read(&name, &file)? == Step::Done {
                break;
            }
        }
        redo.finish()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn image() -> Picture {
    Picture { bytes: 1000, hole_at: 40, info: 0x3, hole_bytes: None }
}

fn checkpoint(writer: &mut Writer) -> Lsn {
    writer.record(0, 0x10, &Body::default().data(&[0; 88]))
}

fn change(writer: &mut Writer, manager: u8, flags: u8, block: u32, image: Option<Picture>) -> Lsn {
    writer.record(
        manager,
        0,
        &Body::default().block(0, flags, 16_384, block, b"x", image).data(b"y"),
    )
}

fn found(needs: &RedoNeeds) -> Vec<(&str, Vec<(u32, u32)>)> {
    needs.files.iter().map(|file| (file.path.as_str(), file.runs.clone())).collect()
}

#[test]
fn only_blocks_that_redo_reads_first_are_needed() {
    let mut writer = Writer::new(18, MIB, 8192);
    change(&mut writer, BTREE, 0, 99, None); // before redo begins
    let redo = change(&mut writer, BTREE, 0, 7, None);
    change(&mut writer, BTREE, 0, 8, Some(image())); // an image, then a change
    change(&mut writer, BTREE, 0, 8, None);
    change(&mut writer, BTREE, INIT, 9, None); // made anew
    change(&mut writer, BTREE, 0, 6, None); // read, then an image: that comes too late
    change(&mut writer, BTREE, 0, 6, Some(image()));
    let record = checkpoint(&mut writer);
    change(&mut writer, BTREE, 0, 7, Some(image()));
    change(&mut writer, BTREE, 0, 120, None); // of the next file
    let end = writer.at();

    let needs = Cluster::of("first", &writer, redo, record).needs().unwrap();

    assert_eq!(found(&needs), [("base/5/16384", vec![(6, 2)]), ("base/5/16384.1", vec![(120, 1)])]);
    assert_eq!(needs.files[1].first_block, 100);
    assert_eq!((needs.blocks, needs.blocks_image, needs.blocks_init), (3, 1, 1));
    assert_eq!((needs.records, needs.blocks_visibility), (9, 0));
    assert_eq!(needs.end_lsn.parse(), Ok(Lsn(end.0.next_multiple_of(8))));
}

#[test]
fn an_image_that_is_not_applied_leaves_the_block_to_be_read() {
    let mut writer = Writer::new(18, MIB, 8192);
    let checked = Picture { bytes: 1000, hole_at: 40, info: 0x1, hole_bytes: None };
    let redo = change(&mut writer, BTREE, 0, 3, Some(checked));
    let record = checkpoint(&mut writer);

    let needs = Cluster::of("checked", &writer, redo, record).needs().unwrap();

    assert_eq!(found(&needs), [("base/5/16384", vec![(3, 1)])]);
}

#[test]
fn a_table_s_visibility_map_is_needed_though_no_record_names_it() {
    let mut writer = Writer::new(18, MIB, 8192);
    let redo = change(&mut writer, HEAP, 0, 1, Some(image()));
    change(&mut writer, HEAP, INIT, 32_672, None);
    let record = checkpoint(&mut writer);

    let needs = Cluster::of("visibility", &writer, redo, record).needs().unwrap();

    assert_eq!(found(&needs), [("base/5/16384_vm", vec![(0, 2)])]);
    assert_eq!((needs.blocks, needs.blocks_visibility), (2, 2));
}

#[test]
fn records_of_extensions_are_named() {
    let mut writer = Writer::new(18, MIB, 8192);
    let redo = change(&mut writer, 200, 0, 1, None);
    let record = checkpoint(&mut writer);

    let needs = Cluster::of("custom", &writer, redo, record).needs().unwrap();

    assert_eq!(needs.custom_managers, ["custom200"]);
}

#[test]
fn a_backup_label_says_where_redo_begins() {
    let mut writer = Writer::new(18, MIB, 8192);
    let first = change(&mut writer, BTREE, 0, 1, None);
    let early = checkpoint(&mut writer);
    let redo = change(&mut writer, BTREE, 0, 2, None);
    let record = checkpoint(&mut writer);
    let mut cluster = Cluster::of("label", &writer, redo, record);
    assert_eq!(found(&cluster.needs().unwrap()), [("base/5/16384", vec![(2, 1)])]);

    cluster.label = Some(format!(
        "START WAL LOCATION: {first} (file 000000010000000000000001)\n\
         CHECKPOINT LOCATION: {early}\nSTART TIMELINE: 1\n"
    ));

    assert_eq!(found(&cluster.needs().unwrap()), [("base/5/16384", vec![(1, 2)])]);
}

#[test]
fn wal_that_ends_before_its_checkpoint_or_is_missing_is_refused() {
    let mut writer = Writer::new(18, MIB, 8192);
    let redo = change(&mut writer, BTREE, 0, 1, None);
    let record = checkpoint(&mut writer);
    let cluster = Cluster::of("lost", &writer, redo, record);
    let path = cluster.folder.join(&cluster.names[0]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(record.0 - u64::from(MIB)).unwrap() + 30] ^= 1;
    fs::write(&path, bytes).unwrap();

    let error = cluster.needs().unwrap_err();

    assert!(error.fact.contains(&format!("before the checkpoint at {record} does")), "{error}");
    assert!(error.hint.unwrap().contains("lost WAL"));
    let mut gone = Cluster::of("gone", &writer, redo, record);
    gone.names.clear();
    assert!(gone.needs().unwrap_err().fact.contains("no segment"), "none");
}
