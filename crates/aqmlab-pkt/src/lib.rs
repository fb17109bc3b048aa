//! Runs packetdrill scripts over the endpoints of aqmlab, in virtual time.
//!
//! A script (`.pkt`; Cardwell et al., "packetdrill", USENIX ATC 2013) plays the application and the other side of a
//! connection: it calls the socket interface, injects segments, and says which segments must leave and when.
//! [`run`] reads one and reports the first expectation that is not met. `docs/pkt.md` lists what is read.
//!
//! [`mod@parse`] and [`packet`] are the grammar, [`settings`] the shell lines, [`mod@run`] the clock, [`socket`] the
//! calls with its [`descriptor`]s, [`connection`] what an application sees, [`compare`] the segments, and [`assertion`] the assertions.

mod assertion;
mod compare;
mod connection;
mod cursor;
mod descriptor;
mod packet;
mod parse;
mod run;
mod script;
mod settings;
mod socket;

pub use run::{Report, run};
pub use script::{Cause, Failure};
