//! Segments of the endpoint as a script writes them, and their comparison with what the script expects.

use aqmlab_transport::{AccEcnOption, EcnCounters, Flags, Sack, WireOptions, WireSegment};
use aqmlab_units::Ecn;

use crate::script::{Bits, Mark, Opt, Packet};
use crate::settings::{OUR_FIRST, THEIR_FIRST};

/// How a script's time stamps relate to ours: what it calls a value of ours.
#[derive(Clone, Default, Debug)]
pub(crate) struct Stamped {
    /// What is added to our values to give those of the script; known once a segment has matched.
    offset: Option<u32>,
    /// Values of the script with our values.
    known: Vec<(u32, u32)>,
}

impl Stamped {
    /// Notes that our value `ours` has the name `theirs` in the script.
    pub fn note(&mut self, theirs: u32, ours: u32) {
        self.offset.get_or_insert(theirs.wrapping_sub(ours));
        self.known.push((theirs, ours));
    }

    /// Returns our value for a value of the script.
    fn ours(&self, theirs: u32) -> u32 {
        let known = self.known.iter().rev().find(|(value, _)| *value == theirs).map(|(_, ours)| *ours);
        known.unwrap_or(theirs.wrapping_sub(self.offset.unwrap_or(0)))
    }

    fn theirs(&self, ours: u32) -> u32 {
        ours.wrapping_add(self.offset.unwrap_or(0))
    }
}

/// Returns the segment of the other side that a script describes.
pub(crate) fn injected(packet: &Packet, stamped: &Stamped) -> WireSegment {
    let mut options = WireOptions::default();
    for option in packet.options.iter().flatten() {
        match option {
            Opt::Mss(mss) => options.mss = Some(*mss),
            Opt::Scale(scale) => options.scale = Some(*scale),
            Opt::SackOk => options.sack_permitted = true,
            Opt::Stamps(value, echo) => options.stamps = Some((*value, stamped.ours(*echo))),
            Opt::Sack(blocks) => {
                let mut sack = Sack::NONE;
                for (from, to) in blocks {
                    sack.push(from.wrapping_add(OUR_FIRST), to.wrapping_add(OUR_FIRST));
                }
                options.sack = sack;
            }
            Opt::AccEcn(fields) => options.accurate_ecn = accurate_ecn(fields),
            Opt::Signature => {}
        }
    }
    WireSegment {
        seq: packet.seq.wrapping_add(THEIR_FIRST),
        ack: packet.ack.map_or(0, |ack| ack.wrapping_add(OUR_FIRST)),
        flags: flags(packet.bits),
        window: packet.window.unwrap_or(0),
        len: packet.len,
        ecn: match packet.mark {
            None | Some(Mark::NoEcn) => Ecn::NotEct,
            Some(Mark::Ect0) => Ecn::Ect0,
            Some(Mark::Ect1) => Ecn::Ect1,
            Some(Mark::Ce) => Ecn::Ce,
        },
        options,
    }
}

/// Returns the flags that endpoints know; PSH has no effect on a receiver.
fn flags(bits: Bits) -> Flags {
    Flags::from_header_bits(bits.0 & !Bits::PSH)
}

/// Returns the AccECN option with these fields; the first one determines its order.
fn accurate_ecn(fields: &[(String, u32)]) -> AccEcnOption {
    let count = |name: &str| fields.iter().find(|(field, _)| field == name).map_or(0, |(_, count)| *count);
    let counters = EcnCounters {
        ce_packets: 0,
        ce_bytes: count("ceb"),
        ect0_bytes: count("e0b"),
        ect1_bytes: count("e1b"),
    };
    let order = u8::from(fields.first().is_some_and(|(name, _)| name == "e1b"));
    AccEcnOption::new(&counters, order, fields.len() as u8)
}

/// Returns the fields of an AccECN option in its order.
fn accurate_ecn_fields(option: &AccEcnOption) -> Vec<(String, u32)> {
    let mut bytes = [0; 11];
    option.write(&mut bytes);
    let [ect0, ce, ect1] = option.fields();
    let mut fields = vec![("e0b", ect0), ("ceb", ce), ("e1b", ect1)];
    if bytes[0] == 174 {
        fields.reverse(); // order 1 (RFC 9768, table 5)
    }
    fields.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?))).collect()
}

/// Returns a segment of the endpoint as a script would write it.
pub(crate) fn described(segment: &WireSegment, stamped: &Stamped) -> Packet {
    let acknowledges = segment.flags.has(Flags::ACK);
    let WireOptions { mss, scale, sack_permitted, stamps, sack, accurate_ecn } = segment.options;
    let mut options = Vec::new();
    options.extend(mss.map(Opt::Mss));
    options.extend(sack_permitted.then_some(Opt::SackOk));
    options.extend(stamps.map(|(value, echo)| Opt::Stamps(stamped.theirs(value), echo)));
    if accurate_ecn.is_present() {
        options.push(Opt::AccEcn(accurate_ecn_fields(&accurate_ecn)));
    }
    options.extend(scale.map(Opt::Scale));
    if !sack.blocks().is_empty() {
        let relative =
            |(from, to): &(u32, u32)| (from.wrapping_sub(THEIR_FIRST), to.wrapping_sub(THEIR_FIRST));
        options.push(Opt::Sack(sack.blocks().iter().map(relative).collect()));
    }
    Packet {
        mark: Some(match segment.ecn {
            Ecn::NotEct => Mark::NoEcn,
            Ecn::Ect0 => Mark::Ect0,
            Ecn::Ect1 => Mark::Ect1,
            Ecn::Ce => Mark::Ce,
        }),
        bits: Bits(segment.flags.header_bits()),
        // The answer to a segment without an acknowledgment has the number 0.
        seq: segment.seq.wrapping_sub(OUR_FIRST),
        len: segment.len,
        ack: acknowledges.then(|| segment.ack.wrapping_sub(THEIR_FIRST)),
        window: Some(segment.window),
        options: Some(options),
    }
}

/// Returns whether a segment of the endpoint is what the script expects, apart from its length and its FIN. PSH is
/// not compared because endpoints have no such flag; the order and the padding of options are not compared either.
pub(crate) fn agrees(expected: &Packet, got: &Packet, ticks: Option<u32>) -> bool {
    let ignored = Bits::PSH | Bits::FIN;
    let options = expected.options.as_ref().is_none_or(|options| {
        let got = got.options.as_deref().unwrap_or_default();
        options.len() == got.len()
            && options.iter().all(|option| got.iter().any(|got| option_agrees(option, got, ticks)))
    });
    expected.bits.0 & !ignored == got.bits.0 & !ignored
        && expected.seq == got.seq
        && (expected.ack.is_none() || expected.ack == got.ack)
        && (expected.window.is_none() || expected.window == got.window)
        && (expected.mark.is_none() || expected.mark == got.mark)
        && options
}

/// `ticks` is the tolerance of time stamps; `None` if they are not compared.
fn option_agrees(expected: &Opt, got: &Opt, ticks: Option<u32>) -> bool {
    match (expected, got) {
        (Opt::Stamps(value, echo), Opt::Stamps(got, got_echo)) => {
            echo == got_echo && ticks.is_none_or(|ticks| value.abs_diff(*got) <= ticks)
        }
        _ => expected == got,
    }
}
