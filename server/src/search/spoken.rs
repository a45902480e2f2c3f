//! What is said: cues by their words, each counted for the span that it is said in.

use std::sync::Arc;

use reprise_encoders::Permit;
use reprise_index::Level;
use roaring::RoaringBitmap;

use super::cursor::SaidQuery;
use super::fuse::FUSED_DEPTH;
use super::rank::Sought;
use super::{Cursor, Evidence, Levels, Query, Request, Said, SearchError, Source, Weights, encode};
use crate::app::App;
use crate::catalog::{CueHit, CueQuery};
use crate::spaces::LoadedSpace;
use crate::subtitles::snippet::snippet;

/// Words that a vocabulary may miss without harm.
const MOST_MISSED: f64 = 0.5;

/// The text that is searched for in what is said, with its meaning where a space of passages is at hand.
pub(super) async fn query(
    app: &App,
    request: &Request,
    passages: Option<(Arc<LoadedSpace>, Permit)>,
) -> Result<Option<SaidQuery>, SearchError> {
    let text = match (&request.query, &request.modification) {
        (Query::Text(text), _) | (_, Some(text)) if request.sources.spoken => text,
        _ => return Ok(None),
    };
    let meaning = match passages {
        Some((space, permit)) => {
            let query = Query::Text(text.clone());
            let encoded = encode::embed(app, &space, permit, &query, request.overflow, "/query").await?;
            let windows = encoded.windows.into_iter().map(|(_, _, window)| window).collect();
            Some((space.space.id.clone(), windows))
        }
        None => None,
    };
    let vanished = || SearchError::Internal("the query's vector vanished in rounding".to_owned());
    SaidQuery::new(text, meaning).ok_or_else(vanished).map(Some)
}

/// What each source weighs.
pub(super) fn weights(request: &Request, space: &LoadedSpace, sees: bool) -> Weights {
    let spoken = request.sources.spoken.then(|| request.weights.spoken.unwrap_or(1.0));
    let by_default = || if spoken.is_some() && misses_most(request, space) { 0.0 } else { 1.0 };
    Weights { visual: sees.then(|| request.weights.visual.unwrap_or_else(by_default)), spoken }
}

/// Whether the space's vocabulary misses over half of a text's words.
fn misses_most(request: &Request, space: &LoadedSpace) -> bool {
    let (Query::Text(text), Some(tokenizer)) = (&request.query, &space.tokenizer) else { return false };
    let query = CueQuery::new(text);
    let words = query.telling_words();
    let missed = words.iter().filter(|word| tokenizer.misses(word)).count();
    !words.is_empty() && missed as f64 > MOST_MISSED * words.len() as f64
}

/// Hears what the cursor's text is about, and settles with the first page whether what is said is part of the ranking.
pub(super) async fn listen(
    app: &App,
    cursor: &mut Cursor,
    keys: Option<Arc<RoaringBitmap>>,
) -> Result<Sought, SearchError> {
    let silent = Sought { keys: keys.clone(), heard: None, heard_of_videos: None };
    let Some(query) = cursor.said.clone() else { return Ok(silent) };
    let is_first = cursor.state.last.is_none();
    if !is_first && !cursor.state.fused {
        return Ok(silent);
    }
    let heard = search(app, &query, cursor.state.levels.of_results(), keys.clone()).await?;
    let of_videos = match (cursor.state.levels, is_first) {
        (Levels::Both, true) => Some(search(app, &query, Level::Video, keys.clone()).await?),
        _ => None,
    };
    let sees = cursor.vectors.is_some();
    if is_first && heard.is_empty() && of_videos.as_ref().is_none_or(Vec::is_empty) && sees {
        // Nothing is said: better what is seen, however little of the words is understood.
        let weights = &mut cursor.state.info.weights;
        weights.visual = weights.visual.map(|weight| if weight > 0.0 { weight } else { 1.0 });
        return Ok(silent);
    }
    cursor.state.fused = true;
    Ok(Sought { keys, heard: Some(heard), heard_of_videos: of_videos })
}

/// A span and what is said in it.
#[derive(Debug, Clone)]
pub(super) struct Heard {
    pub(super) key: u32,
    pub(super) evidence: Evidence,
}

/// The spans of `level` in which it is said, best first, as far as they count for a fused ranking.
pub(super) async fn search(
    app: &App,
    query: &SaidQuery,
    level: Level,
    only: Option<Arc<RoaringBitmap>>,
) -> Result<Vec<Heard>, SearchError> {
    let words = CueQuery::new(&query.text);
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let hits = app.catalog.cue_hits(&words, level, only.as_deref(), FUSED_DEPTH).await?;
    Ok(hits.into_iter().enumerate().map(|(index, hit)| heard(index, hit, &query.text)).collect())
}

fn heard(index: usize, hit: CueHit, text: &str) -> Heard {
    let said = Said { snippet: snippet(&hit.text, text), start_ms: hit.start_ms, end_ms: hit.end_ms };
    let (score, rank) = (hit.score as f32, index + 1);
    Heard { key: hit.span, evidence: Evidence { source: Source::Spoken, score, rank, said: Some(said) } }
}
