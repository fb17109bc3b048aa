//! Byte-stream workloads: what an application writes to a connection.

use aqmlab_units::Bytes;

/// A bulk transfer: everything is offered at once, then the connection closes; or it never ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bulk {
    /// How much; `None` never ends.
    pub bytes: Option<Bytes>,
}

impl Bulk {
    /// What the application writes when the connection opens: the byte count, `None` for ever.
    pub const fn offer(&self) -> Option<Bytes> {
        self.bytes
    }

    /// Does the application close after its last byte?
    pub const fn closes(&self) -> bool {
        self.bytes.is_some()
    }
}
