//! Control laws: numbers in, decision out. They never see a packet.
//!
//! Queue lengths are plain `f64` in the discipline's unit of queue length, packets or bytes; thresholds are
//! in the same unit. Sizes of individual packets are [`aqmlab_units::Bytes`].

mod ack_filter;
mod adaptive_red;
mod average;
mod avq;
mod blue;
mod choke;
mod cobalt;
mod codel;
mod decision;
mod dualpi2;
mod framing;
mod fred;
mod htb;
mod pi;
mod pi2;
mod pi_design;
mod pie;
mod pie_params;
mod red;
mod red_pd;
mod red_pd_flow;
mod rem;
mod round_robin;
mod sampling;
mod sfb;
mod spacing;
mod token_bucket;
mod virtual_clock;

pub use ack_filter::superseded;
pub use adaptive_red::{Adaptation, AdaptiveRed, AimdRule, CrossingRule, When};
pub use average::{Average, IdleRule};
pub use avq::{AvqLaw, AvqParams};
pub use blue::{BlueIdle, BlueLaw, BlueParams};
pub use choke::{ChokeLaw, Comparisons};
pub use cobalt::{CobaltChoice, CobaltLaw, CobaltParams};
pub use codel::{Arithmetic, CodelLaw, CodelParams};
use decision::chosen;
pub use decision::{ByteMode, Decision, Notice};
pub use dualpi2::{Combine, DualPi2Law, DualPi2Params, Lane, Native, Overload, Scheduling, Verdict};
pub use framing::{Cells, Framing};
pub use fred::{FredFlow, FredLaw, FredParams, ManyFlows};
pub use htb::{HtbClass, HtbLaw, HtbTurn, LEVELS as HTB_LEVELS, PRIORITIES as HTB_PRIORITIES};
pub use pi::{PiLaw, PiParams};
pub use pi_design::TcpLoop;
pub use pi2::{Coins, Pi2Law, Pi2Params, Recurrence};
pub use pie::PieLaw;
pub use pie_params::{PieArithmetic, PieDelay, PieParams};
pub use red::{Counting, EcnRegion, RedArithmetic, RedLaw, RedParams};
pub use red_pd::{RedPdLaw, RedPdParams};
pub use rem::{RemLaw, RemParams};
pub use round_robin::RoundRobin;
pub use sampling::Sampling;
pub use sfb::{FullBin, SfbKeys, SfbLaw, SfbParams};
pub use spacing::{Spacing, SpacingRule};
pub use token_bucket::{Tariff, TokenBucket};
pub use virtual_clock::{ByteTime, VirtualClock, linux_depth};
