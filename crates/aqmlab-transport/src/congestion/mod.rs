//! Congestion control: how much may be in flight.
//!
//! A control sees acknowledgments, echoes, losses and timeouts, and answers with a window in segments. It
//! knows nothing of sequence numbers: which segment is missing is the business of [`crate::recovery`].

mod newreno;

pub(crate) use newreno::Window;
