//! Values drawn for the flows of a class: their range, their means, and the independence of each
//! flow from the others.

use aqmlab_random::Stream;
use aqmlab_traffic::Distribution;
use aqmlab_units::Span;

fn stream(index: u64) -> Stream {
    Stream::indexed(7, "traffic/test/start", index)
}

fn values(of: &Distribution, count: u64) -> Vec<Span> {
    (0..count).map(|i| of.value(i, count, stream(i))).collect()
}

#[test]
fn a_spread_begins_with_its_low_and_ends_with_its_high() {
    let spread = Distribution::Spread { low: Span::ms(10), high: Span::ms(50) };
    assert_eq!(values(&spread, 5), [10, 20, 30, 40, 50].map(Span::ms));
    assert_eq!(values(&spread, 2), [10, 50].map(Span::ms));
    assert_eq!(values(&spread, 1), [Span::ms(10)], "a single flow has the low value");
}

#[test]
fn a_uniform_draw_may_be_either_end() {
    let two = Distribution::Uniform { low: Span::ns(3), high: Span::ns(4) };
    let highs = values(&two, 10_000).into_iter().filter(|v| *v == Span::ns(4)).count();
    // For a binomial(10000, 1/2) variable, five standard deviations are 250.
    assert!(highs.abs_diff(5000) < 250, "{highs}");
    let point = Distribution::Uniform { low: Span::ns(3), high: Span::ns(3) };
    assert_eq!(values(&point, 3), [Span::ns(3); 3]);
}

#[test]
fn an_exponential_has_its_mean_above_its_offset() {
    let (mean, offset) = (Span::ms(20), Span::ms(40));
    let drawn = values(&Distribution::Exponential { mean, offset }, 100_000);
    assert!(drawn.iter().all(|v| *v >= offset));
    let average = drawn.iter().map(|v| v.as_secs_f64()).sum::<f64>() / 1e5;
    // The standard error is 20 ms / sqrt(100000).
    assert!((average - 0.060).abs() < 5.0 * 0.020 / 1e5f64.sqrt(), "{average}");
}

#[test]
fn a_list_begins_anew_after_its_last() {
    let list = Distribution::List([1, 2, 3].map(Span::ms).to_vec());
    assert_eq!(values(&list, 5), [1, 2, 3, 1, 2].map(Span::ms));
}

#[test]
fn least_and_mean_are_those_of_the_values() {
    let ms = Span::ms;
    for (of, least, mean) in [
        (Distribution::Constant(ms(5)), ms(5), ms(5)),
        (Distribution::Uniform { low: ms(10), high: ms(30) }, ms(10), ms(20)),
        (Distribution::Spread { low: ms(10), high: ms(30) }, ms(10), ms(20)),
        (Distribution::Exponential { mean: ms(20), offset: ms(40) }, ms(40), ms(60)),
        (Distribution::List(vec![ms(4), ms(2), ms(9)]), ms(2), ms(5)),
    ] {
        assert_eq!((of.least(), of.mean()), (least, mean), "{of:?}");
        assert!(values(&of, 1000).iter().all(|v| *v >= least), "{of:?}");
    }
}
