//! Queue disciplines and active queue management as pure computations on their arguments, for a simulator, a
//! router or your own transport stack.
//!
//! A discipline is a state machine. Its inputs are arriving packets and the link's requests for the next
//! packet; its outputs are the packets to send and the fate of each packet. It reads no clock, owns no
//! socket, starts no thread, logs nothing and draws random numbers only from its own stream. A simulator and
//! a router can therefore drive the same code, and a run can be repeated bit for bit.
//!
//! # Using it
//!
//! 1. Implement [`Packet`] for your packets: a length, two hashes, the ECN field. Implement
//!    [`Classed`] as well if the books are to separate classes and kinds of packets. A packet needs
//!    no arrival time: the port stores it with the packet.
//! 2. Implement [`Observer`]. The discipline reports marked and lost packets to the observer, and passes the
//!    lost ones by value.
//! 3. Let the [`Registry`] build a discipline by name. Parameters that are not given are computed from the
//!    [`LinkContext`]; the error for a value that is not accepted names the accepted values. Your own
//!    discipline can be [registered](Registry::register) alongside the built-in ones.
//! 4. Put the discipline into a [`Port`] and drive the port with three calls: [`Port::arrive`] for each
//!    packet; [`Port::next_event`] for the time of the next call; then [`Port::link_free`], which returns the
//!    packet that has been sent.
//! 5. Read [`Port::books`]: every packet's fate by class, [`PacketKind`] and [`Reason`], time
//!    integrals of the backlog, histograms.
//!
//! ```
//! use aqmlab_params::{Origin, Settings, Value};
//! use aqmlab_qdisc::{Cause, Classed, Dscp, Ecn, LinkContext, Observer, Packet, Port, Registry, Side, Stamped, registry};
//! use aqmlab_random::Stream;
//! use aqmlab_units::{Bytes, Instant, Rate, Span};
//!
//! struct Frame(Ecn);
//!
//! impl Packet for Frame {
//!     fn wire_len(&self) -> Bytes { Bytes::new(1500) }
//!     fn flow_hash(&self, salt: u64) -> u64 { salt } // one flow
//!     fn host_hash(&self, _: Side, salt: u64) -> u64 { salt }
//!     fn ecn(&self) -> Ecn { self.0 }
//!     fn mark_ce(&mut self) { self.0 = Ecn::Ce }
//!     fn dscp(&self) -> Dscp { Dscp(0) }
//!     fn set_dscp(&mut self, _: Dscp) {}
//! }
//! impl Classed for Frame {} // all in class 0
//!
//! struct Lost(u64);
//! impl Observer<Stamped<Frame>> for Lost {
//!     fn dropped(&mut self, _: Instant, _frame: Stamped<Frame>, _: Cause) { self.0 += 1 }
//!     fn marked(&mut self, _: Instant, _: &Stamped<Frame>, _: Cause) {}
//! }
//!
//! let rate = Rate::mbit(10);
//! let link = LinkContext { rate, delay: Span::ms(5), rtt: Some(Span::ms(80)), flows: None, mean_packet: Bytes::new(1500) };
//! let mut settings = Settings::default();
//! settings.set("max_p", Value::Number(0.05), Origin::Given);
//! let red = registry::info("red").expect("it is built in").resolve(&settings, &link)?;
//! let red = Registry::builtin().build(&red, Stream::new(1, "red"))?;
//!
//! let (mut port, mut lost) = (Port::new(red, rate, Bytes::ZERO, 1), Lost(0));
//! for n in 0..1000 {
//!     let now = Instant::ZERO + Span::ms(1) * n; // 1500 bytes take 1.2 ms
//!     while let Some(end) = port.next_event().filter(|end| *end <= now) {
//!         let sent = port.link_free(end, &mut lost);
//!         assert!(sent.arrived < end);
//!     }
//!     port.arrive(now, Frame(Ecn::NotEct), &mut lost);
//! }
//! port.check_books().expect("every packet has one fate");
//! assert_eq!(port.books().total().dropped_total().packets, lost.0);
//! assert!(lost.0 > 0);
//! # Ok::<(), aqmlab_params::ParamError>(())
//! ```
//!
//! `examples/embed.rs` does the same with two flows, one of them ECN-capable. A host that needs the
//! queue without the link and the books calls [`Qdisc::enqueue`] and [`Qdisc::dequeue`] itself.
//!
//! # Guarantees and obligations
//!
//! All disciplines satisfy the contract in the documentation of [`Qdisc`]. The module [`contract`] tests
//! whether they do, and can test your own disciplines too:
//!
//! | item | the discipline | the host |
//! |---|---|---|
//! | 1. conservation | arrived = left + dropped + backlog, in packets and bytes | |
//! | 2. time order | reports fates with the instant of the call | never goes back in time; equal instants are normal |
//! | 3. liveness | names a deadline if it holds packets back | calls again at that time |
//! | 4. deadline | names an absolute instant after the call | may be late, but passes the instant that was requested |
//! | 5. catching up | has no tick: at each call, its state is as if it had been woken for every update | calls when something happens |
//! | 6. bounded work | does work bounded by a documented constant per call, or by the number of drops that it reports | |
//! | 7. replay | behaves identically, given the same calls and the same stream; sets CE only on ECT; keeps to its limit | gives each instance its own [stream](aqmlab_random::Stream) |
//!
//! A simulator whose discipline [settles everything at enqueue](Qdisc::settles_at_enqueue) needs no event per
//! departure: after [`Port::look_ahead`], [`Port::arrive_ahead`] immediately returns the time at which the
//! packet will have been sent.
//!
//! # Platforms
//!
//! The crate is `no_std` with `alloc`, and has no features and no unsafe code. It allocates nothing
//! in the steady state and, after [`Port::reserve`], nothing from the first packet on. Laws compute
//! in 64-bit floats with the four basic operations and `sqrt`, and with `libm` for everything else,
//! so all platforms with IEEE arithmetic give the same results. Nothing is shared: a port belongs
//! to its host, and is [`Send`] if its packets are [`Send`].
//!
//! # Contents
//!
//! - [`Qdisc`], [`Packet`], [`Observer`]: the contract between disciplines and hosts.
//! - [`law`]: control laws, which turn numbers into decisions and never see a packet.
//! - [`disc`]: the queues that use the laws; [`Discipline`] is the enum of all built-in ones.
//! - [`registry`]: names, parameter tables, resolution of automatic parameters, construction.
//! - [`Port`]: a discipline with its link and books; the loop that all hosts share. [`DelayStage`]: per-flow
//!   delay, rate and loss.
//! - [`contract`]: the test kit that every registered discipline must pass.
#![no_std]
extern crate alloc;

