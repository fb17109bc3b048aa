//! What is recorded about the flows of programs: their rows of `flows`, and the table `found_flows`.

use aqmlab_network::{FlowCounts, FlowPath};
use aqmlab_recording::{Cell, Table, schema};
use aqmlab_scenario::{Plan, Traffic};
use aqmlab_traffic::Identity;

use crate::router::{FlowBooks, FlowRecord, RouterRecord};
use crate::traffic::FlowRow;

/// Names of the counts that a kernel reports only to the program that owns the socket.
pub const UNKNOWN: &[&str] = &["delivered_bytes", "retransmitted_segments"];

/// Returns the rows of `flows` of the flows that were found. A row covers both directions, starts with the
/// flow's first packet and never ends, because only a program knows whether more will follow.
pub fn rows(plan: &Plan, seed: u64, record: &RouterRecord) -> Vec<FlowRow> {
    let path =
        |class, row| FlowPath::new(plan, class, plan.propagation(class), Some(Identity::first_of(row)), seed);
    each(record)
        .map(|(flow, found)| {
            let shared = match &plan.classes[flow.class].traffic {
                Traffic::Program(program) => !program.delays_by_connection,
                _ => false,
            };
            FlowRow {
                number: flow.number,
                class: flow.class as u16,
                index: flow.index,
                start: found.first,
                end: None,
                base_rtt: path(flow.class, if shared { 0 } else { flow.index }).whole_base_rtt(),
                counts: counts(flow.all),
                at_warmup: counts([0, 1].map(|way| flow.all[way].since(flow.measured[way]))),
            }
        })
        .collect()
}

/// Returns the table `found_flows`, or `None` if the plan has no programs.
pub fn table(plan: &Plan, record: &RouterRecord) -> Option<Table> {
    if !plan.classes.iter().any(|class| matches!(class.traffic, Traffic::Program(_))) {
        return None;
    }
    let mut table = Table::new(&schema::FOUND_FLOWS);
    for (flow, found) in each(record) {
        let ends = found.ends;
        let (protocol, client, server) =
            (protocol(ends.protocol), ends.client.0.to_string(), ends.server.0.to_string());
        let head: [Cell<'_>; 9] = [
            u64::from(flow.number).into(),
            plan.classes[flow.class].name.as_str().into(),
            protocol.as_str().into(),
            client.as_str().into(),
            u64::from(ends.client.1).into(),
            server.as_str().into(),
            u64::from(ends.server.1).into(),
            found.first.as_ns().into(),
            found.last.as_ns().into(),
        ];
        table.push(head.into_iter().chain(flow.drained.into_iter().flat_map(way)));
    }
    Some(table)
}

/// Returns the cells of one direction.
fn way<'a>(books: FlowBooks) -> [Cell<'a>; 8] {
    [
        books.sent.packets.into(),
        books.sent.bytes.into(),
        books.delivered.packets.into(),
        books.delivered.bytes.into(),
        books.received_bytes.into(),
        books.delivered_ce.into(),
        books.dropped.into(),
        books.lost.into(),
    ]
}

/// Iterates over the flows that were found, with their counts.
fn each(record: &RouterRecord) -> impl Iterator<Item = (&FlowRecord, &crate::router::Found)> {
    record.flows.iter().filter_map(|flow| Some((flow, record.found[flow.class].get(flow.index as usize)?)))
}

/// Returns the counts of a flow in the form of `flows`: packets and network-layer bytes of both directions.
fn counts(books: [FlowBooks; 2]) -> FlowCounts<Option<u64>> {
    let sum = |of: fn(&FlowBooks) -> u64| Some(books.iter().map(of).sum());
    let unknown = None;
    FlowCounts {
        sent_segments: sum(|books| books.sent.packets),
        sent_bytes: sum(|books| books.sent.bytes),
        delivered_bytes: unknown,
        retransmitted_segments: unknown,
        timeouts: unknown,
        timeouts_at_client: unknown,
        syn_retransmissions: unknown,
        syn_ack_retransmissions: unknown,
        fast_retransmits: unknown,
        ecn_reductions: unknown,
        spurious_retransmissions: unknown,
        multiple_loss_windows: unknown,
        ..FlowCounts::ZERO
    }
}

/// Returns the name of a protocol, or its number (IANA, Assigned Internet Protocol Numbers).
fn protocol(number: u8) -> String {
    match number {
        1 => "icmp".into(),
        6 => "tcp".into(),
        17 => "udp".into(),
        58 => "icmpv6".into(),
        other => other.to_string(),
    }
}
