//! `program`: commands that run in the hosts of a live run, and whatever they send.

use std::ops::Not;

use aqmlab_params::{Default, Kind, Origin, Value};
use aqmlab_units::Span;
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::CLASS;
use super::kind::{Carries, Part, Tcp, TrafficKind};
use super::reading::Reading;
use crate::field::{Field, Form, Variant, default, ruled};
use crate::language::{MOMENT, STARTS};
use crate::pass::{Pass, Section};
use crate::tree::{Node, Tree};

/// Commands that run in the hosts of a class, and the rules by which they start and end.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Program {
    /// The command in the clients' host: the program and its arguments. Empty if interfaces are in the place of the hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub client: Vec<String>,
    /// The interfaces of the machine that are in the place of the clients' and the servers' host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<[String; 2]>,
    /// The command in the servers' host, which starts before the run, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Vec<String>>,
    /// Number of clients, each a process of its own.
    pub clients: u64,
    /// Whether a command is one text for `/bin/sh -c` instead of a list of arguments.
    #[serde(skip_serializing_if = "Not::not")]
    pub shell: bool,
    /// When the server counts as ready.
    pub ready: Ready,
    /// The longest time that the server may take until then.
    #[serde(rename = "ready_within_ns")]
    pub ready_within: Span,
    /// The signal that asks a program to end: `TERM`.
    pub signal: &'static str,
    /// The time for which a program may continue after that signal.
    #[serde(rename = "grace_ns")]
    pub grace: Span,
    /// Whether each connection has delays of its own, drawn for it; otherwise those of the class's first flow
    /// apply to all.
    #[serde(skip_serializing_if = "Not::not")]
    pub delays_by_connection: bool,
    /// Whether the run ends when all clients have ended.
    #[serde(skip_serializing_if = "Not::not")]
    pub ends_run: bool,
    /// Whether the servers' host leads to the networks of the machine.
    #[serde(skip_serializing_if = "Not::not")]
    pub uplink: bool,
    /// The form of the results that each client writes, which become metrics.
    #[serde(skip_serializing_if = "is_default")]
    pub results: &'static str,
    /// Settings of the hosts' kernels.
    pub tcp: Tcp,
}

/// When a server counts as ready.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(deny_unknown_fields)]
pub enum Ready {
    /// As soon as it has been started.
    Started,
    /// When a socket of its host is bound to the class's port: a TCP socket that listens, or a UDP socket.
    Listens,
    /// When such a socket is bound to any port.
    ListensAnywhere,
    /// When it has written a line that contains this text.
    Line(String),
}

/// What programs send has no version of ours.
pub(super) const PARTS: &[Part] = &[];

/// Most flows of a class that have a row each.
const MOST_FLOWS: u64 = 65_536;

/// Most clients of a class: each is a process of its own.
const MOST_CLIENTS: u64 = 1000;

/// The forms of results that the metrics of programs read.
const RESULTS: &[&str] = &[NAMED, "iperf3", "curl", "netperf", "flent", "qlog"];
/// Values with names, in a JSON object.
const NAMED: &str = "json";

fn is_default(results: &&'static str) -> bool {
    *results == NAMED
}

const SIGNALS: &[&str] = &["TERM", "INT", "HUP", "QUIT", "KILL"];

