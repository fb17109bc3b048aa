//! Queues inside other disciplines: their parameters, and how they are resolved and built.

use alloc::format;

use aqmlab_params::{Field, Origin, ParamError, Row, Settings};
use aqmlab_random::Stream;
use aqmlab_units::Packets;
use aqmlab_units::text::Size;

use super::red_table::Shared;
use crate::info::{Catalogue, Effective};
use crate::{LinkContext, resolve};

/// A queue: its name in the catalogue, and its parameters.
pub(super) type Inner = (&'static str, Settings);

/// Builds a discipline that is inside another one.
pub(crate) type BuildInner<'a, Q> = &'a dyn Fn(&Effective, Stream) -> Result<Q, ParamError>;

pub(super) const RFC2475: &str = "RFC 2475, section 2.3";

pub(super) const A_QUEUE: &str = "a discipline such as { kind = \"droptail\", limit = \"100p\" }";

/// Returns a RED queue that reacts within a few hundred packets.
pub(super) fn quick_red() -> Inner {
    let size = |n| Size::Packets(Packets::new(n));
    let (min_th, max_th) = (Shared::min_th().is(size(2)), Shared::max_th().is(size(8)));
    let values = [resolve::SAMPLE_LIMIT, min_th, max_th, Shared::w_q().is(0.2), Shared::ecn().is(true)];
    ("red", resolve::given(&values))
}

/// Resolves a queue inside another discipline.
pub(super) fn resolve_inner(
    (kind, given): Inner,
    link: &LinkContext,
    catalogue: &Catalogue,
) -> Result<Inner, ParamError> {
    let info = catalogue
        .find(kind)
        .ok_or_else(|| ParamError::new("kind", format!("there is no discipline called `{kind}`")));
    let inner = info.and_then(|info| info.resolve_in(catalogue, &given, link));
    let inner = inner.map_err(|e| e.under("queue", None))?;
    Ok(inner.into_inner())
}

/// Checks that a required parameter has a value.
pub(super) fn needs<T>(all: &Settings, row: Row<T>, what: &str) -> Result<(), ParamError> {
    match all.get(row.name()) {
        Some(_) => Ok(()),
        None => Err(row.error(format!("`{}` is missing; write {what}", row.name()))),
    }
}

/// Replaces a value but keeps its origin.
pub(super) fn replace<T: Field>(all: &mut Settings, row: Row<T>, value: T) {
    let origin = all.iter().find(|s| s.name == row.name()).map_or(Origin::Given, |s| s.origin.clone());
    all.set(row.name(), value.into_value(), origin);
}
