//! Distributions of quantities in the notation of scenarios.

use std::fmt::{self, Display};

use aqmlab_params::{Default, Kind, Origin, Value};
use aqmlab_traffic::{Count, Distribution, Pareto, Probability, Quantity};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Rate, Span};

use crate::field::{Absent, Drawn, Form, OURS};
use crate::pass::{Pass, Section};
use crate::tree::{Entry, Node, Table, Tree};

/// Every form, with its notation and the keys that may accompany it.
const FORMS: &[(&str, &str, &[&str])] = &[
    ("uniform", "{ uniform = [low, high] }", &[]),
    ("spread", "{ spread = [low, high] }", &[]),
    ("exponential", "{ exponential = mean, offset = .. }", &["offset"]),
    ("pareto", "{ pareto = mean, shape = 1.5 }", &["shape", "max"]),
    ("list", "{ list = [..] }", &[]),
    ("empirical", "{ empirical = [[value, share], ..] }", &[]),
    ("seeds", "{ seeds = [[..], ..] }", &[]),
];

/// The mean is finite only if the shape is above 1. With a shape above 100, all values would be
/// close to the mean.
const SHAPE: Kind = Kind::NumberAbove { above: 1.0, max: 100.0 };
const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };

impl Drawn {
    fn nouns(&self) -> String {
        match self.noun.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None => format!("{}s", self.noun),
        }
    }

    /// Returns the accepted notations, for messages and the reference.
    pub(crate) fn form(&self) -> String {
        let forms = FORMS.iter().filter(|f| self.forms.contains(&f.0)).map(|f| f.1);
        let forms = forms.collect::<Vec<_>>().join(", ");
        format!("a {} ({}) or a distribution: {forms}", self.noun, self.example)
    }
}

/// A quantity that occurs in scenarios.
pub(crate) trait Written: Quantity + Display {
    /// Returns the quantity that a value holds, if the value has the kind stated in the quantity's
    /// [`Drawn`].
    fn of(value: &Value) -> Option<Self>;
    /// Returns its TOML notation.
    fn written(self) -> String {
        format!("\"{self}\"")
    }
}

impl Written for Span {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Span(v) = value { Some(*v) } else { None }
    }
}

impl Written for Bytes {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Size(Size::Bytes(v)) = value { Some(*v) } else { None }
    }
}

impl Written for Rate {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Rate(v) = value { Some(*v) } else { None }
    }
}

impl Written for Count {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Integer(n) = value { Some(Count(*n)) } else { None }
    }

    fn written(self) -> String {
        self.to_string()
    }
}

impl Written for Probability {
    fn of(value: &Value) -> Option<Self> {
        if let Value::Number(v) = value { Probability::new(*v) } else { None }
    }

    fn written(self) -> String {
        self.to_string()
    }
}

impl Pass<'_, '_> {
    /// Returns the distribution at a key or its default, or `None` if the value is wrong, missing or
    /// determined by another key.
    pub(crate) fn drawn<T: Written>(&mut self, section: &Section<'_>, key: &str) -> Option<Distribution<T>> {
        let field = section.fields.iter().find(|f| f.name == key)?;
        let (Form::Drawn(drawn) | Form::StageDelay(drawn) | Form::DrawnOverTime(drawn)) = field.form else {
            unreachable!("this function reads only keys whose values are distributions")
        };
        let (found, origin) = match (section.node(key), field.absent) {
            (Some(node), _) => (self.drawn_at(node, &section.sub(key), drawn)?, Origin::Given),
            (None, Absent::Is(default)) => (constant(&default)?, Origin::Default(OURS)),
            (None, Absent::Required) => {
                self.error(
                    &section.at,
                    &section.path,
                    format!("`{key}` is missing ({}); write {}", field.help, drawn.form()),
                );
                return None;
            }
            (None, Absent::Rule(_)) => return None,
        };
        self.enter(section, key, &Times(&found), origin);
        Some(found)
    }

