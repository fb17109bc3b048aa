//! The parameters of Self-Configuring RED, and its presets.

use aqmlab_params::{Alias, Row, params};
use aqmlab_units::Span;

use super::red_table::{AredOwn, NS2_LIMIT, NS2_MEAN, Shared, ns2_values};
use super::table::{NS2, names, ns2, presets};
use super::words::{GentleLine, Start};
use crate::registry::Preset;

params! {
    /// Self-Configuring RED's parameters.
    pub(super) struct ScredOwn {
        preset: &'static str = presets(const { &names::<2>(SCRED_PRESETS) }),
        ..Shared { limit, limit_rule, min_th, max_th, max_p },
        /// number by which max_p is divided when the average falls below min_th
        alpha: f64 = Row::number(1.0, 1000.0).default(3.0)
            .aliases(&[ns2("alpha_"), Alias::new("ns-3", "FengAlpha")])
            .source("Feng et al. 1999, section 4; ns-2's alpha_ must be set because its default is that of \
             Adaptive RED"),
        /// number by which max_p is multiplied when the average rises above max_th
        beta: f64 = Row::number(1.0, 1000.0).default(2.0)
            .aliases(&[ns2("beta_"), Alias::new("ns-3", "FengBeta")])
            .source("Feng et al. 1999, section 4; ns-2's beta_ must be set because its default is that of \
             Adaptive RED"),
        /// side of the thresholds on which the average starts; if it starts `above`, the first arrival
        /// divides max_p
        start: Start = Row::choice("below")
            .source("below: ours, because the link is idle at first; above: ns-2.35, ns-3"),
        ..Shared { w_q, w_rule, gentle },
        gentle_line: GentleLine = AredOwn::gentle_line(),
        ..Shared { ecn, ecn_region, mark_p, measure, mean_packet, byte_mode, max_packet,
            uniformisation, counting, idle, arithmetic, target, burst },
    }
}

/// Self-Configuring RED's presets.
pub(super) const SCRED_PRESETS: &[Preset] = &[
    Preset {
        name: "paper",
        title: "Feng, Kandlur, Saha and Shin 1999, on top of the RED of 1993",
        values: &[],
    },
    Preset {
        name: NS2,
        title: "ns-2.35 with feng_adaptive_ 1, alpha_ 3 and beta_ 2, otherwise as shipped",
        values: ns2_values![
            Shared::gentle().is(true),
            Shared::target().is(Span::ms(5)),
            ScredOwn::start().is("above"),
            ScredOwn::gentle_line().is("fixed")
        ],
    },
];