/// The version of the parts common to all disciplines: ports and their books, buffer limits, the
/// queue that consults a law, delay stages and pipes. Incremented whenever a change in these parts
/// changes a result. Each discipline has [its own version](Info::version).
pub const VERSION: u32 = 2;

pub mod books;
mod context;
pub mod contract;
mod course;
mod delay_stage;
pub mod disc;
mod discipline;
mod fifo;
mod flow_store;
mod flow_table;
mod histogram;
mod info;
pub mod law;
mod limit;
mod links;
mod packet_kind;
mod pipe;
mod port;
mod qdisc;
pub mod registry;
mod resolve;
mod stamped;
mod tcp_header;
mod time_weighted;

pub use aqmlab_units::Ecn;
pub use books::Books;
pub use context::LinkContext;
pub use course::Course;
pub use delay_stage::{DelayStage, StageBooks};
pub use discipline::Discipline;
pub use fifo::Fifo;
pub use histogram::{Bin, Histogram};
pub use limit::Limit;
pub use packet_kind::PacketKind;
pub use pipe::{Line, Loss, Passage, Pipe, Times, UpTo, mean_of_ticks};
pub use port::{Departure, Port, Prospect};
pub use qdisc::*;
pub use registry::{Effective, Entry, Info, Registry};
pub use stamped::{Arrived, Classed, Stamped};
pub use tcp_header::TcpHeader;
