//! Sizes written as a fraction of the queue's own buffer: `min_th = "0.25buffer"` is a quarter of
//! its `limit`.
//!
//! The fraction refers to `limit` as the file gives it, in its unit, before any value is resolved.
//! If an arm or a sweep changes the buffer, such thresholds therefore change with it.

use aqmlab_params::{Kind, Origin, Param, Value};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Span};

use crate::kind;
use crate::pass::Pass;
use crate::tree::{Entry, Node, Table, Tree};

const UNIT: &str = "buffer";
const LIMIT: &str = "limit";
/// The largest fraction that is accepted, ten buffers, which is more than any threshold needs.
const MOST: f64 = 10.0;

/// Returns whether a value is written as a fraction of the buffer. Only sizes of queues may be
/// written in this way.
pub(crate) fn is_part(node: &Node, param: &Param) -> bool {
    matches!(param.kind, Kind::Size { .. })
        && matches!(&node.value, Tree::Text(text) if text.trim_end().ends_with(UNIT))
}

/// Returns the value of `param` in `entry`, converted to the notation that belongs to the parameter's own
/// name.
pub(crate) fn by_its_name(entry: &Entry, param: &Param) -> Node {
    param
        .alias(&entry.key)
        .map_or_else(|| entry.node.clone(), |alias| kind::as_ours(&entry.node, alias.reading))
}

impl Pass<'_, '_> {
    /// Returns the value of `param`, which `node` gives as a fraction of the same table's buffer,
    /// and how it was derived.
    pub(crate) fn part_of_buffer(
        &mut self,
        table: &Table,
        params: &'static [Param],
        node: &Node,
        path: &str,
        param: &Param,
    ) -> Option<(Value, Origin)> {
        let value = self.share_of_buffer(node).and_then(|share| {
            let buffer = self.written_buffer(table, params, param)?;
            let rule = format!("{share} of `{LIMIT}`, `{buffer}`, rounded to the nearest whole number");
            let size = part(buffer, share, &param.kind)
                .ok_or_else(|| format!("{share} of `{LIMIT}`, `{buffer}`, is too small"))?;
            Ok((Value::Size(size), Origin::Derived(rule.into())))
        });
        value.map_err(|message| self.error(&node.at, path, message)).ok()
    }

    /// Returns the requested fraction of the buffer.
    fn share_of_buffer(&self, node: &Node) -> Result<f64, String> {
        let Tree::Text(text) = &node.value else { unreachable!("`is_part` has checked that it is a string") };
        let number = text.trim_end().strip_suffix(UNIT).unwrap_or_default().trim();
        let plain = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
        match number.parse::<f64>() {
            Ok(share) if plain && share > 0.0 && share <= MOST => Ok(share),
            _ => Err(format!(
                "`{}` is not a fraction of the buffer; write one above 0 and at most {MOST}, \
                        such as \"0.25buffer\"",
                self.report.quote(&node.at).trim_matches(['"', '\''])
            )),
        }
    }

    /// Returns the `limit` that the same table gives.
    fn written_buffer(
        &self,
        table: &Table,
        params: &'static [Param],
        asking: &Param,
    ) -> Result<Size, String> {
        if asking.name == LIMIT {
            return Err(
                "the buffer cannot be a fraction of itself; write packets (\"36p\"), bytes (\"123kB\") or \
                        bandwidth-delay products (\"1bdp\")"
                    .to_string(),
            );
        }
        let limit = params.iter().find(|p| p.name == LIMIT);
        let written = limit.and_then(|limit| {
            let entry = table.entries.iter().find(|e| limit.answers_to(&e.key))?;
            kind::value(&by_its_name(entry, limit), &limit.kind, "").ok()
        });
        match written {
            Some(Value::Size(size)) => Ok(size),
            _ => Err(format!(
                "a fraction of the buffer needs `{LIMIT}` in the same table; write one such as \"36p\""
            )),
        }
    }
}

/// Returns this fraction of a buffer, rounded to a whole packet or byte, or `None` if that is below
/// the parameter's minimum.
fn part(buffer: Size, share: f64, kind: &Kind) -> Option<Size> {
    let Kind::Size { min } = kind else { return None };
    let whole = |n: u64| Some((share * n as f64 + 0.5) as u64).filter(|n| *n >= min.get());
    match buffer {
        Size::Packets(n) => whole(n.get()).map(|n| Size::Packets(Packets::new(n))),
        Size::Bytes(n) => whole(n.get()).map(|n| Size::Bytes(Bytes::new(n))),
        Size::Bdp(x) => Some(Size::Bdp(share * x)),
        Size::Time(t) => whole(t.as_ns()).map(|ns| Size::Time(Span::ns(ns))),
    }
}
