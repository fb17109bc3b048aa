//! A uniform sample of fixed size that does not depend on the order in which the items are offered.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use aqmlab_units::Span;

use super::exchange::{Exchange, ExchangeId};
use crate::table::Table;

/// The items with the smallest keys among all those offered. A key is a draw determined by the item's
/// identity, so all sets of `size` items are equally likely, and the sample does not depend on the order in
/// which a host reports exchanges.
pub struct Sample {
    size: usize,
    /// The items, the largest key first.
    kept: BinaryHeap<SampledRequest>,
}

/// An exchange in the sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampledRequest {
    pub key: u64,
    pub id: ExchangeId,
    pub exchange: Exchange,
    pub response_time: Span,
}

impl Ord for SampledRequest {
    /// Orders entries by key, and those with equal keys by exchange.
    fn cmp(&self, other: &Self) -> Ordering {
        (self.key, self.id).cmp(&(other.key, other.id))
    }
}

impl PartialOrd for SampledRequest {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Sample {
    /// Creates an empty sample of at most `size` exchanges.
    pub fn new(size: usize) -> Self {
        Sample { size, kept: BinaryHeap::new() }
    }

    /// Adds an item if it is among those with the smallest keys.
    pub fn offer(&mut self, kept: SampledRequest) {
        if self.kept.len() < self.size {
            self.kept.push(kept);
        } else if let Some(mut greatest) = self.kept.peek_mut()
            && kept < *greatest
        {
            *greatest = kept;
        }
    }

    /// Returns the sample's memory use in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.kept.capacity() * size_of::<SampledRequest>()
    }

    /// Appends the sample's rows to `table`, in the order in which the exchanges began.
    pub fn push(self, table: &mut Table, class: &str) {
        let mut kept = self.kept.into_vec();
        kept.sort_unstable_by_key(|kept| (kept.exchange.start, kept.id));
        for SampledRequest { exchange, response_time, .. } in kept {
            table.push([
                class.into(),
                u64::from(exchange.of.user).into(),
                u64::from(exchange.of.serial).into(),
                u64::from(exchange.number).into(),
                u64::from(exchange.opens_connection).into(),
                exchange.start.as_ns().into(),
                exchange.request.get().into(),
                exchange.response.get().into(),
                response_time.as_ns().into(),
            ]);
        }
    }
}