const FIELDS: &[Field] = &[
    ruled("client", Form::Command, "required without `left` and `right`", "the command in the clients' host"),
    ruled("server", Form::Command, "none", "the command in the servers' host, which starts before the run"),
    default(
        "count",
        Form::One(Kind::Integer { min: 1, max: MOST_CLIENTS }),
        Default::Integer(1),
        "the number of clients, each a process of its own",
    ),
    default("start", Form::Drawn(&STARTS), Default::Span(Span::ZERO), "when each client starts"),
    default(
        "shell",
        Form::One(Kind::Flag),
        Default::Flag(false),
        "`true`: each command is a list of one text, which `/bin/sh -c` executes",
    ),
    default(
        "ready",
        Form::One(Kind::Choice(&["listens", "started"])),
        Default::Choice("listens"),
        "when the server is ready: a socket of its host is bound to `port` (to any port if there is no `port`), or the \
         server has been started",
    ),
    ruled(
        "ready_line",
        Form::One(Kind::Text),
        "as `ready` says",
        "the server is ready when it has written a line that contains this text",
    ),
    default(
        "ready_within",
        Form::One(MOMENT),
        Default::Span(Span::s(10)),
        "the run fails if the server is not ready within this time",
    ),
    default(
        "signal",
        Form::One(Kind::Choice(SIGNALS)),
        Default::Choice("TERM"),
        "the signal that asks a program to end at `stop` or at the end of the run",
    ),
    default(
        "grace",
        Form::One(MOMENT),
        Default::Span(Span::s(2)),
        "a program that is still running this long after the signal is killed",
    ),
    default(
        "delays",
        Form::One(Kind::Choice(&["host", "connection"])),
        Default::Choice("host"),
        "\"host\": one value of `rtt` and of the delay stages, drawn once, applies to all flows; \"connection\": each \
         flow has its own",
    ),
    default(
        "flows",
        Form::One(Kind::Integer { min: 1, max: MOST_FLOWS }),
        Default::Integer(4096),
        "the largest number of flows that have a row each; packets of any more flows belong to no flow",
    ),
    default(
        "ends_run",
        Form::One(Kind::Flag),
        Default::Flag(false),
        "`true`: the run ends when all clients have ended, if `duration` does not end it earlier",
    ),
    default(
        "uplink",
        Form::One(Kind::Flag),
        Default::Flag(false),
        "`true`: the clients reach the networks of this machine, through the scenario's network",
    ),
    default(
        "results",
        Form::One(Kind::Choice(RESULTS)),
        Default::Choice(NAMED),
        "the form of what each client writes to `AQMLAB_METRICS`, to its output or into files: its values become metrics \
         `program_NAME`",
    ),
    ruled(
        "left",
        Form::One(Kind::Text),
        "none",
        "the interface of this machine that takes the place of the clients' host; needs root, and `right`",
    ),
    ruled(
        "right",
        Form::One(Kind::Text),
        "none",
        "the interface of this machine that takes the place of the servers' host",
    ),
    ruled(
        "tcp",
        Form::Tcp,
        "the profile `linux`",
        "settings of the hosts' kernels; programs may override some",
    ),
];

