//! The populations of a plan, without sockets: they decide which connections open, when, and from
//! which client ports, and they record the connections that have ended.
//!
//! They are driven as in the simulator: they are woken at the instants that they request, and
//! notified of each connection's events. All that remains of a connection that has ended is a row
//! of `flows` (its own or its user's) and a free port.

use aqmlab_network::{Completions, Opener, UserRows, recorded_exchange, request_recorder};
use aqmlab_recording::{Ending, RequestRecord, RequestRecorder};
use aqmlab_scenario::{Completed, Plan};
use aqmlab_traffic::{ConnectionEvent, ExchangeDone, Identity, Wake, Woken};
use aqmlab_units::Instant;

use super::port_pool::PortPool;

/// The row of a flow that has ended, or that was open at the end of the run. The router adds the counts from
/// the flow's path.
pub type FlowRow = aqmlab_network::FlowRow<Option<u64>>;

/// See the module.
pub struct Populations {
    classes: Vec<Class>,
    /// Number of open connections that are not flows of a list.
    open: u64,
    /// Upper limit on that number.
    most_open: u64,
    completions: Completions,
    ended: Vec<FlowRow>,
    users: UserRows<Option<u64>>,
    requests: Option<RequestRecorder>,
}

struct Class {
    opener: Opener,
    /// The pool of client ports; `None` if flow `i` has client port `i`.
    ports: Option<PortPool>,
}

impl Populations {
    /// Returns the populations of `plan`, with `client_ports` client ports for each class. In addition to the
    /// flows of lists, at most `most_open` connections may be open at the same time.
    pub fn new(plan: &Plan, seed: u64, client_ports: &[u32], most_open: u64) -> Self {
        let class = |(opener, &ports): (Opener, &u32)| {
            let ports = (!opener.is_list).then(|| PortPool::new(ports));
            Class { opener, ports }
        };
        Populations {
            classes: Opener::all(plan, seed).into_iter().zip(client_ports).map(class).collect(),
            open: 0,
            most_open,
            completions: Completions::new(plan),
            ended: Vec::new(),
            users: UserRows::new(plan),
            // Rows are held in memory as the bytes of their file, because the run's directory is created
            // after the run.
            requests: request_recorder(plan, seed, None),
        }
    }

    /// Returns the first instant at which a class wants to be woken. Call this once, before any other method.
    pub fn begin(&mut self, class: usize) -> Option<Wake> {
        self.classes[class].opener.begin()
    }

    /// Wakes a class. Returns the connection that opens now, and the next instant at which the class wants to
    /// be woken.
    pub fn on_wake(&mut self, class: usize, wake: Wake) -> Woken {
        self.classes[class].opener.on_wake(wake)
    }

    /// Returns a client port for the connection `of`; `None` if none is free, or if the limit on open
    /// connections is reached.
    pub fn take_port(&mut self, class: usize, of: Identity, now: Instant) -> Option<u32> {
        let Some(ports) = &mut self.classes[class].ports else { return Some(of.user) };
        if self.open >= self.most_open {
            return None;
        }
        let port = ports.take(now)?;
        self.open += 1;
        Some(port)
    }

    /// Frees the client port of a connection.
    pub fn give_back(&mut self, class: usize, port: u32, now: Instant) {
        if let Some(ports) = &mut self.classes[class].ports {
            ports.give_back(port, now);
            self.open -= 1;
        }
    }

    /// Notifies a class of an event on one of its connections. Returns the instant at which the
    /// class then wants to be woken.
    pub fn on_event(
        &mut self,
        class: usize,
        now: Instant,
        of: Identity,
        event: ConnectionEvent,
    ) -> Option<Wake> {
        self.classes[class].opener.on_event(now, of, event, self.requests.as_mut())
    }

    /// Returns the number that a flow of a list, or a connection's user, has in the run.
    pub fn number(&self, class: usize, of: Identity) -> u32 {
        self.classes[class].opener.number(of)
    }

