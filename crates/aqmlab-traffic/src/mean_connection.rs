//! What a connection asks of the network on average.

/// A connection of many alike, on average.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeanConnection {
    /// Requests with their responses.
    pub exchanges: f64,
    /// Bytes of all its requests, and of all its responses.
    pub bytes: [f64; 2],
    /// Seconds of all pauses of its client and all delays of its server.
    pub waits_s: f64,
}
