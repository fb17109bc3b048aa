//! Parameters common to the controllers with a target queue (PI, REM), and their resolution.

use alloc::format;
use alloc::string::String;

use aqmlab_params::{Default, Kind, Origin, Param, ParamError, Reading, Settings, Value};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets};

use super::Measure;
use super::table::{self, IN_BYTES, ns2, ns2_in};
use super::words::ByteScale;
use crate::LinkContext;
use crate::law::ByteMode;
use crate::resolve::{self, in_bytes, whole};

pub(super) const LIMIT: Param = Param {
    name: "limit",
    kind: Kind::Size { min: Packets::new(1) },
    default: Default::Auto("one bandwidth-delay product, but at least 4 q_ref"),
    aliases: &[ns2_in("p", "limit_")],
    source: "ours: the buffer of Hollot et al. 2001 is 4 q_ref",
    help: "buffer size, excluding the packet in transmission",
};

pub(super) const UNIT: Param = table::measure(
    "ns-2.35",
    "unit of the queue length; a length in `bytes` is divided by mean_packet",
    &[IN_BYTES],
);

pub(super) const MEAN_PACKET: Param = Param {
    aliases: &[ns2_in("B", "mean_pktsize_")],
    source: "ns-2.35",
    help: "mean packet size, for C in packets/s and for the conversion of q_ref between packets and bytes",
    ..table::MEAN_PACKET
};

pub(super) const BYTE_MODE: Param = Param {
    name: "byte_mode",
    kind: Kind::Choice(ByteScale::WORDS),
    default: Default::Choice("off"),
    aliases: &[ns2("bytes_").reads(Reading::Words("mean", "off"))],
    source: "off: RFC 7141; mean: ns-2.35; Le et al. 2003 say \"average (or maximum)\"",
    help: "scaling of the probability by packet size, relative to mean_packet or to max_packet",
};

pub(super) const LARGEST: Param = table::max_packet(
    "Le, Aikat, Jeffay, Smith 2003, section 6.3",
    "largest packet size, the reference for byte_mode `max`",
);

/// The default target queue.
#[derive(Clone, Copy)]
pub(super) struct Target {
    /// Packets.
    pub packets: u64,
    /// Its source.
    pub source: &'static str,
}

/// The settings that are being resolved, with the unit of sizes.
pub(super) struct Controller<'a> {
    pub all: &'a mut Settings,
    pub link: &'a LinkContext,
    pub mean: Bytes,
    measure: Measure,
}

impl<'a> Controller<'a> {
    pub(super) fn new(all: &'a mut Settings, link: &'a LinkContext) -> Result<Self, ParamError> {
        let (mean, measure) = (resolve::mean_packet(all, link)?, Measure::read(all, "measure")?);
        Ok(Controller { all, link, mean, measure })
    }

    /// Resolves limit and q_ref.
    pub(super) fn sizes(&mut self, target: Target) -> Result<(), ParamError> {
        for name in ["limit", "q_ref"] {
            resolve::absolute_in_queue_unit(self.all, name, self.link, self.measure, self.mean)?;
        }
        if self.all.is_auto("q_ref") {
            self.automatic_q_ref(target)?;
        }
        if self.all.is_auto("limit") {
            self.automatic_limit()?;
        }
        self.check()
    }

    fn automatic_q_ref(&mut self, target: Target) -> Result<(), ParamError> {
        let limit = (!self.all.is_auto("limit")).then(|| self.packets("limit")).transpose()?;
        let (packets, rule) = match limit.filter(|limit| *limit < 2.0 * target.packets as f64) {
            Some(limit) => (whole(limit / 2.0), String::from("half the limit")),
            None => (target.packets, target.source.into()),
        };
        self.derive("q_ref", Value::Size(Size::Packets(Packets::new(packets))), rule);
        Ok(())
    }

    fn automatic_limit(&mut self) -> Result<(), ParamError> {
        let least = 4.0 * self.packets("q_ref")? * self.mean.as_f64();
        let bdp = self.link.rtt.map(|_| self.link.bdp_bytes("limit", 1.0)).transpose()?;
        let (bytes, rule) = match bdp.filter(|bdp| *bdp > least) {
            Some(bdp) => (bdp, "one bandwidth-delay product, rounded to the nearest whole number"),
            None => (least, "4 q_ref"),
        };
        let size = resolve::in_queue_unit(bytes, self.measure, self.mean);
        self.derive("limit", Value::Size(size), rule.into());
        Ok(())
    }

    fn check(&self) -> Result<(), ParamError> {
        resolve::check_buffer(self.all, self.mean)?;
        let (q_ref, limit) = (self.all.size("q_ref")?, self.all.size("limit")?);
        if in_bytes(q_ref, self.mean) > in_bytes(limit, self.mean) {
            let message = format!(
                "q_ref `{q_ref}` exceeds limit `{limit}`, so no queue can reach it; write at most the limit"
            );
            return Err(ParamError::new("q_ref", message));
        }
        Ok(())
    }

    /// Returns the size parameter `name`, converted to packets of mean size.
    pub(super) fn packets(&self, name: &'static str) -> Result<f64, ParamError> {
        Ok(in_bytes(self.all.size(name)?, self.mean) / self.mean.as_f64())
    }

    pub(super) fn derive(&mut self, name: &'static str, value: Value, rule: String) {
        self.all.set(name, value, Origin::Derived(rule.into()));
    }
}

/// The units of the law and its queue, from effective parameters.
pub(super) struct Gauge {
    pub measure: Measure,
    pub mean: Bytes,
    /// The size of a packet in units of `measure`.
    pub unit: f64,
    /// The target queue in packets.
    pub q_ref: f64,
    pub byte_mode: ByteMode,
}

impl Gauge {
    pub(super) fn new(s: &Settings) -> Result<Self, ParamError> {
        let (measure, mean) = (Measure::read(s, "measure")?, resolve::bytes(s, "mean_packet")?);
        Ok(Gauge {
            measure,
            mean,
            unit: match measure {
                Measure::Packets => 1.0,
                Measure::Bytes => mean.as_f64(),
            },
            q_ref: in_bytes(s.size("q_ref")?, mean) / mean.as_f64(),
            byte_mode: match ByteScale::read(s, "byte_mode")? {
                ByteScale::Off => ByteMode::Off,
                ByteScale::Mean => ByteMode::Ns2 { mean },
                ByteScale::Max => ByteMode::Paper { largest: resolve::bytes(s, "max_packet")? },
            },
        })
    }
}
