//! On/off sources, and connections from a trace.

use std::sync::Arc;

use aqmlab_params::{Origin, Value};
use aqmlab_traffic::{Begin, Bursty, Distribution, OnOff};
use aqmlab_units::text::Size;

use crate::pass::{Pass, Section};
use crate::plan::{Sessions, Workload};
use crate::trace::{OnUnsupported, Schedule, Trace};

impl Pass<'_, '_> {
    /// Reads a class of `kind = "on_off_tcp"`, whose connections are greedy or send bursts.
    pub(crate) fn on_off_tcp(&mut self, section: &Section<'_>) -> Option<Workload> {
        let off = self.drawn(section, "off");
        let begin = self.begin(section);
        let tcp = self.tcp(section);
        let sessions = match (section.node("on"), section.node("burst")) {
            (Some(_), None) => {
                let on = self.drawn(section, "on");
                Sessions::Greedy(self.on_off(section, on?, off?, begin?)?)
            }
            (None, Some(_)) => {
                let sizes = self.drawn(section, "burst");
                Sessions::Bursts(self.bursty(section, sizes?, off?, begin?)?)
            }
            (None, None) => {
                let message = "neither `on` (duration of greedy periods) nor `burst` (bytes) is written; write one of them";
                self.error(&section.at, &section.path, message);
                return None;
            }
            (Some(_), Some(node)) => {
                self.error(&node.at, &section.sub("burst"), "`on` is written as well; keep one of them");
                return None;
            }
        };
        let (tcp, tcp_settings) = tcp?;
        Some(Workload::Sessions { sessions, tcp: Box::new(tcp), tcp_settings })
    }

    /// Reads `on_off_udp`.
    pub(crate) fn on_off_udp(&mut self, section: &Section<'_>) -> Option<Workload> {
        let (rate, size) = (self.rate(section, "rate"), self.value(section, "size"));
        let (on, off) = (self.drawn(section, "on"), self.drawn(section, "off"));
        let (begin, ecn) = (self.begin(section), self.ecn(section));
        let Value::Size(Size::Bytes(size)) = size? else { unreachable!("a packet size is in bytes") };
        let times = self.on_off(section, on?, off?, begin?)?;
        Some(Workload::OnOff { rate: rate?, size, times, ecn: ecn? })
    }

    fn begin(&mut self, section: &Section<'_>) -> Option<Begin> {
        match self.value(section, "begin")? {
            Value::Choice("off") => Some(Begin::Off),
            Value::Choice("stationary") => Some(Begin::Stationary),
            _ => Some(Begin::On),
        }
    }

    fn on_off(
        &mut self,
        section: &Section<'_>,
        on: Distribution,
        off: Distribution,
        begin: Begin,
    ) -> Option<Arc<OnOff>> {
        let times = OnOff { on, off, begin };
        if times.on.mean().is_zero() && times.off.mean().is_zero() {
            let message = "on and off periods are both zero; write a longer time for one of them";
            self.error(&section.at("off"), &section.sub("off"), message);
            return None;
        }
        for (key, of) in [("on", &times.on), ("off", &times.off)] {
            if begin == Begin::Stationary && !of.has_residual() {
                let message = format!(
                    "`begin = \"stationary\"` needs `{key}` to be constant, exponential without offset or Pareto \
                     without `max`; write another `begin`"
                );
                self.error(&section.at("begin"), &section.sub("begin"), message);
                return None;
            }
        }
        Some(Arc::new(times))
    }

    fn bursty(
        &mut self,
        section: &Section<'_>,
        sizes: Distribution<aqmlab_units::Bytes>,
        off: Distribution,
        begin: Begin,
    ) -> Option<Arc<Bursty>> {
        if begin == Begin::Stationary {
            let message = "`begin = \"stationary\"` needs the duration of a burst, which depends on the \
                           network; write \"on\" or \"off\"";
            self.error(&section.at("begin"), &section.sub("begin"), message);
            return None;
        }
        Some(Arc::new(Bursty { sizes, off, begins_off: begin == Begin::Off }))
    }

    /// Returns the name of the file that lists what a class of traffic sends.
    fn list_file(&mut self, section: &Section<'_>) -> Option<String> {
        if section.node("file").is_some() {
            return self.text(section, "file");
        }
        let message = "`file` is missing; write the name of a CSV or Parquet file next to the scenario";
        self.error(&section.at, &section.path, message);
        None
    }

    /// Returns the schedule of a class, and adds the numbers of its flows and packets to the
    /// effective parameters.
    pub(crate) fn schedule(&mut self, section: &Section<'_>) -> Option<Arc<Schedule>> {
        let file = self.list_file(section)?;
        match self.traces.schedule(&file) {
            Ok(schedule) => {
                let rule = Origin::Derived("the rows of the schedule".into());
                self.enter_at(section.sub("count"), &schedule.flows(), rule.clone(), "flows of the schedule");
                let help = "packets of the schedule";
                self.enter_at(section.sub("packets"), &schedule.packets(), rule.clone(), help);
                let help = "SHA-256 of the schedule's file";
                self.enter_at(section.sub("digest"), &schedule.digest, rule, help);
                Some(schedule)
            }
            Err(message) => {
                self.error(&section.at("file"), &section.sub("file"), message);
                None
            }
        }
    }

    /// Returns the trace of a class, and adds the number of its connections to the effective
    /// parameters.
    pub(crate) fn trace(&mut self, section: &Section<'_>) -> Option<Arc<Trace>> {
        let file = self.list_file(section)?;
        let class = match section.node("class") {
            Some(_) => Some(self.name(section, "class")?),
            None => None,
        };
        if let Some(class) = &class {
            self.enter(section, "class", class, Origin::Given);
        }
        let unsupported = match self.value(section, "on_unsupported")? {
            Value::Choice("skip") => OnUnsupported::Skip,
            _ => OnUnsupported::Refuse,
        };
        match self.traces.read(&file, class.as_deref(), unsupported) {
            Ok(trace) => {
                let rule = Origin::Derived("the rows of the trace".into());
                let help = "connections of the trace";
                self.enter_at(section.sub("count"), &trace.starts().len(), rule.clone(), help);
                for (what, count) in trace.left_out.kinds() {
                    let help = "connections of the file that cannot be expressed";
                    self.enter_at(section.sub(&format!("left_out.{what}")), &count, rule.clone(), help);
                }
                self.enter_at(section.sub("digest"), &trace.digest, rule, "SHA-256 of the trace's file");
                Some(trace)
            }
            Err(message) => {
                self.error(&section.at("file"), &section.sub("file"), message);
                None
            }
        }
    }

    /// Returns the workload of a trace.
    pub(crate) fn traced(&mut self, section: &Section<'_>, trace: Arc<Trace>) -> Option<Workload> {
        let (tcp, tcp_settings) = self.tcp(section)?;
        let own_delays = trace.mean_delays().is_some() && section.node("rtt").is_none();
        let sessions = Sessions::Trace { trace, own_delays };
        Some(Workload::Sessions { sessions, tcp: Box::new(tcp), tcp_settings })
    }
}
