//! Which time stamp an acknowledgment echoes (RFC 7323, section 4.3). First transmissions carry none here, so an
//! acknowledgment without an echo stands for one that echoes a first transmission.

use aqmlab_params::Value;
use aqmlab_transport::{Extras, Options, Segment, Stamps};
use aqmlab_units::Instant;

use crate::bench::{Bench, by_segments, ms, sack, segment};

/// Returns the options of a retransmission, and when it left.
fn retransmission() -> (Options, Instant) {
    let mut b = by_segments(4, &["timestamps"]);
    let again = b.fire()[0];
    assert!(again.extras.has(Extras::STAMPED));
    (b.endpoint.options(&again, &b.profile), b.now)
}

/// What happens, the segments of 100 bytes that arrive, whether each is a retransmission, and whether the
/// acknowledgments that they cause echo one.
type Case = (&'static str, &'static [(u32, bool)], &'static [bool]);

const CASES: [Case; 6] = [
    ("delayed: the earliest segment, an original", &[(0, false), (1, true)], &[false]),
    ("delayed: the earliest segment, a copy", &[(0, true), (1, false)], &[true]),
    ("originals follow a copy", &[(0, true), (1, false), (2, false), (3, false)], &[true, false]),
    ("hole: the latest segment before it, a copy", &[(0, true), (1, false), (3, false)], &[true, true]),
    ("hole: the copy beyond it is not echoed", &[(0, false), (1, false), (3, true)], &[false, false]),
    (
        "filled: the segment that fills the hole",
        &[(1, false), (0, true), (2, false), (3, false)],
        &[false, true, false],
    ),
];

/// Rules: 7323 4.3 delayed; 7323 4.3 hole; 7323 4.3 filled
#[test]
fn which_time_stamp_is_echoed() {
    let (copy, left) = retransmission();
    let given = [
        sack(),
        ("sack_pipe", Value::Choice("segments")),
        ("timestamps", Value::Flag(true)),
        ("delayed_ack", Value::Span(ms(40) - Instant::ZERO)),
    ];
    for (what, arrivals, echoes) in CASES {
        let mut b = Bench::accepted(&given);
        let mut found = Vec::new();
        for (n, again) in arrivals {
            let extras = Extras::NONE.with_if(Extras::STAMPED, *again);
            let data = Segment { extras, ..segment(1 + 100 * n, 1, 100) };
            let acks = match again {
                true => b.arrive_with_options(data, &copy),
                false => b.arrive(data),
            };
            for ack in acks {
                let stamps = b.endpoint.options(&ack, &b.profile).stamps;
                let stamped = ack.extras.has(Extras::STAMPED);
                assert!(stamps == if stamped { Stamps::echoing(left) } else { Stamps::NONE }, "{what}");
                found.push(stamped);
            }
        }
        assert_eq!(found, echoes, "{what}");
    }
}
