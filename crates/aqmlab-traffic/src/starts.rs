//! Start times that are known in advance.

use alloc::vec::Vec;

use aqmlab_units::Instant;

use crate::opening::{Identity, Opening, Wake};

/// The start of each user's first connection: see [`Population::List`](crate::Population::List).
#[derive(Clone, Debug)]
pub struct Starts {
    /// The starts still to come, in reverse order: the next one is last.
    to_come: Vec<(Instant, u32)>,
}

impl Starts {
    /// Creates the list from the start of each user's first connection, latest first.
    pub fn new(starts: Vec<(Instant, u32)>) -> Self {
        debug_assert!(starts.is_sorted_by(|a, b| a.0 >= b.0), "the latest start must come first");
        Starts { to_come: starts }
    }

    pub(crate) fn next(&self) -> Option<Wake> {
        self.to_come.last().map(|&(at, user)| Wake { at, user })
    }

    pub(crate) fn on_wake(&mut self, wake: Wake) -> Opening {
        let next = self.to_come.pop();
        assert_eq!(next, Some((wake.at, wake.user)), "the host wakes a list only for its next start");
        // Frees memory that the connections themselves need.
        if self.to_come.len() < self.to_come.capacity() / 4 {
            self.to_come.shrink_to(self.to_come.len() * 2);
        }
        Opening::of(Identity::first_of(wake.user), self.next())
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.to_come)
    }
}
