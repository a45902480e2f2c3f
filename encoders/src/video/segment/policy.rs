//! Turns scores into clips: chooses boundaries by the policy, and bounds the length of clips.
//!
//! Under every policy, the clips cover the video without gap or overlap, and none is longer than the maximum. A clip is
//! reported as soon as it is certain. A scene's end is certain after the shortest scene, a slide change after three
//! seconds, a gradual transition and what lies in it after at most fourteen. When more than twice the maximum is open,
//! a piece is split off, which bounds the memory of a stream. The clips depend only on the scores and the cues, so
//! stored scores give the same clips again.

use std::collections::BTreeMap;

use super::blends::GradualTransitions;
use super::cut::{ClipRange, Cut, MinSceneLen, millis};
use super::detector::Detector;
use super::pauses::Pauses;
use super::scores::{Blend, FrameScores};
use super::segmentation::Segmentation;
use super::slides::SlideChanges;
use super::split::{Frames, Split, TooLong};

/// Nearer to a cut, a stretch is rather what the cut left in its windows than a transition.
const CUT_APART_MS: i64 = 1000;
/// The blocks that a transition changes may begin this long before its stretch.
const SLIDE_BEFORE_MS: i64 = 400;

/// Takes scores frame by frame; returns clips once they are certain.
#[derive(Debug)]
pub struct Segmenter {
    segmentation: Segmentation,
    detector: Option<Detector>,
    slides: Option<SlideChanges>,
    gradual: Option<GradualTransitions>,
    split: Split,
    cuts: Vec<(u64, i64)>,
    slide_changes: Vec<i64>,
    transitions: Vec<Blend>,
    frames: u64,
    last: Option<Cut>,
    /// Start of the clip that is open.
    open: Cut,
    /// Possible boundaries after the start of the open clip, by time.
    candidates: BTreeMap<i64, Candidate>,
    /// Frames after the start of the open clip.
    since_open: Frames,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    frame: u64,
    is_cut: bool,
}

/// Whether a slide change at this time is a part of the transition: its blocks may have begun to change a little earlier.
fn is_part(transition: &Blend, time_ms: i64) -> bool {
    (transition.began_ms - SLIDE_BEFORE_MS..=transition.ended_ms).contains(&time_ms)
}

impl Segmenter {
    /// A segmenter before the first frame. A maximum below 1 ms counts as 1 ms.
    #[must_use]
    pub fn new(segmentation: Segmentation) -> Self {
        Segmenter::with_cues(segmentation, &[])
    }

    /// A segmenter with the cues of the speech, in any order.
    #[must_use]
    pub fn with_cues(segmentation: Segmentation, cues: &[ClipRange]) -> Self {
        let pauses = Pauses::between(cues);
        let mut known = Vec::new();
        if let Segmentation::Subtitle { pause_seconds, min_clip_seconds, .. } = segmentation {
            known = pauses.boundaries(millis(pause_seconds), millis(min_clip_seconds));
        }
        let split = match segmentation {
            Segmentation::Subtitle { .. } | Segmentation::Hybrid { .. } => Split::AtRest(pauses),
            Segmentation::Content { .. } | Segmentation::Fixed { .. } | Segmentation::Given {} => {
                Split::Evenly
            }
        };
        Segmenter {
            segmentation,
            detector: segmentation.detector().map(Detector::new),
            slides: segmentation.slide_area().map(SlideChanges::new),
            gradual: segmentation.gradual_detector().map(GradualTransitions::new),
            split,
            cuts: Vec::new(),
            slide_changes: Vec::new(),
            transitions: Vec::new(),
            frames: 0,
            last: None,
            open: Cut { frame: 0, time_ms: 0 },
            candidates: known.into_iter().map(|at| (at, Candidate { frame: 0, is_cut: false })).collect(),
            since_open: Frames::new(),
        }
    }

    /// Takes the next frame's scores; returns clips that are now certain.
    pub fn push(&mut self, scores: &FrameScores) -> Vec<ClipRange> {
        let now = Cut { frame: self.frames, time_ms: scores.time_ms };
        self.frames += 1;
        self.last = Some(now);
        self.since_open.push_back((scores.time_ms, scores.moving));
        let transitions = self.gradual.as_mut().map(|it| it.push(scores)).unwrap_or_default();
        let cut = self.detector.as_mut().and_then(|it| it.push(scores));
        self.add_cut(cut);
        self.drop_cuts(scores.back_from_ms);
        let changes = self.slides.as_mut().map(|it| it.push(scores)).unwrap_or_default();
        self.add_changes(changes);
        self.add_transitions(transitions);
        let mut clips = Vec::new();
        let known = self.known_until(now);
        self.decide(known, &mut clips);
        self.cut_off(known.time_ms, &mut clips);
        clips
    }

