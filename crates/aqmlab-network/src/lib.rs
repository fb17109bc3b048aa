//! The network of a plan as both hosts see it: what the simulator and the live router have in common below their engines.

pub use aqmlab_traffic::End;
