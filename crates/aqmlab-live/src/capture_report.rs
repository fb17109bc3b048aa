//! Report on the capture of a live recording.
//!
//! In the manifest's `live` object, `capture` contains the number of packets in the file and the
//! number of missing packets, for each port. If there is no file, `capture_failure` contains the
//! reason (`reason`) and the time in the run after which nothing could be written (`at_ns`).
//! Missing packets also cause a remark.

use std::collections::BTreeMap;

use aqmlab_recording::capture::{CaptureReport, CapturedPackets, FILE_NAME};
use aqmlab_recording::live::{CaptureStopped, CapturedCounts, LiveReport};
use aqmlab_units::Instant;

/// Adds the report on a capture that has a file.
pub fn add(live: &mut LiveReport, report: &CaptureReport) {
    live.capture = Some(counts(&report.ports));
    live.remarks.extend(incomplete(report));
}

/// Adds the report on a capture that has no file; `reason` says why nothing after the time `at` could be
/// written.
pub fn add_failure(live: &mut LiveReport, ports: &[CapturedPackets], at: Instant, reason: &str) {
    live.capture = Some(counts(ports));
    live.capture_failure = Some(CaptureStopped { at_ns: at.as_ns(), reason: reason.to_owned() });
    let names: Vec<_> = ports.iter().map(|port| format!("`{}`", port.port)).collect();
    let (names, at_s) = (names.join(", "), at.as_secs_f64());
    live.remarks.push(format!(
        "there is no `{FILE_NAME}` with the packets of {names}, because it could not be written beyond {at_s:.1} s: {reason}"
    ));
}

fn counts(ports: &[CapturedPackets]) -> BTreeMap<String, CapturedCounts> {
    let count = |port: &CapturedPackets| CapturedCounts { packets: port.written, missed: port.missed };
    ports.iter().map(|port| (port.port.clone(), count(port))).collect()
}

/// Returns a remark on an incomplete file; `None` if the file is complete.
pub fn incomplete(report: &CaptureReport) -> Option<String> {
    let missed = report.missed();
    (missed > 0).then(|| {
        format!("{missed} packets are not in `{FILE_NAME}`, because the disk was too slow; capture fewer ports, or fewer bytes of each packet")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(missed: u64) -> CaptureReport {
        let port = |port: &str, written, missed| CapturedPackets { port: port.into(), written, missed };
        CaptureReport { ports: vec![port("a", 10, missed), port("b", 0, 0)] }
    }

    #[test]
    fn a_whole_file_is_no_remark_and_one_with_holes_is() {
        for (missed, remarks) in [(0, 0), (3, 1)] {
            let mut live = LiveReport::default();
            add(&mut live, &report(missed));
            let ports = live.capture.expect("its ports");
            assert_eq!(ports["a"], CapturedCounts { packets: 10, missed });
            assert_eq!((live.remarks.len(), live.capture_failure), (remarks, None));
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_reported_with_its_ports_and_the_reason() {
        let mut live = LiveReport { remarks: vec!["other".into()], ..LiveReport::default() };
        add_failure(&mut live, &report(3).ports, Instant::from_ns(1_234_000_000), "the disk is full");
        let stopped = CaptureStopped { at_ns: 1_234_000_000, reason: "the disk is full".into() };
        assert_eq!(live.capture_failure, Some(stopped));
        assert_eq!(
            live.remarks[1],
            "there is no `packets.pcapng` with the packets of `a`, `b`, because it could not be written beyond 1.2 s: the disk is full"
        );
    }
}
