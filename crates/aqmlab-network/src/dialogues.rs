//! What hosts record about dialogues: frames, updates and answered requests.

use aqmlab_media::{Dialogue, MediaState, Noticed, Unfinished};
use aqmlab_recording::{Ending, Exchange, FrameRecorder, FrameSettings, RequestRecorder, SenderState};
use aqmlab_scenario::{ClassPlan, Plan};
use aqmlab_traffic::Identity;
use aqmlab_units::{Instant, Rate};

/// Returns the recorder of frames for `plan`, or `None` if no class has frames.
pub fn frame_recorder(plan: &Plan) -> Option<FrameRecorder> {
    let known = |class: &ClassPlan| class.traffic.deadline().map(|deadline| (class.name.clone(), deadline));
    let classes: Vec<_> = plan.classes.iter().map(known).collect();
    let any = classes.iter().any(Option::is_some);
    any.then(|| FrameRecorder::new(FrameSettings { t0: Instant::ZERO + plan.warmup, classes }))
}

/// The recorders of a run that dialogues need.
pub struct DialogueRecorders<'a> {
    /// Of frames and updates.
    pub frames: Option<&'a mut FrameRecorder>,
    /// Of requests.
    pub requests: Option<&'a mut RequestRecorder>,
}

impl DialogueRecorders<'_> {
    /// Records what a dialogue of class number `class` noticed at `now`. `index` is the index of its flow within the class.
    /// Returns whether it is an answer.
    pub fn note(&mut self, (class, index): (u32, u32), now: Instant, noticed: Noticed) -> bool {
        let number = class as usize;
        match (noticed, &mut self.frames) {
            (Noticed::Captured { to, at, bytes }, Some(frames)) => frames.captured(number, to, at, bytes),
            (Noticed::Complete { to, captured, delay, late }, Some(frames)) => {
                frames.complete(number, to, captured, delay, late);
            }
            (Noticed::Incomplete { to, captured, discarded }, Some(frames)) => {
                frames.given_up(number, to, captured, discarded);
            }
            (Noticed::LatePacket { to }, Some(frames)) => frames.late_packet(number, to, now),
            (Noticed::Froze { to, gap }, Some(frames)) => frames.froze(number, to, now, gap),
            (Noticed::Answered { arrived, .. }, _) => {
                let how = if arrived { Ending::Completed } else { Ending::Failed };
                self.request_ended((class, index), now, noticed, how);
                return arrived;
            }
            (_, None) => unreachable!("a class whose dialogues have frames has a deadline"),
        }
        false
    }

    /// Records what a dialogue has left unfinished at the end of the run.
    pub fn note_rest(&mut self, (class, index): (u32, u32), end: Instant, dialogue: &Dialogue) {
        if let Some(frames) = &mut self.frames {
            for Unfinished { to, captured, due } in dialogue.unfinished() {
                frames.unfinished(class as usize, to, captured, due, end);
            }
        }
        for request in dialogue.open_requests() {
            self.request_ended((class, index), end, request, Ending::Censored);
        }
    }

    fn request_ended(&mut self, (class, index): (u32, u32), at: Instant, request: Noticed, how: Ending) {
        let (Noticed::Answered { number, sent, sizes: (request, response), .. }, Some(requests)) =
            (request, &mut self.requests)
        else {
            unreachable!("a class whose dialogues make requests has a recorder")
        };
        let exchange = Exchange {
            class,
            of: Identity { user: index, serial: 0 },
            number: number as u32,
            opens_connection: false,
            start: sent,
            request,
            response,
        };
        requests.ended(&exchange, how, at);
    }
}

/// Converts the state of a media sender into the recorder's form.
pub fn sender_state(state: MediaState) -> SenderState {
    SenderState { target: Rate::bps(state.target_bps as u64), queued: state.queued, rtt: state.rtt }
}
