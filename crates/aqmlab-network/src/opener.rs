//! What opens the connections of a class, and ends its pages: the class's population, until the class stops.

use aqmlab_recording::{Ending, RequestRecorder};
use aqmlab_scenario::Plan;
use aqmlab_traffic::{ConnectionEvent, Identity, Population, Reaction, Wake, Woken};
use aqmlab_units::Instant;

use crate::ended_page;

/// See the module.
pub struct Opener {
    population: Population,
    /// Whether the class is a list of flows, each of which is one connection or one stream of datagrams; the
    /// other connections are parts of their users' flows.
    pub is_list: bool,
    /// No connection opens at or after this instant.
    until: Instant,
    /// Index of the class.
    pub class: u32,
    /// The number that the class's first flow has in the run.
    pub first_number: u32,
}

impl Opener {
    /// Returns the openers of a plan's classes.
    pub fn all(plan: &Plan, seed: u64) -> Vec<Opener> {
        let mut first_number = 0;
        let numbered = plan.classes.iter().zip(0..);
        numbered
            .map(|(class, number)| {
                let opener = Opener {
                    population: class.population(seed),
                    is_list: class.is_list(),
                    until: match class.stop_at {
                        Some(at) if !class.is_list() => Instant::ZERO + at,
                        _ => Instant::FAR_FUTURE,
                    },
                    class: number,
                    first_number,
                };
                first_number += class.count as u32;
                opener
            })
            .collect()
    }

    /// Draws the starts of at most `most` connections of each cloud ahead, on several processors.
    pub fn draw_ahead<'a>(openers: impl Iterator<Item = &'a mut Opener>, most: usize) {
        Population::draw_ahead(openers.map(|opener| &mut opener.population), most);
    }

    /// Returns the first instant at which the class wants to be woken. Call this once, before any other method.
    pub fn begin(&mut self) -> Option<Wake> {
        let wake = self.population.begin();
        self.in_time(wake)
    }

    /// Wakes the class. Returns the connection that opens or goes on now, and the next instant at which the
    /// class wants to be woken.
    pub fn on_wake(&mut self, wake: Wake) -> Woken {
        let woken = self.population.on_wake(wake);
        let next = self.in_time(woken.wake());
        woken.waking(next)
    }

    /// Notifies the class of an event on one of its connections, and records a page that ends. Returns the
    /// instant at which the class then wants to be woken.
    pub fn on_event(
        &mut self,
        now: Instant,
        of: Identity,
        event: ConnectionEvent,
        requests: Option<&mut RequestRecorder>,
    ) -> Option<Wake> {
        let Reaction { wake, page } = self.population.on_event(now, of, event);
        if let (Some(page), Some(requests)) = (page, requests) {
            let how = if page.failed { Ending::Failed } else { Ending::Completed };
            requests.page_ended(&ended_page(self.class, &page), how, page.at);
        }
        self.in_time(wake)
    }

    /// Ends the pages in progress when the class or the run ends, and records them as cut off.
    pub fn cut_off_pages(&mut self, now: Instant, requests: Option<&mut RequestRecorder>) {
        let pages = self.population.give_up_pages(now.min(self.until));
        if let Some(requests) = requests {
            for page in pages {
                requests.page_ended(&ended_page(self.class, &page), Ending::Censored, page.at);
            }
        }
    }

    /// Returns the number that a flow of a list, or a connection's user, has in the run.
    pub fn number(&self, of: Identity) -> u32 {
        self.first_number + of.user
    }

    /// Returns the memory that the population takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.population.memory_bytes()
    }

    fn in_time(&self, wake: Option<Wake>) -> Option<Wake> {
        wake.filter(|wake| wake.at < self.until)
    }
}
