//! Hands answers to the query log.

use std::collections::HashSet;
use std::time::Instant;

use uuid::Uuid;

use super::types::{Image, Match, Origin, Outcome, Query, Request, Source};
use crate::app::Authorized;
use crate::catalog::{Filter, NewSearch, NewSearchPage, SearchFacts, SearchHit, SearchTimes, SourceScore};
use crate::query_log::{AskedExamples, AskedQuery};

/// The log holds hits up to this rank.
const MOST_RANK: usize = 1000;
/// Most hits inside another one that the log holds.
const MOST_INSIDE: usize = 20;

/// Logs the first page of a search. `origins`: the stored ranges that the query shows.
pub(super) fn first_page(app: &Authorized, request: &Request, origins: &[Origin], outcome: &Outcome) {
    let Some(id) = outcome.search_id else { return };
    let caller = app.caller();
    let (kind, times) = (outcome.info.kind, outcome.timings);
    let search = SearchFacts {
        key: caller.key_id(),
        key_name: caller.key().map(|key| key.name.clone()),
        kind,
        space: outcome.index.space.clone(),
        query: app.query_log.keep(kind, &asked(request, origins)),
        live: i64::try_from(outcome.index.live).unwrap_or(i64::MAX),
        times: SearchTimes {
            decode: times.decode_ms,
            encode: times.encode_ms,
            search: times.search_ms,
            catalog: times.catalog_ms,
            total: times.total_ms,
        },
    };
    let first = NewSearch { answered: Instant::now(), search };
    app.query_log.add(NewSearchPage { first: Some(Box::new(first)), ..page(id, 0, outcome) });
}

/// Logs a later page. `before`: number of entries on the pages before it.
pub(super) fn later_page(app: &Authorized, before: usize, outcome: &Outcome) {
    if let Some(id) = outcome.search_id {
        app.query_log.add(page(id, before, outcome));
    }
}

/// The query as it was sent.
fn asked<'a>(request: &'a Request, origins: &[Origin]) -> AskedQuery<'a> {
    let filter = request.filter.as_ref().map(Filter::to_json);
    if let Query::Examples(examples) = &request.query {
        let side = |side: &'a [Query]| side.iter().map(|it| named_by(it, AskedQuery::default())).collect();
        let examples = AskedExamples { like: side(&examples.like), unlike: side(&examples.unlike) };
        return AskedQuery { examples: Some(examples), filter, ..AskedQuery::default() };
    }
    let origin = origins.first();
    let range = AskedQuery {
        text: request.modification.as_deref(),
        video: origin.map(|origin| origin.video),
        start_ms: origin.map(|origin| origin.start_ms),
        end_ms: origin.map(|origin| origin.end_ms),
        filter,
        ..AskedQuery::default()
    };
    named_by(&request.query, range)
}

/// `known`, with what the query itself names.
fn named_by<'a>(query: &'a Query, known: AskedQuery<'a>) -> AskedQuery<'a> {
    match query {
        Query::Text(text) => AskedQuery { text: Some(text), ..known },
        Query::Range { video, start_ms, end_ms } => {
            AskedQuery { video: Some(*video), start_ms: Some(*start_ms), end_ms: Some(*end_ms), ..known }
        }
        Query::Clip(id) => AskedQuery { clip: Some(*id), ..known },
        Query::Image(Image::Stored { video, at_ms }) => {
            AskedQuery { video: Some(*video), start_ms: Some(*at_ms), end_ms: Some(at_ms + 1), ..known }
        }
        Query::Image(Image::Upload { content_hash, .. }) => {
            AskedQuery { upload: Some(content_hash), ..known }
        }
        Query::Examples(_) => known,
        Query::Upload { content_hash, start_ms, end_ms, .. } => {
            AskedQuery { upload: Some(content_hash), start_ms: *start_ms, end_ms: *end_ms, ..known }
        }
    }
}

