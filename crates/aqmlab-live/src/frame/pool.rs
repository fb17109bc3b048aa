//! Slots for frames, all of it taken at the start.

/// A frame's place in its [`FramePool`]. It can be neither copied nor forgotten lightly: who has it gives it back.
#[derive(Debug)]
#[must_use = "a slot that is not given back is lost to the pool"]
pub struct Slot(u32);

/// Slots of one length each, in one piece of memory that is touched before the first frame comes.
#[derive(Debug)]
pub struct FramePool {
    octets: Box<[u8]>,
    slot_len: usize,
    free: Vec<u32>,
    /// How many were taken at once, at most.
    most_taken: usize,
    slots: usize,
}

/// What fresh slots hold. Not zero: the system would hand out zero pages that it makes real at the first write, in the
/// middle of the run.
const FRESH: u8 = 0xa5;

impl FramePool {
    /// So many slots for frames of at most `slot_len` octets.
    ///
    /// # Panics
    /// If there are 2^32 slots or more.
    pub fn new(slots: usize, slot_len: usize) -> Self {
        let count = u32::try_from(slots).expect("fewer than 2^32 slots");
        FramePool {
            octets: vec![FRESH; slots * slot_len].into_boxed_slice(),
            slot_len,
            free: (0..count).rev().collect(),
            most_taken: 0,
            slots,
        }
    }

    /// Takes a slot and copies a frame into it; `None` if all are taken or the frame is too long.
    pub fn store(&mut self, frame: &[u8]) -> Option<Slot> {
        if frame.len() > self.slot_len {
            return None;
        }
        let slot = Slot(self.free.pop()?);
        self.octets[slot.start(self.slot_len)..][..frame.len()].copy_from_slice(frame);
        self.most_taken = self.most_taken.max(self.taken());
        Some(slot)
    }

    /// Gives a slot back.
    pub fn free(&mut self, slot: Slot) {
        debug_assert!(self.free.len() < self.slots, "more slots than there are");
        self.free.push(slot.0);
    }

    /// The first `len` octets of a slot.
    ///
    /// # Panics
    /// If slots are shorter.
    #[inline]
    pub fn frame(&self, slot: &Slot, len: usize) -> &[u8] {
        &self.octets[slot.start(self.slot_len)..][..self.slot_len][..len]
    }

    /// The same, to change them.
    ///
    /// # Panics
    /// If slots are shorter.
    #[inline]
    pub fn frame_mut(&mut self, slot: &Slot, len: usize) -> &mut [u8] {
        &mut self.octets[slot.start(self.slot_len)..][..self.slot_len][..len]
    }

    /// How many slots are taken.
    pub fn taken(&self) -> usize {
        self.slots - self.free.len()
    }

    /// How many were taken at once, at most.
    pub const fn most_taken(&self) -> usize {
        self.most_taken
    }

    /// How many slots there are.
    pub const fn slots(&self) -> usize {
        self.slots
    }
}

impl Slot {
    /// Its number: below [`FramePool::slots`], and that of no other frame in the network.
    pub const fn number(&self) -> u32 {
        self.0
    }

    const fn start(&self, slot_len: usize) -> usize {
        self.0 as usize * slot_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_their_frames_until_they_are_given_back() {
        let mut pool = FramePool::new(3, 8);
        let slots: Vec<Slot> = (0..3u8).map(|n| pool.store(&[n; 8]).unwrap()).collect();
        assert!(pool.store(&[9]).is_none(), "all are taken");
        for (n, slot) in slots.iter().enumerate() {
            assert_eq!(pool.frame(slot, 8), [n as u8; 8]);
        }
        slots.into_iter().for_each(|slot| pool.free(slot));
        assert_eq!((pool.taken(), pool.most_taken(), pool.slots()), (0, 3, 3));
        assert!(pool.store(&[0; 9]).is_none(), "too long");
        assert_eq!(pool.taken(), 0, "and it costs no slot");
        let again = pool.store(&[7; 2]).unwrap();
        pool.frame_mut(&again, 2)[1] = 8;
        assert_eq!(pool.frame(&again, 2), [7, 8]);
        pool.free(again);
    }
}
