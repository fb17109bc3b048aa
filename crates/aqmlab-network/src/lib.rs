//! The network of a plan as both hosts see it: what the simulator and the live router have in common below their engines.

mod end;

pub use end::End;