    /// Ends the video at `duration_ms`; returns the remaining clips.
    pub fn finish(&mut self, duration_ms: i64) -> Vec<ClipRange> {
        let cut = self.detector.as_mut().and_then(Detector::finish);
        self.add_cut(cut);
        let changes = self.slides.as_mut().map(SlideChanges::finish).unwrap_or_default();
        self.add_changes(changes);
        let transitions = self.gradual.as_mut().map(GradualTransitions::finish).unwrap_or_default();
        self.add_transitions(transitions);
        let mut clips = Vec::new();
        self.candidates.split_off(&duration_ms);
        let end = match self.segmentation {
            // Only frame starts count here: a long last frame does not lengthen its scene.
            Segmentation::Content { .. } => self.last.unwrap_or(self.open),
            _ => Cut { frame: self.frames, time_ms: duration_ms },
        };
        self.decide(end, &mut clips);
        self.candidates.clear();
        self.close(Cut { frame: self.frames, time_ms: duration_ms }, &mut clips);
        clips
    }

    /// The detector's cuts so far, as (frame number, time); not all need be boundaries.
    #[must_use]
    pub fn cuts(&self) -> &[(u64, i64)] {
        &self.cuts
    }

    /// Times of the slide changes so far; not all need be boundaries.
    #[must_use]
    pub fn slide_changes(&self) -> &[i64] {
        &self.slide_changes
    }

    /// The gradual transitions so far; not all need be boundaries.
    #[must_use]
    pub fn transitions(&self) -> &[Blend] {
        &self.transitions
    }

    fn add_cut(&mut self, cut: Option<Cut>) {
        if let Some(cut) = cut {
            self.cuts.push((cut.frame, cut.time_ms));
            // A detector may report a cut when the flash is long over.
            if self.gradual.as_ref().is_some_and(|it| it.is_no_cut(cut.time_ms)) {
                return;
            }
            self.candidates.insert(cut.time_ms, Candidate { frame: cut.frame, is_cut: true });
        }
    }

    fn add_changes(&mut self, changes: Vec<i64>) {
        for at in changes {
            self.slide_changes.push(at);
            let mut recent = self.transitions.iter().rev().take_while(|it| it.ended_ms >= at);
            if !recent.any(|it| is_part(it, at)) {
                self.candidates.entry(at).or_insert(Candidate { frame: 0, is_cut: false });
            }
        }
    }

    /// A transition has one boundary: a cut in it or near it that stands out, else its middle. Slide changes are parts of it.
    fn add_transitions(&mut self, transitions: Vec<Blend>) {
        let Some(gradual) = &self.gradual else { return };
        for it in transitions {
            let of_it = it.began_ms..=it.ended_ms;
            self.candidates.retain(|at, candidate| {
                let is_movement = of_it.contains(at) && gradual.is_movement(*at, 0.0);
                if candidate.is_cut { !is_movement } else { !is_part(&it, *at) }
            });
            let near = it.began_ms - CUT_APART_MS..=it.ended_ms + CUT_APART_MS;
            let has_cut = self.candidates.range(near).any(|(_, candidate)| candidate.is_cut);
            self.transitions.push(it);
            if !has_cut && self.open.time_ms < it.began_ms {
                self.candidates.entry(it.middle_ms).or_insert(Candidate { frame: 0, is_cut: false });
            }
        }
    }

    /// Drops the cuts of a flash that is now over, and those of fast movement. The detector's list keeps them.
    fn drop_cuts(&mut self, back_from_ms: Option<i64>) {
        let Some(gradual) = &self.gradual else { return };
        let from_ms = gradual.newly_judged_ms().into_iter().chain(back_from_ms).min();
        let recent = self.candidates.range(from_ms.unwrap_or(i64::MAX)..);
        let none = |(at, it): (&i64, &Candidate)| (it.is_cut && gradual.is_no_cut(*at)).then_some(*at);
        let dropped: Vec<i64> = recent.filter_map(none).collect();
        for at in dropped {
            self.candidates.remove(&at);
        }
    }

    /// All boundaries before this are known.
    fn known_until(&self, now: Cut) -> Cut {
        if let (Segmentation::Content { .. }, Some(Detector::Content(_)) | None) =
            (&self.segmentation, &self.detector)
        {
            // Do not wait for a burst of flashes to end: it may last.
            return now;
        }
        let of_detector = self.detector.as_ref().and_then(Detector::undecided).unwrap_or(now);
        let of_slides = self.slides.as_ref().map_or(now.time_ms, SlideChanges::undecided_ms);
        let began_ms = self.gradual.as_ref().map(GradualTransitions::undecided_ms);
        let of_gradual = began_ms.map_or(now.time_ms, |it| it - SLIDE_BEFORE_MS);
        // Do not wait for a long fade to black either: once the clip has reached the maximum, the fade is of no use.
        let forced = now.time_ms - self.segmentation.max_clip_ms();
        Cut {
            frame: of_detector.frame,
            time_ms: of_detector.time_ms.min(of_slides).min(of_gradual).max(forced),
        }
    }

