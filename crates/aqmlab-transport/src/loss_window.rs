//! Distinguishes windows of data that lost only one segment from those that lost several.

/// The latest window of data with a retransmission: the data that was outstanding at the first
/// retransmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LossWindow {
    /// Offset of the first segment to be retransmitted in this window.
    first: u64,
    /// Number of bytes from there to the end of the window.
    len: u32,
    /// Whether another segment of the window has also been retransmitted.
    several: bool,
}

impl LossWindow {
    /// Returns the state in which nothing has been retransmitted yet.
    pub(crate) const fn none() -> Self {
        LossWindow { first: 0, len: 0, several: false }
    }

    /// Notes that the segment at `from` is retransmitted; `sent` is one past the highest offset
    /// sent. Returns true if it is the second segment of its window to be retransmitted.
    pub(crate) fn again(&mut self, from: u64, sent: u64) -> bool {
        if from >= self.first + u64::from(self.len) {
            // Outstanding data is less than 4 GiB.
            *self = LossWindow { first: from, len: (sent - from) as u32, several: false };
            return false;
        }
        let another = from != self.first && !self.several;
        self.several |= another;
        another
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_once_when_a_second_segment_of_it_is_sent_again() {
        let mut window = LossWindow::none();
        // (offset retransmitted, one past the highest offset sent, whether the window counts)
        let table = [
            (1, 501, false),
            (1, 501, false), // the retransmission was lost
            (201, 601, true),
            (301, 601, false), // already counted
            (501, 801, false), // sent after the first retransmission: in the next window
            (701, 801, true),
            (801, 901, false),
        ];
        for (from, sent, counts) in table {
            assert_eq!(window.again(from, sent), counts, "{from}");
        }
    }
}
