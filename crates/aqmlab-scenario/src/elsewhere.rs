//! Names that people know from other programs, or expect, and that are no names here: what to write
//! instead, and whether there is anything to write.

/// Keys that a table of a certain kind does not have.
struct Absent {
    /// A key that only tables of this kind have.
    beside: &'static str,
    names: &'static [&'static str],
    advice: &'static str,
}

/// A key that every table describing a link has, and no other table.
const LINK: &str = "faults";
/// A key of RED and its relatives.
const RED: &str = "min_th";
/// A key of every class of traffic.
const TRAFFIC: &str = "access_at";

const KEYS: &[Absent] = &[
    Absent {
        beside: LINK,
        names: &["loss", "loss_rate", "packet_loss", "error_rate"],
        advice: "a link itself loses nothing: write `loss` in a [[delay]] (at an edge or in a router), `loss` in a \
                 [[traffic]] (on its senders' access links), or `faults.drop` for chosen arrivals",
    },
    Absent {
        beside: LINK,
        names: &["jitter"],
        advice: "a link's delay is constant; write `jitter` in a [[delay]]",
    },
    Absent {
        beside: LINK,
        names: &["rtt"],
        advice: "the round-trip time belongs to the flows: write `rtt` in [[traffic]], or `delay` here for one direction \
                 of the link",
    },
    Absent {
        beside: LINK,
        names: &["limit", "buffer", "queue_limit", "queue_size", "buffer_size", "qdisc", "aqm"],
        advice: "the buffer belongs to the queue: write `queue = { kind = \"droptail\", limit = \"100p\" }`",
    },
    Absent {
        beside: LINK,
        names: &["bandwidth", "bw", "capacity", "speed"],
        advice: "did you mean \"rate\"?",
    },
    Absent { beside: LINK, names: &["latency", "propagation_delay"], advice: "did you mean \"delay\"?" },
    Absent {
        beside: LINK,
        names: &[
            "rates",
            "rate_trace",
            "trace",
            "rate_file",
            "rate_schedule",
            "rate_changes",
            "varying_rate",
            "schedule",
            "link_trace",
        ],
        advice: "a rate that changes is a value of `rate`: steps such as `rate = [[\"0s\", \"10Mbit\"], [\"5s\", \"2Mbit\"]]`, or a \
                 table such as `rate = { kind = \"file\", file = \"rates.csv\" }`",
    },
    Absent {
        beside: LINK,
        names: &["reorder", "reordering", "duplicate", "duplication", "corrupt", "corruption"],
        advice: "links keep the order of packets; a [[delay]] with `jitter` and `reorder = true` does not. Nothing duplicates or \
                 corrupts packets here yet",
    },
    Absent {
        beside: RED,
        names: &["adaptive_", "adaptive", "adaptative", "ARED", "AdaptMaxP"],
        advice: "Adaptive RED is the discipline `kind = \"ared\"`; leave the key out",
    },
    Absent {
        beside: RED,
        names: &["feng_adaptive_", "FengAdaptive"],
        advice: "Self-Configuring RED is the discipline `kind = \"scred\"`; leave the key out",
    },
    Absent {
        beside: RED,
        names: &["cur_max_p_"],
        advice: "this is not a setting, but the value that ns-2 reports; max_p begins at `max_p` (in ns-2, the inverse of \
                 `linterm_`)",
    },
    Absent {
        beside: RED,
        names: &["drop-tail_", "drop_tail_"],
        advice: "the arriving packet is always the one that is lost, as with `drop_tail_ 1` in ns-2; leave the key out",
    },
    Absent {
        beside: RED,
        names: &["drop-front_", "drop_front_", "drop-rand_", "drop_rand_"],
        advice: "only the arriving packet can be lost, as with `drop_tail_ 1` in ns-2; other victims are not implemented",
    },
    Absent {
        beside: RED,
        names: &["use_mark_p_"],
        advice: "did you mean \"ecn_region\"? With `ns2_mark_p`, it is as with `use_mark_p_ 1` in ns-2",
    },
    Absent {
        beside: RED,
        names: &["harddrop", "nodrop", "UseHardDrop"],
        advice: "did you mean \"ecn_region\"? `harddrop` of tc is `rfc3168`, its absence is `linux`",
    },
    Absent {
        beside: RED,
        names: &["avg_pkt", "bandwidth", "LinkBandwidth", "LinkDelay"],
        advice: "the link's own rate and delay apply, and `mean_packet` is the mean packet size",
    },
    Absent { beside: TRAFFIC, names: &["jitter"], advice: "write a [[delay]] with `class` and `jitter`" },
    Absent {
        beside: TRAFFIC,
        names: &["delay", "latency", "owd"],
        advice: "write `rtt`, which includes the path's own delay, or a [[delay]] with `class` and `delay`",
    },
    Absent {
        beside: TRAFFIC,
        names: &["protocol", "transport", "cc", "congestion", "congestion_control"],
        advice: "the transport follows from `kind`; write `tcp = { congestion = \"cubic\" }` for a congestion control",
    },
    Absent {
        beside: TRAFFIC,
        names: &["duration", "end"],
        advice: "did you mean \"stop\", the time at which each flow stops sending?",
    },
];

