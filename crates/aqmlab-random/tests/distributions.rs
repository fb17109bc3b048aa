//! Draws follow their distributions, and streams are independent.
use aqmlab_random::{Stream, fnv1a, unit_from_bits};
use proptest::prelude::*;

#[test]
fn conversions_are_pinned() {
    assert_eq!(unit_from_bits(0), 0.0);
    assert_eq!(unit_from_bits(u64::MAX), 1.0 - 2f64.powi(-53));
    assert_eq!(unit_from_bits(1 << 63), 0.5);
    // Published FNV-1a test values.
    assert_eq!(fnv1a(b""), 0xcbf29ce484222325);
    assert_eq!(fnv1a(b"foobar"), 0x85944171f73967e8);
}

#[test]
fn a_path_in_parts_names_the_same_stream() {
    let (class, what) = ("ftp", "start");
    assert_eq!(Stream::new(7, format_args!("traffic/{class}/{what}")), Stream::new(7, "traffic/ftp/start"));
    assert_ne!(Stream::new(7, "traffic/ftp/start"), Stream::new(7, "traffic/ftp/stop"));
}

#[test]
fn hit_is_exact_at_the_ends() {
    let mut s = Stream::new(1, "ends");
    for _ in 0..10_000 {
        assert!(!s.hit(0.0) && s.hit(1.0) && !s.hit(-1.0) && s.hit(7.0) && !s.hit(f64::NAN));
    }
}

#[test]
fn moments_lie_within_five_standard_errors() {
    let n = 1_000_000;
    let mut s = Stream::new(42, "moments");
    let (mut unit, mut square, mut exponential, mut hits) = (0.0, 0.0, 0.0, 0u32);
    for _ in 0..n {
        let u = s.unit();
        unit += u;
        square += u * u;
        exponential += s.exponential();
        hits += u32::from(s.hit(0.03));
    }
    let n = f64::from(n);
    assert!((unit / n - 0.5).abs() < 5.0 * (1.0f64 / 12.0 / n).sqrt());
    assert!((square / n - 1.0 / 3.0).abs() < 5.0 * (4.0f64 / 45.0 / n).sqrt());
    assert!((exponential / n - 1.0).abs() < 5.0 * (1.0 / n).sqrt());
    assert!((f64::from(hits) / n - 0.03).abs() < 5.0 * (0.03f64 * 0.97 / n).sqrt());
}

proptest! {
    #[test]
    fn a_draw_depends_on_its_name_and_number_alone(seed in any::<u64>(), n in 0u64..1_000_000) {
        let mut walked = Stream::indexed(seed, "flow", 7);
        let still = walked;
        for _ in 0..(n % 50) { walked.bits(); }
        prop_assert_eq!(walked.bits(), still.at(n % 50));
        prop_assert_ne!(Stream::indexed(seed, "flow", 8).at(n), still.at(n));
        prop_assert_ne!(Stream::new(seed, "flow").at(n), still.at(n));
        prop_assert_ne!(Stream::indexed(seed.wrapping_add(1), "flow", 7).at(n), still.at(n));
    }

    #[test]
    fn below_stays_below(seed in any::<u64>(), n in 1u64..) {
        prop_assert!(Stream::new(seed, "below").below(n) < n);
    }
}

/// A draw depends only on its number, not on the order of draws, and both words of a block are uniform.
#[test]
fn numbered_draws_do_not_depend_on_what_was_asked_before() {
    let fresh = |n| Stream::new(5, "numbered").numbered().at(n);
    let mut numbered = Stream::new(5, "numbered").numbered();
    for n in [0, 1, 7, 6, 7, 2, 3, 1_000_000, 0] {
        assert_eq!(numbered.at(n), fresh(n), "{n}");
    }
    let draws: Vec<u64> = (0..20_000).map(|n| numbered.at(n)).collect();
    for lane in 0..2 {
        let ones: u32 = draws.iter().skip(lane).step_by(2).map(|d| d.count_ones()).sum();
        // Binomial(640000, 1/2): five standard deviations are 2000.
        assert!(ones.abs_diff(320_000) < 2000, "lane {lane}: {ones}");
    }
    let mut sorted = draws.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), draws.len(), "no draw comes twice");
}
