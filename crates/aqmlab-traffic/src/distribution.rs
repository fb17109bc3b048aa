//! Distributions of quantities, over the flows of a class or over successive draws.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_units::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::pareto::Pareto;
use crate::quantity::Quantity;

/// A distribution of a quantity, most often of a length of time.
#[derive(Clone, PartialEq, Debug)]
pub enum Distribution<T = Span> {
    /// Always the same value.
    Constant(T),
    /// Uniform over the whole units in `[low, high]`.
    Uniform {
        /// smallest value
        low: T,
        /// largest value
        high: T,
    },
    /// Evenly spread, without a draw: flow i of n has `low + i (high - low) / (n - 1)`.
    Spread {
        /// the first flow's value
        low: T,
        /// the last flow's value
        high: T,
    },
    /// Exponential with this mean, shifted by `offset`.
    Exponential {
        /// mean of the exponential part
        mean: T,
        /// added to every draw
        offset: T,
    },
    /// Pareto: see [`Pareto`].
    Pareto {
        /// mean without a bound
        mean: T,
        /// shape, above 1
        shape: f64,
        /// upper bound; the distribution is conditional on values not exceeding it
        max: Option<T>,
    },
    /// Values from a list, without a draw: value i is entry `i mod len`. The list is never empty.
    List(Vec<T>),
    /// A distribution function given by points joined by straight lines: increasing values, each
    /// with the share of draws that do not exceed it. The first share is the probability of the
    /// first value itself; the last share is 1.
    Empirical(Vec<(T, f64)>),
}

/// A distribution is written in the form of scenarios: `5`, `{ "uniform": [2, 8] }`, `{ "pareto": 5, "shape": 1.5 }`.
impl<T: Serialize> Serialize for Distribution<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut form = match self {
            Distribution::Constant(value) => return value.serialize(serializer),
            _ => serializer.serialize_map(None)?,
        };
        match self {
            Distribution::Constant(_) => {}
            Distribution::Uniform { low, high } => form.serialize_entry("uniform", &[low, high])?,
            Distribution::Spread { low, high } => form.serialize_entry("spread", &[low, high])?,
            Distribution::Exponential { mean, offset } => {
                form.serialize_entry("exponential", mean)?;
                form.serialize_entry("offset", offset)?;
            }
            Distribution::Pareto { mean, shape, max } => {
                form.serialize_entry("pareto", mean)?;
                form.serialize_entry("shape", shape)?;
                max.as_ref().map_or(Ok(()), |max| form.serialize_entry("max", max))?;
            }
            Distribution::List(values) => form.serialize_entry("list", values)?,
            Distribution::Empirical(points) => form.serialize_entry("empirical", points)?,
        }
        form.end()
    }
}

impl<T: JsonSchema> JsonSchema for Distribution<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("DistributionOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        let share = json_schema!({ "type": "number" });
        let pair = json_schema!({ "type": "array", "items": one, "minItems": 2, "maxItems": 2 });
        let list = json_schema!({ "type": "array", "items": one });
        let point =
            json_schema!({ "type": "array", "prefixItems": [one, share], "minItems": 2, "maxItems": 2 });
        let points = json_schema!({ "type": "array", "items": point });
        let form = |properties: Schema, required: &[&str]| {
            json_schema!({ "type": "object", "properties": properties, "required": required,
                "additionalProperties": false })
        };
        json_schema!({ "anyOf": [
            one,
            form(json_schema!({ "uniform": pair }), &["uniform"]),
            form(json_schema!({ "spread": pair }), &["spread"]),
            form(json_schema!({ "exponential": one, "offset": one }), &["exponential", "offset"]),
            form(json_schema!({ "pareto": one, "shape": { "type": "number" }, "max": one }), &["pareto", "shape"]),
            form(json_schema!({ "list": list }), &["list"]),
            form(json_schema!({ "empirical": points }), &["empirical"]),
        ] })
    }
}

impl<T: Quantity> Distribution<T> {
    /// Returns the value for flow `index` out of `count` flows. `stream` belongs to that flow, and at most
    /// its first draw is used. The value therefore never depends on other flows (except with
    /// [`Distribution::Spread`], by definition).
    pub fn value(&self, index: u64, count: u64, mut stream: Stream) -> T {
        match self {
            Distribution::Spread { low, high } => {
                let width = u128::from(high.units().saturating_sub(low.units()));
                let steps = u128::from(count.saturating_sub(1).max(1));
                T::of_units(low.units() + (width * u128::from(index) / steps) as u64)
            }
            _ => self.draw(index, &mut stream),
        }
    }

    /// Returns value `index` of a sequence; this takes one draw from `stream`, whatever the
    /// distribution.
    ///
    /// # Panics
    /// If the distribution is [`Distribution::Spread`], which requires a known number of flows.
    pub fn draw(&self, index: u64, stream: &mut Stream) -> T {
        match self {
            Distribution::Uniform { low, high } => {
                let width = high.units().saturating_sub(low.units());
                // Both limits are included. If the width is `u64::MAX`, the number of values would
                // overflow, so one value is left out.
                T::of_units(low.units() + stream.below(width.saturating_add(1)))
            }
            Distribution::Exponential { mean, offset } => offset.plus(mean.times(stream.exponential())),
            _ => self.quantile(index, stream.unit()),
        }
    }

