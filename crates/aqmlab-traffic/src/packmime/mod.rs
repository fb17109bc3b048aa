//! PackMime-HTTP: the web traffic of a cloud of users, connection by connection.
//!
//! Connections open at a given mean rate, regardless of earlier ones. Request sizes, delays and the
//! gaps between connections have long-range dependence, which weakens as the rate rises.
//!
//! Source: J. Cao, W. S. Cleveland, Y. Gao, K. Jeffay, F. D. Smith and M. C. Weigle, "Stochastic models for
//! generating synthetic HTTP source traffic", INFOCOM 2004, as implemented in ns-2.35
//! (`packmime/`). Versions up to ns-2.30 have the same parameters and tables, but their pauses on
//! persistent connections are those of [`PausesOf::Connection`]; since ns-2.31, they have been
//! those of [`PausesOf::Cloud`].

mod connection;
mod convolution;
mod driver;
mod fractional;
mod tables;
mod variates;

use aqmlab_random::Stream;
use aqmlab_units::Span;
use schemars::JsonSchema;
use serde::Serialize;

use crate::mean_connection::MeanConnection;
use crate::step::End;

pub use connection::WebConnection;

use connection::Pauses;
use driver::Driver;
pub use variates::normal;
use variates::{at_most, weibull};

/// Number of past values from which the next gap or delay is predicted.
const ORDER: usize = 1000;
/// Number of past values from which the next request size is predicted.
const REQUEST_ORDER: usize = 5000;

/// Probability that the first response of a connection is longer than 100 kB, at 27 connections per
/// second; it hardly depends on the rate.
const TAIL_AT_100_KB: f64 = 0.006_63;
/// Index of the Pareto tail of these responses: the slope of their table above 64 kB.
const TAIL_INDEX: f64 = 1.231;

/// How often the location and the spread of the pauses on persistent connections are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PausesOf {
    /// Once for the cloud, as in ns-2.31 and later, so the pauses of a whole run depend on one
    /// draw.
    Cloud,
    /// For each connection, as in the paper's model and in ns-2.30.
    Connection,
}

/// A cloud of users: its connections, in the order in which they open.
#[derive(Clone, Debug)]
pub struct PackMime {
    gaps: Driver,
    requests: Driver,
    client_delays: Driver,
    server_delays: Driver,
    gap_shape: f64,
    /// Scale of the gaps, in seconds.
    gap_scale: f64,
    responses: Responses,
    pauses: Option<[Pauses; 2]>,
    /// Whether connections may carry more than one exchange.
    persistent: bool,
    /// The largest response.
    most: u64,
    /// Member i of this family provides the draws that belong to connection i alone.
    connections: Stream,
    opened: u64,
}

/// A connection at the time when the cloud opens it.
#[derive(Clone, Debug)]
pub struct OpenedByCloud {
    /// Time since the opening of the previous connection.
    pub gap: Span,
    /// Its delays and exchanges.
    pub connection: CloudConnection,
}

/// The values that a connection gets from its cloud.
#[derive(Clone, Debug)]
pub struct CloudConnection {
    /// One-way delay from the client to its edge of the network.
    pub client_delay: Span,
    /// One-way delay from the server to its edge of the network.
    pub server_delay: Span,
    /// Its exchanges.
    pub exchanges: WebConnection,
}

impl CloudConnection {
    /// Returns the one-way delay from an end to its edge of the network.
    pub const fn delay(&self, of: End) -> Span {
        match of {
            End::Client => self.client_delay,
            End::Server => self.server_delay,
        }
    }
}

impl PackMime {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// The average connection, computed by integrating ns-2's tables. Response sizes have a heavy tail, so
    /// the mean over a few connections is usually below this average.
    pub const MEAN_CONNECTION: MeanConnection =
        MeanConnection { exchanges: 1.2, bytes: [700.0, 9100.0], waits_s: 0.33 };

    /// The least bound on responses. Smaller bounds would cut into the body of the distribution,
    /// and reach responses so often that drawing again would change more than the tail.
    pub const LEAST_MAX_RESPONSE: u64 = 100_000;

