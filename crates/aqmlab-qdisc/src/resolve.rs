//! Rules common to several disciplines: sizes, buffer limits, samples.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aqmlab_params::{Origin, ParamError, Row, Settings, Value, params, words};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets};

use crate::disc::Measure;
use crate::{Limit, LinkContext};

words! {
    /// The condition under which a buffer is full.
    pub(crate) enum LimitRule { Fits = "fits", Reached = "reached", Below = "below" }
}

/// The rules for disciplines that, unlike DropTail and REM in ns-2, do not count the arriving packet.
const WITHOUT_BELOW: &[&str] = &[LimitRule::Fits.word(), LimitRule::Reached.word()];

params! {
    /// The parameters whose resolution is the same in all disciplines that have them. A discipline adds defaults,
    /// sources and the names in other tools.
    pub(crate) struct Common {
        /// buffer size, excluding the packet in transmission
        limit: Size = Row::size(),
        /// byte limits only: `fits` refuses a packet that would exceed the limit, `reached` refuses every
        /// packet once the backlog has reached it
        limit_rule: LimitRule = Row::choice("fits").only(WITHOUT_BELOW)
            .source("`fits`: Linux bfifo; `reached`: ns-2 with its queue in bytes"),
        /// unit of the queue length
        measure: Measure = Row::choice("packets"),
        /// mean packet size, for the conversion of sizes between packets and bytes
        mean_packet: Bytes = Row::bytes(1, 65_535).auto("the link's mean packet size").source("ours"),
    }
}

/// The parameter `limit_rule` of the disciplines in which ns-2 counts the arriving packet: DropTail and REM.
pub(crate) const LIMIT_RULE_OR_BELOW: Row<LimitRule> = Common::limit_rule()
    .only(LimitRule::WORDS)
    .source("`fits`: Linux bfifo; `reached`: ns-2 with its queue in bytes; `below`: ns-2's DropTail and REM")
    .help(
        "`below` refuses a packet that would raise the backlog to the limit, so the buffer holds one packet \
         or byte less; byte limits only: `fits` refuses a packet that would exceed the limit, `reached` \
         refuses every packet once the backlog has reached it",
    );