fn page(search: Uuid, before: usize, outcome: &Outcome) -> NewSearchPage {
    let entries = outcome.groups.as_ref().map_or(outcome.results.len(), Vec::len);
    let grouped = outcome.groups.iter().flatten().flat_map(|group| &group.matches);
    let shown = outcome.results.iter().chain(grouped).chain(outcome.videos.iter().flatten());
    let mut known = HashSet::new();
    let hits = shown.take_while(|found| found.rank <= MOST_RANK).take(MOST_RANK).flat_map(|found| {
        let inside = found.folded.iter().chain(&found.duplicates).chain(&found.merged).take(MOST_INSIDE);
        std::iter::once(hit(found, false)).chain(inside.map(|it| hit(it, true)))
    });
    NewSearchPage {
        search,
        first: None,
        hits: hits.filter(|hit| known.insert((hit.rank, hit.span))).collect(),
        shown: i64::try_from(before.saturating_add(entries)).unwrap_or(i64::MAX),
        exhausted: outcome.exhausted,
    }
}

fn hit(found: &Match, inside: bool) -> SearchHit {
    let span = &found.span.span;
    let source = |source: Source| {
        let evidence = found.evidence.iter().find(|it| it.source == source)?;
        Some(SourceScore {
            score: evidence.score.into(),
            rank: number(evidence.rank),
            z: evidence.z.map(f64::from),
        })
    };
    SearchHit {
        rank: number(found.rank),
        span: span.id,
        video: span.video,
        level: span.level,
        start_ms: span.start_ms,
        end_ms: span.end_ms,
        inside,
        score: found.score.into(),
        visual: source(Source::Visual),
        spoken: source(Source::Spoken),
        screen: source(Source::Screen),
        full_video: source(Source::FullVideo),
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::fuse::tests::found;
    use super::super::types::{Group, IndexInfo, QueryInfo};
    use super::*;
    use crate::search::Timings;

    fn at(rank: usize) -> Match {
        let mut hit = found(1, 1000 * rank as i64, 1000 * rank as i64 + 900, 0.5);
        hit.span.span.id = Uuid::now_v7();
        Match { rank, ..hit }
    }

    fn outcome(results: Vec<Match>) -> Outcome {
        Outcome {
            search_id: Some(Uuid::nil()),
            results,
            videos: None,
            groups: None,
            next_cursor: None,
            exhausted: true,
            near_duplicates: None,
            facets: None,
            info: QueryInfo::of_clip(0),
            index: IndexInfo {
                space: String::new(),
                generation: 0,
                exact: false,
                live: 0,
                behind: 0,
                depth_limited: false,
            },
            timings: Timings::default(),
            explain: None,
        }
    }

    /// `expected`: rank and `inside` of each logged hit.
    #[track_caller]
    fn check(outcome: &Outcome, expected: &[(i64, bool)]) {
        let logged = page(Uuid::nil(), 0, outcome).hits;
        let got: Vec<(i64, bool)> = logged.iter().map(|hit| (hit.rank, hit.inside)).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn what_was_folded_or_merged_is_inside_its_hit() {
        let mut folded = at(1);
        folded.folded = vec![at(1), at(1)];
        let mut merged = at(2);
        merged.merged = vec![merged.clone(), at(3)];
        check(&outcome(vec![folded, merged]), &[(1, false), (1, true), (1, true), (2, false), (3, true)]);
    }

    #[test]
    fn groups_and_full_videos_are_logged_too() {
        let grouped = outcome(Vec::new());
        let group = Group { video: Uuid::nil(), score: 0.5, matches: vec![at(1), at(3)] };
        check(&Outcome { groups: Some(vec![group]), ..grouped }, &[(1, false), (3, false)]);
        let both = Outcome { videos: Some(vec![at(1)]), ..outcome(vec![at(1)]) };
        check(&both, &[(1, false), (1, false)]);
    }

    #[test]
    fn a_long_answer_is_logged_in_part() {
        let mut long = at(1);
        long.folded = (0..2 * MOST_INSIDE).map(|_| at(1)).collect();
        let logged = page(Uuid::nil(), 0, &outcome(vec![long]));
        assert_eq!(logged.hits.len(), 1 + MOST_INSIDE);
        let deep = outcome((MOST_RANK - 1..MOST_RANK + 3).map(at).collect());
        let logged = page(Uuid::nil(), MOST_RANK - 2, &deep);
        assert_eq!((logged.hits.len(), logged.shown), (2, MOST_RANK as i64 + 2));
    }
}
