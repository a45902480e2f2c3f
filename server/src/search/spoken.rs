//! The rankings of subtitles and of text on screen: cues matched by words and passages matched by meaning, each mapped to
//! its span.

use std::collections::{HashMap, HashSet};

use reprise_encoders::text::Overflow;
use serde::{Deserialize, Serialize};

use super::admit::Admission;
use super::encode::QueryEncoder;
use super::error::SearchError;
use super::fuse::FUSED_DEPTH;
use super::query_vectors;
use super::rounded::RoundedVectors;
use super::types::{Evidence, Excerpt, Query, Request, Source, Sources, Weights};
use crate::app::Authorized;
use crate::catalog::{CueHit, CueKind, CueQuery, CueScope, PassageHit};
use crate::models::LoadedSpace;
use crate::subtitles::snippet::Snippet;
use crate::terms::{Aggregation, Collection, KeySet, Level, SpanKey};
use crate::vectors::{Allowed, Ask, Hits};

/// A source that searches cues of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CueSource {
    source: Source,
    kind: CueKind,
}

const SPOKEN: CueSource = CueSource { source: Source::Spoken, kind: CueKind::Speech };
const SCREEN: CueSource = CueSource { source: Source::Screen, kind: CueKind::Ocr };

/// If the vocabulary misses a greater share of the query's words, the visual source gets weight 0 by default.
const MOST_MISSED: f64 = 0.5;

/// The text to search for in subtitles and on screen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SpokenQuery {
    pub(super) text: String,
    /// Whether subtitles are searched.
    #[serde(default = "yes")]
    pub(super) in_speech: bool,
    /// Whether text on screen is searched.
    #[serde(default)]
    pub(super) on_screen: bool,
    /// Its vectors, if a passage model is loaded. The cursor stores them as bytes.
    #[serde(skip)]
    pub(super) meaning: Option<Meaning>,
}

/// A text as vectors of the passage space.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Meaning {
    /// Id of the space.
    pub(super) space: String,
    pub(super) vectors: RoundedVectors,
}

/// Cursors of before there was text on screen search subtitles.
fn yes() -> bool {
    true
}

/// Makes the query for cues. `None` if the request does not search them.
pub(super) async fn query(
    app: &Authorized,
    request: &Request,
    passages: Option<Admission>,
) -> Result<Option<SpokenQuery>, SearchError> {
    let text = match (&request.query, &request.modification) {
        (Query::Text(text), _) | (_, Some(text)) if request.sources.have_cues() => text,
        _ => return Ok(None),
    };
    let meaning = match passages {
        Some(admission) => Some(meaning(app, admission, text, request.overflow).await?),
        None => None,
    };
    let Sources { spoken: in_speech, screen: on_screen, .. } = request.sources;
    Ok(Some(SpokenQuery { text: text.clone(), in_speech, on_screen, meaning }))
}

async fn meaning(
    app: &Authorized,
    admission: Admission,
    text: &str,
    overflow: Overflow,
) -> Result<Meaning, SearchError> {
    let Admission { space, permit } = admission;
    let query = Query::Text(text.to_owned());
    let encoded = QueryEncoder::new(app, &space, permit).embed(&query, overflow, "/query").await?;
    let windows: Vec<_> = encoded.windows.into_iter().map(|(_, _, window)| window).collect();
    let vanished = SearchError::Internal("the query's vector vanished in rounding");
    let vectors = RoundedVectors::new(&windows, Aggregation::default()).ok_or(vanished)?;
    Ok(Meaning { space: space.space.id.clone(), vectors })
}

/// The weight of each source. `visual`: whether frames are compared.
pub(super) fn weights(request: &Request, space: &LoadedSpace, visual: bool) -> Weights {
    let sources = request.sources;
    let spoken = sources.spoken.then(|| request.weights.spoken.unwrap_or(1.0));
    let screen = sources.screen.then(|| request.weights.screen.unwrap_or(1.0));
    let by_default = || if sources.have_cues() && misses_most(request, space) { 0.0 } else { 1.0 };
    Weights { visual: visual.then(|| request.weights.visual.unwrap_or_else(by_default)), spoken, screen }
}

/// Whether the space's vocabulary misses over half of the query's words.
fn misses_most(request: &Request, space: &LoadedSpace) -> bool {
    let (Query::Text(text), Some(tokenizer)) = (&request.query, &space.tokenizer) else { return false };
    let query = CueQuery::new(text);
    let words = query.telling_words();
    let missed = words.iter().filter(|word| tokenizer.misses(word)).count();
    !words.is_empty() && missed as f64 > MOST_MISSED * words.len() as f64
}

