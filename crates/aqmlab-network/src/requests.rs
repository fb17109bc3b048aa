//! The requests of a run: how they are recorded, as the plan requires, and a host's report on each
//! request.

use aqmlab_recording::{Exchange, RequestRecorder, RequestSettings, SizeBands, TableWriter, schema};
use aqmlab_scenario::{ClassPlan, Plan, RequestPlan};
use aqmlab_traffic::{ExchangeDone, Identity, PageEnded};
use aqmlab_units::Instant;

/// Returns whether the plan requires one row per request. If it does, a host with a directory passes a file
/// for the rows to [`request_recorder`].
pub fn wants_request_rows(plan: &Plan) -> bool {
    plan.record.requests.each && plan.classes.iter().any(|class| class.traffic.makes_requests())
}

/// Returns the recorder for `plan`, or `None` if no class makes requests. Rows go into the file `rows`;
/// without it, rows that the plan requires are held in memory.
///
/// # Panics
/// If `rows` is a file although the plan does not require rows.
pub fn request_recorder(plan: &Plan, seed: u64, rows: Option<TableWriter>) -> Option<RequestRecorder> {
    let name = |class: &ClassPlan| class.traffic.makes_requests().then(|| class.name.clone());
    let classes: Vec<_> = plan.classes.iter().map(name).collect();
    let wanted = wants_request_rows(plan);
    assert!(wanted || rows.is_none(), "a file for rows that the plan does not require");
    if classes.iter().all(Option::is_none) {
        return None;
    }
    let held = || TableWriter::in_memory(&schema::REQUESTS);
    let settings = RequestSettings {
        seed,
        t0: Instant::ZERO + plan.warmup,
        classes,
        fetches_pages: plan.classes.iter().map(|class| class.fetches_pages()).collect(),
        bands: size_bands(&plan.record.requests).expect("the bands of a plan have been checked"),
        sample: plan.record.requests.sample as usize,
    };
    Some(RequestRecorder::new(settings, rows.or_else(|| wanted.then(held))))
}

/// Returns the size bands that a plan requests, or `None` if [`RequestPlan::last_band`] is `None`.
fn size_bands(asked: &RequestPlan) -> Option<SizeBands> {
    SizeBands::by_factor(asked.first_band, asked.band_factor, asked.bands)
}

/// Converts a session's report on an exchange of the connection `of` into the recorder's form. Returns `None`
/// for data that no server answers, because such data is not a request.
pub fn recorded_exchange(class: u32, of: Identity, done: &ExchangeDone) -> Option<Exchange> {
    (!done.response.is_zero()).then_some(Exchange {
        class,
        of,
        number: done.number,
        opens_connection: done.opened_connection,
        start: done.began,
        request: done.request,
        response: done.response,
    })
}

/// Converts a population's report on a page of class number `class` into the recorder's form: an
/// exchange whose connection number is the number of the page, and whose own number is the page's
/// number of objects.
pub fn ended_page(class: u32, page: &PageEnded) -> Exchange {
    Exchange {
        class,
        of: Identity { user: page.user, serial: page.number },
        number: page.objects,
        opens_connection: page.opened_connection,
        start: page.began,
        request: page.request,
        response: page.weight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_units::Bytes;

    /// The recorder supports exactly the bands that the scenario language accepts.
    #[test]
    fn a_plan_and_its_recorder_agree_on_the_bands_that_there_can_be() {
        for (first, factor, bands) in [
            (1000, 10, 6),
            (1, 2, 1),
            (1, 2, 64),
            (1, 2, 65),
            (1 << 50, 2, 14),
            (1 << 50, 2, 15),
            (700, 1000, 8),
            (700, 1000, 60),
        ] {
            let asked = RequestPlan {
                first_band: Bytes::new(first),
                band_factor: factor,
                bands,
                ..RequestPlan::DEFAULT
            };
            let last = size_bands(&asked).map(|bands| bands.edges(bands.count() - 1).0);
            let begin = asked.last_band();
            assert_eq!(last, begin, "{asked:?}");
        }
    }
}
