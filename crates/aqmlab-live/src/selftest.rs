//! A test of five seconds that shows the highest rate at which live runs on this machine are
//! faithful.

use std::sync::atomic::AtomicBool;

use serde_json::{Value, json};

use crate::calibration::Calibration;
use crate::error::LiveError;
use crate::machine::Machine;
use crate::outcome::LiveRun;
use crate::quantiles::distribution;
use crate::run::{Options, RunProgress, live};

/// The built-in scenario: full-sized packets, some of which are marked, at the rate of a fast
/// access link. The link carries 8,000 packets per second, and half as many acknowledgments return.
const PLAN: &str = r#"
title = "selftest"
duration = "1500ms"
warmup = "300ms"
[topology]
kind = "dumbbell"
rate = "100Mbit"
delay = "2ms"
access_rate = "1Gbit"
queue = { kind = "red", limit = "200p", min_th = "20p", max_th = "80p", ecn = true }
reverse_queue = { kind = "droptail", limit = "1000p" }
[[traffic]]
name = "tcp"
kind = "bulk"
count = 2
rtt = "10ms"
tcp = { profile = "linux", ecn = true }
"#;

/// The findings of the test.
#[derive(Clone, PartialEq, Debug)]
pub struct SelfTest {
    /// The built-in run with real-time scheduling, if that is permitted.
    pub realtime: LiveRun,
    /// The same run without real-time scheduling.
    pub ordinary: LiveRun,
    /// The machine's best performance, measured by a calibration after the two runs.
    pub calibration: Calibration,
    /// Share of processor time that the hypervisor gave to other guests during the test, in percent; `None`
    /// if the kernel does not report it.
    pub stolen_percent: Option<f64>,
    /// Share of the time that real-time threads may use, in percent; `None` means all of it.
    pub real_time_share_percent: Option<f64>,
}

/// Runs the test.
///
/// # Errors
/// If the machine refuses a necessary operation.
pub fn selftest(progress: &mut dyn FnMut(&RunProgress), cancel: &AtomicBool) -> Result<SelfTest, LiveError> {
    let machine = Machine::this();
    let before = machine.processor_time();
    let experiment = aqmlab_scenario::parse(PLAN, "selftest").expect("the built-in scenario is a valid plan");
    let plan = &experiment.arms[0];
    let mut run = |realtime| live(plan, 1, &Options { force: true, realtime }, progress, cancel);
    let (realtime, ordinary) = (run(true)?, run(false)?);
    let calibration = Calibration::measure(false)?;
    let stolen_percent =
        machine.processor_time().zip(before).and_then(|(now, then)| now.stolen_percent_since(then));
    let real_time_share_percent = machine.real_time_share_percent();
    Ok(SelfTest { realtime, ordinary, calibration, stolen_percent, real_time_share_percent })
}

impl SelfTest {
    /// Returns the result as data, for programs and for the text shown to people.
    pub fn to_json(&self) -> Value {
        let run = |run: &LiveRun| {
            let live = run.recording.manifest.live.as_deref().expect("a live run has a report");
            json!({
                "verdict": run.faithfulness.to_string(),
                "faithful": run.faithfulness.is_faithful(),
                "reasons": live.reasons,
                "policy": live.policy,
                "lateness": live.lateness,
                "duty_percent": live.duty_percent,
                "generator_percent": live.generator.processor_percent,
            })
        };
        json!({
            "rate_bps": self.realtime.recording.manifest.links.first().map(|link| link.rate_bps),
            "realtime": run(&self.realtime),
            "ordinary": run(&self.ordinary),
            "capacity": {
                "packets_per_s": self.calibration.capacity.map(|capacity| capacity.packets_per_s()),
                "limit_packets_per_s": self.calibration.capacity.map(|capacity| capacity.limit()),
            },
            "virtual_time": self.calibration.in_virtual_time(),
            "ping": distribution(&self.calibration.ping_ns),
            "stolen_percent": self.stolen_percent,
            "real_time_share_percent": self.real_time_share_percent,
        })
    }
}