    /// Returns the average connection of a cloud whose responses are at most `max_response` bytes
    /// long, at least [`PackMime::LEAST_MAX_RESPONSE`].
    pub fn mean_connection(max_response: Option<u64>) -> MeanConnection {
        let Some(most) = max_response else { return PackMime::MEAN_CONNECTION };
        // Above the least bound, the table of downloads is a Pareto tail: a straight line.
        let (most, index) = (most as f64, TAIL_INDEX);
        let beyond = TAIL_AT_100_KB * libm::pow(1e5 / most, index);
        let [request, response] = PackMime::MEAN_CONNECTION.bytes;
        let cut = (response - beyond * most * index / (index - 1.0)) / (1.0 - beyond);
        MeanConnection { bytes: [request, cut], ..PackMime::MEAN_CONNECTION }
    }

    /// Creates a cloud that opens `rate` connections per second, `rate > 0`. `draws` is the cloud's
    /// own family of streams.
    pub fn new(rate: f64, pauses_of: PausesOf, draws: &Stream) -> Self {
        let log_rate = libm::log2(rate);
        let share = |offset: f64, slope: f64| logistic(offset + slope * log_rate);
        let gap_shape = share(0.352, 0.388);
        let mut cloud = draws.member(5);
        PackMime {
            gaps: Driver::new(0.33, ORDER, share(0.333, 0.414), &draws.member(0)),
            requests: Driver::new(0.31, REQUEST_ORDER, share(0.123, 0.494), &draws.member(1)),
            client_delays: Driver::new(0.31, ORDER, share(-0.445, 0.554), &draws.member(2)),
            server_delays: Driver::new(0.32, ORDER, share(-0.053, 0.396), &draws.member(3)),
            gap_shape,
            gap_scale: 1.0 / (rate * libm::tgamma(1.0 + 1.0 / gap_shape)),
            responses: Responses::new(log_rate, &draws.member(4)),
            pauses: match pauses_of {
                PausesOf::Cloud => Some(Pauses::both(&mut cloud)),
                PausesOf::Connection => None,
            },
            persistent: true,
            most: u64::MAX,
            connections: draws.member(6),
            opened: 0,
        }
    }

    /// Returns the same cloud with HTTP/1.0, in which each connection carries one exchange. All
    /// other draws of the cloud stay the same.
    pub const fn without_persistence(mut self) -> Self {
        self.persistent = false;
        self
    }

    /// Returns the same cloud with responses of at most `most` bytes, at least
    /// [`PackMime::LEAST_MAX_RESPONSE`]. A larger response is drawn again, from a stream of its
    /// own. All other draws of the cloud stay the same.
    pub const fn with_max_response(mut self, most: u64) -> Self {
        self.most = most;
        self
    }

    /// Draws in advance the values that several clouds need for their first `count` connections.
    /// Drawing in parallel is many times faster than drawing cloud by cloud and gives the same
    /// values.
    pub fn draw_ahead(clouds: &mut [&mut PackMime], count: usize) {
        let drivers: [fn(&mut PackMime) -> &mut Driver; 4] = [
            |cloud| &mut cloud.gaps,
            |cloud| &mut cloud.requests,
            |cloud| &mut cloud.client_delays,
            |cloud| &mut cloud.server_delays,
        ];
        for driver in drivers {
            Driver::draw_ahead(clouds.iter_mut().map(|cloud| driver(cloud)), count);
        }
    }

    /// Returns the next connection.
    pub fn open(&mut self) -> OpenedByCloud {
        let own = self.connections.member(self.opened);
        self.opened += 1;
        OpenedByCloud {
            gap: seconds(self.gap()),
            connection: CloudConnection {
                client_delay: delay(End::Client, self.client_delays.next()),
                server_delay: delay(End::Server, self.server_delays.next()),
                exchanges: WebConnection::new(
                    request_size(self.requests.next()),
                    self.responses.next(self.most),
                    self.most,
                    self.pauses,
                    self.persistent,
                    &own,
                ),
            },
        }
    }

