//! Weighted and deficit round robin.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Round robin among the queues that have something to send, each with a quantum of credit per
/// round.
///
/// With the bytes of a packet as its cost, this is deficit round robin (Shreedhar and Varghese 1995). With a
/// cost of one per packet, this is weighted round robin. A packet is sent if the saved credit of its queue,
/// called the deficit, covers the packet's cost.
// DEVIATES from Shreedhar and Varghese if the head of a queue is lost as it leaves, which happens under laws
// that decide at departures. The packet behind it is sent in its place; the part of that packet's cost that
// exceeds the credit is deducted in the next round. A queue that does not know the length of its next packet
// sends while it has credit, so it can owe part of a packet's cost too.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    queues: Vec<Credit>,
    /// Queues that have something to send, in the order of their turns; the first one is next.
    active: VecDeque<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Credit {
    /// Credit per round.
    quantum: i64,
    /// Credit left from this and earlier rounds; negative if the last packet cost more than the credit.
    left: i64,
}

impl RoundRobin {
    /// Creates a round robin over empty queues. A quantum of zero counts as one.
    pub fn new(quanta: impl IntoIterator<Item = u64>) -> Self {
        let credit = |quantum| Credit { quantum: i64::try_from(quantum).unwrap_or(i64::MAX).max(1), left: 0 };
        let queues: Vec<Credit> = quanta.into_iter().map(credit).collect();
        RoundRobin { active: VecDeque::with_capacity(queues.len()), queues }
    }

    /// Appends to the round a queue that was empty and now has something to send.
    pub fn activate(&mut self, queue: usize) {
        let credit = &mut self.queues[queue];
        credit.left += credit.quantum;
        self.active.push_back(queue as u16);
    }

    /// Returns the queue whose turn it is, or `None` if all are empty. `cost` returns the cost of a queue's
    /// next packet, if known. Rounds in which no credit covers a packet are skipped here: their number is at
    /// most the largest cost divided by the smallest quantum.
    pub fn turn(&mut self, mut cost: impl FnMut(usize) -> Option<u64>) -> Option<usize> {
        loop {
            let first = usize::from(*self.active.front()?);
            let needed = cost(first).map_or(1, |cost| i64::try_from(cost).unwrap_or(i64::MAX));
            let credit = &mut self.queues[first];
            if credit.left >= needed {
                return Some(first);
            }
            credit.left += credit.quantum;
            self.active.rotate_left(1);
        }
    }

    /// Deducts the cost of a packet from the credit of the queue whose turn it is.
    pub fn charge(&mut self, queue: usize, cost: u64) {
        self.queues[queue].left -= cost as i64;
    }

    /// Removes the queue whose turn it is, which holds its packets back. It keeps its credit.
    pub fn suspend(&mut self, queue: usize) {
        debug_assert_eq!(
            self.active.front(),
            Some(&(queue as u16)),
            "only the queue whose turn it is is asked"
        );
        self.active.pop_front();
    }

    /// Appends to the round a queue that held its packets back.
    pub fn resume(&mut self, queue: usize) {
        self.active.push_back(queue as u16);
    }

    /// Removes the queue whose turn it is, which has nothing left to send. It loses its saved credit and
    /// keeps its debt.
    pub fn deactivate(&mut self, queue: usize) {
        let credit = &mut self.queues[queue];
        credit.left = credit.left.min(0);
        debug_assert_eq!(
            self.active.front(),
            Some(&(queue as u16)),
            "only the queue whose turn it is can run empty"
        );
        self.active.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how much each queue has sent once all queues together have sent `total`; the queues are never
    /// empty and have packets of these sizes.
    fn sent(quanta: &[u64], sizes: &[u64], total: u64) -> Vec<u64> {
        let mut robin = RoundRobin::new(quanta.iter().copied());
        (0..quanta.len()).for_each(|queue| robin.activate(queue));
        let mut sent = alloc::vec![0; quanta.len()];
        while sent.iter().sum::<u64>() < total {
            let queue = robin.turn(|queue| Some(sizes[queue])).unwrap();
            robin.charge(queue, sizes[queue]);
            sent[queue] += sizes[queue];
        }
        sent
    }

    /// Whatever the sizes, no queue deviates from its share by more than one packet plus one
    /// quantum.
    #[test]
    fn shares_are_those_of_the_quanta_to_a_packet_and_a_quantum() {
        for (quanta, sizes) in [
            ([3000, 1000, 1000], [1500, 1500, 1500]),
            ([4500, 1500, 1500], [40, 1500, 9000]),
            ([100, 100, 300], [1500, 64, 576]),
        ] {
            let total = 3_000_000;
            let all: u64 = quanta.iter().sum();
            let slack = 9000 + quanta.iter().max().unwrap();
            for (queue, sent) in sent(&quanta, &sizes, total).into_iter().enumerate() {
                let share = total * quanta[queue] / all;
                assert!(
                    sent.abs_diff(share) <= slack,
                    "{quanta:?} {sizes:?}: {queue} sent {sent} of {share}"
                );
            }
        }
    }

    /// The example of Shreedhar and Varghese 1995, figures 2 and 3, with a quantum of 500: the
    /// first queue sends 200 and keeps 300. This is too little for its next packet, of 750, which
    /// must wait for the next round, in which the queue may send 800.
    #[test]
    fn a_packet_is_sent_only_if_the_deficit_covers_it() {
        let mut waiting: [&[u64]; 4] = [&[200, 750, 20], &[500, 500], &[100, 600, 200], &[180, 700, 50]];
        let mut robin = RoundRobin::new([500; 4]);
        (0..4).for_each(|queue| robin.activate(queue));
        let mut order = Vec::new();
        while let Some(queue) = robin.turn(|queue| waiting[queue].first().copied()) {
            let (size, behind) = (waiting[queue][0], &waiting[queue][1..]);
            waiting[queue] = behind;
            robin.charge(queue, size);
            order.push((queue, size));
            if waiting[queue].is_empty() {
                robin.deactivate(queue);
            }
        }
        let first_round = [(0, 200), (1, 500), (2, 100), (3, 180)];
        let second = [(0, 750), (0, 20), (1, 500), (2, 600), (2, 200), (3, 700), (3, 50)];
        assert_eq!(order, [&first_round[..], &second].concat());
    }

    /// A queue that does not know the length of its next packet, or that sends a packet other than the one
    /// announced, owes the part of the cost that its credit did not cover.
    #[test]
    fn an_empty_queue_saves_nothing_and_keeps_its_debt() {
        let mut robin = RoundRobin::new([1000, 1000]);
        let unknown = |_| None;
        robin.activate(0);
        assert_eq!(robin.turn(unknown), Some(0));
        robin.charge(0, 2500);
        robin.deactivate(0);
        assert_eq!(robin.turn(unknown), None);
        robin.activate(0);
        robin.activate(1);
        // Queue 0 owes 500 after its new quantum.
        assert_eq!(robin.turn(unknown), Some(1));
        robin.charge(1, 100);
        robin.deactivate(1);
        assert_eq!(robin.turn(unknown), Some(0), "a round later it has 500");
        robin.charge(0, 1);
        robin.activate(1);
        assert_eq!(robin.turn(unknown), Some(0));
        robin.charge(0, 498);
        assert_eq!(robin.turn(unknown), Some(0), "one is left");
        robin.charge(0, 1);
        assert_eq!(robin.turn(unknown), Some(1), "900 saved by queue 1 were lost, its new quantum counts");
    }
}
