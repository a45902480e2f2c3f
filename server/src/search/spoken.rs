//! What is said: cues by their words and passages by their meaning, each counted for the span that it is said in.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use reprise_encoders::Permit;
use reprise_index::{Filter, Level, Mode, SpaceLevel};
use roaring::RoaringBitmap;

use super::cursor::SaidQuery;
use super::fuse::FUSED_DEPTH;
use super::rank::Sought;
use super::windows::QueryVectors;
use super::{Cursor, Evidence, Levels, Query, Request, Said, SearchError, Source, Weights, encode};
use crate::app::App;
use crate::catalog::{CueHit, CueQuery, PassageHit};
use crate::spaces::LoadedSpace;
use crate::subtitles::snippet::Snippet;

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

/// The spans of `level` in which it is said, best first, as far as they count for a fused ranking: by the words of
/// cues, and by the meaning of passages where a model reads them.
pub(super) async fn search(
    app: &App,
    query: &SaidQuery,
    level: Level,
    only: Option<Arc<RoaringBitmap>>,
) -> Result<Vec<Heard>, SearchError> {
    let words = CueQuery::new(&query.text);
    let lexical = match words.is_empty() {
        true => Vec::new(),
        false => app.catalog.cue_hits(&words, level, only.as_deref(), FUSED_DEPTH).await?,
    };
    let weights: Vec<f32> = lexical.iter().map(|hit| weight(hit, &words)).collect();
    let lexical: Vec<Heard> = lexical.into_iter().map(|hit| of_cue(hit, &query.text, &words)).collect();
    let Some((space, meaning)) = &query.meaning else { return Ok(ranked(lexical)) };
    let semantic = passages(app, space, meaning, level, only).await?;
    let semantic = semantic.into_iter().map(|(hit, score)| of_passage(hit, score, &query.text)).collect();
    Ok(ranked(both(lexical.into_iter().zip(weights).collect(), semantic)))
}

/// The passages nearest in meaning, with their cosines; one for each span.
async fn passages(
    app: &App,
    space: &str,
    meaning: &QueryVectors,
    level: Level,
    only: Option<Arc<RoaringBitmap>>,
) -> Result<Vec<(PassageHit, f32)>, SearchError> {
    let Some(space) = app.spaces.named(space) else { return Err(SearchError::CursorGone) };
    // A cursor may carry vectors of any length.
    if meaning.windows().iter().any(|window| window.values().len() != space.space.dim) {
        return Err(SearchError::CursorGone);
    }
    let filter = match &only {
        Some(only) => Some(Arc::new(app.catalog.passages_within(only).await?)),
        None => None,
    };
    let (gallery, meaning) = (Arc::clone(&app.gallery), meaning.clone());
    let at = SpaceLevel { space: space.key, level: Level::Passage };
    let search = move || meaning.search(&gallery, at, FUSED_DEPTH, (&Filter { only: filter }, Mode::Auto));
    let found = tokio::task::spawn_blocking(search).await;
    let found = found.map_err(|panic| SearchError::Internal(panic.to_string()))??;
    let keys: Vec<u32> = found.hits.iter().map(|hit| hit.key).collect();
    let scores: HashMap<u32, f32> = found.hits.iter().map(|hit| (hit.key, hit.score)).collect();
    let hits = app.catalog.passage_hits(&keys, level, only.as_deref()).await?;
    let scored = |hit: PassageHit| (scores.get(&hit.passage).copied().unwrap_or_default(), hit);
    Ok(hits.into_iter().map(scored).map(|(score, hit)| (hit, score)).collect())
}

fn of_cue(hit: CueHit, text: &str, words: &CueQuery) -> Heard {
    let quoted = hit.in_sequence && is_quotable(words);
    let said =
        Said { snippet: Snippet::new(&hit.text, text), start_ms: hit.start_ms, end_ms: hit.end_ms, quoted };
    Heard::new(hit.span, hit.score as f32, said)
}

/// Whether nobody says it by chance: four words, two of which tell something.
fn is_quotable(query: &CueQuery) -> bool {
    query.words().len() >= 4 && query.telling_words().len() >= 2
}

fn of_passage(hit: PassageHit, score: f32, text: &str) -> Heard {
    let (start_ms, end_ms) = (hit.start_ms, hit.end_ms);
    let said = Said { snippet: Snippet::new(&hit.text, text), start_ms, end_ms, quoted: false };
    Heard::new(hit.span, score, said)
}

/// A cue of fewer telling words shares them with a text too easily.
const TELLING_WORDS: usize = 6;

