//! Searches cues by words. The database's full-text index finds cues with a word of the query,
//! [`crate::subtitles::ranking`] ranks them, and each counts for the span that contains its start.

use std::collections::{HashMap, HashSet};

use super::database::{Database, Row, Sql, Value, values};
use super::error::CatalogError;
use super::tables::{stored, tracks};
use super::types::*;
use super::view::View;
use crate::subtitles::ranking::{Fit, RankedCue, Terms, fits};
use crate::terms::{KeySet, Level, SpanKey};

/// Largest number of ranked cues. If a query matches more, the search drops its most common words. The ranking still
/// uses them.
const MAX_CANDIDATES: usize = 50_000;
/// Candidates per read.
const CANDIDATES_PER_READ: u32 = 10_000;
/// Largest number of cues whose neighbours are checked for the rest of a sequence.
const MAX_CONTINUED: usize = 500;
/// Cues in the first lookup of spans.
const RESOLVED_AT_ONCE: usize = 256;
/// Words per count query.
const WORDS_PER_READ: usize = 1000;
/// Words per query that counts visible cues, with a select a word. SQLite takes 500 selects in one statement.
const WORDS_PER_COUNT: usize = 100;
/// Weights of the whole track's score when the search returns clips and when it returns videos.
const WHOLE_FOR_CLIPS: f64 = 0.3;
const WHOLE_FOR_VIDEOS: f64 = 1.0;

/// A cue that has a word of the query.
struct Candidate {
    key: i64,
    at: CuePosition,
    words: String,
    score: f64,
    /// The place of the cue in which the query's words end, if they occur in sequence from this cue on.
    sequence_ends: Option<i64>,
}

/// A cue's position: its track and its place there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct CuePosition {
    track: i64,
    place: i64,
}

/// $1 the words, $2 the last key of the previous read, $3 the limit, $4 the kind of cue, $5 keys of spans: only their
/// videos are searched.
macro_rules! candidates {
    ($from:literal, $only:literal) => {
        concat!(
            "SELECT c.key, c.track, c.place, c.words FROM ",
            $from,
            " JOIN tracks t ON t.key = c.track JOIN visible_videos v ON v.id = t.video \
             WHERE v.state = 'ready' AND c.key > $2 AND t.kind = $4 AND ",
            $only,
            " ORDER BY c.key LIMIT $3"
        )
    };
}

/// The spans for which cues count; $1 the cues.
macro_rules! spans_of {
    ($cues:literal, $where:literal) => {
        concat!(
            "SELECT c.key AS cue, s.key AS span, s.given FROM cues c JOIN tracks t ON t.key = c.track \
             JOIN visible_videos v ON v.id = t.video JOIN spans s ON s.video = v.id WHERE c.key ",
            $cues,
            " AND s.level = ",
            $where,
            " ORDER BY s.given, s.key"
        )
    };
}

/// A cue that starts before the first frame counts as starting at 0.
macro_rules! clips_of {
    ($cues:literal) => {
        spans_of!(
            $cues,
            "'clip' AND (s.start_ms = 0 OR s.start_ms <= c.start_ms - COALESCE(v.media_offset_ms, 0)) \
             AND c.start_ms - COALESCE(v.media_offset_ms, 0) < s.end_ms"
        )
    };
}

macro_rules! shown_of {
    ($cues:literal) => {
        concat!(
            "SELECT c.key, c.id, t.video, t.kind, t.language, t.provenance, t.machine, c.start_ms, c.end_ms, c.text, \
             c.box_left, c.box_top, c.box_width, c.box_height, \
             COALESCE(v.media_offset_ms, 0) AS media_offset_ms FROM cues c JOIN tracks t ON t.key = c.track \
             JOIN visible_videos v ON v.id = t.video WHERE c.key ",
            $cues
        )
    };
}

impl View<'_> {
    /// The best spans of `scope` by the words of their cues, best first: one hit per span, with its best cue. Cues with
    /// the query's words in sequence rank first, then the score decides. Searches only ready videos.
    pub async fn cue_hits(
        &self,
        query: &CueQuery,
        scope: &CueScope<'_>,
        limit: usize,
    ) -> Result<Vec<CueHit>, CatalogError> {
        let CueScope { level, only, .. } = *scope;
        let (frequencies, all) = frequencies(self, scope, query).await?;
        let terms = Terms::new(query, &frequencies, all);
        let most = i64::try_from(MAX_CANDIDATES).unwrap_or(i64::MAX);
        let sought = terms.within(most);
        if sought.is_empty() || limit == 0 || only.is_some_and(KeySet::is_empty) {
            return Ok(Vec::new());
        }
        let mut found = candidates(self, &sought, scope).await?;
        let whole = if level == Level::Video { WHOLE_FOR_VIDEOS } else { WHOLE_FOR_CLIPS };
        let scores = scores(&found, &terms, whole);
        found.iter_mut().zip(scores).for_each(|(it, score)| it.score = score);
        if let Some(anchor) = terms.rarest()
            && query.words().iter().all(|word| frequencies.contains_key(word))
        {
            mark_sequences(self.database(), &mut found, query, anchor).await?;
        }
        found.sort_by(|a, b| {
            let best = |it: &Candidate| (it.sequence_ends.is_some(), it.score);
            let ((a_in, a_score), (b_in, b_score)) = (best(a), best(b));
            b_in.cmp(&a_in).then(b_score.total_cmp(&a_score)).then(a.key.cmp(&b.key))
        });
        let chosen = one_a_span(self, found, scope, limit).await?;
        shown(self, chosen).await
    }
}