    /// Computes the value for the uniform draw `u` by inversion, for the distributions that are drawn in this
    /// way.
    fn quantile(&self, index: u64, u: f64) -> T {
        match self {
            Distribution::Constant(v) => *v,
            Distribution::List(values) => values[(index % values.len() as u64) as usize],
            Distribution::Pareto { mean, .. } => mean.times(self.pareto().quantile(u)),
            Distribution::Empirical(points) => interpolated(points, u),
            _ => {
                unreachable!(
                    "a spread needs the number of flows; uniform and exponential draws have their own functions"
                )
            }
        }
    }

    /// Draws the residual life of a period at a random instant, for a process that has run forever
    /// and whose periods have lengths of this distribution; this takes one draw from `stream`.
    /// Returns `None` for a distribution without an implemented formula.
    pub fn residual(&self, stream: &mut Stream) -> Option<T> {
        let u = stream.unit();
        match self {
            Distribution::Constant(v) => Some(v.times(u)),
            Distribution::Exponential { mean, offset } if offset.units() == 0 => {
                Some(mean.times(-libm::log(1.0 - u)))
            }
            Distribution::Pareto { mean, .. } => Some(mean.times(self.pareto().residual(u)?)),
            _ => None,
        }
    }

    /// Returns whether [`Distribution::residual`] has a formula for this distribution.
    pub fn has_residual(&self) -> bool {
        self.residual(&mut Stream::new(0, "")).is_some()
    }

    /// Returns this Pareto distribution in units of its mean.
    fn pareto(&self) -> Pareto {
        let Distribution::Pareto { mean, shape, max } = self else {
            unreachable!("this is called only for a Pareto distribution")
        };
        Pareto::new(*shape, max.map(|max| max.units() as f64 / mean.units() as f64))
    }

    /// Returns the smallest possible value.
    pub fn least(&self) -> T {
        match self {
            Distribution::Constant(v) => *v,
            Distribution::Uniform { low, .. } | Distribution::Spread { low, .. } => *low,
            Distribution::Exponential { offset, .. } => *offset,
            Distribution::Pareto { mean, .. } => mean.times(self.pareto().least()),
            Distribution::List(values) => {
                values.iter().copied().reduce(|a, b| if b < a { b } else { a }).unwrap_or(T::of_units(0))
            }
            Distribution::Empirical(points) => points.first().map_or(T::of_units(0), |p| p.0),
        }
    }

    /// Returns the mean.
    pub fn mean(&self) -> T {
        match self {
            Distribution::Constant(v) => *v,
            Distribution::Uniform { low, high } | Distribution::Spread { low, high } => {
                T::of_units(low.units() + high.units().saturating_sub(low.units()) / 2)
            }
            Distribution::Exponential { mean, offset } => mean.plus(*offset),
            Distribution::Pareto { mean, .. } => mean.times(self.pareto().mean()),
            Distribution::List(values) => {
                let sum: u128 = values.iter().map(|v| u128::from(v.units())).sum();
                T::of_units((sum / values.len().max(1) as u128) as u64)
            }
            Distribution::Empirical(points) => empirical_mean(points),
        }
    }
}

/// Returns the `u` quantile by linear interpolation between the points.
fn interpolated<T: Quantity>(points: &[(T, f64)], u: f64) -> T {
    let next = points.partition_point(|&(_, share)| share <= u).min(points.len() - 1);
    let (high, above) = points[next];
    let Some(&(low, below)) = next.checked_sub(1).and_then(|before| points.get(before)) else { return high };
    let width = (high.units() - low.units()) as f64;
    T::of_units(low.units() + (width * (u - below) / (above - below) + 0.5) as u64)
}

/// Returns the mean: the first value times its share, plus, for each line, its midpoint times the share that
/// the line covers.
fn empirical_mean<T: Quantity>(points: &[(T, f64)]) -> T {
    let first = points.first().map_or(0.0, |&(v, share)| v.units() as f64 * share);
    let lines = points.windows(2).map(|w| (w[0].0.units() + w[1].0.units()) as f64 / 2.0 * (w[1].1 - w[0].1));
    T::of_units((first + lines.sum::<f64>() + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use aqmlab_units::Span;
    use serde_json::json;

    #[test]
    fn a_distribution_keeps_its_form_and_has_whole_numbers() {
        let json = |d: Distribution<Span>| serde_json::to_value(d).expect("numbers have texts");
        assert_eq!(json(Distribution::Constant(Span::ms(5))), json!(5_000_000));
        let range = Distribution::Uniform { low: Span::ZERO, high: Span::us(3) };
        assert_eq!(json(range), json!({ "uniform": [0, 3000] }));
        let tail = Distribution::Pareto { mean: Span::ns(7), shape: 1.5, max: None };
        assert_eq!(json(tail), json!({ "pareto": 7, "shape": 1.5 }));
        let points = Distribution::Empirical(vec![(Span::ns(1), 0.25), (Span::ns(2), 1.0)]);
        assert_eq!(json(points), json!({ "empirical": [[1, 0.25], [2, 1.0]] }));
    }
}
