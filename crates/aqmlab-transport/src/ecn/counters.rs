//! The counters of AccECN and their arithmetic (RFC 9768, section 3.2 and appendix A).

use aqmlab_units::Ecn;

/// What an endpoint has received with a code point, or knows that the other side has received (RFC 9768, section
/// 3.2: r.cep, r.ceb, r.e0b and r.e1b, or s.cep and so on). They count modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EcnCounters {
    /// Packets with CE, of any kind except SYN.
    pub ce_packets: u32,
    /// Payload bytes of packets with CE.
    pub ce_bytes: u32,
    /// Payload bytes of packets with ECT(0).
    pub ect0_bytes: u32,
    /// Payload bytes of packets with ECT(1).
    pub ect1_bytes: u32,
}

impl EcnCounters {
    /// The values at the beginning (RFC 9768, section 3.2.1).
    pub const INITIAL: EcnCounters = EcnCounters { ce_packets: 5, ce_bytes: 0, ect0_bytes: 1, ect1_bytes: 1 };

    /// Returns the counter of the bytes that arrive with a code point, if there is one.
    pub(crate) fn bytes_mut(&mut self, ecn: Ecn) -> Option<&mut u32> {
        match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(&mut self.ect0_bytes),
            Ecn::Ect1 => Some(&mut self.ect1_bytes),
            Ecn::Ce => Some(&mut self.ce_bytes),
        }
    }
}

/// DIVACE of appendix A.2: the field ACE has three bits.
const ACE_VALUES: u32 = 1 << 3;

/// DIVOPT of appendix A.1: the fields of the option have 24 bits.
const FIELD_VALUES: u32 = 1 << 24;

/// Returns the value of the field ACE for a counter of packets.
pub(super) fn ace(ce_packets: u32) -> u8 {
    (ce_packets % ACE_VALUES) as u8
}

/// Returns the value of a field of the option for a counter of bytes.
pub(super) fn field(bytes: u32) -> u32 {
    bytes % FIELD_VALUES
}

/// Returns d.cep of appendix A.2.1: the least number by which the counter of packets may have grown.
pub(super) fn least_packets(ace: u8, known: u32) -> u32 {
    u32::from(ace).wrapping_sub(known) % ACE_VALUES
}

/// Returns d.ceb of appendix A.1, or the same for another counter of bytes.
pub(super) fn least_bytes(field: u32, known: u32) -> u32 {
    field.wrapping_sub(known) % FIELD_VALUES
}

/// Returns dSafer.cep of appendix A.2.1: the largest number of marks that agrees with ACE and is not larger than
/// the number of newly acknowledged packets.
pub(super) fn safest_packets(least: u32, acked: u32) -> u32 {
    // "Checks would need to be added for d.cep > newlyAckedPkt": 3.2.2.5.2 then considers ACE correct.
    if least >= acked { least } else { acked - (acked - least) % ACE_VALUES }
}

/// Returns the least number of marked packets, from `least` to `safest`, that agrees with ACE and with the number of
/// marked bytes.
///
/// DEVIATES from appendix A.2.2, which returns either `least` or `safest`: with many segments acknowledged at once, a
/// number between them often agrees, and `safest` would be several times too large. Where no number is between them,
/// the results are the same.
pub(super) fn packets_of_bytes(least: u32, safest: u32, bytes: u32, mss: u32) -> u32 {
    let needed = bytes.div_ceil(mss);
    let missing = needed.saturating_sub(least).next_multiple_of(ACE_VALUES);
    least.saturating_add(missing).min(safest.max(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of appendix A.1.
    #[test]
    fn bytes_grow_by_the_least_difference() {
        let (known, field) = (33_554_433, 1461);
        assert_eq!(least_bytes(field, known), 1460);
        assert_eq!(known + least_bytes(field, known), 33_555_893);
        assert_eq!(super::field(33_555_893), 1461);
    }

    /// The examples of appendix A.2.1: 9 segments and two marks are two marks; 10 segments may be ten.
    #[test]
    fn packets_grow_as_far_as_what_is_acknowledged_permits() {
        assert_eq!(safest_packets(2, 9), 2);
        assert_eq!(safest_packets(2, 10), 10);
        for known in 0..20 {
            for more in 0..30 {
                let least = least_packets(ace(known + more), known);
                assert_eq!(least, more % 8);
                let safest = safest_packets(least, more);
                assert_eq!(safest, more, "all that is acknowledged may be marked");
                let beyond = safest_packets(least, more + 7);
                assert!(beyond % 8 == more % 8 && beyond <= more + 7 && beyond + 8 > more + 7);
            }
        }
        assert_eq!(safest_packets(3, 1), 3, "ACE is correct, the count of packets is not");
    }

    /// The examples of appendix A.2.2, with its MSS of 1460.
    #[test]
    fn bytes_tell_how_often_the_field_has_wrapped() {
        for (least, safest, bytes, expected) in
            [(0, 8, 1460, 8), (2, 10, 1460, 2), (7, 15, 10_200, 7), (2, 2, 1460, 2)]
        {
            assert_eq!(packets_of_bytes(least, safest, bytes, 1460), expected, "{least} {safest} {bytes}");
        }
        // The algorithm of the appendix, where no other number is between the two.
        for (least, bytes) in (0..8).flat_map(|least| (0..16).map(move |n| (least, n * 1000 + 1))) {
            let (safest, mss) = (least + 8, 1460);
            let least_is_enough = bytes <= mss * least && 2 * bytes < mss * safest;
            let expected = if least_is_enough { least } else { safest };
            assert_eq!(packets_of_bytes(least, safest, bytes, mss), expected, "{least} {bytes}");
        }
        assert_eq!(packets_of_bytes(2, 18, 10 * 1460, 1460), 10, "between the two");
    }
}
