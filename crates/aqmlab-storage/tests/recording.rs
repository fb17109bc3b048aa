//! Recordings on disk: complete or absent, equal digests for equal content, exact values.

mod support;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aqmlab_recording::live::{LiveDrops, LiveReport};
use aqmlab_recording::{
    Cell, Digest, Host, LinkInfo, Manifest, Place, Recording, RecordingError, Schema, StoppedBy,
    StreamedTable, Table, TableWriter, Type, schema,
};
use aqmlab_storage::{Staged, table_in, table_on, write_staged};
use aqmlab_units::{Instant, Rate, Span};
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Returns an empty folder that no other test uses.
fn scratch(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("aqmlab-storage-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the temporary folder is writable");
    path
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(path)
        .expect("the folder is there")
        .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

fn law(values: &[f64]) -> Table {
    let mut table = Table::new(&schema::LAW);
    for (i, &value) in values.iter().enumerate() {
        table.push([(i as u64).into(), "bottleneck".into(), "avg".into(), value.into()]);
    }
    table
}

fn recording(tables: Vec<Table>) -> Recording {
    let manifest = Manifest {
        parts: Default::default(),
        aqmlab_version: "0.1.0".into(),
        host: Host::Sim,
        title: "a \"quoted\" title".into(),
        arm: "red".into(),
        seed: u64::MAX,
        plan: support::plan(),
        t0: Instant::from_ns(1),
        t1: Instant::from_ns(2),
        stopped_by: StoppedBy::Time,
        links: vec![LinkInfo::new("bottleneck", Rate::mbit(10), Span::ms(20))],
        events: 0,
        wall_s: 0.5,
        live: None,
    };
    Recording { manifest, tables, streamed: vec![] }
}

#[test]
fn a_recording_appears_whole_with_every_table_and_no_trace_of_its_making() {
    let folder = scratch("whole");
    let target = folder.join("red/seed-1");
    aqmlab_storage::write(&recording(schema::ALL.iter().map(|s| Table::new(s)).collect()), &target)
        .expect("written");
    let mut expected: Vec<_> = schema::ALL.iter().map(|s| format!("{}.parquet", s.name)).collect();
    expected.push("manifest.json".into());
    expected.sort();
    assert_eq!(names(&target), expected);
    assert_eq!(names(&folder.join("red")), ["seed-1"]);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn the_manifest_tells_rows_and_digests_and_the_seed_exactly() {
    let folder = scratch("manifest");
    let table = law(&[1.0, 2.0]);
    let digest = table.digest().to_string();
    aqmlab_storage::write(&recording(vec![table]), &folder.join("run")).expect("written");
    let text = fs::read_to_string(folder.join("run/manifest.json")).expect("readable");
    let manifest: Value = serde_json::from_str(&text).expect("JSON");
    let file_digest = Digest::of(&fs::read(folder.join("run/law.parquet")).expect("readable")).to_string();
    assert_eq!(manifest["tables"]["law"], json!({"rows": 2, "digest": digest, "file_digest": file_digest}));
    let (head, tail) = text.rsplit_once("\"file_digest\"").expect("the last member");
    assert_eq!(tail, format!(": \"{}\"\n}}\n", Digest::of(head.as_bytes())));
    assert_eq!(manifest["seed"], json!(u64::MAX));
    assert_eq!(
        manifest["links"][0],
        json!({"name": "bottleneck", "rate_bps": 10_000_000, "delay_ns": 20_000_000})
    );
    assert_eq!(manifest["plan_digest"], json!(support::plan().digest()));
    assert_eq!(manifest["plan"]["links"][0]["rate_bps"], 1_000_000);
    fs::remove_dir_all(folder).expect("removed");
}

fn manifest_of(recording: &Recording, folder: &Path) -> Value {
    let target = folder.join("run");
    aqmlab_storage::write(recording, &target).expect("written");
    let manifest = fs::read(target.join("manifest.json")).expect("readable");
    fs::remove_dir_all(target).expect("removed");
    serde_json::from_slice(&manifest).expect("JSON")
}

#[test]
fn what_only_a_live_run_has_is_in_its_manifest_and_in_no_other() {
    let folder = scratch("live");
    let mut recording = recording(vec![]);
    let simulated = manifest_of(&recording, &folder);
    assert_eq!((&simulated["host"], simulated.get("live")), (&json!("sim"), None));
    let drops = LiveDrops { still_held: 3, ..LiveDrops::default() };
    recording.manifest.live = Some(Box::new(LiveReport { drops, ..LiveReport::default() }));
    recording.manifest.stopped_by = StoppedBy::Interrupted;
    let live = manifest_of(&recording, &folder);
    assert_eq!(live["live"]["drops"]["still_held"], 3);
    assert_eq!(live["live"].get("capture"), None, "nothing was captured");
    assert_eq!(live["stopped_by"], "interrupted");
    assert_eq!(live["plan_digest"], simulated["plan_digest"]);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn what_is_there_is_never_overwritten() {
    let folder = scratch("exists");
    let target = folder.join("run");
    aqmlab_storage::write(&recording(vec![law(&[1.0])]), &target).expect("written");
    let before = fs::read(target.join("law.parquet")).expect("readable");
    let error = aqmlab_storage::write(&recording(vec![law(&[2.0])]), &target).expect_err("refused");
    assert!(matches!(error, RecordingError::Exists { .. }), "{error}");
    assert_eq!(fs::read(target.join("law.parquet")).expect("readable"), before);
    assert_eq!(names(&folder), ["run"]);
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_value_beyond_the_format_is_refused_before_anything_is_written() {
    let folder = scratch("large");
    let mut table = Table::new(&schema::HISTOGRAMS);
    table.push(["q".into(), "*".into(), "sojourn_ns".into(), 0u64.into(), 1u64.into(), (1u64 << 63).into()]);
    let error = aqmlab_storage::write(&recording(vec![table]), &folder.join("run")).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "`9223372036854775808` in column `weight` of table `histograms` is too large to record"
    );
    assert!(!error.is_host_limit());
    assert!(names(&folder).is_empty());
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_path_through_a_file_is_refused_with_the_path_in_the_message() {
    let folder = scratch("through-file");
    fs::write(folder.join("file"), "x").expect("written");
    let error = aqmlab_storage::write(&recording(vec![]), &folder.join("file/run")).expect_err("refused");
    assert!(error.to_string().contains("file`"), "{error}");
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_full_disk_is_recognised_and_leaves_nothing() {
    // Every write to /dev/full fails with ENOSPC. A recording cannot be written into this device,
    // so the test provokes the error directly and wraps it as the writer would.
    let source = fs::write("/dev/full", "x").expect_err("always full");
    let error = RecordingError::Io { operation: "write", path: "run/law.parquet".into(), source };
    assert!(error.is_host_limit());
    assert_eq!(error.to_string(), "cannot write `run/law.parquet`: the disk is full");
}

#[test]
fn equal_content_has_an_equal_digest_and_each_difference_another() {
    let mut renamed = law(&[1.0, 2.0]);
    renamed.columns[3].name = "other";
    let distinct = [
        law(&[1.0, 2.0]),
        law(&[2.0, 1.0]),
        law(&[1.0]),
        law(&[]),
        law(&[0.0]),
        law(&[-0.0]),
        law(&[f64::NAN]),
        renamed,
    ];
    let mut digests: Vec<_> = distinct.iter().map(Table::digest).collect();
    assert_eq!(law(&[1.0, 2.0]).digest(), digests[0]);
    assert_eq!(law(&[-f64::NAN]).digest(), law(&[f64::NAN]).digest());
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), distinct.len());
}

#[test]
fn an_absent_value_is_not_a_zero() {
    const NULLABLE: Schema = Schema { name: "t", columns: &[("x", Type::NullableU64)] };
    let digest = |cells: &[Option<u64>]| {
        let mut table = Table::new(&NULLABLE);
        cells.iter().for_each(|&cell| table.push([cell.into()]));
        table.digest()
    };
    assert_ne!(digest(&[None]), digest(&[Some(0)]));
    assert_ne!(digest(&[None, Some(1)]), digest(&[Some(1), None]));
}

#[test]
#[should_panic(expected = "column `value` of `law` does not take U64(1)")]
fn a_row_of_the_wrong_type_is_a_mistake_of_the_host() {
    Table::new(&schema::LAW).push([0u64.into(), "q".into(), "avg".into(), 1u64.into()]);
}

#[test]
#[should_panic(expected = "a row of `law` has too few values")]
fn a_short_row_is_a_mistake_of_the_host() {
    Table::new(&schema::LAW).push([0u64.into(), "q".into(), "avg".into()]);
}

/// `docs/recording.md` names every column of every table.
#[test]
fn the_document_names_every_column() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/recording.md");
    let text = fs::read_to_string(path).expect("the document is part of the repository");
    for schema in schema::ALL {
        let head = format!("| `{}.parquet` |", schema.name);
        let row =
            text.lines().find(|line| line.starts_with(&head)).unwrap_or_else(|| panic!("no row `{head}`"));
        for (name, _) in schema.columns {
            assert!(is_named(row, name), "`{name}` of `{}` is not in {path}", schema.name);
        }
    }
}

/// Returns whether a row of the document lists the column `name`, by its own name or by a pattern: `_r_`
/// stands for any reason, and the words *the same in `_bytes`* stand for all names in which `_packets` is
/// replaced by `_bytes`.
fn is_named(row: &str, name: &str) -> bool {
    let mut forms = vec![name.to_owned()];
    for reason in ["early", "forced", "overflow", "injected"] {
        forms.push(name.replace(&format!("_{reason}_"), "_r_"));
    }
    if row.contains("the same in `_bytes`") {
        forms.push(name.replace("_bytes", "_packets"));
    }
    forms.iter().any(|form| row.contains(&format!("`{form}`")))
}

proptest! {
    #[test]
    fn a_dictionary_gives_back_what_was_pushed(names in prop::collection::vec("[a-c]{0,2}", 0..40)) {
        const NAMES: Schema = Schema { name: "t", columns: &[("name", Type::Str)] };
        let mut table = Table::new(&NAMES);
        names.iter().for_each(|name| table.push([Cell::Str(name)]));
        let Some(aqmlab_recording::ColumnData::Str(column)) = table.column("name") else {
            return Err(TestCaseError::fail("no column of names"));
        };
        prop_assert_eq!(column.iter().collect::<Vec<_>>(), names);
    }
}

#[test]
fn a_host_that_cannot_measure_everything_leaves_cells_out() {
    let known = ["flow", "index", "start_ns", "base_rtt_ns"];
    let (whole, mut partial) = (Table::new(&schema::FLOWS), Table::partial(&schema::FLOWS, &known));
    for (column, of_whole) in partial.columns.iter().zip(&whole.columns) {
        assert_eq!(column.name, of_whole.name);
        let (of, in_whole) = (column.data.type_of(), of_whole.data.type_of());
        let expected =
            if known.contains(&column.name) || in_whole == Type::Str { in_whole } else { Type::NullableU64 };
        assert_eq!(of, expected, "{}", column.name);
    }
    let class = Cell::Str("ftp");
    let row = partial.columns.iter().map(|c| match c.data.type_of() {
        Type::Str => class,
        Type::U64 => Cell::U64(1),
        _ => Cell::Null,
    });
    let row: Vec<_> = row.collect();
    partial.push(row);
    let folder = scratch("partial");
    aqmlab_storage::write(&recording(vec![partial]), &folder.join("run"))
        .expect("absent cells can be written");
    fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn an_expected_name_is_no_row() {
    let mut table = Table::new(&schema::LAW);
    table.reserve(10);
    table.expect_name("name", "avg");
    assert_eq!((table.rows(), table.digest()), (0, Table::new(&schema::LAW).digest()));
    table.push([1u64.into(), "bottleneck".into(), "p".into(), 0.5.into()]);
    let mut plain = Table::new(&schema::LAW);
    plain.push([1u64.into(), "bottleneck".into(), "p".into(), 0.5.into()]);
    assert_eq!(table.digest(), plain.digest(), "the order of names is not content");
}

/// Returns a table whose rows are written in two batches.
fn in_batches(mut writer: TableWriter) -> Result<StreamedTable, RecordingError> {
    writer.append(law(&[1.0, 2.0]))?;
    writer.append(law(&[3.0]))?;
    writer.finish()
}

fn row_groups(file: &Path) -> usize {
    SerializedFileReader::new(fs::File::open(file).expect("readable")).expect("Parquet").num_row_groups()
}

#[test]
fn a_table_written_during_the_run_is_the_one_that_is_held_in_memory() {
    let folder = scratch("streamed");
    let mut staged = Staged::create(&folder.join("file")).expect("a directory");
    let on_disk = in_batches(table_in(&mut staged, &schema::LAW).expect("a file")).expect("written");
    let held = in_batches(TableWriter::in_memory(&schema::LAW)).expect("held");
    assert_eq!((held.rows, held.digest), (on_disk.rows, on_disk.digest));
    let of = |streamed| Recording { streamed: vec![streamed], ..recording(vec![]) };
    write_staged(&of(on_disk.clone()), staged).expect("published");
    aqmlab_storage::write(&of(held), &folder.join("memory")).expect("written");
    let file = folder.join("file/law.parquet");
    let bytes = fs::read(&file).expect("readable");
    assert_eq!(bytes, fs::read(folder.join("memory/law.parquet")).expect("readable"));
    assert_eq!(on_disk.place, Place::File(Digest::of(&bytes)));
    assert_eq!(row_groups(&file), 2);
    for run in ["file", "memory"] {
        let text = fs::read_to_string(folder.join(run).join("manifest.json")).expect("a manifest");
        let told: Value = serde_json::from_str(&text).expect("JSON");
        let facts = json!({
            "rows": 3, "digest": on_disk.digest.to_string(), "file_digest": Digest::of(&bytes).to_string(),
        });
        assert_eq!(told["tables"]["law"], facts);
    }
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_run_without_a_directory_writes_an_empty_table_that_it_held() {
    let folder = scratch("held");
    let held = TableWriter::in_memory(&schema::LAW).finish().expect("nothing to write");
    assert_eq!(held.rows, 0);
    let recording = Recording { streamed: vec![held], ..recording(vec![]) };
    aqmlab_storage::write(&recording, &folder.join("run")).expect("written");
    assert_eq!(row_groups(&folder.join("run/law.parquet")), 1);
    fs::remove_dir_all(folder).expect("removed");
}

/// Accepts a limited number of bytes, like a disk that becomes full.
struct Small(usize);

impl Write for Small {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.min(bytes.len()) {
            0 => Err(io::ErrorKind::StorageFull.into()),
            taken => {
                self.0 -= taken;
                Ok(taken)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_disk_that_becomes_full_is_told_with_its_file() {
    let file = table_on(Box::new(Small(20)), "run/law.parquet".into(), &schema::LAW).expect("begun");
    let error = in_batches(file).expect_err("there are rows missing");
    assert_eq!(error.to_string(), "cannot write `run/law.parquet`: the disk is full");
    assert!(error.is_host_limit());
}
