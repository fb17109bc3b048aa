//! Dialogues: what both ends of a flow of datagrams say to each other.

use alloc::boxed::Box;
use alloc::vec::Vec;

use aqmlab_traffic::End;
use aqmlab_units::Instant;

use crate::game::Game;
use crate::media::{MediaFlow, MediaState};
use crate::ping::Ping;
use crate::talk::{Datagram, Noticed, Unfinished};

/// Both ends of a flow of datagrams.
///
/// A host calls [`Dialogue::poll`] until it returns nothing, sends what it returns, and calls it again at
/// [`Dialogue::next_at`] and after each [`Dialogue::arrive`]. After each of these calls, [`Dialogue::noticed`] holds what
/// the host should record.
#[derive(Clone, Debug)]
pub struct Dialogue {
    kind: Kind,
    noticed: Vec<Noticed>,
}

/// The kinds of dialogues.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A media flow, with feedback.
    Media(Box<MediaFlow>),
    /// A game.
    Game(Box<Game>),
    /// Requests and answers.
    Ping(Box<Ping>),
}

impl Dialogue {
    /// Creates a dialogue that has not begun.
    pub fn new(kind: Kind) -> Self {
        Dialogue { kind, noticed: Vec::new() }
    }

    /// Returns when the dialogue has something to do next, unless a datagram arrives before; the far future if never. It
    /// may be in the past, which means: now.
    pub fn next_at(&self) -> Instant {
        match &self.kind {
            Kind::Media(media) => media.next_at(),
            Kind::Game(game) => game.next_at(),
            Kind::Ping(ping) => ping.next_at(),
        }
    }

    /// Returns a datagram that is due, and the end that sends it.
    pub fn poll(&mut self, now: Instant) -> Option<(End, Datagram)> {
        match &mut self.kind {
            Kind::Media(media) => media.poll(now, &mut self.noticed),
            Kind::Game(game) => game.poll(now, &mut self.noticed),
            Kind::Ping(ping) => ping.poll(now, &mut self.noticed),
        }
    }

    /// Handles the arrival, at `end`, of a datagram with this number, which may carry a congestion mark.
    pub fn arrive(&mut self, now: Instant, end: End, number: u64, marked: bool) {
        match &mut self.kind {
            Kind::Media(media) => media.arrive(now, end, (number, marked), &mut self.noticed),
            Kind::Game(game) => game.arrive(now, end, number, &mut self.noticed),
            Kind::Ping(ping) => ping.arrive(end, number, &mut self.noticed),
        }
    }

    /// Returns whether the datagrams that reach an end are data, not feedback.
    pub fn takes_data(&self, end: End) -> bool {
        !matches!((&self.kind, end), (Kind::Media(_), End::Client))
    }

    /// Ends the making of frames, updates and requests.
    pub fn stop(&mut self) {
        match &mut self.kind {
            Kind::Media(media) => media.stop(),
            Kind::Game(game) => game.stop(),
            Kind::Ping(ping) => ping.stop(),
        }
    }

    /// Takes what the host should record.
    pub fn noticed(&mut self) -> impl Iterator<Item = Noticed> {
        self.noticed.drain(..)
    }

    /// Returns the frames and updates that may still become complete.
    pub fn unfinished(&self) -> Vec<Unfinished> {
        match &self.kind {
            Kind::Media(media) => media.unfinished().collect(),
            Kind::Game(game) => game.unfinished().collect(),
            Kind::Ping(_) => Vec::new(),
        }
    }

    /// Returns the requests that have not been answered.
    pub fn open_requests(&self) -> Vec<Noticed> {
        match &self.kind {
            Kind::Ping(ping) => ping.open().collect(),
            Kind::Media(_) | Kind::Game(_) => Vec::new(),
        }
    }

    /// Returns the state of the media sender, if the dialogue has one.
    pub fn media_state(&self) -> Option<MediaState> {
        match &self.kind {
            Kind::Media(media) => Some(media.state()),
            Kind::Game(_) | Kind::Ping(_) => None,
        }
    }
}
