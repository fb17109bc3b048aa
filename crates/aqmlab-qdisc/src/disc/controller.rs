//! Parameters common to the controllers with a target queue (PI, REM), and their resolution.

use alloc::format;
use alloc::string::String;

use aqmlab_params::{ParamError, Reading, Row, Settings, params};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets};

use super::Measure;
use super::table::{IN_BYTES, MAX_PACKET, ns2, ns2_in};
use super::words::ByteScale;
use crate::LinkContext;
use crate::law::ByteMode;
use crate::resolve::{self, Common, in_bytes, whole};

params! {
    /// The parameters that PI and REM share.
    pub(super) struct Shared {
        limit: Size = Common::limit().auto("one bandwidth-delay product, but at least 4 q_ref")
            .aliases(&[ns2_in("p", "limit_")])
            .source("ours: the buffer of Hollot et al. 2001 is 4 q_ref"),
        /// the target queue length
        q_ref: Size = Row::size(),
        /// unit of the queue length; a length in `bytes` is divided by mean_packet
        measure: Measure = Common::measure().aliases(&[IN_BYTES]).source("ns-2.35"),
        /// mean packet size, for C in packets/s and for the conversion of q_ref between packets and bytes
        mean_packet: Bytes = Common::mean_packet().aliases(&[ns2_in("B", "mean_pktsize_")]).source("ns-2.35"),
        /// scaling of the probability by packet size, relative to mean_packet or to max_packet
        byte_mode: ByteScale = Row::choice("off")
            .aliases(&[ns2("bytes_").reads(Reading::Words("mean", "off"))])
            .source("off: RFC 7141; mean: ns-2.35; Le et al. 2003 say \"average (or maximum)\""),
        /// largest packet size, the reference for byte_mode `max`
        max_packet: Bytes = MAX_PACKET.source("Le, Aikat, Jeffay, Smith 2003, section 6.3"),
    }
}

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
        let (mean, measure) = (resolve::mean_packet(all, link)?, Shared::measure().read(all)?);
        Ok(Controller { all, link, mean, measure })
    }

    /// Resolves limit and q_ref.
    pub(super) fn sizes(&mut self, target: Target) -> Result<(), ParamError> {
        for row in [Shared::limit(), Shared::q_ref()] {
            resolve::absolute_in_queue_unit(self.all, row, self.link, self.measure, self.mean)?;
        }
        if Shared::q_ref().is_auto(self.all) {
            self.automatic_q_ref(target)?;
        }
        if Shared::limit().is_auto(self.all) {
            self.automatic_limit()?;
        }
        self.check()
    }

    fn automatic_q_ref(&mut self, target: Target) -> Result<(), ParamError> {
        let limit = Shared::limit();
        let limit = (!limit.is_auto(self.all)).then(|| self.packets(limit)).transpose()?;
        let (packets, rule) = match limit.filter(|limit| *limit < 2.0 * target.packets as f64) {
            Some(limit) => (whole(limit / 2.0), String::from("half the limit")),
            None => (target.packets, target.source.into()),
        };
        Shared::q_ref().derive(self.all, Size::Packets(Packets::new(packets)), rule);
        Ok(())
    }

    fn automatic_limit(&mut self) -> Result<(), ParamError> {
        let least = 4.0 * self.packets(Shared::q_ref())? * self.mean.as_f64();
        let bdp = self.link.rtt.map(|_| self.link.bdp_bytes(Shared::limit().name(), 1.0)).transpose()?;
        let (bytes, rule) = match bdp.filter(|bdp| *bdp > least) {
            Some(bdp) => (bdp, "one bandwidth-delay product, rounded to the nearest whole number"),
            None => (least, "4 q_ref"),
        };
        let size = resolve::in_queue_unit(bytes, self.measure, self.mean);
        Shared::limit().derive(self.all, size, rule);
        Ok(())
    }

    fn check(&self) -> Result<(), ParamError> {
        resolve::check_buffer(self.all, self.mean)?;
        let (q_ref, limit) = (Shared::q_ref().read(self.all)?, Shared::limit().read(self.all)?);
        if in_bytes(q_ref, self.mean) > in_bytes(limit, self.mean) {
            return Err(Shared::q_ref().error(format!(
                "q_ref `{q_ref}` exceeds limit `{limit}`, so no queue can reach it; write at most the limit"
            )));
        }
        Ok(())
    }

    /// Returns a size converted to packets of mean size.
    pub(super) fn packets(&self, row: Row<Size>) -> Result<f64, ParamError> {
        Ok(in_bytes(row.read(self.all)?, self.mean) / self.mean.as_f64())
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
        let Shared { q_ref, measure, mean_packet: mean, byte_mode, max_packet, .. } = Shared::read(s)?;
        Ok(Gauge {
            measure,
            mean,
            unit: match measure {
                Measure::Packets => 1.0,
                Measure::Bytes => mean.as_f64(),
            },
            q_ref: in_bytes(q_ref, mean) / mean.as_f64(),
            byte_mode: match byte_mode {
                ByteScale::Off => ByteMode::Off,
                ByteScale::Mean => ByteMode::Ns2 { mean },
                ByteScale::Max => ByteMode::Paper { largest: max_packet },
            },
        })
    }
}
