//! The AccECN option (RFC 9768, section 3.2.3).

use super::counters::{EcnCounters, field};

/// Kind of an option in order 0: EE0B, ECEB, EE1B.
const ORDER_0: u8 = 172;
/// Kind of an option in order 1: EE1B, ECEB, EE0B.
const ORDER_1: u8 = 174;
/// Bytes of a field.
const FIELD: usize = 3;
/// The most bytes that an option has.
const LONGEST: usize = 2 + 3 * FIELD;

/// An AccECN option. Its fields hold the lower 24 bits of counters of payload bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct AccEcnOption {
    fields: [u32; 3],
    count: u8,
    order: u8,
    present: bool,
}

impl AccEcnOption {
    /// No option.
    pub const NONE: AccEcnOption = AccEcnOption { fields: [0; 3], count: 0, order: 0, present: false };

    /// Returns an option with the first `count` fields of an order, 0 or 1.
    pub fn new(counters: &EcnCounters, order: u8, count: u8) -> AccEcnOption {
        let EcnCounters { ce_bytes, ect0_bytes, ect1_bytes, .. } = *counters;
        let (first, last) = if order == 0 { (ect0_bytes, ect1_bytes) } else { (ect1_bytes, ect0_bytes) };
        let mut option =
            AccEcnOption { fields: [0; 3], count: count.min(3), order: order.min(1), present: true };
        let values = [first, ce_bytes, last];
        option.fields.iter_mut().zip(values).take(usize::from(option.count)).for_each(|(f, v)| *f = field(v));
        option
    }

    /// Returns whether there is an option.
    pub fn is_present(&self) -> bool {
        self.present
    }

    /// Returns the fields EE0B, ECEB and EE1B; `None` for those that it does not have.
    pub fn fields(&self) -> [Option<u32>; 3] {
        let field = |place: u8| (place < self.count).then(|| self.fields[usize::from(place)]);
        if self.order == 0 { [field(0), field(1), field(2)] } else { [field(2), field(1), field(0)] }
    }

    /// Returns its length: 2, 5, 8 or 11 bytes (table 5).
    pub fn wire_len(&self) -> usize {
        2 + FIELD * usize::from(self.count)
    }

    /// Writes the option to the beginning of `out`, and returns its length.
    ///
    /// # Panics
    /// If `out` is shorter.
    pub fn write(&self, out: &mut [u8]) -> usize {
        out[0] = if self.order == 0 { ORDER_0 } else { ORDER_1 };
        out[1] = self.wire_len() as u8;
        for (place, value) in self.fields[..usize::from(self.count)].iter().enumerate() {
            out[2 + FIELD * place..][..FIELD].copy_from_slice(&value.to_be_bytes()[1..]);
        }
        self.wire_len()
    }

    /// Reads an option of this kind with this data, which does not include kind and length; `None` if the kind is
    /// another one. Of an unexpected length, the whole fields count (section 3.2.3).
    pub fn read(kind: u8, data: &[u8]) -> Option<AccEcnOption> {
        let order = match kind {
            ORDER_0 => 0,
            ORDER_1 => 1,
            _ => return None,
        };
        let mut option = AccEcnOption { order, present: true, ..AccEcnOption::NONE };
        for (place, bytes) in option.fields.iter_mut().zip(data.chunks_exact(FIELD)) {
            *place = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
            option.count += 1;
        }
        Some(option)
    }

    /// Returns how many bytes of a header an option with `count` fields takes: headers consist of words of four
    /// bytes.
    pub(crate) const fn padded(count: u8) -> u8 {
        (2 + FIELD as u8 * count).next_multiple_of(4)
    }
}

const _: () = assert!(AccEcnOption::padded(3) as usize == LONGEST + 1);

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTERS: EcnCounters =
        EcnCounters { ce_packets: 6, ce_bytes: 0x0203_0405, ect0_bytes: 0xa1_b2c3, ect1_bytes: 7 };

    /// Figure 4 and table 5.
    #[test]
    fn options_have_the_fields_of_their_length_in_either_order() {
        let (e0b, ceb, e1b) = (Some(0xa1_b2c3), Some(0x03_0405), Some(7));
        for (order, count, bytes, fields) in [
            (0, 3, &[172, 11, 0xa1, 0xb2, 0xc3, 3, 4, 5, 0, 0, 7][..], [e0b, ceb, e1b]),
            (0, 2, &[172, 8, 0xa1, 0xb2, 0xc3, 3, 4, 5], [e0b, ceb, None]),
            (0, 1, &[172, 5, 0xa1, 0xb2, 0xc3], [e0b, None, None]),
            (0, 0, &[172, 2], [None; 3]),
            (1, 3, &[174, 11, 0, 0, 7, 3, 4, 5, 0xa1, 0xb2, 0xc3], [e0b, ceb, e1b]),
            (1, 2, &[174, 8, 0, 0, 7, 3, 4, 5], [None, ceb, e1b]),
            (1, 1, &[174, 5, 0, 0, 7], [None, None, e1b]),
            (1, 0, &[174, 2], [None; 3]),
        ] {
            let option = AccEcnOption::new(&COUNTERS, order, count);
            let mut out = [0; LONGEST];
            let len = option.write(&mut out);
            assert_eq!((&out[..len], option.fields()), (bytes, fields));
            assert_eq!(AccEcnOption::read(bytes[0], &bytes[2..]), Some(option));
        }
    }

    /// Section 3.2.3: of another length, the whole fields count.
    #[test]
    fn what_does_not_fill_a_field_is_padding() {
        let read = |data: &[u8]| AccEcnOption::read(172, data).map(|option| option.fields());
        assert_eq!(read(&[0, 0, 1, 9, 9]), Some([Some(1), None, None]));
        assert_eq!(read(&[0, 0, 1, 0, 0, 2, 0, 0, 3, 9, 9, 9]), Some([Some(1), Some(2), Some(3)]));
        assert_eq!(read(&[9]), Some([None; 3]));
        assert_eq!(AccEcnOption::read(5, &[]), None);
    }
}