    /// Returns whether the connections of a class are themselves flows, rather than parts of their users'
    /// flows.
    pub fn is_list(&self, class: usize) -> bool {
        self.classes[class].opener.is_list
    }

    /// Counts a flow or a request that has completed in the measured interval. Returns whether that
    /// ends the run.
    pub fn completed(&mut self, class: usize, what: Completed) -> bool {
        self.completions.count(class, what)
    }

    /// Records that an exchange of the connection `of` has ended at `at`, with or without success.
    pub fn request_ended(
        &mut self,
        class: usize,
        of: Identity,
        exchange: &ExchangeDone,
        how: Ending,
        at: Instant,
    ) {
        if let Some(requests) = &mut self.requests
            && let Some(exchange) = recorded_exchange(class as u32, of, exchange)
        {
            requests.ended(&exchange, how, at);
            requests.settle(at);
        }
    }

    /// Records a flow or a user's connection that has ended, or that was open at the end of the
    /// run.
    pub fn flow_ended(&mut self, row: FlowRow) {
        if self.users.has(row.class) {
            self.users.connection_ended(&row);
        } else {
            self.ended.push(row);
        }
    }

    /// Ends the warm-up; the counts of flows that have ended by then are not measured.
    pub fn warmup_ended(&mut self) {
        for row in &mut self.ended {
            row.at_warmup = row.counts;
        }
        self.users.warmup_ended();
    }

    /// Ends the run at `end`; returns the rows of `flows` in the order of their numbers, and the outcomes of
    /// requests and pages.
    pub fn finish(mut self, end: Instant) -> (Vec<FlowRow>, Option<RequestRecord>) {
        for class in &mut self.classes {
            class.opener.cut_off_pages(end, self.requests.as_mut());
        }
        self.ended.extend(self.users.into_flows());
        self.ended.sort_unstable_by_key(|row| row.number);
        let requests = self.requests.map(RequestRecorder::finish).transpose();
        (self.ended, requests.expect("times and sizes of a run fit their columns, and memory holds them"))
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_network::FlowCounts;
    use aqmlab_recording::{ColumnData, Table};
    use aqmlab_traffic::Opening;
    use aqmlab_units::{Bytes, Span};

    use super::*;
    use crate::traffic::port_pool::REST;

    fn plan(population: &str) -> Plan {
        let text = format!(
            "title = \"t\"\nduration = \"60s\"\nwarmup = \"10s\"\n\
             topology = {{ kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = {{ kind = \"droptail\", limit = \"9p\" }} }}\n\
             [[traffic]]\nname = \"bulk\"\nkind = \"bulk\"\ncount = 3\n\
             [[traffic]]\nname = \"web\"\nkind = \"requests\"\n{population}\nrequest = \"400B\"\nresponse = \"12kB\"\n\
             rtt = {{ uniform = [\"30ms\", \"90ms\"] }}\n"
        );
        aqmlab_scenario::parse(&text, "test").unwrap_or_else(|e| panic!("{e}")).arms.remove(0)
    }

    const USERS: &str = "users = 5\nthink = { exponential = \"500ms\" }";
    const WEB: usize = 1;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::ms(ms)
    }

    fn done(began: Instant) -> ExchangeDone {
        ExchangeDone {
            number: 0,
            request: Bytes::new(400),
            response: Bytes::new(12_000),
            began,
            opened_connection: true,
            last: true,
        }
    }

    fn opening(woken: Woken) -> Opening {
        let Woken::Opens(opening) = woken else { panic!("no user requests again: {woken:?}") };
        opening
    }

    fn row(of: Identity, start: Instant, sent: u64) -> FlowRow {
        let counts = FlowCounts { sent_bytes: Some(sent), ..FlowCounts::ZERO };
        FlowRow {
            number: 3 + of.user,
            class: WEB as u16,
            index: of.user,
            start,
            end: None,
            base_rtt: Span::ms(50),
            counts,
            at_warmup: FlowCounts::ZERO,
        }
    }