    /// Returns the next gap: the quantile of the Weibull distribution at the probability of the
    /// next normal variable.
    fn gap(&mut self) -> f64 {
        let above = variates::above(self.gaps.next());
        self.gap_scale * libm::pow(-libm::log(above), 1.0 / self.gap_shape)
    }
}

/// The sizes of the first responses of successive connections: runs of downloads alternate with
/// runs of short responses for objects that are already cached, beginning with a run of downloads.
#[derive(Clone, Debug)]
struct Responses {
    runs: Stream,
    sizes: Stream,
    /// The sizes that replace those above the largest.
    again: Stream,
    /// Shapes of the distributions of run lengths, first for downloads, then for cached objects.
    shapes: [f64; 2],
    is_cached: bool,
    left_in_run: u64,
}

impl Responses {
    fn new(log_rate: f64, draws: &Stream) -> Self {
        let shapes = [logistic(1.293 + 0.316 * log_rate), logistic(0.718 + 0.357 * log_rate)];
        // With no response left in the run, the first call of `next` begins a run of downloads.
        let [runs, sizes, again] = [0, 1, 2].map(|which| draws.member(which));
        Responses { runs, sizes, again, shapes, is_cached: true, left_in_run: 0 }
    }

    /// Returns the size of the next response, at most `most` bytes.
    fn next(&mut self, most: u64) -> u64 {
        if self.left_in_run == 0 {
            self.is_cached = !self.is_cached;
            let scale = if self.is_cached { 0.775 } else { 3.11 };
            let length = weibull(self.shapes[usize::from(self.is_cached)], scale, &mut self.runs);
            self.left_in_run = (libm::ceil(length) as u64).max(1);
        }
        self.left_in_run -= 1;
        let is_cached = self.is_cached;
        let size = |p: f64| match is_cached {
            true => tables::RESPONSE_CACHED.at(p),
            false => libm::exp2(tables::RESPONSE_DOWNLOADED.at(libm::log2(1.0 - p))),
        };
        let again = &mut self.again;
        at_most(most, whole(size(self.sizes.unit())), || whole(size(again.unit())))
    }
}

/// Returns the size of a request, in bytes, computed from a standard normal variable.
fn request_size(z: f64) -> u64 {
    let size = if z <= 0.0 {
        tables::REQUEST_LOWER_HALF.at(variates::cumulative(z) / 0.5)
    } else {
        libm::exp2(tables::REQUEST_UPPER_HALF.at(libm::log2(variates::above(z) / 0.5)))
    };
    whole(size)
}

/// Returns the one-way delay from a host to its edge of the network, computed from a standard
/// normal variable. The table's values, in milliseconds, are round-trip delays.
fn delay(of: End, z: f64) -> Span {
    let (table, power) = match of {
        End::Client => (&tables::CLIENT_DELAY, 5),
        End::Server => (&tables::SERVER_DELAY, 3),
    };
    let root = table.at(-libm::log10(variates::above(z)));
    seconds((1..power).fold(root, |product, _| product * root) / 2.0 / 1e3)
}

/// One-way delays between hosts (clients or servers) and their edges of the network; they do not
/// depend on the rate of the cloud.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostDelay;

impl HostDelay {
    /// Returns an independent draw.
    pub fn draw(of: End, draws: &mut Stream) -> Span {
        delay(of, normal(draws))
    }

    /// Returns the mean, accurate to a tenth of a millisecond.
    pub const fn mean(of: End) -> Span {
        match of {
            End::Client => Span::us(13_400),
            End::Server => Span::us(40_500),
        }
    }

    /// Returns the minimum.
    pub fn least(of: End) -> Span {
        delay(of, f64::NEG_INFINITY)
    }
}

/// Returns `size` truncated to whole bytes, but at least one byte.
fn whole(size: f64) -> u64 {
    (size as u64).max(1)
}

fn seconds(s: f64) -> Span {
    Span::try_from_secs_f64(s).unwrap_or(Span::s(1 << 32))
}

/// The logistic function to base 2.
fn logistic(x: f64) -> f64 {
    let power = libm::exp2(x);
    power / (1.0 + power)
}