/// Returns what to write instead of a key that a table does not have, if the key is a well-known
/// one; `has` returns whether the table accepts a key.
pub(crate) fn of_key(key: &str, has: impl Fn(&str) -> bool) -> Option<&'static str> {
    KEYS.iter().find(|absent| absent.names.contains(&key) && has(absent.beside)).map(|absent| absent.advice)
}

/// Disciplines that other programs have, the nearest that exists here, and whether Linux has them.
struct Discipline {
    names: &'static [&'static str],
    nearest: &'static str,
    in_linux: bool,
}

const DISCIPLINES: &[Discipline] = &[
    Discipline {
        names: &["hhf"],
        nearest: "\"fq_codel\", \"sfq\", or \"classes\" with one queue for each class of traffic",
        in_linux: true,
    },
    Discipline {
        names: &["drr", "wfq", "wrr", "prio", "hfsc", "cbq", "qfq", "ets"],
        nearest: "\"classes\", which serves classes of traffic by weight or by priority",
        in_linux: false,
    },
    Discipline { names: &["gkvq", "vq"], nearest: "\"rem\" or \"pi\"", in_linux: false },
    Discipline {
        names: &["netem"],
        nearest: "a [[delay]] with `delay`, `jitter` or `loss`",
        in_linux: false,
    },
];

/// Other programs' names for disciplines that exist here.
const SYNONYMS: &[(&str, &str)] = &[
    ("pfifo", "droptail"),
    ("bfifo", "droptail"),
    ("fifo", "droptail"),
    ("pfifo_fast", "droptail"),
    ("taildrop", "droptail"),
    ("tail_drop", "droptail"),
    ("adaptive_red", "ared"),
    ("feng_red", "scred"),
    ("red_pd", "redpd"),
    ("wred", "gred"),
    ("weighted_red", "gred"),
    ("police", "policer"),
    ("token_bucket", "tbf"),
    ("hierarchical_token_bucket", "htb"),
    ("dual_pi2", "dualpi2"),
    ("l4s", "dualpi2"),
];

/// Returns the message for a discipline that does not exist here but is well known elsewhere. If it is meant as
/// the queue of a link, the message names the kernel's discipline, which live runs can use.
pub fn of_discipline(name: &str, of_link: bool) -> Option<String> {
    let plain = name.to_ascii_lowercase().replace('-', "_");
    if let Some((_, ours)) = SYNONYMS.iter().find(|(theirs, _)| *theirs == plain) {
        return Some(format!("there is no discipline {name:?}; here it is called \"{ours}\""));
    }
    let known = DISCIPLINES.iter().find(|known| known.names.contains(&plain.as_str()))?;
    let kernel = if known.in_linux && of_link {
        format!("; `aqmlab live` can use the kernel's: {{ kind = \"tc\", spec = \"{plain}\" }}")
    } else {
        String::new()
    };
    Some(format!("{name:?} is not implemented yet; nearest: {}{kernel}", known.nearest))
}
