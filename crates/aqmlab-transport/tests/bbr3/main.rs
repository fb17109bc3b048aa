//! The 22 example test cases of draft-ietf-ccwg-bbr (appendix "BBR Example Test Cases"), each a test with the name
//! of its section, with one flow of BBR, version 3, through a bottleneck. Numbers and tolerances are those of the
//! draft; where it gives none, the test says which it uses.

#[path = "../support/mod.rs"]
mod support;

mod cycle;
mod flow;
mod path;
mod probe_rtt;
mod spurious;
mod startup;
