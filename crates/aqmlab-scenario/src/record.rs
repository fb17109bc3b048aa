//! The record of a run: samples at intervals, the state changes of chosen flows, and chosen individual
//! packets.

use aqmlab_params::Origin;
use aqmlab_units::Span;

use crate::class::ClassDraft;
use crate::language::{PACKET_EVENTS, PACKET_RECORD, RECORD, REQUEST_RECORD};
use crate::pass::{Pass, Section};
use crate::plan::{
    ClassPlan, FlowChoice, PacketChoice, PacketEvent, RecordPlan, Reference, References, RequestPlan,
};
use crate::suggest::{listed, no_such};
use crate::tree::{Node, Table, Tree};

const PACKETS: &str = "record.packets";
const REQUESTS: &str = "record.requests";

impl Pass<'_, '_> {
    /// Reads what to record, and how often. Flows and links are chosen later, by [`Pass::choices`],
    /// because they are not known yet.
    pub(crate) fn record(&mut self, file: &Section<'_>) -> Option<RecordPlan> {
        let nothing = Table::default();
        let section = match file.node("record") {
            Some(node) => self.section(node, "record", RECORD)?,
            None => Section {
                path: "record".to_string(),
                at: file.at.clone(),
                table: &nothing,
                fields: RECORD.iter().collect(),
            },
        };
        let (queues, flows) = (self.interval_of(&section, "queues"), self.interval_of(&section, "flows"));
        let limit = self.integer(&section, "limit");
        let requests = match section.node("requests") {
            Some(node) => self.request_record(node),
            None => Some(RequestPlan::DEFAULT),
        };
        Some(RecordPlan {
            queues: queues?,
            flows: flows?,
            trace: Vec::new(),
            packets: None,
            requests: requests?,
            limit: Some(limit?),
        })
    }

    /// Reads how requests are recorded.
    fn request_record(&mut self, node: &Node) -> Option<RequestPlan> {
        let section = self.section(node, REQUESTS, REQUEST_RECORD)?;
        let (each, first_band) = (self.flag(&section, "each"), self.bytes(&section, "first_band"));
        let (factor, bands) = (self.integer(&section, "band_factor"), self.integer(&section, "bands"));
        let sample = self.integer(&section, "sample");
        let plan = RequestPlan {
            each: each?,
            first_band: first_band?,
            band_factor: factor?,
            bands: u32::try_from(bands?).expect("the table of keys limits this number"),
            sample: u32::try_from(sample?).expect("the table of keys limits this number"),
        };
        if plan.last_band().is_none() {
            let message = format!(
                "{} bands with a factor of {}, beginning at {}, go beyond 2^63 bytes; write fewer bands or a smaller factor",
                plan.bands, plan.band_factor, plan.first_band
            );
            self.error(&node.at, REQUESTS, message);
            return None;
        }
        Some(plan)
    }

    fn interval_of(&mut self, section: &Section<'_>, key: &str) -> Option<Span> {
        let interval = self.span(section, key)?;
        if !interval.is_zero() && interval < Span::us(1) {
            let message =
                format!("interval `{interval}` is too short; write at least 1us, or 0s for no samples");
            self.error(&section.at(key), &section.sub(key), message);
            return None;
        }
        Some(interval)
    }

    /// Returns the record with the flows and links that it names.
    pub(crate) fn choices(
        &mut self,
        file: &Section<'_>,
        mut record: RecordPlan,
        classes: &[ClassDraft],
        links: &[String],
    ) -> Option<RecordPlan> {
        // Most records have no such rows, and so no limit.
        let limit = record.limit.take();
        let Some(node) = file.node("record") else { return Some(record) };
        // The keys of [record] have been checked already.
        let section = self.open_section(node, "record", RECORD)?;
        if section.node("trace").is_some() {
            record.trace = self.chosen_flows(&section, "trace", classes)?;
            self.all_tcp(&section, &record.trace, classes)?;
        }
        if let Some(node) = section.node("requests")
            && !classes.iter().any(|class| class.plan.traffic.makes_requests())
        {
            let message =
                "no class makes requests; leave out this table, or add traffic that a server answers";
            self.error(&node.at, REQUESTS, message);
            return None;
        }
        if let Some(node) = section.node("packets") {
            record.packets = Some(self.packet_choice(node, classes, links)?);
        }
        record.limit = limit.filter(|_| !record.trace.is_empty() || record.packets.is_some());
        Some(record)
    }

    /// Checks that traced flows have a congestion window.
    fn all_tcp(&mut self, section: &Section<'_>, trace: &[FlowChoice], classes: &[ClassDraft]) -> Option<()> {
        for choice in trace {
            let plan = &classes[*choice.class].plan;
            if !plan.is_tcp() {
                let message = format!("the flows of \"{}\" have no congestion window to trace", plan.name);
                self.error(&section.at("trace"), "record.trace", message);
                return None;
            }
        }
        Some(())
    }

