//! What a live recording says of its capture.
//!
//! In the manifest's object `live`, `capture` tells of each port how many packets are in the file and how many should be there
//! and are not. Where there is no file, `capture_failure` says why (`reason`), and how far the run was (`at_ns`). What is
//! missing is a remark besides.

use aqmlab_recording::capture::{CaptureReport, CapturedPackets, FILE_NAME};
use aqmlab_units::Instant;
use serde_json::{Value, json};

/// There is a file with a capture.
pub fn tell(live: &mut Value, report: &CaptureReport) {
    add_ports(live, &report.ports);
    if let Some(words) = incomplete(report) {
        add_remark(live, &words);
    }
}

/// There is none: it could not be written beyond the time `at`.
pub fn tell_failure(live: &mut Value, ports: &[CapturedPackets], at: Instant, reason: &str) {
    add_ports(live, ports);
    live["capture_failure"] = json!({"at_ns": at.as_ns(), "reason": reason});
    let names: Vec<_> = ports.iter().map(|port| format!("`{}`", port.port)).collect();
    let (names, at_s) = (names.join(", "), at.as_secs_f64());
    let words = format!(
        "there is no `{FILE_NAME}` with the packets of {names}: it could not be written beyond {at_s:.1} s: {reason}"
    );
    add_remark(live, &words);
}

fn add_ports(live: &mut Value, ports: &[CapturedPackets]) {
    let port =
        |port: &CapturedPackets| (port.port.clone(), json!({"packets": port.written, "missed": port.missed}));
    live["capture"] = Value::Object(ports.iter().map(port).collect());
}

fn add_remark(live: &mut Value, words: &str) {
    if let Some(remarks) = live["remarks"].as_array_mut() {
        remarks.push(words.into());
    }
}

/// A file that is not whole, in words.
pub fn incomplete(report: &CaptureReport) -> Option<String> {
    let missed = report.missed();
    (missed > 0).then(|| {
        format!("{missed} packets are not in `{FILE_NAME}`: the disk was too slow; capture fewer ports or bytes of a packet")
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
            let mut live = json!({"remarks": []});
            tell(&mut live, &report(missed));
            assert_eq!(live["capture"]["a"], json!({"packets": 10, "missed": missed}));
            assert_eq!(live["remarks"].as_array().map(Vec::len), Some(remarks), "{live}");
            assert!(live.get("capture_failure").is_none());
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_told_with_its_ports_and_the_reason() {
        let mut live = json!({"remarks": ["other"]});
        tell_failure(&mut live, &report(3).ports, Instant::from_ns(1_234_000_000), "the disk is full");
        assert_eq!(live["capture_failure"], json!({"at_ns": 1_234_000_000, "reason": "the disk is full"}));
        assert_eq!(
            live["remarks"][1],
            "there is no `packets.pcapng` with the packets of `a`, `b`: it could not be written beyond 1.2 s: the disk is full"
        );
    }
}
