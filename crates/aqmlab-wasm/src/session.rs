//! A run in parts: a host asks in JSON and is answered in JSON.

use std::sync::atomic::AtomicU64;

use aqmlab_qdisc::registry::{self, Registry};
use aqmlab_scenario::{
    ClassPlan, Experiment, Limits, LinkPlan, Plan, ScenarioError, described, parse_within,
};
use aqmlab_sim::{Control, Stepped};
use aqmlab_units::{Bytes, Instant};
use serde_json::{Value, json};

use crate::picture::Picture;
use crate::{NoFiles, identity};

/// The state of a host's conversation with the module: at most one run.
#[derive(Default)]
pub struct Session {
    run: Option<Run>,
}

/// A run that has begun, with what its picture has shown so far.
struct Run {
    // The plan lives as long as the module: a host that wants the memory back makes a new instance of the module.
    plan: &'static Plan,
    seed: u64,
    stepped: Stepped<'static>,
    picture: Picture,
    ended: bool,
}

impl Session {
    /// Answers a request. Both are JSON objects; `do` says what is requested:
    ///
    /// - `catalogue`: the disciplines and the parameters of TCP, as `aqmlab aqm show --json` describes them.
    /// - `open`, with the scenario `text`, and perhaps `seed`, `arm` (names), `link` (the name of the link of the
    ///   picture), `packets` (whether the picture shows each packet there) and `memory` (a cap in bytes): begins a
    ///   run and describes it.
    /// - `advance`, with `until_ns` and `most`: runs up to that time, but handles at most so many events. The answer
    ///   says when the next event is due, and whether the run has ended.
    /// - `look`: returns what is new in the picture since the last look, see [`Picture`].
    /// - `finish`: runs to the end, and returns the digest of each table of the recording.
    ///
    /// Whatever cannot be done is answered by a list `problems`, each with a `message` and, in a scenario, `line`,
    /// `column` and `path`.
    pub fn answer(&mut self, request: &str) -> String {
        let request: Value = match serde_json::from_str(request) {
            Ok(request) => request,
            Err(error) => return problem(error).to_string(),
        };
        let answer = match request["do"].as_str() {
            Some("catalogue") => Ok(catalogue()),
            Some("open") => self.open(&request),
            Some("advance") => self.advance(&request),
            Some("look") => self.look(),
            Some("finish") => self.finish(),
            _ => Err(problem("`do` is one of catalogue, open, advance, look, finish")),
        };
        answer.unwrap_or_else(|problems| problems).to_string()
    }

    fn open(&mut self, request: &Value) -> Result<Value, Value> {
        self.run = None;
        let text = request["text"].as_str().ok_or_else(|| problem("`text` is the text of a scenario"))?;
        let cap = request["memory"].as_u64().unwrap_or(0);
        let limits = if cap > 0 { Limits { memory: Bytes::new(cap) } } else { Limits::default() };
        let experiment = parse_within(text, "scenario.toml", limits, &NoFiles).map_err(|e| problems(&e))?;
        let plan = match request["arm"].as_str() {
            None => &experiment.arms[0],
            Some(name) => experiment
                .arms
                .iter()
                .find(|plan| plan.arm == name)
                .ok_or_else(|| problem(format!("the scenario has no arm `{name}`")))?,
        };
        let link = match request["link"].as_str() {
            None => 0,
            Some(name) => plan
                .links
                .iter()
                .position(|link| link.name == name)
                .ok_or_else(|| problem(format!("the scenario has no link `{name}`")))?,
        };
        let seed = request["seed"].as_u64().unwrap_or(experiment.seeds[0]);
        let plan: &'static Plan = Box::leak(Box::new(plan.clone()));
        let looks = if request["packets"] == json!(true) { vec![link] } else { vec![] };
        let control = Control { memory_cap: AtomicU64::new(cap), ..Control::default() };
        let stepped = Stepped::new(plan, seed, control, &Registry::builtin(), looks).map_err(problem)?;
        let about = about(&experiment, plan, seed, link);
        self.run = Some(Run { plan, seed, stepped, picture: Picture::new(plan, link), ended: false });
        Ok(about)
    }

    fn advance(&mut self, request: &Value) -> Result<Value, Value> {
        let run = self.run.as_mut().ok_or_else(|| problem("no run is open"))?;
        let until = request["until_ns"].as_u64().ok_or_else(|| problem("`until_ns` is a time"))?;
        let most = request["most"].as_u64().unwrap_or(u64::MAX);
        match run.stepped.advance(Instant::from_ns(until), most) {
            Ok(ended) => {
                run.ended = ended;
                run.picture.follow(run.stepped.take_seen());
                let next = run.stepped.next_at().map(|at| at.as_ns());
                Ok(json!({ "next_ns": next, "ended": ended }))
            }
            Err(error) => {
                self.run = None;
                Err(problem(error))
            }
        }
    }

    fn look(&mut self) -> Result<Value, Value> {
        let run = self.run.as_mut().ok_or_else(|| problem("no run is open"))?;
        Ok(run.picture.news(&mut run.stepped, run.ended))
    }

    fn finish(&mut self) -> Result<Value, Value> {
        let run = self.run.take().ok_or_else(|| problem("no run is open"))?;
        let recording = run.stepped.finish().map_err(problem)?;
        Ok(identity(&recording, &run.plan.arm, run.seed))
    }
}

fn problem(message: impl ToString) -> Value {
    json!({ "problems": [{ "message": message.to_string() }] })
}

fn problems(error: &ScenarioError) -> Value {
    let one = |p: &aqmlab_scenario::Problem| json!({ "line": p.line, "column": p.column, "path": p.path, "message": p.message });
    json!({ "problems": error.problems.iter().map(one).collect::<Vec<_>>() })
}

fn catalogue() -> Value {
    json!({
        "disciplines": registry::catalogue().iter().map(described::discipline).collect::<Vec<_>>(),
        "tcp": aqmlab_transport::Profile::TABLE.iter().map(described::parameter).collect::<Vec<_>>(),
        "profiles": aqmlab_transport::profiles().iter().map(|profile| profile.name).collect::<Vec<_>>(),
    })
}

/// Describes a run: what there is to choose from, and what was chosen.
fn about(experiment: &Experiment, plan: &Plan, seed: u64, link: usize) -> Value {
    let name_of = |plan: &Plan| plan.arm.clone();
    let of_link = |link: &LinkPlan| {
        json!({ "name": link.name, "rate_bps": link.rate.as_bps(), "delay_ns": link.delay.as_ns(),
            "queue": link.queue.kind() })
    };
    let of_class = |class: &ClassPlan| json!({ "name": class.name, "flows": class.count });
    let parameter = |of: &aqmlab_scenario::Parameter| json!({ "path": of.path, "value": of.value, "origin": of.origin.to_string() });
    json!({
        "title": experiment.title,
        "question": experiment.question,
        "warnings": experiment.warnings,
        "arms": experiment.arms.iter().map(name_of).collect::<Vec<_>>(),
        "seeds": [experiment.seeds.first(), experiment.seeds.last()],
        "arm": plan.arm,
        "seed": seed,
        "link": link,
        "end_ns": plan.stop.at.as_ns(),
        "warmup_ns": plan.warmup.as_ns(),
        "links": plan.links.iter().map(of_link).collect::<Vec<_>>(),
        "classes": plan.classes.iter().map(of_class).collect::<Vec<_>>(),
        "parameters": plan.parameters.iter().map(parameter).collect::<Vec<_>>(),
    })
}
