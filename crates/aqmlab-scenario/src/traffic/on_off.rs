//! On and off periods, which several kinds of traffic have.

use std::sync::Arc;

use aqmlab_params::{Default, Kind, Value};
use aqmlab_traffic::{Begin, Distribution, OnOff};

use super::kind::Part;
use crate::field::{Field, Form, default, required};
use crate::language::PERIODS;
use crate::pass::{Pass, Section};

/// The part that draws the periods.
pub(super) const ON_OFF: Part = ("traffic.on_off", OnOff::VERSION);

/// The initial states of an on/off source.
const BEGINS: &[&str] = &["on", "off", "stationary"];

/// The keys that off periods have.
pub(super) const OFF: &[Field] = &[
    required("off", Form::Drawn(&PERIODS), "lengths of off periods"),
    default(
        "begin",
        Form::One(Kind::Choice(BEGINS)),
        Default::Choice("on"),
        "the first period; with \"stationary\", a flow starts in the middle of a period, as if it had always been running",
    ),
];

/// Returns the initial state of the flows.
pub(super) fn begin(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Begin> {
    match pass.value(section, "begin")? {
        Value::Choice("off") => Some(Begin::Off),
        Value::Choice("stationary") => Some(Begin::Stationary),
        _ => Some(Begin::On),
    }
}

/// Returns the periods, if they are sound.
pub(super) fn on_off(
    pass: &mut Pass<'_, '_>,
    section: &Section<'_>,
    on: Distribution,
    off: Distribution,
    begin: Begin,
) -> Option<Arc<OnOff>> {
    let times = OnOff { on, off, begin };
    if times.on.mean().is_zero() && times.off.mean().is_zero() {
        let message = "on and off periods are both zero; write a longer time for one of them";
        pass.error(&section.at("off"), &section.sub("off"), message);
        return None;
    }
    for (key, of) in [("on", &times.on), ("off", &times.off)] {
        if begin == Begin::Stationary && !of.has_residual() {
            let message = format!(
                "`begin = \"stationary\"` needs `{key}` to be constant, exponential without offset or Pareto \
                 without `max`; write another `begin`"
            );
            pass.error(&section.at("begin"), &section.sub("begin"), message);
            return None;
        }
    }
    Some(Arc::new(times))
}
