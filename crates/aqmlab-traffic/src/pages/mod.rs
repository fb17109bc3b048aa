//! Present-day web pages: their contents, and the order in which they are fetched.
//!
//! A page is a document and the objects in it. They are requested in three waves: first the
//! document; then scripts, style sheets and fonts; then images and data. A wave begins when all
//! objects of the previous one have arrived. Each origin of the page has one connection, on which
//! responses arrive in the order of their requests ([`Multiplexed`]).
//!
//! Page weight and number of objects are drawn with a rank correlation. The objects' types and sizes are also
//! drawn; the sizes are then scaled so that their sum is the page's weight. Weight and number of objects
//! therefore have the marginal distributions of the source, the Web Almanac. The sizes do not have the
//! source's marginal distributions; only the ratios of the sizes within a page follow the source.

mod almanac;
mod multiplexed;

use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

pub use almanac::{Device, ObjectType};
pub use multiplexed::Multiplexed;

use crate::distribution::Distribution;
use crate::packmime::normal;
use crate::quantity::Count;

/// The properties of the pages of a class, and the way in which its users fetch them.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PagePlan {
    /// The device whose tables apply.
    pub device: Device,
    /// Total bytes of all objects in a page; without it, the device's distribution applies.
    #[serde(rename = "weight_bytes", skip_serializing_if = "Option::is_none")]
    pub weight: Option<Distribution<Bytes>>,
    /// Number of objects in a page, including the document; without it, the device's distribution applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<Distribution<Count>>,
    /// Spearman's rank correlation between weight and number of objects, if both use the device's
    /// tables.
    pub correlation: f64,
    /// The shares of scripts, style sheets, fonts and images, in this order, among the objects embedded in
    /// the document; the remaining objects are data.
    pub shares: [f64; 4],
    /// Number of waves, from 1 (everything is requested at the same time) to 3.
    pub waves: u32,
    /// Number of origins that serve a page, from 1 to 255.
    pub origins: Distribution<Count>,
    /// Bytes of each request.
    #[serde(rename = "request_bytes")]
    pub request: Distribution<Bytes>,
    /// Delay at the server, from the last byte of a request to its response.
    #[serde(rename = "server_delay_ns")]
    pub server_delay: Distribution,
    /// Time at the client, from the arrival of a wave's last byte to the requests of the next wave.
    #[serde(rename = "parse_ns")]
    pub parse: Distribution,
    /// Time from the end of one page of a user to the beginning of the next.
    #[serde(rename = "think_ns")]
    pub think: Distribution,
    /// Whether connections stay open for the user's next page.
    pub keeps_connections: bool,
}

/// An object of a page, with everything that is needed to request it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageObject {
    /// Number of its wave, counted from 0.
    pub wave: u8,
    /// Origin whose connection carries it; the document's is 0.
    pub origin: u8,
    /// Bytes of the request, at least one.
    pub request: u64,
    /// Delay at the server, from the last byte of the request to the response.
    pub server_delay: Span,
    /// Bytes of the response, at least one.
    pub response: u64,
}

/// A drawn page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The objects in the order of their requests: by wave, then by origin.
    pub objects: Vec<PageObject>,
    /// Parsing times before the second wave, and before the third.
    pub parse: [Span; 2],
}

/// The outcome of fetching a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageEnded {
    /// Its user.
    pub user: u32,
    /// Its number among the user's pages, from 0.
    pub number: u32,
    /// Number of its objects.
    pub objects: u32,
    /// Whether a connection was opened for its first wave, to which its document belongs.
    pub opened_connection: bool,
    /// When its first connection was opened, or its document was requested on a connection that was
    /// already open.
    pub began: Instant,
    /// When the last of its objects arrived or failed.
    pub at: Instant,
    /// Bytes of its requests.
    pub request: Bytes,
    /// Bytes of its objects.
    pub weight: Bytes,
    /// Whether a connection failed before all objects had arrived.
    pub failed: bool,
}

/// The types of the objects embedded in a document, in the order of [`PagePlan::shares`].
const EMBEDDED: [ObjectType; 4] =
    [ObjectType::Script, ObjectType::Style, ObjectType::Font, ObjectType::Image];

/// Identifies one of a page's own draws by its position in the page's stream.
#[derive(Clone, Copy)]
enum OfPage {
    Weight = 0,
    Objects = 1,
    Origins = 2,
    Parse = 3,
}

