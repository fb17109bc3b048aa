//! `users`: users whose pages a file lists.

use std::sync::Arc;

use aqmlab_params::{Default, Kind, Origin, Value};
use aqmlab_traffic::{Count, Distribution, ListedUsers, Population};
use aqmlab_units::Instant;
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{CLASS, TCP};
use super::kind::{Carries, Draws, Opens, PageFetches, Part, SESSION, TCP_FLOW, Tcp, TrafficKind};
use super::pages::CONNECTIONS;
use super::reading::{Reading, list_file};
use crate::field::{Field, Form, Variant, default, required};
use crate::pass::{Pass, Section};
use crate::trace::UserVectors;

/// TCP connections of users whose pages a file lists, with one request at a time on each.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ListedPages {
    /// The file.
    #[serde(flatten)]
    pub vectors: Arc<UserVectors>,
    /// Largest number of connections that a user has open at the same time.
    pub parallel: u32,
    /// Whether connections stay open for the user's next page.
    pub keeps_connections: bool,
    /// The endpoints' parameters.
    pub tcp: Tcp,
    /// The mean time for which a user thinks.
    #[serde(skip)]
    think: Distribution,
    /// The number of connections that a user has open at the same time, apart from one, at most.
    #[serde(skip)]
    others: Distribution<Count>,
}

pub(super) const PARTS: &[Part] = &[("traffic.listed_users", ListedUsers::VERSION)];

const FIELDS: &[Field] = &[
    required(
        "file",
        Form::One(Kind::Text),
        "a CSV or Parquet file next to the scenario with one row per object, and the columns `user`, `page`, \
         `request_bytes`, `response_bytes` and, optionally, `think_s` or `think_ns` (from the end of the user's previous \
         page or, for the first page, from the beginning of the run; only on the row of a page's first object) and \
         `server_delay_s` or `server_delay_ns`",
    ),
    default(
        "parallel",
        Form::One(Kind::Integer { min: 1, max: 255 }),
        Default::Integer(6),
        "largest number of connections that a user has open at the same time",
    ),
    default(
        "connections",
        Form::One(Kind::Choice(CONNECTIONS)),
        Default::Choice("page"),
        "\"page\": connections close with their page; \"kept\": they stay open for the user's next page",
    ),
    TCP,
];

pub(super) const KIND: Variant = Variant {
    kind: "users",
    help: "TCP connections of users whose pages a file lists: the document of a page first, then its other objects, each \
           on whichever connection is free, with one request at a time on each",
    fields: &[CLASS, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<ListedPages>> {
    let vectors = vectors(pass, section)?;
    let starts = vectors.list.starts().collect();
    Some(Reading::listed(starts, move |pass, section| {
        let (parallel, connections) = (pass.integer(section, "parallel"), pass.value(section, "connections"));
        let tcp = pass.tcp(section)?;
        let (parallel, think) = (parallel? as u32, vectors.list.mean_think());
        Some(ListedPages {
            vectors,
            parallel,
            keeps_connections: connections? == Value::Choice("kept"),
            tcp,
            think: Distribution::Constant(think),
            others: Distribution::Constant(Count(u64::from(parallel) - 1)),
        })
    }))
}

/// Returns the file of a class, and adds what it contains to the effective parameters.
fn vectors(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Arc<UserVectors>> {
    let file = list_file(pass, section)?;
    match pass.traces.users(&file) {
        Ok(vectors) => {
            let rule = Origin::Derived("the rows of the file".into());
            let UserVectors { list, digest, .. } = &*vectors;
            pass.enter_at(section.sub("count"), &list.users(), rule.clone(), "users in the file");
            pass.enter_at(section.sub("pages"), &list.pages(), rule.clone(), "pages of all users");
            pass.enter_at(section.sub("objects"), &list.objects(), rule.clone(), "objects of all pages");
            pass.enter_at(section.sub("digest"), digest, rule, "SHA-256 of the file");
            Some(vectors)
        }
        Err(message) => {
            pass.error(&section.at("file"), &section.sub("file"), message);
            None
        }
    }
}

impl TrafficKind for ListedPages {
    fn carries(&self) -> Carries<'_> {
        Carries::Sessions(&self.tcp)
    }

    fn opens(&self) -> Opens<'_> {
        let pages = PageFetches { opened: &self.others, at_once: Some(&self.others), own_hosts: false };
        Opens::ByUsers { think: &self.think, pages: Some(pages) }
    }

    fn population(&self, starts: Vec<(Instant, u32)>, _draws: Draws<'_>) -> Population {
        let (list, parallel) = (self.vectors.list.clone(), self.parallel as usize);
        Population::ListedUsers(Box::new(ListedUsers::new(starts, list, parallel, self.keeps_connections)))
    }

    fn shares_connections(&self) -> bool {
        true
    }

    fn is_from_file(&self) -> bool {
        true
    }

    fn vectors_flaw(&self, class: &str) -> Option<String> {
        Some(format!(
            "which objects a connection of \"{class}\" carries depends on the network; classes of kind \"packmime\", \
             \"requests\" and \"trace\" have connection vectors"
        ))
    }

    fn flow_bytes(&self) -> u64 {
        u64::from(self.parallel) * (TCP_FLOW + SESSION)
    }

    fn smaller(&self) -> &'static str {
        "fewer users or fewer connections of each"
    }
}