/// A span with its best cue or passage.
#[derive(Debug, Clone)]
pub(super) struct SpokenHit {
    pub(super) key: SpanKey,
    pub(super) evidence: Evidence,
}

/// The hits of each source of cues that is searched, ranked for themselves.
pub(super) async fn hits(
    app: &Authorized,
    query: &SpokenQuery,
    level: Level,
    only: Option<KeySet>,
) -> Result<Vec<SpokenHit>, SearchError> {
    let mut hits = Vec::new();
    for (of, is_searched) in [(SPOKEN, query.in_speech), (SCREEN, query.on_screen)] {
        if is_searched {
            let scope = CueScope { kind: of.kind, level, only: only.as_ref() };
            let found = hits_of(app, query, scope).await?;
            hits.extend(found.into_iter().map(|hit| hit.of(of.source)));
        }
    }
    Ok(hits)
}

/// The best [`FUSED_DEPTH`] spans of a scope: by the words of their cues, and by the meaning of their passages if a
/// passage model is loaded.
async fn hits_of(
    app: &Authorized,
    query: &SpokenQuery,
    scope: CueScope<'_>,
) -> Result<Vec<SpokenHit>, SearchError> {
    let words = CueQuery::new(&query.text);
    let lexical = match words.is_empty() {
        true => Vec::new(),
        false => app.view().cue_hits(&words, &scope, FUSED_DEPTH).await?,
    };
    let weights: Vec<f32> = lexical.iter().map(|hit| weight(hit, &words)).collect();
    let lexical: Vec<SpokenHit> = lexical.into_iter().map(|hit| of_cue(hit, &query.text, &words)).collect();
    let Some(meaning) = &query.meaning else { return Ok(ranked(lexical)) };
    let semantic = passages(app, meaning, scope).await?;
    let semantic = semantic.into_iter().map(|(hit, score)| of_passage(hit, score, &query.text)).collect();
    Ok(ranked(both(lexical.into_iter().zip(weights).collect(), semantic)))
}

/// The nearest passages with their cosines, one per span.
async fn passages(
    app: &Authorized,
    meaning: &Meaning,
    scope: CueScope<'_>,
) -> Result<Vec<(PassageHit, f32)>, SearchError> {
    let space = app.spaces.named(&meaning.space).filter(|it| meaning.vectors.have(it.space.dim));
    let space = space.ok_or(SearchError::CursorGone)?;
    let filter = match scope.only {
        Some(only) => {
            let view = app.view();
            Some(view.passages_within(scope.kind, only).await?)
        }
        None => None,
    };
    let at = Collection { space: space.key, level: Level::Passage };
    let nearest = async |only: Option<KeySet>| {
        let ask = Ask { k: FUSED_DEPTH, only: only.map(Allowed::keys), exact: false };
        query_vectors::search(&app.vectors, at, meaning.vectors.vectors(), &ask).await
    };
    let keys_of = |found: &Hits| found.hits.iter().map(|hit| hit.key).collect::<Vec<SpanKey>>();
    let mut found = nearest(filter).await?;
    // One collection holds the passages of every kind. Where others take most places, this kind is searched alone.
    if scope.only.is_none() && found.hits.len() == FUSED_DEPTH {
        let view = app.view();
        if view.passages_among(scope.kind, &keys_of(&found)).await? < FUSED_DEPTH / 2 {
            let alone = view.passages_of(scope.kind).await?;
            found = nearest(Some(alone)).await?;
        }
    }
    let keys = keys_of(&found);
    let scores: HashMap<SpanKey, f32> = found.hits.iter().map(|hit| (hit.key, hit.score)).collect();
    let hits = app.view().passage_hits(&keys, &scope).await?;
    let scored = |hit: PassageHit| (scores.get(&hit.passage).copied().unwrap_or_default(), hit);
    Ok(hits.into_iter().map(scored).map(|(score, hit)| (hit, score)).collect())
}

fn of_cue(hit: CueHit, text: &str, words: &CueQuery) -> SpokenHit {
    let (start_ms, end_ms, region) = (hit.start_ms, hit.end_ms, hit.region);
    let quoted = hit.in_sequence && is_quotable(words);
    let excerpt = Excerpt { snippet: Snippet::new(&hit.text, text), start_ms, end_ms, quoted, region };
    SpokenHit::new(hit.span, hit.score as f32, excerpt)
}

/// Whether a verbatim match is unlikely by chance: at least four words, two or more of them telling.
fn is_quotable(query: &CueQuery) -> bool {
    query.words().len() >= 4 && query.telling_words().len() >= 2
}