    /// Simulated hosts, whose sockets never fail, and the connections that have been opened, with their times
    /// and ports.
    struct Hosts {
        populations: Populations,
        opened: Vec<(Instant, Identity, u32)>,
        refused: u64,
    }

    impl Hosts {
        fn new(plan: &Plan, ports: u32, most_open: u64) -> Self {
            let populations = Populations::new(plan, 7, &[3, ports], most_open);
            Hosts { populations, opened: Vec::new(), refused: 0 }
        }

        fn run(&mut self, took: Span, until: Instant) {
            let mut wakes: Vec<Wake> = self.populations.begin(WEB).into_iter().collect();
            let mut open: Vec<(Instant, Instant, Identity, u32)> = Vec::new();
            loop {
                let next_wake = wakes.iter().map(|wake| wake.at).min().unwrap_or(Instant::FAR_FUTURE);
                let next_end = open.iter().map(|open| open.0).min().unwrap_or(Instant::FAR_FUTURE);
                if next_wake.min(next_end) > until {
                    return;
                }
                if next_end <= next_wake {
                    let place = open.iter().position(|open| open.0 == next_end).expect("it is there");
                    let (now, start, of, port) = open.remove(place);
                    self.populations.request_ended(WEB, of, &done(start), Ending::Completed, now);
                    wakes.extend(self.populations.on_event(
                        WEB,
                        now,
                        of,
                        ConnectionEvent::ExchangeDone(done(start)),
                    ));
                    wakes.extend(self.populations.on_event(WEB, now, of, ConnectionEvent::Closed));
                    self.populations.flow_ended(row(of, start, 1000));
                    self.populations.give_back(WEB, port, now);
                    continue;
                }
                let place = wakes.iter().position(|wake| wake.at == next_wake).expect("it is there");
                let wake = wakes.swap_remove(place);
                let opening = opening(self.populations.on_wake(WEB, wake));
                wakes.extend(opening.wake);
                match self.populations.take_port(WEB, opening.open, wake.at) {
                    Some(port) => {
                        self.opened.push((wake.at, opening.open, port));
                        open.push((wake.at + took, wake.at, opening.open, port));
                    }
                    None => {
                        self.refused += 1;
                        wakes.extend(self.populations.on_event(
                            WEB,
                            wake.at,
                            opening.open,
                            ConnectionEvent::Failed,
                        ));
                    }
                }
            }
        }
    }

    fn numbers(table: &Table, column: &str) -> u64 {
        match table.column(column) {
            Some(ColumnData::U64(values)) => values.iter().sum(),
            other => panic!("{column} is {other:?}"),
        }
    }

    #[test]
    fn flows_of_a_list_have_the_ports_of_their_numbers() {
        let mut populations = Populations::new(&plan(USERS), 7, &[3, 100], 0);
        let mut opened = Vec::new();
        let mut wake = populations.begin(0);
        while let Some(next) = wake {
            let opening = opening(populations.on_wake(0, next));
            opened.push(populations.take_port(0, opening.open, next.at));
            wake = opening.wake;
        }
        opened.sort_unstable();
        assert_eq!(opened, [Some(0), Some(1), Some(2)], "`most_open` does not limit them");
        assert!(populations.is_list(0) && !populations.is_list(WEB));
        assert_eq!(populations.number(WEB, Identity { user: 2, serial: 9 }), 5);
    }

