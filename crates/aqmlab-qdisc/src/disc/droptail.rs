//! DropTail: a queue that drops an arrival when it is full.

use aqmlab_params::{Alias, ParamError, Settings, params};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Rate};

use super::table::{LINUX, NS2, NS2_TITLE, names, ns2_in, packets, presets};
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::resolve::{self, Common, LIMIT_RULE_OR_BELOW, LimitRule};
use crate::{Backlog, Cause, Fifo, LawSamples, Limit, LinkContext, Observer, Packet, Qdisc, Reason};

/// A first-in first-out queue with a limit. Drops are reported as [`Reason::Overflow`]; packets are never
/// marked.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    limit: Limit,
    queue: Fifo<P>,
}

impl<P: Packet> DropTail<P> {
    /// Creates an empty queue.
    pub fn new(limit: Limit) -> Self {
        DropTail { limit, queue: Fifo::for_limit(limit) }
    }
}

/// Builds a queue from these parameters.
pub(crate) fn build_droptail<P: Packet>(s: &Effective, _: Stream) -> Result<DropTail<P>, ParamError> {
    Ok(DropTail::new(resolve::limit(s)?))
}

impl<P: Packet> Qdisc<P> for DropTail<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        if self.limit.admits(self.queue.backlog(), pkt.wire_len()) {
            self.queue.push(pkt);
        } else {
            obs.dropped(now, pkt, Cause::of(Reason::Overflow));
        }
    }

    #[inline(always)]
    fn dequeue(&mut self, _now: Instant, _obs: &mut dyn Observer<P>) -> Option<P> {
        self.queue.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, _now: Instant, _rate: Rate) {}

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn next_len(&mut self) -> Option<Bytes> {
        self.queue.head().map(P::wire_len)
    }

    fn settles_at_enqueue(&self) -> bool {
        true
    }

    #[inline]
    fn passes_at_once(&self, size: Bytes) -> bool {
        self.queue.is_empty() && self.limit.admits_any(size)
    }

    fn reserve(&mut self, packets: usize, _flows: usize) {
        self.queue.reserve(self.limit, packets);
    }

    /// DropTail has no law and therefore no values to report.
    fn observe(&self, _now: Instant, _out: &mut LawSamples) {}
}

/// DropTail's entry in the catalogue.
pub(crate) const DROPTAIL_INFO: Info = Info {
    name: "droptail",
    title: "DropTail",
    summary: "one first-in first-out queue; an arrival that finds it full is lost",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: Decides::Enqueue,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || resolve::sample(&[]),
};

/// DropTail's presets.
const PRESETS: &[Preset] = &[
    Preset { name: LINUX, title: "Linux pfifo and bfifo", values: &[] },
    Preset {
        name: NS2,
        title: NS2_TITLE,
        values: &[Parameters::limit().is(packets(50)), Parameters::limit_rule().is("below")],
    },
];

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        /// buffer size, excluding the packet in transmission; a multiple of the bandwidth-delay product is converted
        /// to packets of mean size, rounded to the nearest whole number
        limit: Size = Common::limit().default(Size::Bdp(1.0))
            .aliases(&[ns2_in("p", "limit_").implies(LIMIT_RULE_OR_BELOW, "below"), Alias::new("ns-3", "MaxSize")])
            .source("one bandwidth-delay product: Villamizar and Song 1994"),
        limit_rule: LimitRule = LIMIT_RULE_OR_BELOW,
    }
}

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    resolve::absolute_size(all, Parameters::limit(), link)?;
    resolve::check_buffer(all, link.mean_packet)
}

#[cfg(test)]
mod tests {
    use aqmlab_params::{Origin, Value};
    use aqmlab_units::text::Size;
    use aqmlab_units::{Packets, Span};

    use super::*;

    const LINK: LinkContext = LinkContext {
        rate: Rate::mbit(10),
        delay: Span::ms(5),
        rtt: Some(Span::ms(80)),
        flows: Some(20),
        mean_packet: Bytes::new(1500),
    };

    #[test]
    fn the_default_is_one_bdp_in_packets_of_mean_size_rounded_to_the_nearest() {
        let effective = DROPTAIL_INFO.resolve(&Settings::default(), &LINK).unwrap();
        // 10 Mbit/s * 80 ms = 100 000 B = 66.67 packets of 1500 B.
        assert_eq!(effective.size("limit"), Ok(Size::Packets(Packets::new(67))));
        assert_eq!(DROPTAIL_INFO.resolve(&effective, &LINK).unwrap(), effective, "resolution is idempotent");
    }

    /// Offers 200 packets at the same instant, and compares the number delivered with the number
    /// that `ns peers/ns2/held.tcl` delivers. The transmission of the first packet begins
    /// immediately.
    #[test]
    fn the_preset_ns2_holds_as_many_packets_as_ns2() {
        for (limit, size, through) in [
            (Size::Packets(Packets::new(10)), 1000, 10),
            (Size::Packets(Packets::new(2)), 1000, 2),
            (Size::Bytes(Bytes::new(10_000)), 1000, 10),
            (Size::Bytes(Bytes::new(5_000)), 1000, 5),
            (Size::Bytes(Bytes::new(10_000)), 999, 11),
            (Size::Bytes(Bytes::new(10_000)), 100, 100),
            (Size::Bytes(Bytes::new(10_000)), 99, 102),
        ] {
            let mut settings = Settings::default();
            settings.set("limit", Value::Size(limit), Origin::Given);
            settings.set("preset", Value::Choice("ns2"), Origin::Given);
            let limit = resolve::limit(&DROPTAIL_INFO.resolve(&settings, &LINK).unwrap()).unwrap();
            let mut held = Backlog::default();
            while limit.admits(held, Bytes::new(size)) {
                held.packets += Packets::new(1);
                held.bytes += Bytes::new(size);
            }
            assert_eq!(held.packets.get() + 1, through, "{limit:?}, {size} B");
        }
        let mut settings = Settings::default();
        settings.set("limit", Value::Size(Size::Packets(Packets::new(1))), Origin::Given);
        settings.set("limit_rule", Value::Choice("below"), Origin::Given);
        let error = DROPTAIL_INFO.resolve(&settings, &LINK).unwrap_err();
        assert!(error.message.contains("admits no packet"), "{error}");
    }

    #[test]
    fn a_multiple_of_the_bdp_needs_a_path() {
        let error =
            DROPTAIL_INFO.resolve(&Settings::default(), &LinkContext { rtt: None, ..LINK }).unwrap_err();
        assert_eq!(error.name, "limit");
        assert!(error.message.contains("needs the round-trip time"), "{error}");
    }

    #[test]
    fn a_buffer_below_one_packet_is_refused() {
        let mut settings = Settings::default();
        settings.set("limit", Value::Size(Size::Bytes(Bytes::new(1000))), Origin::Given);
        let error = DROPTAIL_INFO.resolve(&settings, &LINK).unwrap_err();
        assert_eq!(error.message, "limit `1kB` is smaller than one packet of `1.5kB`");
    }
}
