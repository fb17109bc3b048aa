//! Rows of `flows` for flows that stand for users with many connections: each row is a sum, so that no
//! individual connection is stored.

use aqmlab_scenario::Plan;
use aqmlab_units::{Instant, Span};

use crate::flow_counts::{Count, FlowCounts};
use crate::flow_rows::FlowRow;

/// The users of every class, with the sums over their ended connections.
pub struct UserRows<T = u64> {
    /// Users by class; `None` where each flow is one connection.
    classes: Vec<Option<ClassRows<T>>>,
}

struct ClassRows<T> {
    first_number: u32,
    /// Users by index; `None` for those without an ended connection.
    rows: Vec<Option<UserRow<T>>>,
}

/// The sum over a user's ended connections.
struct UserRow<T> {
    start: Instant,
    connections: u32,
    base_rtts_ns: u128,
    counts: FlowCounts<T>,
    at_warmup: FlowCounts<T>,
}

impl<T: Count> UserRows<T> {
    /// Creates sums for the users of a plan.
    pub fn new(plan: &Plan) -> Self {
        let mut first_number = 0;
        let classes = plan.classes.iter().map(|class| {
            let rows = || (0..class.count).map(|_| None).collect();
            let users = (!class.is_list()).then(|| ClassRows { first_number, rows: rows() });
            first_number += class.count as u32;
            users
        });
        UserRows { classes: classes.collect() }
    }

    /// Returns whether the flows of a class stand for users.
    pub fn has(&self, class: u16) -> bool {
        self.classes[usize::from(class)].is_some()
    }

    /// Adds a connection that has ended or is still open at the end of the run. `row` is the row that the
    /// connection would have if it were a flow itself; the row's `number` and `end` are ignored.
    ///
    /// # Panics
    /// If the flows of its class are not users.
    pub fn connection_ended(&mut self, row: &FlowRow<T>) {
        let class = self.classes[usize::from(row.class)].as_mut().expect("a class of users");
        let sum = class.rows[row.index as usize].get_or_insert(UserRow {
            start: row.start,
            connections: 0,
            base_rtts_ns: 0,
            counts: FlowCounts::ZERO,
            at_warmup: FlowCounts::ZERO,
        });
        sum.start = sum.start.min(row.start);
        sum.connections = sum.connections.saturating_add(1);
        sum.base_rtts_ns += u128::from(row.base_rtt.as_ns());
        sum.counts = sum.counts.plus(row.counts);
        sum.at_warmup = sum.at_warmup.plus(row.at_warmup);
    }

    /// Ends the warm-up: connections that have already ended are not measured.
    pub fn warmup_ended(&mut self) {
        for row in self.classes.iter_mut().flatten().flat_map(|class| class.rows.iter_mut().flatten()) {
            row.at_warmup = row.counts;
        }
    }

    /// Iterates over the rows, one per user with an ended connection.
    pub fn into_flows(self) -> impl Iterator<Item = FlowRow<T>> {
        self.classes
            .into_iter()
            .enumerate()
            .filter_map(|(class, users)| Some((class as u16, users?)))
            .flat_map(|(class, users)| {
                let flow = move |(index, row): (usize, Option<UserRow<T>>)| {
                    let (row, index) = (row?, index as u32);
                    let mean_ns = row.base_rtts_ns / u128::from(row.connections);
                    Some(FlowRow {
                        number: users.first_number + index,
                        class,
                        index,
                        start: row.start,
                        end: None,
                        base_rtt: Span::ns(mean_ns as u64),
                        counts: row.counts,
                        at_warmup: row.at_warmup,
                    })
                };
                users.rows.into_iter().enumerate().filter_map(flow)
            })
    }

    /// Returns the size of the rows in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let users: usize = self.classes.iter().flatten().map(|class| class.rows.len()).sum();
        users * size_of::<Option<UserRow<T>>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_a_user_add_up_and_those_of_the_warm_up_are_not_measured() {
        let text = "title = \"t\"\nduration = \"1s\"\n\
                    topology = { kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = { kind = \"droptail\", limit = \"9p\" } }\n\
                    [[traffic]]\nname = \"a\"\nkind = \"bulk\"\ncount = 2\n\
                    [[traffic]]\nname = \"b\"\nkind = \"requests\"\nusers = 3\nthink = \"1s\"\nrequest = \"1B\"\nresponse = \"1B\"\n";
        let plan = aqmlab_scenario::parse(text, "test").unwrap_or_else(|e| panic!("{e}")).arms.remove(0);
        let mut users = UserRows::new(&plan);
        assert_eq!([users.has(0), users.has(1)], [false, true]);
        let counts = |bytes| FlowCounts::<u64> { sent_bytes: bytes, ..FlowCounts::ZERO };
        let at = |s| Instant::ZERO + Span::s(s);
        let row = |index, start, rtt, bytes, before| FlowRow {
            number: 77,
            class: 1,
            index,
            start: at(start),
            end: Some(at(9)),
            base_rtt: Span::ms(rtt),
            counts: counts(bytes),
            at_warmup: counts(before),
        };
        users.connection_ended(&row(2, 1, 10, 100, 0));
        users.warmup_ended();
        users.connection_ended(&row(2, 3, 30, 50, 20));
        users.connection_ended(&row(0, 4, 8, 7, 0));
        let rows: Vec<FlowRow> = users.into_flows().collect();
        let found = rows.iter().map(|row| {
            let (all, before) = (row.counts.sent_bytes, row.at_warmup.sent_bytes);
            (row.number, row.index, row.start, row.end, row.base_rtt, all, before)
        });
        let expected = [(2, 0, at(4), None, Span::ms(8), 7, 0), (4, 2, at(1), None, Span::ms(20), 150, 120)];
        assert!(found.eq(expected), "{rows:?}");
    }
}