    fn packet_choice(
        &mut self,
        node: &Node,
        classes: &[ClassDraft],
        links: &[String],
    ) -> Option<PacketChoice> {
        let section = self.section(node, PACKETS, PACKET_RECORD)?;
        let (by_link, by_flow) = (section.node("links").is_some(), section.node("flows").is_some());
        if !by_link && !by_flow {
            self.error(&node.at, PACKETS, "no packets are chosen; write `links`, `flows` or both");
            return None;
        }
        let names: Vec<&str> = links.iter().map(String::as_str).collect();
        let chosen = if by_link { Some(self.indices_of(&section, "links", "link", &names)?) } else { None };
        let flows = if by_flow { Some(self.chosen_flows(&section, "flows", classes)?) } else { None };
        let (from, until) = (self.span(&section, "from"), self.span(&section, "until"));
        if let (Some(from), Some(until)) = (from, until)
            && until < from
        {
            let message = format!("the end `{until}` is before the beginning, which is `{from}`");
            self.error(&section.at("until"), &section.sub("until"), message);
            return None;
        }
        let chosen = chosen.unwrap_or_else(|| paths_of(flows.as_deref().unwrap_or_default(), classes));
        Some(PacketChoice {
            links: References::new(chosen, &names),
            events: self.packet_events(&section, by_flow)?,
            flows,
            from: from?,
            until,
        })
    }

    /// Returns the events that `packets` selects. Some events happen at hosts, where packets are
    /// recorded only if flows are chosen.
    fn packet_events(&mut self, section: &Section<'_>, at_hosts: bool) -> Option<Vec<PacketEvent>> {
        if section.node("events").is_none() {
            return Some(PacketEvent::ALL.to_vec());
        }
        let chosen = self.indices_of(section, "events", "event", PACKET_EVENTS)?;
        let events: Vec<_> = chosen.into_iter().map(|i| PacketEvent::ALL[i]).collect();
        if let Some(event) = events.iter().find(|e| e.is_at_a_host() && !at_hosts) {
            let message = format!("\"{}\" happens at hosts; write `flows` as well", event.name());
            self.error(&section.at("events"), &section.sub("events"), message);
            return None;
        }
        Some(events)
    }

