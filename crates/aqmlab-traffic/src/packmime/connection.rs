//! The contents of one connection: exchanges, and the pauses between them.

use aqmlab_random::Stream;
use aqmlab_units::Span;

use super::variates::{at_most, gamma, normal, weibull};
use crate::step::PlannedExchange;

/// A response of at most this size, in bytes, is taken to be "not modified"; if the first response
/// on a connection is that small, all later responses on it have the same size.
const NOT_MODIFIED: u64 = 275;

/// Pauses of persistent connections. Their binary logarithms are normally distributed with mean
/// `location` and standard deviation `scale`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pauses {
    location: f64,
    scale: f64,
}

impl Pauses {
    /// Draws the parameters of two kinds of pauses: those before the first object of each later
    /// page, and those before the other objects of a page.
    pub fn both(draws: &mut Stream) -> [Self; 2] {
        [Pauses::drawn(draws, (3.22, 0.73), 1.85, 1.21), Pauses::drawn(draws, (-4.15, 3.12), 2.35, 1.57)]
    }

    fn drawn(draws: &mut Stream, (mean, variance): (f64, f64), shape: f64, error_variance: f64) -> Self {
        let location = mean + libm::sqrt(variance) * normal(draws);
        let scale = libm::sqrt(gamma(shape, draws) / shape * error_variance);
        Pauses { location, scale }
    }

    fn draw(self, draws: &mut Stream) -> Span {
        let seconds = libm::exp2(self.location + self.scale * normal(draws));
        Span::try_from_secs_f64(seconds).unwrap_or(LONGEST)
    }
}

/// Upper bound on pauses, which no run is long enough to reach.
const LONGEST: Span = Span::s(1 << 32);

/// The exchanges of one connection, as an iterator.
#[derive(Clone, Debug)]
pub struct WebConnection {
    /// Bytes of each request: one draw for the whole connection.
    request: u64,
    first_response: u64,
    /// The largest response.
    most: u64,
    /// Parameters of the pauses between pages and within them; they are drawn when first needed,
    /// unless the cloud has drawn them for all its connections.
    pauses: Option<[Pauses; 2]>,
    structure: Stream,
    draws: Stream,
    /// Location and scale of the binary logarithm of the sizes of all responses but the first.
    others: Option<(f64, f64)>,
    is_multipage: bool,
    pages_left: u32,
    /// Number of objects left on the page.
    objects_left: u32,
    begins_page: bool,
    number: u32,
}

impl WebConnection {
    /// Creates a connection with these sizes and with further responses of at most `most` bytes; it can carry more than one exchange only if
    /// `persistent` is true. `draws` is the connection's own stream.
    pub fn new(
        request: u64,
        first_response: u64,
        most: u64,
        pauses: Option<[Pauses; 2]>,
        persistent: bool,
        draws: &Stream,
    ) -> Self {
        let mut structure = draws.member(0);
        let is_persistent = structure.hit(0.09) && persistent;
        let pages =
            if !is_persistent || structure.hit(0.82) { 1 } else { more_than_one(0.417, &mut structure) };
        let mut connection = WebConnection {
            request,
            first_response,
            most,
            pauses,
            structure,
            draws: draws.member(1),
            others: None,
            is_multipage: pages > 1,
            pages_left: pages,
            objects_left: 1,
            begins_page: true,
            number: 0,
        };
        if is_persistent {
            connection.begin_page();
        } else {
            connection.pages_left = 0;
        }
        connection
    }

    fn pause(&mut self) -> Span {
        let draws = &mut self.draws;
        let pauses = self.pauses.get_or_insert_with(|| Pauses::both(draws));
        pauses[usize::from(!self.begins_page)].draw(draws)
    }

    /// Draws the number of objects of the next page.
    fn begin_page(&mut self) {
        self.pages_left -= 1;
        self.begins_page = true;
        let is_single = self.is_multipage && self.structure.hit(0.69);
        self.objects_left = if is_single { 1 } else { more_than_one(1.578, &mut self.structure) };
    }

    fn next_response(&mut self) -> u64 {
        if self.first_response <= NOT_MODIFIED {
            return self.first_response;
        }
        let draws = &mut self.draws;
        let (location, scale) = *self.others.get_or_insert_with(|| {
            let location = 10.62 + libm::sqrt(0.94) * normal(draws);
            (location, libm::sqrt(gamma(3.22, draws) / 3.22 * 2.43))
        });
        let size = |draws: &mut Stream| (libm::exp2(location + scale * normal(draws)) as u64).max(1);
        let first = size(draws);
        if first <= self.most {
            return first;
        }
        let mut again = self.draws.member(u64::from(self.number));
        at_most(self.most, first, || size(&mut again))
    }
}

impl Iterator for WebConnection {
    type Item = PlannedExchange;

    fn next(&mut self) -> Option<PlannedExchange> {
        if self.objects_left == 0 {
            return None;
        }
        let is_first = self.number == 0;
        let pause = match is_first {
            true => Span::ZERO,
            false => self.pause(),
        };
        let server_delay = server_delay(&mut self.draws);
        let response = if is_first { self.first_response } else { self.next_response() };
        self.number += 1;
        self.objects_left -= 1;
        self.begins_page = false;
        if self.objects_left == 0 && self.pages_left > 0 {
            self.begin_page();
        }
        Some(PlannedExchange {
            pause,
            request: self.request,
            server_delay,
            response,
            last: self.objects_left == 0,
        })
    }
}

/// `ceil(1 + W(1, scale))`, at least 2.
fn more_than_one(scale: f64, draws: &mut Stream) -> u32 {
    (libm::ceil(1.0 + weibull(1.0, scale, draws)) as u32).max(2)
}

/// `1 / max(10, W(0.63, 305))` seconds.
fn server_delay(draws: &mut Stream) -> Span {
    let rate = weibull(0.63, 305.0, draws).max(10.0);
    Span::try_from_secs_f64(1.0 / rate).unwrap_or(LONGEST)
}
