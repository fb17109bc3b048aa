//! The average demand of a connection.

/// The average of many similar connections.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeanConnection {
    /// Number of exchanges, each a request with its response.
    pub exchanges: f64,
    /// Total bytes of its requests, and total bytes of its responses.
    pub bytes: [f64; 2],
    /// Sum of its client's pauses and its server's delays, in seconds.
    pub waits_s: f64,
}
