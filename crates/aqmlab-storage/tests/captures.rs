//! Captures: each block follows the format, and a capture either is part of a recording or does not exist.

mod support;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use aqmlab_qdisc::Reason;
use aqmlab_recording::capture::{
    CaptureFile, CapturedPackets, CapturedPort, FILE_NAME, Frame, PacketAtPort, Reasons, packet_id,
};
use aqmlab_recording::{Host, Manifest, Recording, RecordingError, StoppedBy, Table, schema};
use aqmlab_storage::{Capture, Staged, put_in, write_staged};
use aqmlab_units::{Bytes, Instant, Rate, Span};

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(buf);
        Ok(buf.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn ports() -> [CapturedPort; 1] {
    [CapturedPort { name: "q".into(), rate: Rate::mbit(10) }]
}

fn packet() -> PacketAtPort {
    PacketAtPort {
        port: 0,
        id: packet_id(7, true, 9),
        at: Instant::from_ns(0x1_0000_0002),
        waited: Span::ns(7),
        marked: Reasons::NONE,
        dropped: Some(Reason::Overflow),
        wire_len: Bytes::new(1500),
    }
}

const HEAD: Frame<'_> = Frame { head: &[0x45, 0, 5, 0xdc, 9, 9, 9, 9], len: 1500 };

/// Assembled by hand from draft-ietf-opsawg-pcapng; the version in the first block is the crate's.
const BLOCKS: [&str; 4] = [
    // Section header: magic, version 1.0, length unknown, application, end of options.
    "0a0d0d0a 30000000 4d3c2b1a 01000000 ffffffffffffffff 04000c00 61716d6c616220302e312e30 00000000 30000000",
    // Interface: raw IP, 5 bytes of a packet; name, speed 10^7 = 0x989680, resolution 10^-9.
    "01000000 34000000 65000000 05000000 02000100 71000000 08000800 8096980000000000 09000100 09000000 00000000 34000000",
    // Packet: interface, upper and lower half of the time, 5 of 1500 bytes; inbound; number 9 of flow
    // 7 to the sender; "queueing delay 7 ns, dropped overflow".
    "06000000 6c000000 00000000 01000000 02000000 05000000 dc050000 450005dc09000000 02000400 01000000 \
     05000800 0900008007000000 01002500 7175657565696e672064656c61792037206e732c2064726f70706564206f766572666c6f77000000 00000000 6c000000",
    // Statistics at 2^32 + 9 ns: the capture ends at the same time, 4 packets arrived, and 3 of them are
    // missing.
    "05000000 40000000 00000000 01000000 09000000 03000800 0100000009000000 04000800 0400000000000000 \
     05000800 0300000000000000 00000000 40000000",
];

#[test]
fn every_block_is_as_the_format_says() {
    let sink = Sink::default();
    let mut capture = Capture::on(Box::new(sink.clone()), Path::new("x"), &ports(), 5).expect("it takes all");
    capture.note(&packet(), HEAD);
    let report = Box::new(capture).finish(Instant::from_ns(0x1_0000_0009), &[3]).expect("it takes all");
    let port = &report.ports[0];
    assert_eq!((port.port.as_str(), port.written, port.missed, report.missed()), ("q", 1, 3, 3));
    let written: String = sink.0.lock().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(written, BLOCKS.concat().replace(' ', ""));
}

#[test]
fn the_comment_tells_what_the_bytes_do_not() {
    let mut marked = Reasons::NONE;
    marked.insert(Reason::Injected);
    marked.insert(Reason::Early);
    assert!(marked.has(Reason::Early) && !marked.has(Reason::Forced));
    assert_eq!(Reasons::from_bits(marked.bits()), marked);
    let sink = Sink::default();
    let mut capture =
        Capture::on(Box::new(sink.clone()), Path::new("x"), &ports(), 128).expect("it takes all");
    capture.note(&PacketAtPort { marked, dropped: None, wire_len: Bytes::new(1000), ..packet() }, HEAD);
    Box::new(capture).finish(Instant::FAR_FUTURE, &[0]).expect("it takes all");
    let bytes = sink.0.lock().unwrap();
    let comment = b"queueing delay 7 ns, marked early, marked injected, 1000 bytes at the network layer\0";
    assert!(bytes.windows(comment.len()).any(|window| window == comment));
}

fn scratch(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("aqmlab-captures-{test}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the temporary folder is writable");
    path
}

fn recording() -> Recording {
    let manifest = Manifest {
        parts: Default::default(),
        aqmlab_version: "0.1.0".into(),
        host: Host::Sim,
        title: "t".into(),
        arm: "red".into(),
        seed: 1,
        plan: support::plan(),
        t0: Instant::ZERO,
        t1: Instant::from_ns(2),
        stopped_by: StoppedBy::Time,
        links: Vec::new(),
        events: 0,
        wall_s: 0.5,
        live: None,
    };
    Recording { manifest, tables: vec![Table::new(&schema::LAW)], streamed: vec![] }
}

fn captured(target: &Path) -> Result<Staged, RecordingError> {
    let mut staged = Staged::create(target)?;
    let mut capture = Capture::begin(&mut staged, &ports(), 128)?;
    capture.note(&packet(), HEAD);
    Box::new(capture).finish(Instant::FAR_FUTURE, &[0]).map_err(|failure| failure.error)?;
    Ok(staged)
}

#[test]
fn a_capture_appears_with_its_recording_and_not_before() {
    let folder = scratch("whole");
    let target = folder.join("seed-1");
    let staged = captured(&target).expect("written");
    assert!(!target.exists());
    write_staged(&recording(), staged).expect("written");
    let file = fs::read(target.join(FILE_NAME)).expect("it is there");
    assert!(
        file.len() > 100 && target.join("manifest.json").is_file() && target.join("law.parquet").is_file()
    );
    assert_eq!(fs::read_dir(&folder).expect("readable").count(), 1);
    let again = captured(&target).err().expect("refused");
    assert!(matches!(again, RecordingError::Exists { .. }));
    fs::remove_dir_all(folder).expect("removed");
}

#[test]
fn a_run_that_gives_no_recording_leaves_no_capture() {
    let folder = scratch("nothing");
    drop(captured(&folder.join("seed-1")).expect("written"));
    assert_eq!(fs::read_dir(&folder).expect("readable").count(), 0);
    fs::remove_dir_all(folder).expect("removed");
}

/// A failed write is reported in the error, with the intended name of the file.
#[test]
fn a_full_disk_is_told_at_the_end() {
    let full = match fs::OpenOptions::new().write(true).open("/dev/full") {
        Ok(full) => full,
        Err(error) => return eprintln!("skipped: no /dev/full: {error}"),
    };
    let path = Path::new("seed-1/packets.pcapng");
    let mut capture = Capture::on(Box::new(full), path, &ports(), 128).expect("nothing is written yet");
    for _ in 0..10_000 {
        capture.note(&packet(), HEAD);
    }
    assert!(capture.has_failed());
    let failure = Box::new(capture).finish(Instant::FAR_FUTURE, &[3]).expect_err("full");
    assert!(failure.error.is_host_limit());
    assert_eq!(failure.to_string(), "cannot write `seed-1/packets.pcapng`: the disk is full");
    assert_eq!(failure.error.reason(), "the disk is full");
    let told = CapturedPackets { port: "q".into(), written: 0, missed: 10_003 };
    assert_eq!(failure.ports, [told], "the earlier content is gone, too");
}

/// A disk that fills up only at the last blocks is reported as full, like one that fills up earlier.
#[test]
fn a_disk_that_fills_up_at_the_end_is_told_too() {
    let Ok(full) = fs::OpenOptions::new().write(true).open("/dev/full") else {
        return eprintln!("skipped: no /dev/full");
    };
    let mut capture =
        Capture::on(Box::new(full), Path::new("x"), &ports(), 128).expect("nothing is written yet");
    capture.note(&packet(), HEAD);
    assert!(!capture.has_failed(), "all of it is in the buffer");
    let failure = Box::new(capture).finish(Instant::FAR_FUTURE, &[0]).expect_err("full");
    assert_eq!((failure.ports[0].written, failure.ports[0].missed), (0, 1));
}

/// The space of a discarded file is freed before the recording is written, and the recording appears without
/// the file.
#[test]
fn a_file_that_is_given_up_frees_the_disk_and_is_no_part_of_the_recording() {
    let folder = scratch("given-up");
    let target = folder.join("seed-1");
    let mut staged = Staged::create(&target).expect("made");
    let mut file = staged.stream(FILE_NAME).expect("made");
    file.write_all(&[1; 100_000]).expect("written");
    let partial =
        fs::read_dir(&folder).expect("readable").next().expect("it is there").expect("readable").path();
    let other_handle = fs::File::open(partial.join(FILE_NAME)).expect("it is there");
    assert_eq!(other_handle.metadata().expect("readable").len(), 100_000);
    file.give_up();
    assert_eq!(other_handle.metadata().expect("readable").len(), 0, "an open handle holds no space");
    assert_eq!(fs::read_dir(&partial).expect("readable").count(), 0);
    write_staged(&recording(), staged).expect("written");
    assert!(target.join("manifest.json").is_file() && !target.join(FILE_NAME).exists());
    fs::remove_dir_all(folder).expect("removed");
}

/// A complete capture that leaves no space for the tables may be discarded; the tables then fit.
#[test]
fn a_whole_capture_can_be_given_up_for_the_tables() {
    let folder = scratch("given-up-late");
    let target = folder.join("seed-1");
    let mut staged = captured(&target).expect("written");
    put_in(&recording(), &mut staged).expect("written");
    assert!(staged.give_up(FILE_NAME));
    assert!(!staged.give_up(FILE_NAME), "it is gone");
    put_in(&recording(), &mut staged).expect("written again");
    staged.publish().expect("published");
    let mut names: Vec<_> =
        fs::read_dir(&target).expect("readable").map(|entry| entry.expect("readable").file_name()).collect();
    names.sort();
    assert_eq!(names, ["law.parquet", "manifest.json"]);
    fs::remove_dir_all(folder).expect("removed");
}