/// Returns these values as settings, as if a scenario had given them.
pub(crate) fn given(values: &[(&'static str, Value)]) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in values {
        settings.set(name, value.clone(), Origin::Given);
    }
    settings
}

/// Returns the settings of a discipline's only sample: `values`, and a buffer small enough for a
/// script of the contract kit to fill.
pub(crate) fn sample(values: &[(&'static str, Value)]) -> Vec<(&'static str, Settings)> {
    let mut settings = given(values);
    settings.set(SAMPLE_LIMIT.0, SAMPLE_LIMIT.1, Origin::Given);
    alloc::vec![("", settings)]
}

/// The buffer size of the samples.
pub(crate) const SAMPLE_LIMIT: (&str, Value) = Common::limit().is(Size::Packets(Packets::new(70)));

/// Converts to packets a size given as a multiple of the bandwidth-delay product or as a time.
pub(crate) fn absolute_size(
    settings: &mut Settings,
    row: Row<Size>,
    link: &LinkContext,
) -> Result<(), ParamError> {
    let written = row.read(settings)?;
    let size = link.absolute(row.name(), written)?;
    if size != written {
        let at_rate = if let Size::Time(_) = written { format!(" at {}", link.rate) } else { String::new() };
        let rule = format!(
            "{written}{at_rate} in packets of {}, rounded to the nearest whole number",
            link.mean_packet
        );
        row.derive(settings, size, rule);
    }
    Ok(())
}

/// Replaces an automatic `mean_packet` with the mean packet size of the link.
pub(crate) fn mean_packet(settings: &mut Settings, link: &LinkContext) -> Result<Bytes, ParamError> {
    let mean = Common::mean_packet();
    if mean.is_auto(settings) {
        mean.derive(settings, link.mean_packet, "the link's mean packet size");
    }
    mean.read(settings)
}

/// Returns `size` in bytes, counting each packet at the mean size. Sizes relative to the path have already
/// been resolved.
pub(crate) fn in_bytes(size: Size, mean: Bytes) -> f64 {
    match size {
        Size::Packets(n) => n.as_f64() * mean.as_f64(),
        Size::Bytes(n) => n.as_f64(),
        Size::Bdp(_) | Size::Time(_) => f64::NAN,
    }
}

/// Returns the whole number of packets or bytes, according to the queue's unit, that is nearest to `bytes`;
/// at least one.
pub(crate) fn in_queue_unit(bytes: f64, measure: Measure, mean: Bytes) -> Size {
    match measure {
        Measure::Packets => Size::Packets(Packets::new(whole(bytes / mean.as_f64()))),
        Measure::Bytes => Size::Bytes(Bytes::new(whole(bytes))),
    }
}

/// Converts to the queue's unit a size given as a multiple of the bandwidth-delay product or as a
/// time.
pub(crate) fn absolute_in_queue_unit(
    settings: &mut Settings,
    row: Row<Size>,
    link: &LinkContext,
    measure: Measure,
    mean: Bytes,
) -> Result<(), ParamError> {
    if row.is_auto(settings) {
        return Ok(());
    }
    let written = row.read(settings)?;
    if let Some(bytes) = link.relative_bytes(row.name(), written)? {
        let size = in_queue_unit(bytes, measure, mean);
        let rule = match written {
            Size::Time(_) => format!("{written} at {}, rounded to the nearest whole number", link.rate),
            _ => format!("{written}, rounded to the nearest whole number"),
        };
        row.derive(settings, size, rule);
    }
    Ok(())
}

/// Returns the nearest whole number, at least one.
pub(crate) fn whole(x: f64) -> u64 {
    ((x + 0.5) as u64).max(1)
}

/// Checks that the size `small` does not exceed the size `large`. Sizes in packets are converted to
/// bytes with the mean packet size `mean`.
pub(crate) fn check_order(
    settings: &Settings,
    small: Row<Size>,
    large: Row<Size>,
    mean: Bytes,
) -> Result<(), ParamError> {
    let (a, b) = (small.read(settings)?, large.read(settings)?);
    if in_bytes(a, mean) <= in_bytes(b, mean) {
        return Ok(());
    }
    Err(small.error(format!("{} `{a}` exceeds {} `{b}`", small.name(), large.name())))
}

/// Checks that a buffer can hold at least one packet of mean size.
pub(crate) fn check_buffer(effective: &Settings, mean_packet: Bytes) -> Result<(), ParamError> {
    let limit = Common::limit().read(effective)?;
    let below = Common::limit_rule().read(effective) == Ok(LimitRule::Below);
    let too_small = match limit {
        Size::Packets(n) => n.get() <= u64::from(below),
        Size::Bytes(n) => n < mean_packet + Bytes::new(u64::from(below)),
        Size::Bdp(_) | Size::Time(_) => false,
    };
    if too_small {
        let message = if below {
            format!("limit `{limit}` with limit_rule `below` admits no packet; write a larger limit")
        } else {
            format!("limit `{limit}` is smaller than one packet of `{mean_packet}`")
        };
        return Err(Common::limit().error(message));
    }
    Ok(())
}

/// Returns the limit that effective parameters describe.
pub(crate) fn limit(effective: &Settings) -> Result<Limit, ParamError> {
    // ns-2 with its queue in bytes interprets a limit in packets as that many packets of mean size.
    let mean_packets = |n: Packets| Ok(Common::mean_packet().read(effective)? * n.get());
    let in_bytes = Common::measure().read(effective) == Ok(Measure::Bytes);
    let one_less = |n: u64| n.saturating_sub(1);
    match (Common::limit().read(effective)?, Common::limit_rule().read(effective)?) {
        (Size::Packets(n), LimitRule::Reached) if in_bytes => Ok(Limit::BytesReached(mean_packets(n)?)),
        (Size::Packets(n), LimitRule::Below) if in_bytes => {
            Ok(Limit::Bytes(Bytes::new(one_less(mean_packets(n)?.get()))))
        }
        (Size::Packets(n), LimitRule::Below) => Ok(Limit::Packets(Packets::new(one_less(n.get())))),
        (Size::Packets(n), LimitRule::Fits | LimitRule::Reached) => Ok(Limit::Packets(n)),
        (Size::Bytes(n), LimitRule::Reached) => Ok(Limit::BytesReached(n)),
        (Size::Bytes(n), LimitRule::Below) => Ok(Limit::Bytes(Bytes::new(one_less(n.get())))),
        (Size::Bytes(n), LimitRule::Fits) => Ok(Limit::Bytes(n)),
        (size @ (Size::Bdp(_) | Size::Time(_)), _) => {
            Err(Common::limit().error(format!("limit `{size}` has not been resolved to packets or bytes")))
        }
    }
}