    /// Ends clips at the certain candidates. All boundaries up to `known` have been added.
    fn decide(&mut self, known: Cut, clips: &mut Vec<ClipRange>) {
        let min_clip = self.segmentation.min_clip();
        let keeps_distance = !matches!(self.segmentation, Segmentation::Content { .. });
        while let Some((&time_ms, &Candidate { frame, is_cut })) = self.candidates.first_key_value() {
            let at = Cut { frame, time_ms };
            if time_ms <= self.open.time_ms || (keeps_distance && !min_clip.is_met(self.open, at)) {
                self.candidates.pop_first();
                continue;
            }
            if !min_clip.is_met(at, known) || known.time_ms < time_ms {
                return;
            }
            self.candidates.pop_first();
            if !(keeps_distance && !is_cut && self.cut_follows(at, min_clip)) {
                self.close(at, clips);
            }
        }
    }

    fn cut_follows(&self, at: Cut, min_clip: MinSceneLen) -> bool {
        let near = self
            .candidates
            .iter()
            .take_while(|(time_ms, it)| !min_clip.is_met(at, Cut { frame: it.frame, time_ms: **time_ms }));
        near.into_iter().any(|(_, it)| it.is_cut)
    }

    /// Ends the open scene.
    fn close(&mut self, end: Cut, clips: &mut Vec<ClipRange>) {
        if end.time_ms <= self.open.time_ms {
            return;
        }
        let longest = self.segmentation.max_clip_ms();
        while end.time_ms - self.open.time_ms > longest {
            self.split_off(end.time_ms, clips);
        }
        self.emit(end, clips);
    }

    /// Cuts off whole pieces while more than twice the maximum is open.
    fn cut_off(&mut self, known_ms: i64, clips: &mut Vec<ClipRange>) {
        let until_ms = self.candidates.first_key_value().map_or(known_ms, |it| known_ms.min(*it.0));
        let most = match self.segmentation {
            Segmentation::Fixed { .. } => self.segmentation.max_clip_ms(),
            _ => self.segmentation.max_clip_ms().saturating_mul(2),
        };
        while until_ms.saturating_sub(self.open.time_ms) > most {
            self.split_off(until_ms, clips);
        }
    }

    fn split_off(&mut self, until_ms: i64, clips: &mut Vec<ClipRange>) {
        let (from_ms, max_clip_ms) = (self.open.time_ms, self.segmentation.max_clip_ms());
        let at = match self.segmentation {
            Segmentation::Fixed { .. } => from_ms + max_clip_ms,
            _ => self.split.point(TooLong { from_ms, until_ms, max_clip_ms }, &self.since_open),
        };
        self.emit(Cut { frame: 0, time_ms: at }, clips);
    }

    fn emit(&mut self, end: Cut, clips: &mut Vec<ClipRange>) {
        clips.push(ClipRange { start_ms: self.open.time_ms, end_ms: end.time_ms });
        self.open = end;
        if let Some(gradual) = &mut self.gradual {
            gradual.forget_before(end.time_ms);
        }
        let passed = self.since_open.partition_point(|frame| frame.0 < end.time_ms);
        self.since_open.drain(..passed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DetectorSettings, ThresholdSettings};
    use super::*;

    /// However long a scene, a burst of flashes or a black picture lasts.
    #[test]
    fn no_more_than_a_few_times_the_maximum_is_ever_open() {
        let dark = DetectorSettings::Threshold(ThresholdSettings::default());
        let (slide_area_percent, min_clip_seconds, max_clip_seconds) = (1.0, 0.5, 2.0);
        let settings = [DetectorSettings::default(), dark].into_iter().flat_map(|detector| {
            [
                Segmentation::Content { preset: None, detector, max_clip_seconds },
                Segmentation::Hybrid {
                    detector,
                    slide_area_percent,
                    gradual: true,
                    min_clip_seconds,
                    max_clip_seconds,
                },
            ]
        });
        for (settings, difference) in settings.flat_map(|it| [(it, 0.0), (it, 99.0)]) {
            let (mut segmenter, mut end_ms) = (Segmenter::new(settings), 0);
            for at in 0..5000_i64 {
                let time_ms = at * 40;
                let hue = if at % 5 == 0 { 3.0 * difference } else { 0.0 };
                let clips = segmenter.push(&FrameScores { time_ms, hue, ..FrameScores::default() });
                end_ms = clips.last().map_or(end_ms, |clip| clip.end_ms);
                assert!(time_ms - end_ms <= 6000 + 3500, "{settings:?}: {end_ms} at {time_ms}");
                assert!(segmenter.since_open.len() <= 240);
            }
        }
    }
}