pub(super) const KIND: Variant = Variant {
    kind: "program",
    help: "programs that run in the hosts of a live run; the simulator does not support them",
    fields: &[CLASS, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Program>> {
    Some(Reading::new(pass.integer(section, "flows"), |pass, section| {
        let shell = pass.flag(section, "shell");
        let interfaces = interfaces(pass, section);
        let client = match &interfaces {
            Some(Some(_)) => Some(Vec::new()),
            _ => pass.command(section, "client", shell == Some(true)),
        };
        let server = match section.node("server") {
            Some(_) => pass.command(section, "server", shell == Some(true)).map(Some),
            None => Some(None),
        };
        let (clients, ready, ready_within) =
            (pass.integer(section, "count"), ready(pass, section), pass.span(section, "ready_within"));
        let (signal, grace) = (pass.word(section, "signal"), pass.span(section, "grace"));
        let (delays, ends_run) = (pass.word(section, "delays"), pass.flag(section, "ends_run"));
        let uplink = pass.flag(section, "uplink");
        let (results, tcp) = (pass.word(section, "results"), pass.tcp_from(section, "linux"));
        Some(Program {
            client: client?,
            interfaces: interfaces?,
            server: server?,
            clients: clients?,
            shell: shell?,
            ready: ready?,
            ready_within: ready_within?,
            signal: signal?,
            grace: grace?,
            delays_by_connection: delays? == "connection",
            ends_run: ends_run?,
            uplink: uplink?,
            results: results?,
            tcp: tcp?,
        })
    }))
}

/// The keys that describe programs, which a class with interfaces does not have.
const OF_PROGRAMS: [&str; 10] = [
    "client",
    "server",
    "count",
    "shell",
    "ready",
    "ready_line",
    "ready_within",
    "ends_run",
    "uplink",
    "results",
];

/// Returns the two interfaces, if there are any.
fn interfaces(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Option<[String; 2]>> {
    let given = ["left", "right"].map(|key| section.node(key).is_some());
    let [left, right] = match given {
        [false, false] => return Some(None),
        [true, true] => [interface(pass, section, "left")?, interface(pass, section, "right")?],
        [is_left, _] => {
            let (key, other) = if is_left { ("left", "right") } else { ("right", "left") };
            let message = format!("`{key}` needs `{other}`: a router between interfaces has two");
            pass.error(&section.at(key), &section.sub(key), &message);
            return None;
        }
    };
    if left == right {
        pass.error(&section.at("right"), &section.sub("right"), "`left` and `right` are the same interface");
        return None;
    }
    if let Some(key) = OF_PROGRAMS.into_iter().find(|key| section.node(key).is_some()) {
        let message =
            format!("`{key}` is about programs, but `left` and `right` take the place of their hosts");
        pass.error(&section.at(key), &section.sub(key), &message);
        return None;
    }
    Some(Some([left, right]))
}

/// Returns the name of an interface.
fn interface(pass: &mut Pass<'_, '_>, section: &Section<'_>, key: &str) -> Option<String> {
    let name = pass.text(section, key)?;
    let is_name = (1..16).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'`'));
    if !is_name {
        let message = "the name of an interface has 1 to 15 letters, digits and signs, as `ip link` shows it";
        pass.error(&section.at(key), &section.sub(key), message);
        return None;
    }
    Some(name)
}

fn ready(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Ready> {
    if section.node("ready_line").is_none() {
        return Some(match pass.word(section, "ready")? {
            "started" => Ready::Started,
            _ if section.node("port").is_none() => Ready::ListensAnywhere,
            _ => Ready::Listens,
        });
    }
    let text = pass.text(section, "ready_line")?;
    let flaw = match section.node("ready") {
        Some(_) => Some("`ready` and `ready_line` both say when the server is ready; write one of them"),
        None if text.is_empty() => Some("every line contains the empty text; write a part of the line"),
        None => None,
    };
    match flaw {
        None => Some(Ready::Line(text)),
        Some(message) => {
            pass.error(&section.at("ready_line"), &section.sub("ready_line"), message);
            None
        }
    }
}

impl Pass<'_, '_> {
    /// Returns the command at a key: the program and its arguments, or with `shell`, one text.
    fn command(&mut self, section: &Section<'_>, key: &str, shell: bool) -> Option<Vec<String>> {
        const FORM: &str = "write a list of texts: the program and its arguments";
        let Some(node) = section.node(key) else {
            self.missing(section, section.field(key));
            return None;
        };
        let path = section.sub(key);
        let Tree::List(items) = &node.value else {
            let message = format!("`{}` is {}; {FORM}", self.report.quote(&node.at), node.value.what());
            self.error(&node.at, &path, message);
            return None;
        };
        let words: Option<Vec<String>> = items.iter().map(|item| self.argument(item, &path)).collect();
        let words = words?;
        let flaw = match words.as_slice() {
            [] => Some(format!("the command is empty; {FORM}")),
            [program, ..] if program.is_empty() => Some(format!("the program's name is empty; {FORM}")),
            [_, _, ..] if shell => Some(format!(
                "with `shell = true`, `{key}` is a list of one text, but it has {} entries",
                words.len()
            )),
            _ => None,
        };
        if let Some(message) = flaw {
            self.error(&node.at, &path, message);
            return None;
        }
        self.enter(section, key, &shown(&words), Origin::Given);
        Some(words)
    }

    fn argument(&mut self, item: &Node, path: &str) -> Option<String> {
        let Value::Text(word) = self.given(item, path, &Kind::Text)? else { return None };
        if word.contains('\0') {
            self.error(&item.at, path, "an argument cannot contain a zero byte; remove it");
            return None;
        }
        Some(word)
    }
}

/// Returns a command in the notation of a list.
fn shown(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    format!("[{}]", words.join(", "))
}

impl TrafficKind for Program {
    fn carries(&self) -> Carries<'_> {
        Carries::Programs(&self.tcp)
    }

    fn data_of(&self) -> [bool; 2] {
        [true, true]
    }

    /// What programs ask for is not known.
    fn makes_requests(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Traffic;

    fn text(keys: &str) -> String {
        format!(
            "title = \"t\"\nduration = \"9s\"\n\
             topology = {{ kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = \"droptail\" }}\n\
             [[traffic]]\nname = \"p\"\nkind = \"program\"\n{keys}\n"
        )
    }

    fn program(keys: &str) -> Program {
        let plan = crate::parse(&text(keys), "test").unwrap_or_else(|e| panic!("{e}")).arms.remove(0);
        assert!(plan.only_live().next().is_some_and(|why| why.message.contains("aqmlab live")));
        match plan.classes[0].traffic.clone() {
            Traffic::Program(program) => program,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_is_arguments_and_never_shell_text() {
        let hostile = "client = [\"curl\", \"$(reboot)\", \"a b; 'c\\n\\\"\", \"\"]";
        let found = program(hostile);
        assert_eq!(found.client, ["curl", "$(reboot)", "a b; 'c\n\"", ""]);
        assert_eq!((found.server, found.clients, found.shell), (None, 1, false));
        assert!(found.tcp.profile.tail_loss_probe, "the default profile is `linux`");
    }

    #[test]
    fn readiness_is_one_rule() {
        let with = |keys: &str| program(&format!("client = [\"a\"]\n{keys}")).ready;
        assert_eq!(with(""), Ready::ListensAnywhere);
        assert_eq!(with("port = 80"), Ready::Listens);
        assert_eq!(with("ready = \"started\""), Ready::Started);
        assert_eq!(with("ready_line = \"up\""), Ready::Line("up".into()));
    }

    #[test]
    fn wrong_commands_are_refused_where_they_are_written() {
        let refusal = |keys: &str| crate::parse(&text(keys), "test").unwrap_err().to_string();
        for (keys, why) in [
            ("", "`client` is missing"),
            ("left = \"eth1\"", "`left` needs `right`"),
            ("left = \"eth1\"\nright = \"eth1\"", "the same interface"),
            ("left = \"eth1\"\nright = \"../x\"", "`ip link` shows"),
            ("left = \"eth1\"\nright = \"eth2\"\nclient = [\"a\"]", "`client` is about programs"),
            ("client = \"curl -O x\"", "write a list of texts"),
            ("client = []", "the command is empty"),
            ("client = [\"\"]", "the program's name is empty"),
            ("client = [\"a\", 7]", "7"),
            ("client = [\"a\\u0000b\"]", "zero byte"),
            ("client = [\"a\", \"b\"]\nshell = true", "a list of one text"),
            ("client = [\"a\"]\nready = \"started\"\nready_line = \"x\"", "write one of them"),
            ("client = [\"a\"]\nready_line = \"\"", "a part of the line"),
            ("client = [\"a\"]\nsignal = \"STOP\"", "\"TERM\""),
            ("client = [\"a\"]\nresults = \"iperf\"", "\"iperf3\""),
            ("client = [\"a\"]\nflows = 0", "flows"),
            ("client = [\"a\"]\ncount = 1001", "1000"),
        ] {
            let refusal = refusal(keys);
            assert!(refusal.contains(why), "{keys}: {refusal}");
        }
    }
}