/// Identifies one of the [`OF_OBJECT`] draws of an object by its position among them.
#[derive(Clone, Copy)]
enum OfObject {
    Type = 0,
    Size = 1,
    Origin = 2,
    Request = 3,
    ServerDelay = 4,
}

const OF_OBJECT: u64 = 5;

impl PagePlan {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// Draws page number `page` of the user whose family of draws is `draws`.
    pub fn draw(&self, user: u32, page: u32, draws: &Stream) -> Page {
        let index = u64::from(user) + u64::from(page);
        let own = draws.member(page.into()).member(0);
        let of_page = |which: OfPage| own.from_draw(which as u64);
        let (weight, count) = self.weight_and_count(index, of_page);
        let Count(origins) = self.origins.draw(index, &mut of_page(OfPage::Origins));
        let mut objects = self.objects(index, count, origins, &draws.member(page.into()).member(1));
        scale(&mut objects, weight);
        let mut objects: Vec<PageObject> = objects.into_iter().map(|(object, _)| object).collect();
        // The document stays first; objects of one wave and origin stay in the order of the draws.
        objects.sort_by_key(|object| (object.wave, object.origin));
        let mut parse = of_page(OfPage::Parse);
        Page { objects, parse: [(); 2].map(|()| self.parse.draw(index, &mut parse)) }
    }

    fn weight_and_count(&self, index: u64, draws: impl Fn(OfPage) -> Stream) -> (u64, u64) {
        let z = normal(&mut draws(OfPage::Weight));
        // Normal variables with the correlation `r` have the given rank correlation (Pearson 1907).
        let r = 2.0 * libm::sin(core::f64::consts::PI / 6.0 * self.correlation);
        let own = normal(&mut draws(OfPage::Objects));
        let weight = match &self.weight {
            Some(weight) => weight.draw(index, &mut draws(OfPage::Weight)).get(),
            None => libm::round(self.device.weight().at(z)) as u64,
        };
        let count = match &self.objects {
            Some(objects) => objects.draw(index, &mut draws(OfPage::Objects)).0,
            None => libm::round(self.device.requests().at(r * z + libm::sqrt(1.0 - r * r) * own)) as u64,
        };
        (weight, count.max(1))
    }

    /// Draws the objects, the document first, each with its size before scaling.
    fn objects(&self, index: u64, count: u64, origins: u64, draws: &Stream) -> Vec<(PageObject, f64)> {
        let object = |number: u64| {
            let draw = |which: OfObject| draws.from_draw(number * OF_OBJECT + which as u64);
            let (of, origin) = match number {
                0 => (ObjectType::Document, 0),
                _ => (self.type_at(draw(OfObject::Type).unit()), draw(OfObject::Origin).below(origins)),
            };
            let size = self.device.object(of).at(normal(&mut draw(OfObject::Size)));
            let object = PageObject {
                wave: of.wave().min(self.waves - 1) as u8,
                origin: origin as u8,
                request: self.request.draw(index + number, &mut draw(OfObject::Request)).get().max(1),
                server_delay: self.server_delay.draw(index + number, &mut draw(OfObject::ServerDelay)),
                response: 1,
            };
            (object, size)
        };
        (0..count).map(object).collect()
    }

    /// Returns the type of an object embedded in a document; `u` is uniform on [0, 1).
    fn type_at(&self, u: f64) -> ObjectType {
        let mut below = 0.0;
        for (of, share) in EMBEDDED.into_iter().zip(self.shares) {
            below += share;
            if u < below {
                return of;
            }
        }
        ObjectType::Data
    }
}

/// Assigns each object its share of the weight, in proportion to its size, and at least one byte.
/// The shares add up to exactly the weight, or to one byte per object if that is more.
fn scale(objects: &mut [(PageObject, f64)], weight: u64) {
    let all: f64 = objects.iter().map(|(_, size)| size).sum();
    let shared = weight.saturating_sub(objects.len() as u64);
    let (mut sizes, mut given) = (0.0, 0);
    let last = objects.len() - 1;
    for (number, (object, size)) in objects.iter_mut().enumerate() {
        sizes += *size;
        let until =
            if number == last { shared } else { ((shared as f64 * (sizes / all)) as u64).min(shared) };
        object.response = 1 + until.saturating_sub(given);
        given = given.max(until);
    }
}
