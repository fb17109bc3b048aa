//! Boolean facts, packed eight to a byte because there are many endpoints. One comparison can test
//! several of them.

/// Up to eight facts. Each type that contains a `Bits` defines one constant, a power of two, for each fact.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Bits(u8);

impl Bits {
    pub(crate) const fn none() -> Self {
        Bits(0)
    }

    /// Returns whether no bit is set.
    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether any of `bits` is set.
    #[inline]
    pub(crate) const fn any(self, bits: u8) -> bool {
        self.0 & bits != 0
    }

    #[inline]
    pub(crate) fn set(&mut self, bits: u8) {
        self.0 |= bits;
    }

    #[inline]
    pub(crate) fn clear(&mut self, bits: u8) {
        self.0 &= !bits;
    }

    /// Sets or clears.
    #[inline]
    pub(crate) fn put(&mut self, bits: u8, value: bool) {
        self.clear(bits);
        if value {
            self.set(bits);
        }
    }

    /// Clears `bits`; returns whether any of them was set.
    #[inline]
    pub(crate) fn take(&mut self, bits: u8) -> bool {
        let was = self.any(bits);
        self.clear(bits);
        was
    }
}
