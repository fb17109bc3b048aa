//! A token-bucket policer in front of a queue, and its parameters.

use alloc::boxed::Box;
use alloc::format;

use aqmlab_params::{Kind, ParamError, Row, Settings, params, words};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate};

use super::inner::{A_QUEUE, BuildInner, Inner, RFC2475, needs, quick_red, replace, resolve_inner};
use crate::info::{Catalogue, Decides, Derive, Effective, Info, Maturity};
use crate::law::TokenBucket;
use crate::{
    Arrived, Backlog, Cause, Dscp, Inside, LawSamples, LinkContext, Observer, Qdisc, Reason, resolve,
};

/// Treatment of packets that exceed the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exceed {
    /// They are lost, and reported as [`Reason::Forced`].
    Drop,
    /// They pass with this code point.
    Remark(Dscp),
}

/// A policer. Arrivals that conform to a rate and a burst enter the inner queue unchanged; [`Exceed`]
/// determines what happens to the others.
#[derive(Clone, Debug)]
pub struct Policer<Q> {
    bucket: TokenBucket,
    exceed: Exceed,
    queue: Q,
    /// Number of packets that exceeded the rate and burst.
    exceeded: u64,
}

impl<Q> Policer<Q> {
    /// Creates a policer in front of `queue`.
    pub const fn new(bucket: TokenBucket, exceed: Exceed, queue: Q) -> Self {
        Policer { bucket, exceed, queue, exceeded: 0 }
    }
}

impl<P: Arrived, Q: Qdisc<P>> Qdisc<P> for Policer<Q> {
    fn enqueue(&mut self, now: Instant, mut pkt: P, obs: &mut dyn Observer<P>) {
        if !self.bucket.conforms(now, pkt.wire_len()) {
            self.exceeded += 1;
            match self.exceed {
                Exceed::Drop => return obs.dropped(now, pkt, Cause::of(Reason::Forced)),
                Exceed::Remark(dscp) => pkt.set_dscp(dscp),
            }
        }
        self.queue.enqueue(now, pkt, obs);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.queue.dequeue(now, obs)
    }

    fn deadline(&self) -> Option<Instant> {
        self.queue.deadline()
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.queue.rate_changed(now, rate);
    }

    fn shape(&mut self, now: Instant, rate: Rate) -> bool {
        self.queue.shape(now, rate)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn next_len(&mut self) -> Option<Bytes> {
        self.queue.next_len()
    }

    /// Returns false if the policer re-marks packets, because the host of a port that looks ahead
    /// keeps each packet as it arrived.
    fn settles_at_enqueue(&self) -> bool {
        self.exceed == Exceed::Drop && self.queue.settles_at_enqueue()
    }

    fn holds_back(&self) -> bool {
        self.queue.holds_back()
    }

    fn reserve(&mut self, packets: usize, flows: usize) {
        self.queue.reserve(packets, flows);
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        self.queue.each_inner(visit);
    }

    /// Appends `tokens` (bytes), `exceeded` (packets so far), and the values of the inner queue.
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        out.extend([("tokens", self.bucket.bytes_at(now)), ("exceeded", self.exceeded as f64)]);
        self.queue.observe(now, out);
    }
}

words! {
    /// Treatment of packets that exceed a policer's rate.
    enum Exceeding { Drop = "drop", Remark = "remark" }
}

/// The policer's entry in the catalogue.
pub(crate) const POLICER_INFO: Info = Info {
    name: "policer",
    title: "Policer",
    summary: "a token bucket in front of a queue: packets beyond its rate and burst are dropped or re-marked",
    version: 1,
    applies: &[],
    maturity: Maturity::Experimental,
    decides: Decides::Enqueue,
    params: Parameters::TABLE,
    presets: &[],
    derive: Derive::Containing(derive),
    samples: || alloc::vec![("", policed(quick_red(), Some(8)).1)],
};

params! {
    struct Parameters {
        /// rate of the token bucket
        rate: Rate = Row::rate(Rate::bps(1), Rate::gbit(10_000)).source(RFC2475),
        /// depth of the token bucket, which is full at first
        burst: Bytes = Row::bytes(1, 1_000_000_000).source("RFC 2697, section 2: at least the largest packet"),
        /// treatment of excess packets: `drop`, or `remark` with `dscp`
        exceed: Exceeding = Row::choice("drop").source("RFC 2475, section 2.3.3"),
        /// with exceed `remark`, the code point that excess packets get
        dscp: Option<u64> = Row::of(Kind::Dscp)
            .optional("none: with exceed `drop`, nothing is re-marked")
            .source(RFC2475),
        /// the queue behind it: any discipline
        queue: Inner = Row::of(Kind::Discipline).source(RFC2475),
    }
}

/// Returns a policer with a rate that about half of a script's packets exceed. The excess packets are
/// re-marked if a code point is given.
pub(super) fn policed(queue: Inner, remarked: Option<u64>) -> Inner {
    let (rate, burst) = (Parameters::rate().is(Rate::mbit(8)), Parameters::burst().is(Bytes::new(20_000)));
    let mut values = alloc::vec![rate, burst, Parameters::queue().pair(queue)];
    if remarked.is_some() {
        values.extend([Parameters::exceed().is("remark"), Parameters::dscp().pair(remarked)]);
    }
    ("policer", resolve::given(&values))
}

/// Resolves the queue behind a policer, and refuses contradictory settings.
fn derive(all: &mut Settings, link: &LinkContext, catalogue: &Catalogue) -> Result<(), ParamError> {
    needs(all, Parameters::rate(), "a rate such as \"2Mbit\"")?;
    needs(all, Parameters::burst(), "an amount such as \"10kB\"")?;
    needs(all, Parameters::queue(), A_QUEUE)?;
    let Parameters { burst, exceed, dscp, queue, .. } = Parameters::read(all)?;
    if burst < link.mean_packet {
        return Err(Parameters::burst().error(format!(
            "burst `{burst}` is smaller than a packet of `{}`, which would never conform; write at least \
             the size of the packet",
            link.mean_packet
        )));
    }
    match (exceed, dscp) {
        (Exceeding::Remark, None) => {
            return Err(Parameters::exceed().error("exceed `remark` needs `dscp`, the code point to write"));
        }
        (Exceeding::Drop, Some(dscp)) => {
            return Err(Parameters::dscp().error(format!(
                "with exceed `drop`, dscp `{dscp}` is never written into a packet; write exceed `remark`"
            )));
        }
        _ => {}
    }
    let queue = resolve_inner(queue, link, catalogue)?;
    replace(all, Parameters::queue(), queue);
    Ok(())
}

/// Builds a policer from these parameters; `build` makes the queue behind it.
pub(crate) fn build_policer<Q>(
    s: &Effective,
    draws: Stream,
    build: BuildInner<'_, Q>,
) -> Result<Policer<Box<Q>>, ParamError> {
    let Parameters { rate, burst, exceed, dscp, queue } = Parameters::read(s)?;
    let exceed = match (exceed, dscp) {
        (Exceeding::Remark, Some(dscp)) => Exceed::Remark(Dscp(dscp as u8)),
        _ => Exceed::Drop,
    };
    let queue = build(&Effective::inner(queue, *s.link()), draws)?;
    Ok(Policer::new(TokenBucket::new(rate, burst), exceed, Box::new(queue)))
}
