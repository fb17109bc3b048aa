//! `hit(p)` and `unit() < p` are the same decision, even at the boundary.

use aqmlab_random::Stream;

/// The distance between neighbouring draws.
const STEP: f64 = 1.0 / (1u64 << 53) as f64;

#[test]
fn a_draw_hits_exactly_the_probabilities_above_it() {
    let mut draws = Stream::new(3, "edge");
    for _ in 0..1000 {
        let [mut at, mut above] = [draws; 2];
        let u = draws.unit();
        assert!(!at.hit(u), "{u} is not below itself");
        assert!(above.hit(u + STEP), "{u} is below its neighbour");
        assert_eq!((at, above), (draws, draws), "one draw each");
    }
}
