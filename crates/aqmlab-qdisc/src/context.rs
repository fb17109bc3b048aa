//! The properties of a link from which a discipline's automatic parameters are computed.

use alloc::format;

use aqmlab_params::ParamError;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Rate, Span};

/// The link behind a queue, and the path that crosses this link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkContext {
    /// The link's rate, above zero.
    pub rate: Rate,
    /// The link's one-way propagation delay.
    pub delay: Span,
    /// Base round-trip time of the path across the link: propagation only, no queueing. It defines `bdp`;
    /// `None` if no path is known.
    pub rtt: Option<Span>,
    /// Number of long-lived TCP flows whose data crosses the link; `None` if no such flow is known.
    pub flows: Option<u64>,
    /// Mean packet size at the network layer, above zero.
    pub mean_packet: Bytes,
}

impl LinkContext {
    /// Returns the `C` of the AQM papers: the link's rate in packets of mean size per second.
    pub fn packets_per_s(&self) -> f64 {
        self.rate.packets_per_s(self.mean_packet)
    }

    /// Returns `multiple` bandwidth-delay products in bytes, not rounded.
    ///
    /// # Errors
    /// If the path's round-trip time is not known.
    pub fn bdp_bytes(&self, name: &'static str, multiple: f64) -> Result<f64, ParamError> {
        let rtt = self.rtt.ok_or_else(|| {
            ParamError::new(
                name,
                format!(
                    "{name} `{}` needs the round-trip time of this link's paths, which is not known; write \
                     a size in packets or bytes",
                    Size::Bdp(multiple)
                ),
            )
        })?;
        Ok(multiple * self.rate.bytes_per_s() * rtt.as_secs_f64())
    }

    /// Converts a size that depends on the link (a multiple of the bandwidth-delay product, or the
    /// amount that the link sends in a given time) to bytes, without rounding. Returns `None` for
    /// sizes in packets or bytes.
    ///
    /// # Errors
    /// The errors of [`LinkContext::bdp_bytes`], and an error if the number of bytes is too large.
    pub fn relative_bytes(&self, name: &'static str, size: Size) -> Result<Option<f64>, ParamError> {
        let bytes = match size {
            Size::Packets(_) | Size::Bytes(_) => return Ok(None),
            Size::Bdp(multiple) => self.bdp_bytes(name, multiple)?,
            Size::Time(time) => self.rate.bytes_per_s() * time.as_secs_f64(),
        };
        if bytes >= 1e15 {
            return Err(ParamError::new(name, format!("{name} `{size}` is too large")));
        }
        Ok(Some(bytes))
    }

    /// Returns `size` with bandwidth-delay products and times converted to packets of mean size, rounded to
    /// the nearest whole number but at least one. Sizes in packets or bytes remain unchanged.
    ///
    /// # Errors
    /// As [`LinkContext::relative_bytes`].
    pub fn absolute(&self, name: &'static str, size: Size) -> Result<Size, ParamError> {
        let Some(bytes) = self.relative_bytes(name, size)? else { return Ok(size) };
        Ok(Size::Packets(Packets::new(((bytes / self.mean_packet.as_f64() + 0.5) as u64).max(1))))
    }
}
