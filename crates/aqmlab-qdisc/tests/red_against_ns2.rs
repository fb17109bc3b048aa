//! RED with the ns-2 variants, compared arrival by arrival with traces recorded from ns-2.35
//! (`vectors/ns2-red-open-loop`): backlog, average, probability, and each packet's fate given the draws that
//! ns-2 made.

use std::path::PathBuf;

use aqmlab_qdisc::Reason;
use aqmlab_qdisc::law::{
    ByteMode, Counting, Decision, EcnRegion, IdleRule, RedArithmetic, RedLaw, RedParams, SpacingRule,
};
use aqmlab_units::{Bytes, Instant, Span};

const SIZE: Bytes = Bytes::new(1000);
/// 1000 B at 1 Mbit/s.
const SERVICE: Span = Span::ms(8);
/// ns-2 prints six significant digits.
const DIGITS: f64 = 5e-6;

/// The settings of the recorded runs: see the README next to the vectors.
fn law(spacing: SpacingRule) -> RedLaw {
    RedLaw::new(RedParams {
        min_th: 5.0,
        max_th: 15.0,
        max_p: 0.1,
        weight: 0.02,
        gentle: true,
        spacing,
        byte_mode: ByteMode::Off,
        idle: IdleRule::Ns2,
        counting: Counting::Ns2,
        ecn_region: EcnRegion::BelowMarkP(0.1),
        arithmetic: RedArithmetic::Exact,
        packets_per_s: 125.0,
    })
}

/// The link behind the law: the times at which the packets in the system will have left.
#[derive(Default)]
struct Link {
    departures: std::collections::VecDeque<Instant>,
}

impl Link {
    /// Removes every packet that has left by `now` and returns the number of packets waiting,
    /// excluding the one in transmission.
    fn waiting(&mut self, now: Instant, law: &mut RedLaw) -> usize {
        while let Some(left) = self.departures.front().copied().filter(|at| *at <= now) {
            self.departures.pop_front();
            if self.departures.is_empty() {
                law.on_idle(left);
            }
        }
        self.departures.len().saturating_sub(1)
    }

    fn admit(&mut self, now: Instant) {
        let begin = self.departures.back().copied().unwrap_or(now);
        self.departures.push_back(begin + SERVICE);
    }
}

/// Replays one trace and returns how many arrivals, early drops and overflows agree.
fn replay(name: &str, spacing: SpacingRule, limit: usize) -> (usize, usize, usize) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors/ns2-red-open-loop")
        .join(format!("{name}.csv"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut law, mut link) = (law(spacing), Link::default());
    let (mut arrivals, mut early_drops, mut overflows) = (0, 0, 0);
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [at, waiting, avg, prob, u, fate] = fields[..] else { panic!("{line}") };
        let now = Instant::from_ns(at.parse().unwrap());
        let queued = link.waiting(now, &mut law);
        assert_eq!(queued, waiting.parse::<usize>().unwrap(), "{name}: {line}");
        let mut drew = false;
        let decision = law.on_arrival(now, queued as f64, SIZE, || {
            drew = true;
            u.parse().unwrap_or_else(|_| panic!("{name}: a draw that ns-2 did not make: {line}"))
        });
        let mean = law.average().at(now);
        let recorded: f64 = avg.parse().unwrap();
        assert!((mean - recorded).abs() <= DIGITS * recorded + 1e-12, "{name}: avg {mean}: {line}");
        if drew {
            let (pb, recorded) = (law.probability(mean), prob.parse::<f64>().unwrap());
            // The trace's average has six digits, and the slope magnifies the rounding error near its foot.
            assert!((pb - recorded).abs() <= DIGITS * recorded.max(0.1), "{name}: pb {pb}: {line}");
        }
        let ours = match decision {
            _ if queued >= limit => {
                law.on_overflow();
                overflows += 1;
                "full"
            }
            Decision::Notify(notice) => {
                assert_eq!(notice.reason, Reason::Early);
                early_drops += 1;
                "early"
            }
            Decision::Admit => {
                link.admit(now);
                "admitted"
            }
        };
        assert_eq!(ours, fate, "{name}: {line}");
        arrivals += 1;
    }
    (arrivals, early_drops, overflows)
}

#[test]
fn each_recorded_arrival_has_the_same_average_probability_and_fate() {
    use SpacingRule::{Ns2Wait, Paper};
    for (name, spacing, limit) in [
        ("idle", Ns2Wait, 60),
        ("bursts", Ns2Wait, 60),
        ("overload", Ns2Wait, 60),
        ("overload_nowait", Paper, 60),
        ("near", Ns2Wait, 60),
        ("flood", Ns2Wait, 20),
    ] {
        let (arrivals, early, full) = replay(name, spacing, limit);
        assert_eq!(arrivals, 5000, "{name}");
        println!("{name}: {arrivals} arrivals, {early} early drops, {full} overflows agree");
        match name {
            "overload" | "overload_nowait" | "bursts" => assert!(early > 100, "{name}: {early}"),
            "flood" => assert!(full > 100, "{name}: {full}"),
            _ => {}
        }
    }
}
