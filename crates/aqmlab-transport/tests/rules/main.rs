//! Rules of the RFCs, checked as tables of arriving segments and of the segments that must leave in
//! response.
//!
//! Each test lists the rules that it checks on a line `Rules:` in its documentation; the tables in
//! section 2 of `docs/validation.md` list the tests of each rule, and [`table`] checks that the two
//! agree. A rule is named by its RFC, its section and, if the section has several rules, a word or
//! step: `5681 3.2 step 3`.

mod bench;
mod profiles;
mod rfc2018;
mod rfc2883;
mod rfc3168;
mod rfc3465;
mod rfc5681;
mod rfc5682;
mod rfc6298;
mod rfc6582;
mod rfc6675;
mod rfc7323;
mod rfc8257;
mod rfc8985;
mod rfc9293;
mod rfc9293_states;
mod rfc9406;
mod rfc9438;
mod rfc9768;
mod rfc9937;
mod table;