    fn drawn_at<T: Written>(&mut self, node: &Node, path: &str, drawn: &Drawn) -> Option<Distribution<T>> {
        let table = match &node.value {
            Tree::Table(table) => table,
            Tree::Text(_) | Tree::Integer(_) | Tree::Float(_) => {
                return self.one_at(node, path, drawn).map(Distribution::Constant);
            }
            other => {
                let message =
                    format!("`{}` is {}; write {}", self.report.quote(&node.at), other.what(), drawn.form());
                self.error(&node.at, path, message);
                return None;
            }
        };
        let beside: Vec<&str> = FORMS.iter().flat_map(|f| f.2.iter().copied()).collect();
        let form = self.form(node, table, path, drawn.forms, &beside)?;
        self.check_beside(table, form, path)?;
        let path = format!("{path}.{}", form.key);
        match form.key.as_str() {
            "uniform" => {
                self.interval(&form.node, &path, drawn).map(|(low, high)| Distribution::Uniform { low, high })
            }
            "spread" => {
                self.interval(&form.node, &path, drawn).map(|(low, high)| Distribution::Spread { low, high })
            }
            "exponential" => self.exponential(&form.node, table, &path, drawn),
            "pareto" => self.pareto(&form.node, table, &path, drawn),
            "list" => self.listed_values(&form.node, &path, drawn).map(Distribution::List),
            _ => self.empirical(&form.node, &path, drawn).map(Distribution::Empirical),
        }
    }

    /// Checks that the other keys of the table may accompany the form.
    fn check_beside(&mut self, table: &Table, form: &Entry, path: &str) -> Option<()> {
        let own = FORMS.iter().find(|f| f.0 == form.key).map_or(&[][..], |f| f.2);
        let strange = |e: &&Entry| e.key != form.key && !own.contains(&e.key.as_str());
        if let Some(entry) = table.entries.iter().find(strange) {
            let of = FORMS.iter().find(|f| f.2.contains(&entry.key.as_str())).map_or("", |f| f.0);
            let article = if of.starts_with('e') { "an" } else { "a" };
            self.error(
                &entry.key_at,
                path,
                format!("`{}` belongs only to {article} {of} distribution", entry.key),
            );
            return None;
        }
        Some(())
    }

    fn one_at<T: Written>(&mut self, node: &Node, path: &str, drawn: &Drawn) -> Option<T> {
        let value = self.given(node, path, &drawn.kind)?;
        Some(T::of(&value).expect("the kind decides the value's type"))
    }

    fn exponential<T: Written>(
        &mut self,
        node: &Node,
        table: &Table,
        path: &str,
        drawn: &Drawn,
    ) -> Option<Distribution<T>> {
        let mean = self.one_at(node, path, drawn)?;
        let offset = match table.get("offset") {
            Some(offset) => self.one_at(offset, path, drawn)?,
            None => T::of_units(0),
        };
        Some(Distribution::Exponential { mean, offset })
    }

    fn pareto<T: Written>(
        &mut self,
        node: &Node,
        table: &Table,
        path: &str,
        drawn: &Drawn,
    ) -> Option<Distribution<T>> {
        let mean: T = self.one_at(node, path, drawn)?;
        if mean.units() == 0 {
            self.error(&node.at, path, format!("the mean `{mean}` is zero; write a larger one"));
            return None;
        }
        let Some(shape_node) = table.get("shape") else {
            self.error(&node.at, path, "`shape` is missing; write a number above 1, such as shape = 1.5");
            return None;
        };
        let shape = self.shape(shape_node, path)?;
        let max = match table.get("max") {
            None => None,
            Some(max_node) => {
                let max: T = self.one_at(max_node, path, drawn)?;
                let least = mean.times(Pareto::new(shape, None).least());
                if max <= least {
                    let message = format!(
                        "max `{max}` is not above the smallest value `{least}`, which follows from mean and shape; write a larger max"
                    );
                    self.error(&max_node.at, path, message);
                    return None;
                }
                Some(max)
            }
        };
        Some(Distribution::Pareto { mean, shape, max })
    }

    fn shape(&mut self, node: &Node, path: &str) -> Option<f64> {
        let infinite = match node.value {
            Tree::Integer(n) => n <= 1,
            Tree::Float(x) => x <= 1.0,
            _ => false,
        };
        if infinite {
            let quoted = self.report.quote(&node.at);
            let message = format!(
                "a Pareto distribution of shape `{quoted}` has no finite mean; write a number above 1"
            );
            self.error(&node.at, path, message);
            return None;
        }
        match self.given(node, path, &SHAPE)? {
            Value::Number(shape) => Some(shape),
            _ => unreachable!("a shape is a number"),
        }
    }

    fn interval<T: Written>(&mut self, node: &Node, path: &str, drawn: &Drawn) -> Option<(T, T)> {
        let Tree::List(items) = &node.value else {
            let message = format!(
                "`{}` is {}; write two {} [low, high]",
                self.report.quote(&node.at),
                node.value.what(),
                drawn.nouns()
            );
            self.error(&node.at, path, message);
            return None;
        };
        let [low, high] = items.as_slice() else {
            let message =
                format!("this is a list of {}; write two {} [low, high]", items.len(), drawn.nouns());
            self.error(&node.at, path, message);
            return None;
        };
        let (low, high): (T, T) = (self.one_at(low, path, drawn)?, self.one_at(high, path, drawn)?);
        if low > high {
            let message =
                format!("low `{low}` exceeds high `{high}`; write [{}, {}]", high.written(), low.written());
            self.error(&node.at, path, message);
            return None;
        }
        Some((low, high))
    }