    #[test]
    fn users_take_ports_in_turn_and_each_rests() {
        let mut hosts = Hosts::new(&plan(USERS), 40, 100);
        hosts.run(Span::ms(200), at(60_000));
        assert_eq!(hosts.refused, 0);
        assert!(hosts.opened.len() > 200, "{} connections from 40 ports", hosts.opened.len());
        let mut last = [None; 40];
        for &(start, _, port) in &hosts.opened {
            if let Some(before) = last[port as usize].replace(start) {
                assert!(start >= before + Span::ms(200) + REST, "port {port}");
            }
        }
        assert!(last.iter().all(Option::is_some), "all of them are used");
        // Only the population decides which connections open and when: if it is driven in the same
        // way, the simulator's population makes the same decisions.
        let serials =
            |user| hosts.opened.iter().filter(move |(_, of, _)| of.user == user).map(|(_, of, _)| of.serial);
        for user in 0..5 {
            assert!(serials(user).eq(0..serials(user).count() as u32), "user {user}");
        }
    }

    #[test]
    fn without_a_free_port_a_connection_fails_and_its_user_thinks_again() {
        let mut hosts = Hosts::new(&plan(USERS), 3, 100);
        hosts.run(Span::ms(200), at(60_000));
        assert!(hosts.refused > 50, "three ports rest two seconds after each connection");
        let last = hosts.opened.last().expect("some open").0;
        assert!(last > at(55_000), "and openings continue: {last:?}");
        assert!(hosts.opened.len() > 60 && hosts.opened.len() < 85, "{}", hosts.opened.len());
    }

    #[test]
    fn no_more_connections_are_open_than_there_are_descriptors() {
        let mut hosts = Hosts::new(&plan("rate = \"50/s\""), 10_000, 4);
        hosts.run(Span::ms(400), at(20_000));
        let starts: Vec<Instant> = hosts.opened.iter().map(|opened| opened.0).collect();
        for five in starts.windows(5) {
            assert!(five[4] >= five[0] + Span::ms(400), "{five:?}");
        }
        assert!(hosts.refused > 100, "{}", hosts.refused);
        let serials = hosts.opened.iter().map(|(_, of, _)| (of.user, of.serial));
        assert!(
            serials.is_sorted(),
            "an arrival that finds no room is lost, and the next one has the next number"
        );
    }

    #[test]
    fn rows_are_those_of_users_and_what_came_before_the_warm_up_is_not_measured() {
        let plan = plan(USERS);
        let mut populations = Populations::new(&plan, 7, &[3, 40], 100);
        let of = |user, serial| Identity { user, serial };
        populations.flow_ended(row(of(2, 0), at(100), 1000));
        populations.request_ended(WEB, of(2, 0), &done(at(100)), Ending::Completed, at(300));
        populations.warmup_ended();
        populations.flow_ended(row(of(2, 1), at(11_000), 500));
        populations.flow_ended(row(of(0, 0), at(12_000), 70));
        populations.request_ended(WEB, of(2, 1), &done(at(11_000)), Ending::Completed, at(11_500));
        populations.request_ended(WEB, of(0, 0), &done(at(12_000)), Ending::Failed, at(12_100));
        populations.request_ended(WEB, of(4, 0), &done(at(59_000)), Ending::Censored, at(60_000));
        let (rows, requests) = populations.finish(at(60_000));
        let found: Vec<_> =
            rows.iter().map(|row| (row.number, row.counts.sent_bytes, row.at_warmup.sent_bytes)).collect();
        assert_eq!(found, [(3, Some(70), Some(0)), (5, Some(1500), Some(1000))]);
        let summary = &requests.expect("a class makes requests").tables[0];
        let counts = ["completed", "failed", "censored"].map(|column| numbers(summary, column));
        assert_eq!(counts, [1, 1, 1]);
    }

    #[test]
    fn nothing_opens_once_a_class_has_stopped() {
        let mut hosts = Hosts::new(&plan(&format!("{USERS}\nstop = \"5s\"")), 1000, 100);
        hosts.run(Span::ms(200), at(60_000));
        let last = hosts.opened.last().expect("some open").0;
        assert!(last < at(5000) && last > at(3000), "{last:?}");
    }
}
