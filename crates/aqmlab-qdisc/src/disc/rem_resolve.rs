//! From what a scenario gives REM to effective parameters, and from those to a queue.

use alloc::format;

use aqmlab_params::{ParamError, Settings, Value};
use aqmlab_random::Stream;

use super::controller::{Controller, Gauge, Target};
use super::rem_table::{REM, REM_PRESETS};
use super::table::NS2;
use super::words::{Decide, NotEct};
use super::{EarlyLaw, EarlyQueue, Rem, RemControl};
use crate::law::{RemLaw, RemParams, Sampling};
use crate::registry::{Info, Maturity};
use crate::{LinkContext, Packet, resolve};

/// REM's entry in the catalogue.
pub(crate) const REM_INFO: Info = Info {
    name: "rem",
    title: "REM",
    summary: "Random Exponential Marking: a price that rises with queue and input sets the drop or mark probability",
    maturity: Maturity::ReferenceChecked,
    decides: RemControl::DECIDES,
    params: REM,
    presets: REM_PRESETS,
    resolve,
};

const TARGET: Target = Target { packets: 20, source: "20 packets, as in the paper" };

fn resolve(given: &Settings, link: &LinkContext) -> Result<Settings, ParamError> {
    let mut rem = Controller::new(REM, REM_PRESETS, given, link)?;
    rem.sizes(TARGET)?;
    if rem.all.is_auto("decide") {
        let late = rem.all.choice("preset")? == NS2 && rem.all.flag("ecn")?;
        let (decide, rule) =
            if late { (Decide::Dequeue, "where ns-2 marks") } else { (Decide::Enqueue, "on arrival") };
        rem.derive("decide", Value::Choice(decide.word()), rule.into());
    }
    check_room(&rem.all)?;
    Ok(rem.all)
}

/// A buffer that holds one less than its limit must still hold a packet.
fn check_room(all: &Settings) -> Result<(), ParamError> {
    if resolve::limit(all)?.admits_any(resolve::bytes(all, "mean_packet")?) {
        return Ok(());
    }
    let limit = all.size("limit")?;
    Err(ParamError::new(
        "limit",
        format!("limit `{limit}` with limit_rule `below` lets nothing in; write more"),
    ))
}

/// A REM queue with effective parameters.
pub(crate) fn build_rem<P: Packet>(
    s: &Settings,
    link: &LinkContext,
    draws: Stream,
) -> Result<Rem<P>, ParamError> {
    let gauge = Gauge::new(s)?;
    let law = RemLaw::new(RemParams {
        gamma: s.number("gamma")?,
        alpha: s.number("alpha")?,
        phi: s.number("phi")?,
        q_ref: gauge.q_ref,
        inw: s.number("inw")?,
        unit: gauge.unit,
        sampling: Sampling::every(s.span("period")?),
        packets_per_s: link.rate.packets_per_s(gauge.mean),
        byte_mode: gauge.byte_mode,
    });
    let control = RemControl {
        law,
        measure: gauge.measure,
        mean_packet: gauge.mean,
        at_departure: Decide::read(s, "decide")? == Decide::Dequeue,
    };
    let ecn = s.flag("ecn")?;
    let queue = EarlyQueue {
        limit: resolve::limit(s)?,
        ecn,
        // ns-2: a full buffer comes first.
        overflow_first: true,
        spares_not_ect: ecn && NotEct::read(s, "not_ect")? == NotEct::Pass,
    };
    Ok(Rem::new(control, queue, draws))
}
