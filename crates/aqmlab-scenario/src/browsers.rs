//! `browsers`: users who fetch one page at a time, with one request at a time on each connection.
//! The distributions come from a model in a separate file, unless the class gives others.

use std::fmt::Display;
use std::sync::Arc;

use aqmlab_traffic::{BrowserPlan, Count, Distribution, ExchangePlan};
use aqmlab_units::{Bytes, Span};

use crate::drawn::{Times, Written};
use crate::error::Report;
use crate::language::{BROWSER_MODEL, MODEL_FILE};
use crate::pass::{Pass, Section};
use crate::plan::{PopulationPlan, Sessions, Workload};
use crate::tree;

/// The default model of a class.
const STAND_IN: (&str, &str) = ("aqmlab's stand-in", include_str!("../models/unc_stand_in.toml"));

/// The distributions of a class: those of a model, or those that the class gives in their place.
#[derive(Clone)]
struct Model {
    request: Distribution<Bytes>,
    response: Distribution<Bytes>,
    think: Distribution,
    embedded: Distribution<Count>,
    servers: Distribution<Count>,
    parallel: Distribution<Count>,
    persistent: f64,
    per_persistent: Distribution<Count>,
}

impl Pass<'_, '_> {
    /// Returns the users of a `browsers` class, and their number.
    pub(crate) fn browsers(&mut self, section: &Section<'_>) -> Option<(PopulationPlan, u64)> {
        let (users, model) = (self.integer(section, "users"), self.model_of(section));
        let Model { think, embedded, servers, parallel, persistent, per_persistent, .. } = model?;
        let plan = BrowserPlan { embedded, servers, parallel, persistent, per_persistent, think };
        Some((PopulationPlan::Browsers(Arc::new(plan)), users?))
    }

    /// Returns what the connections of a `browsers` class carry. The user determines how many exchanges each
    /// connection carries.
    pub(crate) fn browsed(&mut self, section: &Section<'_>) -> Option<Workload> {
        let server_delay = self.drawn(section, "server_delay");
        let (tcp, model) = (self.tcp(section), self.model_of(section));
        let Model { request, response, .. } = model?;
        let exchanges = ExchangePlan {
            request,
            response,
            per_connection: Distribution::Constant(Count(1)),
            pause: Distribution::Constant(Span::ZERO),
            server_delay: server_delay?,
        };
        let (tcp, tcp_settings) = tcp?;
        let sessions = Sessions::Requests(Arc::new(exchanges));
        Some(Workload::Sessions { sessions, tcp: Box::new(tcp), tcp_settings })
    }

    /// Returns the distributions of a class.
    fn model_of(&mut self, section: &Section<'_>) -> Option<Model> {
        let (name, model) = match section.node("model") {
            None => {
                self.derive(section, "model", &STAND_IN.0, "no `model` is written");
                let (name, text) = STAND_IN;
                (name.to_string(), self.read_model(name, text).expect("a test checks the stand-in"))
            }
            Some(_) => {
                let file = self.text(section, "model")?;
                let read = self.traces.text("model of browsers", &file);
                match read.and_then(|text| self.read_model(&file, &text)) {
                    Ok(model) => (file, model),
                    Err(message) => {
                        self.error(&section.at("model"), &section.sub("model"), message);
                        return None;
                    }
                }
            }
        };
        self.overlaid(section, &name, model)
    }

    /// Reads a model from `text`, the content of `file`.
    ///
    /// # Errors
    /// Returns everything that is wrong with the text, with line numbers.
    fn read_model(&self, file: &str, text: &str) -> Result<Model, String> {
        let mut report = Report::new(text);
        let tree = tree::read(text, &mut report);
        let mut pass = Pass::new(&mut report, self.traces, self.catalogue);
        let model = tree.and_then(|tree| pass.whole_model(&tree));
        match (report.finish(file), model) {
            (Ok(_), Some(model)) => Ok(model),
            (Err(error), _) => Err(error.to_string().replace('\n', "; ")),
            (Ok(_), None) => unreachable!("an invalid model has been reported"),
        }
    }

    /// Reads a model, in which every key is required.
    fn whole_model(&mut self, root: &tree::Node) -> Option<Model> {
        let section = self.section(root, "", MODEL_FILE.iter().chain(BROWSER_MODEL))?;
        for field in BROWSER_MODEL.iter().filter(|field| section.node(field.name).is_none()) {
            let message =
                format!("`{}` is missing ({}); a model of browsers must have it", field.name, field.help);
            self.error(&section.at, &section.path, message);
        }
        let (title, source) = (self.text(&section, "title"), self.text(&section, "source"));
        let (request, response) = (self.drawn(&section, "request"), self.drawn(&section, "response"));
        let (think, embedded) = (self.drawn(&section, "think"), self.drawn(&section, "embedded"));
        let (servers, parallel) = (self.drawn(&section, "servers"), self.drawn(&section, "parallel"));
        let persistent = self.number(&section, "persistent");
        let per_persistent = self.drawn(&section, "per_persistent");
        title.and(source)?;
        Some(Model {
            request: request?,
            response: response?,
            think: think?,
            embedded: embedded?,
            servers: servers?,
            parallel: parallel?,
            persistent: persistent?,
            per_persistent: per_persistent?,
        })
    }

    /// Returns `model` with the distributions that the class itself gives in place of the model's
    /// own.
    fn overlaid(&mut self, section: &Section<'_>, name: &str, model: Model) -> Option<Model> {
        let of = &format!("as {name} has it");
        let (request, response) = (
            self.or(section, "request", model.request, of),
            self.or(section, "response", model.response, of),
        );
        let (think, embedded) =
            (self.or(section, "think", model.think, of), self.or(section, "embedded", model.embedded, of));
        let (servers, parallel) = (
            self.or(section, "servers", model.servers, of),
            self.or(section, "parallel", model.parallel, of),
        );
        let per_persistent = self.or(section, "per_persistent", model.per_persistent, of);
        let persistent = match section.node("persistent") {
            Some(_) => self.number(section, "persistent"),
            None => {
                self.derive(section, "persistent", &model.persistent, of);
                Some(model.persistent)
            }
        };
        Some(Model {
            request: request?,
            response: response?,
            think: think?,
            embedded: embedded?,
            servers: servers?,
            parallel: parallel?,
            persistent: persistent?,
            per_persistent: per_persistent?,
        })
    }

    /// Returns the distribution written at a key, or the model's if the key is not written.
    fn or<T: Written + Display>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        model: Distribution<T>,
        rule: &str,
    ) -> Option<Distribution<T>> {
        if section.node(key).is_some() {
            return self.drawn(section, key);
        }
        // The mean is more informative here than a table of a hundred points.
        let text = match &model {
            Distribution::Empirical(points) => {
                format!("{} points with mean {}", points.len(), model.mean())
            }
            other => Times(other).to_string(),
        };
        self.derive(section, key, &text, rule);
        Some(model)
    }
}