/// The number of cues with each distinct word of the query, and the number of all cues. A caller with a filter gets the
/// numbers of visible cues: the others must not change scores, which would reveal their words.
async fn frequencies(
    view: &View<'_>,
    scope: &CueScope<'_>,
    query: &CueQuery,
) -> Result<(HashMap<String, i64>, i64), CatalogError> {
    let distinct: HashSet<&str> = query.words().iter().map(String::as_str).collect();
    let distinct: Vec<&str> = distinct.into_iter().collect();
    let mut counts = HashMap::new();
    if !view.visibility().is_limited() {
        for some in distinct.chunks(WORDS_PER_READ) {
            counts.extend(stored_frequencies(view, some).await?);
        }
        let all = stored_frequencies(view, &[""]).await?;
        return Ok((counts, all.get("").copied().unwrap_or(0)));
    }
    for some in distinct.chunks(WORDS_PER_COUNT) {
        counts.extend(visible_frequencies(view, scope, some).await?);
    }
    let sql = "SELECT count(*) AS cues FROM cues c JOIN tracks t ON t.key = c.track \
               JOIN visible_videos v ON v.id = t.video";
    let all = view.row(sql, values![]).await?.map(|row| row.get::<i64>("cues")).transpose()?;
    Ok((counts, all.unwrap_or(0)))
}

/// Numbers of all cues with these words, as they are kept.
async fn stored_frequencies(view: &View<'_>, words: &[&str]) -> Result<HashMap<String, i64>, CatalogError> {
    let list: Vec<String> = (1..=words.len()).map(|number| format!("${number}")).collect();
    let sql = format!("SELECT term, cues FROM cue_terms WHERE term IN ({})", list.join(", "));
    let words = words.iter().map(|word| Value::from(*word)).collect();
    let rows = view.database().rows(Sql::Built(sql), words).await?;
    rows.iter().map(|row| Ok((row.get("term")?, row.get("cues")?))).collect()
}

/// Numbers of visible cues with these words; words without any are left out.
async fn visible_frequencies(
    view: &View<'_>,
    scope: &CueScope<'_>,
    words: &[&str],
) -> Result<HashMap<String, i64>, CatalogError> {
    let is_postgres = view.database().is_postgres();
    let (from, quote) = match is_postgres {
        true => ("cues c", '\''),
        false => ("cue_words w JOIN cues c ON c.key = w.rowid", '"'),
    };
    let count = |number: usize| {
        let matches = match is_postgres {
            true => format!("c.lexemes @@ CAST(${number} AS tsquery)"),
            false => format!("w.cue_words MATCH ${number}"),
        };
        format!(
            "SELECT CAST({number} AS bigint) AS place, (SELECT count(*) FROM {from} JOIN tracks t ON t.key = c.track \
             JOIN visible_videos v ON v.id = t.video WHERE v.state = 'ready' AND t.kind = $1 AND {matches}) AS cues"
        )
    };
    let counts: Vec<String> = (2..words.len() + 2).map(count).collect();
    let mut values = values![tracks::cue_kind_name(scope.kind)];
    values.extend(words.iter().map(|word| Value::from(format!("{quote}{word}{quote}"))));
    let mut found = HashMap::new();
    for row in view.rows(Sql::Built(counts.join(" UNION ALL ")), values).await? {
        let (place, cues): (i64, i64) = (row.get("place")?, row.get("cues")?);
        let word = usize::try_from(place - 2).ok().and_then(|place| words.get(place));
        found.extend(word.filter(|_| cues > 0).map(|word| ((*word).to_owned(), cues)));
    }
    Ok(found)
}

const EVERYWHERE: Sql = Sql::Each {
    sqlite: candidates!("cue_words w JOIN cues c ON c.key = w.rowid", "w.cue_words MATCH $1"),
    postgres: candidates!("cues c", "c.lexemes @@ CAST($1 AS tsquery)"),
};

