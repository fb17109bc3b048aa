//! A law with a sampling period, called at arbitrary instants, has exactly the same state, to the last bit,
//! as one that is called at every sampling instant.

use aqmlab_qdisc::law::{ByteMode, PiLaw, PiParams, RemLaw, RemParams, Sampling};
use aqmlab_units::{Instant, Span};
use proptest::prelude::*;

/// A time span during which `queued` packets wait, and at the end of which `arrivals` packets
/// arrive.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    span: Span,
    queued: f64,
    arrivals: u64,
}

fn stretches() -> impl Strategy<Value = Vec<Stretch>> {
    let short = 0u64..40_000_000;
    let long = 0u64..20_000_000_000;
    let span = prop_oneof![9 => short, 1 => long].prop_map(Span::ns);
    let stretch = (span, 0u32..400, 0u64..30).prop_map(|(span, queued, arrivals)| Stretch {
        span,
        queued: f64::from(queued),
        arrivals,
    });
    prop::collection::vec(stretch, 1..60)
}

/// Draws a sampling frequency between one sample in ten seconds and a thousand samples per second.
fn sampling() -> impl Strategy<Value = Sampling> {
    (100u64..1_000_000).prop_map(Sampling::at_millihertz)
}

/// Calls one copy of the law only at the end of each span, and another copy also at every instant
/// of `ticks`.
fn both<L: Copy>(
    law: L,
    mut ticks: Sampling,
    script: &[Stretch],
    catch_up: impl Fn(&mut L, Instant, f64),
    arrive: impl Fn(&mut L, u64),
) -> (L, L) {
    let (mut leap, mut stepped, mut now) = (law, law, Instant::ZERO);
    for stretch in script {
        let end = now + stretch.span;
        while now < end {
            now = next_tick(&mut ticks, now).min(end);
            catch_up(&mut stepped, now, stretch.queued);
        }
        catch_up(&mut leap, end, stretch.queued);
        for law in [&mut leap, &mut stepped] {
            arrive(law, stretch.arrivals);
        }
    }
    (leap, stepped)
}

/// Returns the first sampling instant after `now`, by bisection on [`Sampling`].
fn next_tick(ticks: &mut Sampling, now: Instant) -> Instant {
    let _ = ticks.take(now);
    let (mut low, mut high) = (now.as_ns(), now.as_ns() + 20_000_000_000);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if ticks.is_due(Instant::from_ns(middle)) { high = middle } else { low = middle }
    }
    Instant::from_ns(high)
}

proptest! {
    #[test]
    fn pi(
        script in stretches(),
        sampling in sampling(),
        a in 1e-6f64..0.05,
        share in 0.9f64..1.0,
        q_ref in 1f64..200.0,
        q_old in 0f64..200.0,
    ) {
        let law = PiLaw::new(PiParams {
            a, b: share * a, q_ref, q_old, unit: 1.0, sampling, byte_mode: ByteMode::Off,
        });
        let catch_up = |law: &mut PiLaw, now, queued| law.catch_up(now, || queued);
        let (leap, stepped) = both(law, sampling, &script, catch_up, |_, _| {});
        prop_assert_eq!(leap, stepped);
    }

    #[test]
    fn rem(
        script in stretches(),
        sampling in sampling(),
        gamma in 1e-4f64..1.0,
        alpha in 0.01f64..1.0,
        inw in prop_oneof![Just(1.0), 0.01f64..1.0],
        capacity in 0.5f64..20.0,
    ) {
        let law = RemLaw::new(RemParams {
            gamma,
            alpha,
            phi: 1.001,
            q_ref: 20.0,
            inw,
            unit: 1.0,
            sampling,
            packets_per_s: capacity / sampling.period_s(),
            byte_mode: ByteMode::Off,
        });
        let catch_up = |law: &mut RemLaw, now, queued| law.catch_up(now, || queued);
        let arrive = |law: &mut RemLaw, n| law.on_arrival(n);
        let (leap, stepped) = both(law, sampling, &script, catch_up, arrive);
        prop_assert_eq!(leap, stepped);
    }
}

/// If the law were to take each sample separately, this test would take minutes.
#[test]
fn a_pause_of_an_hour_is_bounded_work() {
    let sampling = Sampling::at_millihertz(1_000_000);
    let mut pi = PiLaw::new(PiParams {
        a: 1.822e-5,
        b: 1.816e-5,
        q_ref: 50.0,
        q_old: 0.0,
        unit: 1.0,
        sampling,
        byte_mode: ByteMode::Off,
    });
    let mut rem = RemLaw::new(RemParams {
        gamma: 0.001,
        alpha: 0.1,
        phi: 1.001,
        q_ref: 20.0,
        inw: 0.01,
        unit: 1.0,
        sampling,
        packets_per_s: 2000.0,
        byte_mode: ByteMode::Off,
    });
    for hour in 1..=20_000 {
        let now = Instant::ZERO + Span::s(3600) * hour;
        let queued = (hour % 3 * 50) as f64;
        pi.catch_up(now, || queued);
        rem.catch_up(now, || queued);
        rem.on_arrival(1000);
    }
    assert!((0.0..=1.0).contains(&pi.probability()) && rem.price() >= 0.0);
}