fn of_passage(hit: PassageHit, score: f32, text: &str) -> SpokenHit {
    let (start_ms, end_ms) = (hit.start_ms, hit.end_ms);
    let excerpt =
        Excerpt { snippet: Snippet::new(&hit.text, text), start_ms, end_ms, quoted: false, region: None };
    SpokenHit::new(hit.span, score, excerpt)
}

/// A shorter cue counts as this many words. It would share all its words with a query too easily.
const TELLING_WORDS: usize = 6;

/// Weight of a word match, 0 to 2. Words in sequence weigh 2. Otherwise it is the share of telling words that query
/// and cue have in common, squared. The share is of the shorter text. See [`TELLING_WORDS`].
fn weight(hit: &CueHit, query: &CueQuery) -> f32 {
    if hit.in_sequence {
        return 2.0;
    }
    let cue = CueQuery::new(&hit.text);
    let telling =
        |of: &CueQuery| -> HashSet<String> { of.telling_words().into_iter().map(str::to_owned).collect() };
    let (wanted, found) = (telling(query), telling(&cue));
    let shared = wanted.intersection(&found).count() as f32;
    let of = wanted.len().min(found.len().max(TELLING_WORDS)).max(1);
    (shared / of as f32).powi(2)
}

/// Factor of the word weight that is added to a passage's cosine. Cosines of passages differ by hundredths, which a
/// fusion by rank would lose. Chosen on the questions of BENCHMARKS.md.
const WORDS: f32 = 0.2;
/// From this word weight on, the excerpt is the cue, which is more precise than a passage of half a minute.
const TELLING: f32 = 0.25;

/// Fuses cues (with word weights) and passages (with cosines). Quotations rank first.
fn both(lexical: Vec<(SpokenHit, f32)>, semantic: Vec<SpokenHit>) -> Vec<SpokenHit> {
    // A cue without a near passage gets the cosine of the last passage.
    let far = semantic.last().map_or(0.0, |last| last.evidence.score);
    let mut passages: HashMap<SpanKey, SpokenHit> = semantic.into_iter().map(|hit| (hit.key, hit)).collect();
    let mut fused: Vec<SpokenHit> = Vec::with_capacity(lexical.len() + passages.len());
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
        let ahead = |it: &SpokenHit| (it.is_quotation(), it.evidence.score);
        let ((one_is, one_score), (other_is, other_score)) = (ahead(one), ahead(other));
        other_is.cmp(&one_is).then(other_score.total_cmp(&one_score)).then(one.key.cmp(&other.key))
    });
    fused.truncate(FUSED_DEPTH);
    fused
}

fn ranked(mut hits: Vec<SpokenHit>) -> Vec<SpokenHit> {
    hits.iter_mut().enumerate().for_each(|(index, hit)| hit.evidence.rank = index + 1);
    hits
}

impl SpokenHit {
    fn new(key: SpanKey, score: f32, excerpt: Excerpt) -> SpokenHit {
        let excerpt = Some(excerpt);
        SpokenHit { key, evidence: Evidence { source: Source::Spoken, score, z: None, rank: 0, excerpt } }
    }

    fn of(mut self, source: Source) -> SpokenHit {
        self.evidence.source = source;
        self
    }

    fn is_quotation(&self) -> bool {
        self.evidence.excerpt.as_ref().is_some_and(|excerpt| excerpt.quoted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `lexical`: cues by key and weight. `semantic`: passages by key and cosine. `expected`: by key and excerpt.
    #[track_caller]
    fn check(lexical: &[(u64, f32)], semantic: &[(u64, f32)], expected: &[(u64, &str)]) {
        let hit = |(key, score): (u64, f32), text: &str| {
            let snippet = Snippet { text: text.to_owned(), marks: Vec::new() };
            SpokenHit::new(
                SpanKey::new(key),
                score,
                Excerpt { snippet, start_ms: 0, end_ms: 1, quoted: score > 1.0, region: None },
            )
        };
        let lexical = lexical.iter().map(|it| (hit(*it, "cue"), it.1)).collect();
        let fused = ranked(both(lexical, semantic.iter().map(|it| hit(*it, "passage")).collect()));
        let text = |hit: &SpokenHit| hit.evidence.excerpt.as_ref().unwrap().snippet.text.clone();
        let got: Vec<(u64, String)> = fused.iter().map(|hit| (hit.key.number(), text(hit))).collect();
        assert_eq!(got, expected.iter().map(|it| (it.0, it.1.to_owned())).collect::<Vec<_>>());
        assert!(fused.iter().zip(1..).all(|(hit, rank)| hit.evidence.rank == rank));
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