/// How much the words of a cue count beside meaning: what is said in so many words is meant, two words that a
/// question happens to share with a cue say little. The share of the shorter one's telling words that both have,
/// squared; words in sequence count twice.
fn weight(hit: &CueHit, query: &CueQuery) -> f32 {
    if hit.in_sequence {
        return 2.0;
    }
    let cue = CueQuery::new(&hit.text);
    let (sought, said): (HashSet<&str>, HashSet<&str>) =
        (query.telling_words().into_iter().collect(), cue.telling_words().into_iter().collect());
    let shared = sought.intersection(&said).count() as f32;
    let of = sought.len().min(said.len().max(TELLING_WORDS)).max(1);
    (shared / of as f32).powi(2)
}

/// What the words of a cue add to the cosine of a passage: a cosine is what tells one passage from the next, by some
/// hundredths, and places in a ranking lose that. Chosen on the questions of BENCHMARKS.md.
const WORDS: f32 = 0.2;
/// From this weight on the words say better where than a passage of half a minute does.
const TELLING: f32 = 0.25;

/// Cues, with what their words weigh, and passages, with their cosines, as one ranking: quotations first.
fn both(lexical: Vec<(Heard, f32)>, semantic: Vec<Heard>) -> Vec<Heard> {
    // Of what no passage is near, the meaning is taken to be as far as that of the last passage.
    let far = semantic.last().map_or(0.0, |last| last.evidence.score);
    let mut passages: HashMap<u32, Heard> = semantic.into_iter().map(|heard| (heard.key, heard)).collect();
    let mut fused: Vec<Heard> = Vec::with_capacity(lexical.len() + passages.len());
    for (mut cue, weight) in lexical {
        let passage = passages.remove(&cue.key);
        let score = passage.as_ref().map_or(far, |it| it.evidence.score) + WORDS * weight;
        if let Some(passage) = passage.filter(|_| weight < TELLING) {
            cue = passage;
        }
        cue.evidence.score = score;
        fused.push(cue);
    }
    fused.extend(passages.into_values());
    fused.sort_by(|one, other| {
        let ahead = |it: &Heard| (it.is_quotation(), it.evidence.score);
        let ((one_is, one_score), (other_is, other_score)) = (ahead(one), ahead(other));
        other_is.cmp(&one_is).then(other_score.total_cmp(&one_score)).then(one.key.cmp(&other.key))
    });
    fused.truncate(FUSED_DEPTH);
    fused
}

fn ranked(mut heard: Vec<Heard>) -> Vec<Heard> {
    heard.iter_mut().enumerate().for_each(|(index, heard)| heard.evidence.rank = index + 1);
    heard
}

impl Heard {
    fn new(key: u32, score: f32, said: Said) -> Heard {
        Heard { key, evidence: Evidence { source: Source::Spoken, score, rank: 0, said: Some(said) } }
    }

    fn is_quotation(&self) -> bool {
        self.evidence.said.as_ref().is_some_and(|said| said.quoted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cues by key and weight, passages by key and cosine; the fused ranking by key and what is shown.
    #[track_caller]
    fn check(lexical: &[(u32, f32)], semantic: &[(u32, f32)], expected: &[(u32, &str)]) {
        let heard = |(key, score): (u32, f32), snippet: &str| {
            let snippet = Snippet { text: snippet.to_owned(), marks: Vec::new() };
            let said = Said { snippet, start_ms: 0, end_ms: 1, quoted: score > 1.0 };
            Heard::new(key, score, said)
        };
        let lexical = lexical.iter().map(|it| (heard(*it, "cue"), it.1)).collect();
        let fused = ranked(both(lexical, semantic.iter().map(|it| heard(*it, "passage")).collect()));
        let said = |heard: &Heard| heard.evidence.said.as_ref().unwrap().snippet.text.clone();
        let got: Vec<(u32, String)> = fused.iter().map(|heard| (heard.key, said(heard))).collect();
        assert_eq!(got, expected.iter().map(|it| (it.0, it.1.to_owned())).collect::<Vec<_>>());
        assert!(fused.iter().zip(1..).all(|(heard, rank)| heard.evidence.rank == rank));
    }

    #[test]
    fn words_and_meaning_make_one_ranking() {
        check(
            &[(1, 0.9), (2, 0.8)],
            &[(3, 0.5), (2, 0.4), (9, 0.1)],
            &[(2, "cue"), (3, "passage"), (1, "cue"), (9, "passage")],
        );
        check(&[], &[(3, 0.5), (2, 0.4)], &[(3, "passage"), (2, "passage")]);
        check(&[(1, 0.9)], &[], &[(1, "cue")]);
    }

    #[test]
    fn a_few_shared_words_change_little_and_show_the_passage() {
        check(
            &[(2, 0.1), (1, 0.1)],
            &[(3, 0.5), (2, 0.45), (9, 0.1)],
            &[(3, "passage"), (2, "passage"), (1, "cue"), (9, "passage")],
        );
    }

    #[test]
    fn a_quotation_leads() {
        check(&[(1, 2.0), (2, 1.0)], &[(3, 0.9), (2, 0.8)], &[(1, "cue"), (2, "cue"), (3, "passage")]);
    }
}
