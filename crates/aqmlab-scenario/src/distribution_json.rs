//! Distributions as plain data.

use aqmlab_traffic::Distribution;
use schemars::JsonSchema;
use serde::Serialize;

/// A distribution of numbers in one unit, in the same form as in a scenario.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(deny_unknown_fields)]
pub enum DistributionJson<T> {
    /// always the same
    Constant(T),
    /// uniform between the two values, which are included
    Uniform {
        /// smallest and largest
        uniform: [T; 2],
    },
    /// spread evenly over the flows, without random draws
    Spread {
        /// the value of the first flow and that of the last
        spread: [T; 2],
    },
    /// exponential
    Exponential {
        /// mean of the exponential part
        exponential: T,
        /// added to every draw
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<T>,
    },
    /// Pareto
    Pareto {
        /// mean without a bound
        pareto: T,
        /// shape, above 1
        shape: f64,
        /// upper bound
        #[serde(skip_serializing_if = "Option::is_none")]
        max: Option<T>,
    },
    /// flow i has entry `i mod len`
    List {
        /// the entries
        list: Vec<T>,
    },
    /// points of a distribution function, joined by straight lines
    Empirical {
        /// values, each with the share of draws that do not exceed it
        empirical: Vec<(T, f64)>,
    },
    /// one list per seed
    Seeds {
        /// for each seed, one value for all flows or one value for each flow
        seeds: Vec<Vec<T>>,
    },
}

/// Returns a distribution as plain data; `number` converts a value.
pub(crate) fn distribution<Q: Copy, T>(of: &Distribution<Q>, number: impl Fn(Q) -> T) -> DistributionJson<T> {
    let pair = |low: &Q, high: &Q| [number(*low), number(*high)];
    match of {
        Distribution::Constant(value) => DistributionJson::Constant(number(*value)),
        Distribution::Uniform { low, high } => DistributionJson::Uniform { uniform: pair(low, high) },
        Distribution::Spread { low, high } => DistributionJson::Spread { spread: pair(low, high) },
        Distribution::Exponential { mean, offset } => {
            DistributionJson::Exponential { exponential: number(*mean), offset: Some(number(*offset)) }
        }
        Distribution::Pareto { mean, shape, max } => {
            DistributionJson::Pareto { pareto: number(*mean), shape: *shape, max: max.map(&number) }
        }
        Distribution::List(values) => {
            DistributionJson::List { list: values.iter().copied().map(&number).collect() }
        }
        Distribution::Empirical(points) => {
            let points = points.iter().map(|(value, share)| (number(*value), *share));
            DistributionJson::Empirical { empirical: points.collect() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_units::Span;
    use serde_json::json;

    #[test]
    fn a_distribution_keeps_its_form_and_has_whole_numbers() {
        let json = |d: Distribution<Span>| {
            serde_json::to_value(distribution(&d, Span::as_ns)).expect("numbers have texts")
        };
        assert_eq!(json(Distribution::Constant(Span::ms(5))), json!(5_000_000));
        let range = Distribution::Uniform { low: Span::ZERO, high: Span::us(3) };
        assert_eq!(json(range), json!({ "uniform": [0, 3000] }));
        let tail = Distribution::Pareto { mean: Span::ns(7), shape: 1.5, max: None };
        assert_eq!(json(tail), json!({ "pareto": 7, "shape": 1.5 }));
        let points = Distribution::Empirical(vec![(Span::ns(1), 0.25), (Span::ns(2), 1.0)]);
        assert_eq!(json(points), json!({ "empirical": [[1, 0.25], [2, 1.0]] }));
    }
}
