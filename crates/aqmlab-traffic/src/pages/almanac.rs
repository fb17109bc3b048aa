//! Page weights: quantiles from the Web Almanac.
//!
//! Source: HTTP Archive, "Web Almanac 2025", chapter 13, "Page Weight", by J. Indigo and R. Barrett, the
//! charts by device (<https://almanac.httparchive.org/en/2025/page-weight>), from the crawl of July 2025.
//! Copyright The HTTP Archive; licensed under the Apache License, Version 2.0, a copy of which is
//! `LICENSE-APACHE` at the project's root. Changes: the numbers are given as arrays; the charts and their
//! text are left out.
//!
//! A KB has 1,024 bytes, as in the chapter's queries. A size that the chapter gives as 0 KB is
//! taken to be a quarter of a KB.

use schemars::JsonSchema;
use serde::Serialize;

/// The kind of device for which the pages were crawled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// A desktop computer.
    Desktop,
    /// An emulated mobile phone.
    Mobile,
}

/// The type of an object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ObjectType {
    /// The page itself.
    Document,
    /// JavaScript.
    Script,
    /// CSS.
    Style,
    /// A web font.
    Font,
    /// An image.
    Image,
    /// Everything else: JSON, XML, text, and documents embedded in the page's document.
    Data,
}

/// Bytes in a KB.
const KB: f64 = 1024.0;

/// Standard normal variables at p10, p25, p50, p75 and p90.
const FIVE: [f64; 5] = [
    -1.281_551_565_544_600_4,
    -0.674_489_750_196_081_7,
    0.0,
    0.674_489_750_196_081_7,
    1.281_551_565_544_600_4,
];
/// The first and the last of these values, for tables that give only p10 and p90.
const TWO: [f64; 2] = [FIVE[0], FIVE[4]];

/// The extrapolation ends at this many standard deviations; no quantity is drawn beyond that. The limit
/// affects one page in 30,000 on either side.
const FURTHEST: f64 = 4.0;

/// The quantiles of a positive quantity, given at the values `z` of a standard normal variable.
/// Between two quantiles, the quantity's logarithm is linear in the normal variable. Beyond the
/// first and the last quantile, the line through the outermost pair continues.
#[derive(Clone, Copy, Debug)]
pub struct Quantiles {
    z: &'static [f64],
    values: &'static [f64],
    unit: f64,
}

const fn five(values: &'static [f64; 5]) -> Quantiles {
    Quantiles { z: &FIVE, values, unit: KB }
}

const fn two(values: &'static [f64; 2]) -> Quantiles {
    Quantiles { z: &TWO, values, unit: KB }
}

impl Quantiles {
    /// Returns the value that the quantity has when the standard normal variable is `z`.
    pub fn at(&self, z: f64) -> f64 {
        let z = z.clamp(-FURTHEST, FURTHEST);
        let right = self.z.partition_point(|&knot| knot <= z).clamp(1, self.z.len() - 1);
        let (z0, z1) = (self.z[right - 1], self.z[right]);
        let (low, high) = (libm::log(self.values[right - 1]), libm::log(self.values[right]));
        self.unit * libm::exp(low + (high - low) * ((z - z0) / (z1 - z0)))
    }
}

impl Device {
    /// Returns the distribution of page weights in bytes (chart "Page weight distribution by
    /// device").
    pub const fn weight(self) -> Quantiles {
        match self {
            Device::Desktop => five(&[607.0, 1275.0, 2412.0, 4570.0, 9179.0]),
            Device::Mobile => five(&[516.0, 1127.0, 2164.0, 4119.0, 8337.0]),
        }
    }

    /// Returns the distribution of the number of requests per page (chart "Distribution of request
    /// volume by device type").
    pub const fn requests(self) -> Quantiles {
        let of = match self {
            Device::Desktop => five(&[27.0, 46.0, 77.0, 122.0, 185.0]),
            Device::Mobile => five(&[25.0, 42.0, 72.0, 116.0, 179.0]),
        };
        Quantiles { unit: 1.0, ..of }
    }

    /// Returns the distribution of object sizes in bytes, before the sizes are scaled to the page's
    /// weight.
    ///
    /// Charts used for scripts: "JavaScript file size distribution by device"; for fonts: "Distribution of
    /// font response sizes by device type"; for images: "Image response size distribution by device". For the
    /// other types, the chapter has only p10 and p90, in "Distribution of response sizes by content type".
    /// That chart's values for scripts, fonts and images are twice those of the other charts, so its values
    /// for the other types are halved here: 59 KB for HTML, 50 for CSS and 3 for XML.
    pub const fn object(self, of: ObjectType) -> Quantiles {
        match (of, self) {
            (ObjectType::Document, _) => two(&[0.25, 29.5]),
            (ObjectType::Script, Device::Desktop) => five(&[0.4, 1.2, 4.6, 21.8, 83.5]),
            (ObjectType::Script, Device::Mobile) => five(&[0.4, 1.2, 4.7, 21.6, 80.1]),
            (ObjectType::Style, _) => two(&[0.25, 25.0]),
            (ObjectType::Font, Device::Desktop) => five(&[9.0, 15.0, 23.0, 47.0, 79.0]),
            (ObjectType::Font, Device::Mobile) => five(&[8.0, 14.0, 23.0, 45.0, 80.0]),
            (ObjectType::Image, Device::Desktop) => five(&[0.25, 1.0, 8.0, 48.0, 183.0]),
            (ObjectType::Image, Device::Mobile) => five(&[0.25, 1.0, 8.0, 52.0, 186.0]),
            (ObjectType::Data, _) => two(&[0.25, 1.5]),
        }
    }
}

impl ObjectType {
    /// Returns the wave in which an object of this type is requested, if there are three waves.
    pub const fn wave(self) -> u32 {
        match self {
            ObjectType::Document => 0,
            ObjectType::Script | ObjectType::Style | ObjectType::Font => 1,
            ObjectType::Image | ObjectType::Data => 2,
        }
    }
}