const SOMEWHERE: Sql = Sql::Each {
    sqlite: candidates!(
        "cue_words w JOIN cues c ON c.key = w.rowid",
        "w.cue_words MATCH $1 AND t.video IN (SELECT s.video FROM spans s \
         WHERE s.key IN (SELECT value FROM json_each($5)))"
    ),
    postgres: candidates!(
        "cues c",
        "c.lexemes @@ CAST($1 AS tsquery) AND t.video IN (SELECT s.video FROM spans s WHERE s.key = ANY($5))"
    ),
};

async fn candidates(
    view: &View<'_>,
    words: &[&str],
    scope: &CueScope<'_>,
) -> Result<Vec<Candidate>, CatalogError> {
    // Words consist of letters and digits, so quoting them is enough.
    let (quote, or) = if view.database().is_postgres() { ('\'', " | ") } else { ('"', " OR ") };
    let quoted: Vec<String> = words.iter().map(|word| format!("{quote}{word}{quote}")).collect();
    let sought = quoted.join(or);
    let keys: Option<Vec<SpanKey>> = scope.only.map(|keys| keys.iter().collect());
    let mut found = Vec::new();
    let mut after = -1_i64;
    loop {
        let kind = tracks::cue_kind_name(scope.kind);
        let mut values = values![sought.as_str(), after, CANDIDATES_PER_READ, kind];
        values.extend(keys.as_deref().map(stored::keys));
        let sql = if keys.is_some() { SOMEWHERE } else { EVERYWHERE };
        let rows = view.rows(sql, values).await?;
        for row in &rows {
            found.push(candidate(row)?);
        }
        match found.last() {
            Some(last) if rows.len() == CANDIDATES_PER_READ as usize && found.len() < MAX_CANDIDATES => {
                after = last.key;
            }
            _ => return Ok(found),
        }
    }
}

fn candidate(row: &Row) -> Result<Candidate, CatalogError> {
    let at = CuePosition { track: row.get("track")?, place: row.get("place")? };
    Ok(Candidate { key: row.get("key")?, at, words: row.get("words")?, score: 0.0, sequence_ends: None })
}

fn scores(found: &[Candidate], terms: &Terms, whole: f64) -> Vec<f64> {
    let mut cues = Vec::with_capacity(found.len());
    for Candidate { at: CuePosition { track, place }, words, .. } in found {
        cues.push(RankedCue { track: *track, place: *place, words });
    }
    terms.scores(&cues, whole)
}

fn split(words: &str) -> Vec<&str> {
    words.split(' ').filter(|word| !word.is_empty()).collect()
}

/// Marks the cues in which the query's words begin in sequence, however far they run on.
async fn mark_sequences(
    database: &Database,
    found: &mut Vec<Candidate>,
    query: &CueQuery,
    anchor: &str,
) -> Result<(), CatalogError> {
    let mut continued = Vec::new();
    for it in found.iter_mut() {
        for fit in fits(query, anchor, &split(&it.words)) {
            if fit == (Fit { before: 0, after: 0 }) {
                it.sequence_ends = Some(it.at.place);
            } else {
                continued.push((it.at, it.score, fit));
            }
        }
    }
    continued.truncate(MAX_CONTINUED);
    let mut known: HashMap<CuePosition, usize> =
        found.iter().enumerate().map(|(index, it)| (it.at, index)).collect();
    for (at, score, fit) in continued {
        let Some((first, last)) = ends(database, query, at, fit).await? else { continue };
        let index = *known.entry(first.at).or_insert_with(|| {
            // The sequence begins in a cue that is no candidate: all its words were left out of the search.
            found.push(Candidate { score, ..first });
            found.len() - 1
        });
        found[index].sequence_ends = found[index].sequence_ends.max(Some(last));
    }
    Ok(())
}

/// The cue in which the query begins, and the place of the cue in which it ends. `None` if the cue at `place` and its
/// neighbours do not hold the whole query.
async fn ends(
    database: &Database,
    query: &CueQuery,
    CuePosition { track, place }: CuePosition,
    fit: Fit,
) -> Result<Option<(Candidate, i64)>, CatalogError> {
    // Twice the missing words: nearly every cue has a word, and a few have none, like music notes.
    let reach = |words: usize| i64::try_from(2 * words).unwrap_or(i64::MAX);
    let sql = "SELECT key, track, place, words FROM cues WHERE track = $1 AND place BETWEEN $2 AND $3 ORDER BY place";
    let (from, to) = (place - reach(fit.before), place + reach(fit.after));
    let rows = database.rows(sql, values![track, from, to]).await?;
    let around = rows.iter().map(candidate).collect::<Result<Vec<Candidate>, _>>()?;
    let text: Vec<(&str, usize)> = around
        .iter()
        .enumerate()
        .flat_map(|(at, it)| split(&it.words).into_iter().map(move |word| (word, at)))
        .collect();
    let holds = |window: &&[(&str, usize)]| {
        let same = window.iter().zip(query.words()).all(|((word, _), sought)| word == sought);
        let here = window.iter().any(|(_, at)| around[*at].at.place == place);
        same && here
    };
    let Some(window) = text.windows(query.words().len()).find(holds) else { return Ok(None) };
    let (Some((_, first)), Some((_, last))) = (window.first(), window.last()) else { return Ok(None) };
    let (first, last) = (*first, around[*last].at.place);
    Ok(around.into_iter().nth(first).map(|first| (first, last)))
}

