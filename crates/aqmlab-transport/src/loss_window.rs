//! Whether a window of data lost one segment or several.

/// The latest window of data of which something was sent again: what was outstanding then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LossWindow {
    /// Offset of the first segment of it that was sent again.
    first: u64,
    /// Bytes from there to one past its last offset.
    len: u32,
    /// Another segment of it was sent again too.
    several: bool,
}

impl LossWindow {
    /// Nothing was sent again yet.
    pub(crate) const fn none() -> Self {
        LossWindow { first: 0, len: 0, several: false }
    }

    /// The segment at `from` is sent again; `sent` is one past the highest offset sent. True if with it the window
    /// becomes one of which several were.
    pub(crate) fn again(&mut self, from: u64, sent: u64) -> bool {
        if from >= self.first + u64::from(self.len) {
            // What is outstanding is less than 4 GiB.
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
        // (sent again, sent so far, counts)
        let table = [
            (1, 501, false),
            (1, 501, false), // the retransmission was lost
            (201, 601, true),
            (301, 601, false), // counted already
            (501, 801, false), // sent after the first was sent again: the next window
            (701, 801, true),
            (801, 901, false),
        ];
        for (from, sent, counts) in table {
            assert_eq!(window.again(from, sent), counts, "{from}");
        }
    }
}