    fn listed_values<T: Written>(&mut self, node: &Node, path: &str, drawn: &Drawn) -> Option<Vec<T>> {
        let items = self.entries(node, path, &drawn.nouns(), drawn)?;
        items.iter().map(|item| self.one_at(item, path, drawn)).collect::<Vec<_>>().into_iter().collect()
    }

    /// Returns the entries of a list, which must not be empty.
    fn entries<'n>(&mut self, node: &'n Node, path: &str, of: &str, drawn: &Drawn) -> Option<&'n [Node]> {
        match &node.value {
            Tree::List(items) if !items.is_empty() => Some(items),
            Tree::List(_) => {
                self.error(&node.at, path, format!("the list is empty; write at least one {}", drawn.noun));
                None
            }
            other => {
                let message =
                    format!("`{}` is {}; write a list of {of}", self.report.quote(&node.at), other.what());
                self.error(&node.at, path, message);
                None
            }
        }
    }

    fn empirical<T: Written>(&mut self, node: &Node, path: &str, drawn: &Drawn) -> Option<Vec<(T, f64)>> {
        const FORM: &str = "pairs [value, share of draws that do not exceed it]";
        let items = self.entries(node, path, FORM, drawn)?;
        let mut points: Vec<(T, f64)> = Vec::new();
        for item in items {
            let Tree::List(pair) = &item.value else {
                let message =
                    format!("`{}` is {}; write {FORM}", self.report.quote(&item.at), item.value.what());
                self.error(&item.at, path, message);
                return None;
            };
            let [value, share] = pair.as_slice() else {
                self.error(
                    &item.at,
                    path,
                    format!("this is a list of {}; write a pair [value, share]", pair.len()),
                );
                return None;
            };
            let point: (T, f64) = (self.one_at(value, path, drawn)?, self.share(share, path)?);
            if let Some(last) = points.last()
                && (point.0 < last.0 || point.1 < last.1)
            {
                let message = "values and shares must not decrease from point to point".to_string();
                self.error(&item.at, path, message);
                return None;
            }
            points.push(point);
        }
        let last = points.last().expect("an empty list has already been reported").1;
        if last != 1.0 {
            self.error(
                &node.at,
                path,
                format!("the last share is `{last}`; it must be 1 because no draw exceeds the last value"),
            );
            return None;
        }
        Some(points)
    }

    fn share(&mut self, node: &Node, path: &str) -> Option<f64> {
        match self.given(node, path, &SHARE)? {
            Value::Number(share) => Some(share),
            _ => unreachable!("a share is a number"),
        }
    }
}

fn constant<T: Written>(default: &Default) -> Option<Distribution<T>> {
    T::of(&default.value()?).map(Distribution::Constant)
}

/// A distribution in the notation of a scenario.
pub(crate) struct Times<'d, T>(pub(crate) &'d Distribution<T>);

impl<T: Written> Display for Times<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Distribution::Constant(v) => Display::fmt(v, f),
            Distribution::Uniform { low, high } => {
                write!(f, "{{ uniform = [{}, {}] }}", low.written(), high.written())
            }
            Distribution::Spread { low, high } => {
                write!(f, "{{ spread = [{}, {}] }}", low.written(), high.written())
            }
            Distribution::Exponential { mean, offset } => {
                write!(f, "{{ exponential = {}, offset = {} }}", mean.written(), offset.written())
            }
            Distribution::Pareto { mean, shape, max } => {
                write!(f, "{{ pareto = {}, shape = {shape}", mean.written())?;
                max.map_or(Ok(()), |max| write!(f, ", max = {}", max.written()))?;
                f.write_str(" }")
            }
            Distribution::List(values) => {
                let quoted: Vec<String> = values.iter().map(|v| v.written()).collect();
                write!(f, "{{ list = [{}] }}", quoted.join(", "))
            }
            Distribution::Empirical(points) => {
                let pairs: Vec<String> =
                    points.iter().map(|(v, share)| format!("[{}, {share}]", v.written())).collect();
                write!(f, "{{ empirical = [{}] }}", pairs.join(", "))
            }
        }
    }
}