const CLIPS: Sql =
    Sql::Each { sqlite: clips_of!("IN (SELECT value FROM json_each($1))"), postgres: clips_of!("= ANY($1)") };
const VIDEOS: Sql = Sql::Each {
    sqlite: spans_of!("IN (SELECT value FROM json_each($1))", "'video'"),
    postgres: spans_of!("= ANY($1)", "'video'"),
};

/// One candidate per span, its best, for the best `limit` spans.
async fn one_a_span(
    view: &View<'_>,
    found: Vec<Candidate>,
    scope: &CueScope<'_>,
    limit: usize,
) -> Result<Vec<(Candidate, SpanKey)>, CatalogError> {
    let mut chosen: Vec<(Candidate, SpanKey)> = Vec::new();
    let mut taken = HashSet::new();
    let mut left = found.into_iter().peekable();
    let mut at_once = RESOLVED_AT_ONCE.max(limit);
    while left.peek().is_some() && chosen.len() < limit {
        let some: Vec<Candidate> = left.by_ref().take(at_once).collect();
        at_once *= 4;
        let cues = Value::Ints(some.iter().map(|it| it.key).collect());
        let mut spans: HashMap<i64, SpanKey> = HashMap::new();
        let sql = if scope.level == Level::Video { VIDEOS } else { CLIPS };
        for row in view.rows(sql, vec![cues]).await? {
            let span = row.key("span")?;
            if scope.only.is_none_or(|keys| keys.contains(span)) {
                spans.entry(row.get("cue")?).or_insert(span);
            }
        }
        for it in some {
            if let Some(span) = spans.get(&it.key)
                && chosen.len() < limit
                && taken.insert(*span)
            {
                chosen.push((it, *span));
            }
        }
    }
    Ok(chosen)
}

async fn shown(view: &View<'_>, chosen: Vec<(Candidate, SpanKey)>) -> Result<Vec<CueHit>, CatalogError> {
    let cues = Value::Ints(chosen.iter().map(|(it, _)| it.key).collect());
    let sql = Sql::Each {
        sqlite: shown_of!("IN (SELECT value FROM json_each($1))"),
        postgres: shown_of!("= ANY($1)"),
    };
    let mut rows: HashMap<i64, Row> = HashMap::new();
    for row in view.rows(sql, vec![cues]).await? {
        rows.insert(row.get("key")?, row);
    }
    let mut hits = Vec::with_capacity(chosen.len());
    for (it, span) in chosen {
        // A track may have been replaced since the candidates were read.
        let Some(row) = rows.get(&it.key) else { continue };
        let mut hit = hit(row, span, &it)?;
        if it.sequence_ends.is_some_and(|last| last > it.at.place) {
            run_on(view.database(), &mut hit, row, &it).await?;
        }
        hits.push(hit);
    }
    Ok(hits)
}

fn hit(row: &Row, span: SpanKey, it: &Candidate) -> Result<CueHit, CatalogError> {
    let offset: i64 = row.get("media_offset_ms")?;
    let start_ms = (row.get::<i64>("start_ms")? - offset).max(0);
    Ok(CueHit {
        cue: row.get("id")?,
        span,
        video: row.get("video")?,
        track: tracks::from_row(row)?,
        start_ms,
        end_ms: (row.get::<i64>("end_ms")? - offset).max(start_ms + 1),
        text: row.get("text")?,
        score: it.score,
        in_sequence: it.sequence_ends.is_some(),
        region: tracks::region(row)?,
    })
}

/// Extends a hit by the cues in which the matched words continue.
async fn run_on(
    database: &Database,
    hit: &mut CueHit,
    row: &Row,
    it: &Candidate,
) -> Result<(), CatalogError> {
    let offset: i64 = row.get("media_offset_ms")?;
    let CuePosition { track, place } = it.at;
    let sql = "SELECT end_ms, text FROM cues WHERE track = $1 AND place > $2 AND place <= $3 ORDER BY place";
    for next in database.rows(sql, values![track, place, it.sequence_ends]).await? {
        hit.end_ms = hit.end_ms.max(next.get::<i64>("end_ms")? - offset);
        hit.text.push('\n');
        hit.text.push_str(&next.get::<String>("text")?);
    }
    Ok(())
}
