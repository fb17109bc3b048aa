//! The situations, as scenario files.

use crate::measures::Measure;

/// One situation: a scenario whose class `judged` has the controller.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// its name, and that of its scenario file
    pub name: &'static str,
    /// the criterion or path of RFC 9743 to which it belongs
    pub criterion: &'static str,
    /// the scenario
    pub text: &'static str,
    /// what is compared
    pub measures: &'static [Measure],
}

/// The text in a scenario that chooses the congestion control of the judged flows.
pub(crate) const JUDGED: &str = r#"profile = "quic", congestion = "reno""#;

macro_rules! situations {
    ($($name:literal, $criterion:literal, [$($measure:ident),*];)*) => {
        /// All situations, in the order of RFC 9743, sections 5 to 7.
        pub const SITUATIONS: &[Situation] = &[$(Situation {
            name: $name,
            criterion: $criterion,
            text: include_str!(concat!("../situations/", $name, ".toml")),
            measures: &[$(Measure::$measure),*],
        }),*];
    };
}

situations! {
    "high_loss", "protection against congestion collapse", [Goodput, Retransmissions];
    "single", "protection against bufferbloat; wired paths", [Goodput, QueueingDelay, Retransmissions];
    "buffer_0_25", "protection against high packet loss; tail-drop queues", [Goodput, QueueingDelay, Retransmissions];
    "buffer_0_5", "protection against high packet loss; tail-drop queues", [Goodput, QueueingDelay, Retransmissions];
    "buffer_2", "protection against bufferbloat; tail-drop queues", [Goodput, QueueingDelay, Retransmissions];
    "buffer_4", "protection against bufferbloat; tail-drop queues", [Goodput, QueueingDelay, Retransmissions];
    "several", "fairness within the algorithm", [Goodput, Fairness, QueueingDelay, Retransmissions];
    "different_delays", "fairness within the algorithm", [Share, QueueingDelay];
    "short_flows", "short flows", [ResponseTime];
    "with_reno", "existing general-purpose congestion control", [Share, QueueingDelay];
    "with_cubic", "existing general-purpose congestion control", [Share, QueueingDelay];
    "with_call", "real-time congestion control", [Goodput, QueueingDelay];
    "short_and_long", "short and long flows", [ResponseTime];
    "random_loss", "wireless paths", [Goodput, QueueingDelay];
    "varying_rate", "wireless paths", [Goodput, QueueingDelay, Retransmissions];
    "asymmetric", "general use", [Goodput, QueueingDelay];
    "codel", "active queue management", [Goodput, QueueingDelay, Retransmissions];
    "pie", "active queue management", [Goodput, QueueingDelay, Retransmissions];
    "red", "active queue management", [Goodput, QueueingDelay, Retransmissions];
    "fq_codel", "active queue management", [Share, QueueingDelay];
    "varying_delay", "paths with varying delay", [Goodput, QueueingDelay];
    "long_path", "paths with high delay", [Goodput, QueueingDelay];
}
