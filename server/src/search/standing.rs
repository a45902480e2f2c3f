//! How far hits stand above the background of their query: `z` for each source, weak hits, and hits that are too weak to
//! show.

use serde::{Deserialize, Serialize};

use super::error::SearchError;
use super::fuse::is_quoted;
use super::plan::SearchPlan;
use super::types::{Evidence, Levels, Match, Source};
use crate::app::Authorized;
use crate::models::LoadedSpace;
use crate::terms::{Background, Level, QueryKind, QueryVectors};
use crate::vectors::Gallery;

/// A hit is weak if its z is below this multiple of what the best span has by chance. Text and clips have galleries of
/// different spread around them. Chosen by `reprise eval absent`; see BENCHMARKS.md.
const WEAK_FOR_TEXT: f32 = 1.6;
/// The same for clips and composed queries.
const WEAK_FOR_CLIPS: f32 = 2.1;

/// The backgrounds of a query. `None`: the source was not searched, or its gallery is too small.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Backgrounds {
    /// Of clips, and of moments if they rank among clips.
    clips: Option<Background>,
    /// Of full videos by their own vectors.
    videos: Option<Background>,
    /// Of passages by their meaning.
    passages: Option<Background>,
    /// Whether the frames are compared with a text.
    of_text: bool,
}

impl Backgrounds {
    /// Measures the backgrounds that the plan's hits need. `seq`: the catalog's newest change.
    ///
    /// # Errors
    /// [`SearchError`] if the catalog or the engine can't be read; [`SearchError::CursorGone`] if a space is not loaded.
    pub(super) async fn measure(
        app: &Authorized,
        space: &LoadedSpace,
        plan: &SearchPlan,
        seq: i64,
    ) -> Result<Backgrounds, SearchError> {
        let of_text = plan.info.kind == QueryKind::Text;
        let mut measured = Backgrounds { of_text, ..Backgrounds::default() };
        if let Some(query) = plan.ranking_vectors() {
            let by_clips = plan.ranks_videos_by_clips();
            if plan.levels != Levels::Video || by_clips {
                let gallery = gallery(app, space, Level::Clip);
                measured.clips = background(app, gallery, query, seq).await?;
            }
            if plan.levels != Levels::Clip {
                let mean = query.mean().filter(|_| by_clips);
                let mean = mean.and_then(|mean| QueryVectors::new(vec![mean], Default::default()));
                let gallery = gallery(app, space, Level::Video);
                measured.videos = background(app, gallery, mean.as_ref().unwrap_or(query), seq).await?;
            }
        }
        if let Some(meaning) = plan.spoken.as_ref().and_then(|spoken| spoken.meaning.as_ref()) {
            let space = app.spaces.named(&meaning.space).filter(|it| meaning.vectors.have(it.space.dim));
            let gallery = gallery(app, &*space.ok_or(SearchError::CursorGone)?, Level::Passage);
            measured.passages = background(app, gallery, meaning.vectors.vectors(), seq).await?;
        }
        Ok(measured)
    }

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
            (Source::Spoken, _) => (self.passages, evidence.score),
            (Source::FullVideo, _) => (self.videos, evidence.score),
        }
    }

    fn weak(&self, source: Source) -> f32 {
        if self.of_text || source == Source::Spoken { WEAK_FOR_TEXT } else { WEAK_FOR_CLIPS }
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

/// The gallery of a space that the caller sees. Moments rank among clips.
fn gallery(app: &Authorized, space: &LoadedSpace, level: Level) -> Gallery {
    let caller = app.caller();
    Gallery {
        space: space.key,
        level,
        moments: level == Level::Clip && space.space.temporal,
        viewer: caller.key_id().filter(|_| caller.visibility().is_limited()),
    }
}

async fn background(
    app: &Authorized,
    gallery: Gallery,
    query: &QueryVectors,
    seq: i64,
) -> Result<Option<Background>, SearchError> {
    let sample = match app.vectors.fresh_sample(gallery, seq) {
        Some(sample) => sample,
        None => {
            let visible = app.view().keys_allowed(None).await?;
            app.vectors.sample(gallery, visible.as_ref(), seq).await?
        }
    };
    Ok(sample.background(query))
}
