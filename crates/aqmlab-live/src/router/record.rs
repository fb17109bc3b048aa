//! Record of a router's run, and the check that its books balance.

use aqmlab_qdisc::Port;
use aqmlab_recording::{PortRecord, StoppedBy, Table, run_table};
use aqmlab_units::{Instant, Rate};

use super::books::{FlowBooks, Frozen, HostBooks};
use super::core::Router;
use super::found::Found;
use crate::error::LiveError;
use crate::kernel_queue::KernelQueueBooks;

/// Record of a router's run.
#[derive(Clone, PartialEq, Debug)]
pub struct RouterRecord {
    /// The beginning of the measured interval.
    pub t0: Instant,
    /// Its end.
    pub t1: Instant,
    /// The reason why the interval ended.
    pub stopped_by: StoppedBy,
    /// Tables of the ports.
    pub ports: PortRecord,
    /// Tables of the links whose rate changes and of the controllers of shapers.
    pub changing: Vec<Table>,
    /// The mean capacity of each of these links over the measured interval, by link.
    pub capacities: Vec<Option<Rate>>,
    /// The table `run`, which has a single row.
    pub run: Table,
    /// All flows, in the order of their numbers.
    pub flows: Vec<FlowRecord>,
    /// The flows of each class that were found by their packets, by row.
    pub found: Vec<Vec<Found>>,
    /// The books of all hosts, by their numbers, from the start of the run to the end of the drain.
    pub hosts: Vec<HostBooks>,
    /// The books of the kernel queues, with the indices of their links.
    pub kernels: Vec<(usize, KernelQueueBooks)>,
    /// Maximum number of frames in the network at the same time.
    pub most_held: usize,
    /// Number of frames in the network when the drain was over.
    pub still_held: u64,
}

/// Counts of one flow's packets, in two directions: to the server and to the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRecord {
    /// Its number in the run.
    pub number: u32,
    /// Its class's index.
    pub class: usize,
    /// Its index within the class.
    pub index: u32,
    /// Counts from the start of the run to the end of the measured interval.
    pub all: [FlowBooks; 2],
    /// Counts over the measured interval.
    pub measured: [FlowBooks; 2],
    /// Counts from the start of the run to the end of the drain.
    pub drained: [FlowBooks; 2],
}

impl Router {
    /// Returns a copy of the books and counts as they are now.
    pub(super) fn as_it_is(&mut self, now: Instant) -> Frozen {
        let (mut changing, capacities) = self.changing.finish(now, self.ports.iter());
        changing.extend(self.autorates.finish());
        Frozen {
            changing,
            capacities,
            books: self.ports.iter().map(|port| port.books().clone()).collect(),
            fates: self.store.fates,
            resident: self.resident(),
            flows: self.store.flows.clone(),
            fault: self.faulty_port(),
        }
    }

    /// Returns the error of the first port whose books do not balance, if there is one.
    fn faulty_port(&self) -> Option<LiveError> {
        let fault = |(port, queue): (&Port<_>, &String)| {
            let source = port.check_books().err()?;
            Some(LiveError::PortBooks { queue: queue.clone(), source })
        };
        self.ports.iter().zip(&self.link_names).find_map(fault)
    }

    /// Ends the run for good. If the measured interval has not ended, it ends now.
    ///
    /// # Errors
    /// If any books do not balance: those of a port, of a host or of the pipes, or the end-to-end
    /// books (read = refused + left + dropped + lost + held). Packets and bytes are both checked,
    /// first as they were at the end of the measured interval, then as they are now.
    pub fn finish(mut self) -> Result<RouterRecord, LiveError> {
        let now = self.now();
        if self.schedule.ended().is_none() {
            self.end_measuring(now, StoppedBy::Time);
        }
        self.ports.iter_mut().for_each(|port| port.settle(now));
        let mut frozen = self.frozen.take().expect("the run has ended");
        if let Some(fault) = frozen.fault.take().or_else(|| self.faulty_port()) {
            return Err(fault);
        }
        frozen.fates.check(frozen.resident).map_err(|e| LiveError::NetworkBooks(e.to_string()))?;
        self.check_network()?;
        Ok(self.into_record(frozen))
    }

    fn check_network(&self) -> Result<(), LiveError> {
        let wrong = |text: String| Err(LiveError::NetworkBooks(text));
        let (resident, store) = (self.resident(), &self.store);
        store.fates.check(resident).map_err(|e| LiveError::NetworkBooks(e.to_string()))?;
        for stage in [&self.inside, &self.leaving] {
            stage.check_books().map_err(|e| LiveError::NetworkBooks(e.to_string()))?;
        }
        if store.pool.taken() as u64 != resident.packets.get() {
            return wrong(format!(
                "{} slots are taken, but {} frames are held",
                store.pool.taken(),
                resident.packets
            ));
        }
        let sum = |of: fn(&HostBooks) -> u64| store.hosts.iter().map(of).sum::<u64>();
        let (read, refused) = (sum(|host| host.read.packets), sum(HostBooks::refused));
        if read != refused + store.fates.sent.packets.get() {
            return wrong(format!(
                "{read} packets were read, but {refused} were refused and {} accepted",
                store.fates.sent.packets
            ));
        }
        for (what, left, delivered) in [
            ("packets", sum(|host| host.left.packets), store.fates.delivered.packets.get()),
            ("bytes", sum(|host| host.left.bytes), store.fates.delivered.bytes.get()),
        ] {
            if left != delivered {
                return wrong(format!("{left} {what} left through hosts, but {delivered} were delivered"));
            }
        }
        Ok(())
    }

    fn into_record(self, frozen: Frozen) -> RouterRecord {
        let Frozen { books, fates, resident, flows, changing, capacities, fault: _ } = frozen;
        let (t1, stopped_by) = self.schedule.ended().expect("the run has ended");
        let t0 = self.schedule.t0();
        let kernels = self.kernel_books();
        RouterRecord {
            t0,
            t1,
            stopped_by,
            run: run_table(t0, t1, &fates, resident),
            flows: self.flow_records(&flows),
            found: (0..flows.len()).map(|class| self.store.flow_table.found(class).to_vec()).collect(),
            most_held: self.store.pool.most_taken(),
            still_held: self.store.pool.taken() as u64,
            ports: self.tables.finish(books.iter()),
            changing,
            capacities,
            kernels,
            hosts: self.store.hosts,
        }
    }

    fn kernel_books(&self) -> Vec<(usize, KernelQueueBooks)> {
        let kernels = self.kernels.iter().enumerate();
        kernels.filter_map(|(link, kernel)| Some((link, kernel.as_ref()?.books()))).collect()
    }

    fn flow_records(&self, at_end: &[Vec<[FlowBooks; 2]>]) -> Vec<FlowRecord> {
        let mut records = Vec::new();
        for (class, all) in at_end.iter().enumerate() {
            for (index, &all) in all.iter().enumerate().take(self.store.flow_table.books(class) - 1) {
                let before = self.at_warmup[class][index];
                let row = index as u32;
                records.push(FlowRecord {
                    number: self.store.flow_table.number(class, row),
                    class,
                    index: row,
                    all,
                    measured: [0, 1].map(|direction| all[direction].since(before[direction])),
                    drained: self.store.flows[class][index],
                });
            }
        }
        records
    }
}
