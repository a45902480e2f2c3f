//! How far hits stand above the background of their query: `z` for each source, weak hits, and hits that are too weak to
//! show.

use serde::{Deserialize, Serialize};

use super::fuse::is_quoted;
use super::types::{Evidence, Match, Source};
use crate::terms::{Background, Level};

/// A hit is weak if its z is below this multiple of what the best span has by chance. Text and clips have galleries of
/// different spread around them. Chosen by `reprise eval absent`; see BENCHMARKS.md.
const WEAK_FOR_TEXT: f32 = 1.6;
/// The same for clips and composed queries.
const WEAK_FOR_CLIPS: f32 = 2.1;

/// The backgrounds of a query. `None`: the source was not searched, or its gallery is too small.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Backgrounds {
    /// Of clips, and of moments if they rank among clips.
    pub(super) clips: Option<Background>,
    /// Of full videos by their own vectors.
    pub(super) videos: Option<Background>,
    /// Of passages by their meaning.
    pub(super) passages: Option<Background>,
    /// Whether the frames are compared with a text.
    pub(super) of_text: bool,
}

impl Backgrounds {
    /// Sets the z of a hit's evidence, and whether the hit is weak. The same for the hits inside it. `nearest`: the score of
    /// a full video's nearest clip, if it is ranked by its clips.
    pub(super) fn judge(&self, found: &mut Match, nearest: Option<f32>) {
        let level = found.span.span.level;
        let mut strengths = Vec::new();
        for evidence in &mut found.evidence {
            let (background, score) = self.compared(evidence, level, nearest);
            let Some(background) = background else { continue };
            let z = background.z(score);
            evidence.z = Some(z);
            strengths.push(z / (background.chance() * self.weak(evidence.source)));
        }
        found.weak = !strengths.is_empty() && strengths.iter().all(|it| *it < 1.0) && !is_quoted(found);
        found.folded.iter_mut().for_each(|inside| self.judge(inside, None));
    }

    /// The background of a piece of evidence, and the score that is compared with it. A full video that is ranked by its
    /// clips is compared as its nearest clip: its own score depends on the other videos.
    fn compared(&self, evidence: &Evidence, level: Level, nearest: Option<f32>) -> (Option<Background>, f32) {
        match (evidence.source, nearest) {
            (Source::Visual, Some(nearest)) => (self.clips, nearest),
            (Source::Visual, None) => (self.visual(level), evidence.score),
            (Source::Spoken | Source::Screen, _) => (self.passages, evidence.score),
            (Source::FullVideo, _) => (self.videos, evidence.score),
        }
    }

    fn weak(&self, source: Source) -> f32 {
        if self.of_text || matches!(source, Source::Spoken | Source::Screen) {
            WEAK_FOR_TEXT
        } else {
            WEAK_FOR_CLIPS
        }
    }

    fn visual(&self, level: Level) -> Option<Background> {
        if level == Level::Video { self.videos } else { self.clips }
    }

    /// The z of a visual score.
    pub(super) fn visual_z(&self, level: Level, score: f32) -> Option<f32> {
        self.visual(level).map(|background| background.z(score))
    }
}

/// Whether a hit has a z of at least `min_z` in one source, or is a quotation: so many words in a row are no chance.
pub(super) fn reaches(found: &Match, min_z: f32) -> bool {
    found.evidence.iter().any(|evidence| evidence.z.is_some_and(|z| min_z <= z)) || is_quoted(found)
}
