//! The average demand of a connection.

/// The average of many similar connections.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeanConnection {
    /// Number of requests with responses.
    pub exchanges: f64,
    /// Total bytes of its requests, and of its responses.
    pub bytes: [f64; 2],
    /// Seconds of all pauses of its client and all delays of its server.
    pub waits_s: f64,
}
