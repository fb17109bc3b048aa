//! The situations, as scenario files.

use crate::measures::Measure;

/// One situation: a scenario whose class `judged` has the controller.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// its name, and that of its scenario file
    pub name: &'static str,
    /// the sections of RFC 9743 to which it belongs
    pub sections: &'static str,
    /// the criteria or paths of these sections
    pub criterion: &'static str,
    /// the scenario
    pub text: &'static str,
    /// what is compared
    pub measures: &'static [Measure],
}

/// The text in a scenario that chooses the congestion control of the judged flows.
pub(crate) const JUDGED: &str = r#"profile = "quic", congestion = "reno""#;

macro_rules! situations {
    ($($name:literal, $sections:literal, $criterion:literal, [$($measure:ident),*];)*) => {
        /// All situations, in the order of RFC 9743, sections 5 to 7.
        pub const SITUATIONS: &[Situation] = &[$(Situation {
            name: $name,
            sections: $sections,
            criterion: $criterion,
            text: include_str!(concat!("../situations/", $name, ".toml")),
            measures: &[$(Measure::$measure),*],
        }),*];
    };
}

situations! {
    "high_loss", "5.1.1", "protection against congestion collapse", [Goodput, Retransmissions];
    "single", "5.1.2, 6.3", "protection against bufferbloat; wired paths", [Goodput, QueueingDelay, Retransmissions];
    "buffer_0_25", "5.1.3, 6.1", "protection against high packet loss; tail-drop queues", [Goodput, QueueingDelay, Retransmissions];
    "buffer_0_5", "5.1.3, 6.1", "protection against high packet loss; tail-drop queues", [Goodput, QueueingDelay, Retransmissions];
    "buffer_2", "5.1.2, 6.1", "protection against bufferbloat; tail-drop queues", [Goodput, QueueingDelay, Retransmissions];
    "buffer_4", "5.1.2, 6.1", "protection against bufferbloat; tail-drop queues", [Goodput, QueueingDelay, Retransmissions];
    "several", "5.1.4", "fairness within the algorithm", [Goodput, Fairness, QueueingDelay, Retransmissions];
    "different_delays", "5.1.4", "fairness within the algorithm", [Share, QueueingDelay];
    "short_flows", "5.1.5", "short flows", [ResponseTime];
    "with_reno", "5.2.1", "existing general-purpose congestion control", [Share, QueueingDelay];
    "with_cubic", "5.2.1", "existing general-purpose congestion control", [Share, QueueingDelay];
    "with_call", "5.2.2", "real-time congestion control", [Goodput, QueueingDelay];
    "short_and_long", "5.2.3", "short and long flows", [ResponseTime];
    "random_loss", "6.4", "wireless paths", [Goodput, QueueingDelay];
    "varying_rate", "6.4", "wireless paths", [Goodput, QueueingDelay, Retransmissions];
    "asymmetric", "6.3", "wired paths", [Goodput, QueueingDelay];
    "codel", "7.1", "active queue management", [Goodput, QueueingDelay, Retransmissions];
    "pie", "7.1", "active queue management", [Goodput, QueueingDelay, Retransmissions];
    "red", "7.1", "active queue management", [Goodput, QueueingDelay, Retransmissions];
    "fq_codel", "7.1", "active queue management", [Share, QueueingDelay];
    "varying_delay", "7.3", "paths with varying delay", [Goodput, QueueingDelay];
    "long_path", "7.5", "paths with high delay", [Goodput, QueueingDelay];
}