    /// Returns the list at a key, which must not be empty.
    fn list<'n>(&mut self, section: &Section<'n>, key: &str, of: &str) -> Option<&'n [Node]> {
        let node = section.node(key)?;
        match &node.value {
            Tree::List(items) if !items.is_empty() => return Some(items),
            Tree::List(_) => self.error(&node.at, &section.sub(key), format!("the list is empty; name {of}")),
            other => {
                let message = format!(
                    "`{}` is {}; write a list that names {of}",
                    self.report.quote(&node.at),
                    other.what()
                );
                self.error(&node.at, &section.sub(key), message);
            }
        }
        None
    }

    /// Returns the names in a list, or no names if the list is not written. The set of valid names
    /// is not known here.
    pub(crate) fn names(&mut self, section: &Section<'_>, key: &str, what: &str) -> Option<Vec<String>> {
        if section.node(key).is_none() {
            return Some(Vec::new());
        }
        let mut names = Vec::new();
        for item in self.list(section, key, &format!("at least one {what}"))? {
            match &item.value {
                Tree::Text(name) => names.push(name.clone()),
                other => {
                    let message = format!(
                        "`{}` is {}; write the name of a {what}",
                        self.report.quote(&item.at),
                        other.what()
                    );
                    self.error(&item.at, &section.sub(key), message);
                    return None;
                }
            }
        }
        Some(names)
    }

    /// Returns the indices in `names` of the names in a list, in ascending order.
    fn indices_of(
        &mut self,
        section: &Section<'_>,
        key: &str,
        what: &str,
        names: &[&str],
    ) -> Option<Vec<usize>> {
        let path = section.sub(key);
        let mut found = Vec::new();
        for item in self.list(section, key, &format!("at least one {what}"))? {
            found.push(self.index_of(item, &path, what, names)?);
        }
        found.sort_unstable();
        found.dedup();
        self.enter(section, key, &words(found.iter().map(|&i| names[i])), Origin::Given);
        Some(found)
    }

    fn index_of(&mut self, node: &Node, path: &str, what: &str, names: &[&str]) -> Option<usize> {
        let Tree::Text(name) = &node.value else {
            let message = format!(
                "`{}` is {}; write the name of a {what}",
                self.report.quote(&node.at),
                node.value.what()
            );
            self.error(&node.at, path, message);
            return None;
        };
        let found = names.iter().position(|n| n == name);
        if found.is_none() {
            self.error(&node.at, path, no_such(what, name, names.iter().copied()));
        }
        found
    }

    /// Returns the flows that a list names.
    fn chosen_flows(
        &mut self,
        section: &Section<'_>,
        key: &str,
        classes: &[ClassDraft],
    ) -> Option<Vec<FlowChoice>> {
        let mut choices = Vec::new();
        for item in self.list(section, key, "at least one class")? {
            choices.push(self.flows_of_class(item, &section.sub(key), classes)?);
        }
        let shown = choices.iter().map(|choice| match &choice.indices {
            None => format!("{:?}", choice.class.names()),
            Some(indices) => {
                format!("{{ class = {:?}, flows = {indices:?} }}", choice.class.names())
            }
        });
        let shown = format!("[{}]", shown.collect::<Vec<_>>().join(", "));
        self.enter(section, key, &shown, Origin::Given);
        Some(choices)
    }

    /// Returns the flows that `item` chooses: all flows of the class that it names, or, if it is a
    /// table with `class` and `flows`, the flows that it lists.
    fn flows_of_class(&mut self, item: &Node, path: &str, classes: &[ClassDraft]) -> Option<FlowChoice> {
        const WHAT: &str = "class of traffic";
        let names: Vec<&str> = classes.iter().map(|c| c.plan.name.as_str()).collect();
        let Tree::Table(table) = &item.value else {
            let class = self.index_of(item, path, WHAT, &names)?;
            self.check_traceable(item, path, &classes[class].plan)?;
            return Some(FlowChoice { class: Reference::new(class, &names), indices: None });
        };
        if let Some(entry) = table.entries.iter().find(|e| !["class", "flows"].contains(&e.key.as_str())) {
            let message =
                format!("unknown key {:?}; the keys here are {}", entry.key, listed(["class", "flows"]));
            self.error(&entry.key_at, path, message);
            return None;
        }
        let (Some(class), Some(flows)) = (table.get("class"), table.get("flows")) else {
            let message = "write chosen flows as `{ class = \"ftp\", flows = [0, 1] }`";
            self.error(&item.at, path, message);
            return None;
        };
        let class = self.index_of(class, path, WHAT, &names)?;
        self.check_traceable(item, path, &classes[class].plan)?;
        let indices = self.flow_indices(flows, path, classes[class].plan.count)?;
        Some(FlowChoice { class: Reference::new(class, &names), indices: Some(indices) })
    }

    /// Checks that the flows are single connections, the only ones that can be followed individually.
    fn check_traceable(&mut self, item: &Node, path: &str, class: &ClassPlan) -> Option<()> {
        if class.is_list() {
            return Some(());
        }
        let message = format!(
            "the flows of \"{}\" have many connections each, which cannot be followed one by one; choose another class",
            class.name
        );
        self.error(&item.at, path, message);
        None
    }

    fn flow_indices(&mut self, node: &Node, path: &str, count: u64) -> Option<Vec<u64>> {
        let items = match &node.value {
            Tree::List(items) if !items.is_empty() => items.as_slice(),
            _ => &[],
        };
        let index = |item: &Node| match item.value {
            Tree::Integer(i) => u64::try_from(i).ok().filter(|&i| i < count),
            _ => None,
        };
        let indices: Option<Vec<u64>> = items.iter().map(index).collect();
        let Some(mut indices) = indices.filter(|indices| !indices.is_empty()) else {
            let message = format!(
                "`{}` names no flows; write a list of whole numbers from 0 to {}",
                self.report.quote(&node.at),
                count - 1
            );
            self.error(&node.at, path, message);
            return None;
        };
        indices.sort_unstable();
        indices.dedup();
        Some(indices)
    }
}

/// Returns all links that packets of these flows pass, in both directions.
fn paths_of(flows: &[FlowChoice], classes: &[ClassDraft]) -> Vec<usize> {
    let plans = flows.iter().map(|choice| &classes[*choice.class].plan);
    let mut links: Vec<usize> = plans.flat_map(ClassPlan::links_both_ways).collect();
    links.sort_unstable();
    links.dedup();
    links
}

/// Returns a list of names in the notation of a scenario.
fn words<'n>(names: impl Iterator<Item = &'n str>) -> String {
    format!("[{}]", names.map(|n| format!("{n:?}")).collect::<Vec<_>>().join(", "))
}

impl ClassPlan {
    /// Returns whether the flows of the class send over TCP.
    pub fn is_tcp(&self) -> bool {
        self.traffic.tcp().is_some()
    }
}
