//! Whose turn it is: weighted and deficit round robin.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Round robin among the queues that have something to send, each with a quantum of credit a round.
///
/// With the bytes of a packet as its cost this is deficit round robin, with one for each packet weighted round robin.
// DEVIATES from Shreedhar and Varghese 1996: a queue sends while it has credit left, and what its last packet takes
// beyond that is missing in its next round (surplus round robin: Adiseshan, Parulkar and Varghese 1996), because a
// discipline that decides at departure cannot be asked for the size of a packet before it is taken. Shares in the long
// run and the bound on what a queue may be ahead, one packet and one quantum, are the same.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    queues: Vec<Credit>,
    /// Those that have something to send; the first one has its turn.
    active: VecDeque<u16>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Credit {
    /// What it gets each round.
    quantum: i64,
    /// What it has left of it; below zero what its last packet took beyond.
    left: i64,
}

impl RoundRobin {
    /// All queues are empty. Every quantum is above zero.
    pub fn new(quanta: impl IntoIterator<Item = u64>) -> Self {
        let credit = |quantum| Credit { quantum: i64::try_from(quantum).unwrap_or(i64::MAX).max(1), left: 0 };
        let queues: Vec<Credit> = quanta.into_iter().map(credit).collect();
        RoundRobin { active: VecDeque::with_capacity(queues.len()), queues }
    }

    /// A queue that was empty has something to send: it comes last in the round.
    pub fn activate(&mut self, queue: usize) {
        let credit = &mut self.queues[queue];
        credit.left += credit.quantum;
        self.active.push_back(queue as u16);
    }

    /// The queue whose turn it is; `None` if all are empty. Rounds in which nobody has credit are gone through here: at most
    /// the largest cost over the smallest quantum.
    pub fn turn(&mut self) -> Option<usize> {
        loop {
            let first = usize::from(*self.active.front()?);
            let credit = &mut self.queues[first];
            if credit.left > 0 {
                return Some(first);
            }
            credit.left += credit.quantum;
            self.active.rotate_left(1);
        }
    }

    /// The queue whose turn it is has sent something of this cost.
    pub fn charge(&mut self, queue: usize, cost: u64) {
        self.queues[queue].left -= cost as i64;
    }

    /// The queue whose turn it is has nothing left to send. What it has saved is lost; what it owes it still does.
    pub fn deactivate(&mut self, queue: usize) {
        let credit = &mut self.queues[queue];
        credit.left = credit.left.min(0);
        debug_assert_eq!(self.active.front(), Some(&(queue as u16)), "only who has its turn can run empty");
        self.active.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Always full queues with packets of these sizes: what each has sent when so much has been sent in all.
    fn sent(quanta: &[u64], sizes: &[u64], total: u64) -> Vec<u64> {
        let mut robin = RoundRobin::new(quanta.iter().copied());
        (0..quanta.len()).for_each(|queue| robin.activate(queue));
        let mut sent = alloc::vec![0; quanta.len()];
        while sent.iter().sum::<u64>() < total {
            let queue = robin.turn().unwrap();
            robin.charge(queue, sizes[queue]);
            sent[queue] += sizes[queue];
        }
        sent
    }

    /// However sizes differ, no queue is further from its share than a packet and a quantum of each.
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

    #[test]
    fn an_empty_queue_saves_nothing_and_keeps_its_debt() {
        let mut robin = RoundRobin::new([1000, 1000]);
        robin.activate(0);
        assert_eq!(robin.turn(), Some(0));
        robin.charge(0, 2500);
        robin.deactivate(0);
        assert_eq!(robin.turn(), None);
        robin.activate(0);
        robin.activate(1);
        // Queue 0 owes 500 after its new quantum.
        assert_eq!(robin.turn(), Some(1));
        robin.charge(1, 100);
        robin.deactivate(1);
        assert_eq!(robin.turn(), Some(0), "a round later it has 500");
        robin.charge(0, 1);
        robin.activate(1);
        assert_eq!(robin.turn(), Some(0));
        robin.charge(0, 498);
        assert_eq!(robin.turn(), Some(0), "one is left");
        robin.charge(0, 1);
        assert_eq!(robin.turn(), Some(1), "900 saved by queue 1 were lost, its new quantum counts");
    }
}
