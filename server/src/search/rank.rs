//! Index hits to one page of matches: joined with their rows, cut down by what is excluded, grouped, merged.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use reprise_index::{Filter as KeyFilter, Hit, Hits, IndexError, Level, Mode, SpaceLevel};
use roaring::RoaringBitmap;
use serde_json::json;
use uuid::Uuid;

use super::cursor::Last;
use super::{Cursor, Group, IndexInfo, Levels, Match, Origin, Outcome, SearchError, Timings, millis};
use crate::app::App;
use crate::catalog::{Filter, Span, SpanWithVideo};
use crate::spaces::LoadedSpace;

/// Hits fetched beyond those asked for, so that exclusions seldom need a second round.
const SLACK: usize = 32;
/// Neighbours are merged only if they score at least this share of the best.
const MERGE_SHARE: f32 = 0.9;

/// Matches from the best on, as far as they were fetched.
struct Ranking<'a> {
    app: &'a App,
    at: SpaceLevel,
    /// Whether moments are answered among the clips.
    moments: bool,
    cursor: &'a Cursor,
    keys: Option<Arc<RoaringBitmap>>,
    rows: HashMap<u32, Option<SpanWithVideo>>,
    fetched: Hits,
    wanted: usize,
    rounds: usize,
    timings: Timings,
}

/// One page: the hits after `cursor`'s place.
pub(super) async fn page(
    app: &App,
    space: &Arc<LoadedSpace>,
    cursor: Cursor,
    keys: Option<Arc<RoaringBitmap>>,
) -> Result<Outcome, SearchError> {
    let mut ranking = Ranking::new(app, (space, cursor.state.levels.of_results()), &cursor, keys.clone());
    let page = match cursor.state.per_group {
        None => ranking.flat().await?,
        Some(per_group) => ranking.grouped(per_group).await?,
    };
    let videos = match (cursor.state.levels, cursor.state.last) {
        (Levels::Both, None) => Some(full_videos(app, space, &cursor, keys, &mut ranking.timings).await?),
        _ => None,
    };
    let next_cursor = match (&page.last, page.exhausted) {
        (Some(last), false) => Some(cursor.after(*last, page.seen).encode()?),
        _ => None,
    };
    Ok(Outcome {
        explain: cursor.state.explain.then(|| ranking.explain()),
        index: IndexInfo {
            space: space.space.name.clone(),
            generation: cursor.state.generation,
            exact: ranking.fetched.exact,
            live: ranking.live(),
        },
        results: page.results,
        groups: page.groups,
        videos,
        next_cursor,
        exhausted: page.exhausted,
        info: cursor.info(),
        timings: ranking.timings,
    })
}

/// The full videos beside a first page of clips.
async fn full_videos(
    app: &App,
    space: &LoadedSpace,
    cursor: &Cursor,
    keys: Option<Arc<RoaringBitmap>>,
    timings: &mut Timings,
) -> Result<Vec<Match>, SearchError> {
    let mut ranking = Ranking::new(app, (space, Level::Video), cursor, keys);
    let page = ranking.flat().await?;
    timings.search_ms += ranking.timings.search_ms;
    timings.catalog_ms += ranking.timings.catalog_ms;
    Ok(page.results)
}

struct Page {
    results: Vec<Match>,
    groups: Option<Vec<Group>>,
    exhausted: bool,
    last: Option<Last>,
    seen: usize,
}

impl<'a> Ranking<'a> {
    fn new(
        app: &'a App,
        (space, level): (&LoadedSpace, Level),
        cursor: &'a Cursor,
        keys: Option<Arc<RoaringBitmap>>,
    ) -> Self {
        let fetched = Hits { hits: Vec::new(), matching: u64::MAX, exact: false, unreadable: Vec::new() };
        Ranking {
            app,
            at: SpaceLevel { space: space.key, level },
            moments: space.space.temporal && level == Level::Clip,
            cursor,
            keys,
            rows: HashMap::new(),
            fetched,
            wanted: 0,
            rounds: 0,
            timings: Timings::default(),
        }
    }

    async fn flat(&mut self) -> Result<Page, SearchError> {
        let limit = self.cursor.state.limit;
        let mut wanted = self.cursor.state.seen + limit + SLACK;
        loop {
            self.fetch(wanted).await?;
            let mut matches = self.matches();
            matches.retain(|found| self.is_ahead(found));
            if matches.len() > limit || self.is_all() {
                let exhausted = matches.len() <= limit;
                matches.truncate(limit);
                let last = matches.last().map(place);
                let seen = self.cursor.state.seen + matches.len();
                number(&mut matches, self.cursor.state.seen);
                let results = self.merged(matches);
                return Ok(Page { results, groups: None, exhausted, last, seen });
            }
            wanted *= 2;
        }
    }

    async fn grouped(&mut self, per_group: usize) -> Result<Page, SearchError> {
        let limit = self.cursor.state.limit;
        let mut wanted = (self.cursor.state.seen + limit) * per_group + SLACK;
        loop {
            self.fetch(wanted).await?;
            let mut groups = group(self.matches());
            groups.retain(|group| group.matches.first().is_some_and(|best| self.is_ahead(best)));
            if groups.len() > limit || self.is_all() {
                let exhausted = groups.len() <= limit;
                groups.truncate(limit);
                self.fill(&mut groups, per_group).await?;
                let last = groups.last().and_then(|group| group.matches.first()).map(place);
                let seen = self.cursor.state.seen + groups.len();
                for group in &mut groups {
                    number(&mut group.matches, 0);
                    group.matches = self.merged(std::mem::take(&mut group.matches));
                }
                return Ok(Page { results: Vec::new(), groups: Some(groups), exhausted, last, seen });
            }
            wanted *= 2;
        }
    }

    /// Fetches the best `wanted` hits and the rows of those not seen yet.
    async fn fetch(&mut self, wanted: usize) -> Result<(), SearchError> {
        self.wanted = wanted;
        self.fetched = self.search(wanted, self.keys.clone()).await?;
        self.rounds += 1;
        let keys: Vec<u32> = self.fetched.hits.iter().map(|hit| hit.key).collect();
        self.fetch_rows(&keys).await
    }

    async fn search(&mut self, wanted: usize, only: Option<Arc<RoaringBitmap>>) -> Result<Hits, SearchError> {
        let started = Instant::now();
        let (index, at, query) = (Arc::clone(self.app.gallery.index()), self.at, self.cursor.vectors.clone());
        let mode = if self.cursor.state.exact { Mode::Exact } else { Mode::Auto };
        let moments = self.moments.then_some(SpaceLevel { level: Level::Moment, ..at });
        let searched = tokio::task::spawn_blocking(move || {
            let filter = KeyFilter { only };
            let hits = query.search(&index, at, wanted, (&filter, mode))?;
            match moments {
                Some(at) => Ok(best(hits, query.search(&index, at, wanted, (&filter, mode))?, wanted)),
                None => Ok::<_, IndexError>(hits),
            }
        });
        let hits = searched.await.map_err(|panic| SearchError::Internal(panic.to_string()))??;
        self.timings.search_ms += millis(started);
        Ok(hits)
    }

    async fn fetch_rows(&mut self, keys: &[u32]) -> Result<(), SearchError> {
        let started = Instant::now();
        let missing: Vec<u32> = keys.iter().filter(|key| !self.rows.contains_key(key)).copied().collect();
        // A key that stays `None` was deleted since the index heard of it.
        self.rows.extend(missing.iter().map(|key| (*key, None)));
        for row in self.app.catalog.spans_by_key(&missing).await? {
            self.rows.insert(row.span.key, Some(row));
        }
        self.timings.catalog_ms += millis(started);
        Ok(())
    }

    /// Whether the index has nothing beyond what was fetched: it gave fewer hits than it was asked for.
    fn is_all(&self) -> bool {
        self.fetched.matching <= self.fetched.hits.len() as u64 || self.fetched.hits.len() < self.wanted
    }

    fn live(&self) -> u64 {
        let index = self.app.gallery.index();
        let moments = SpaceLevel { level: Level::Moment, ..self.at };
        index.live(self.at) + if self.moments { index.live(moments) } else { 0 }
    }

    fn matches(&self) -> Vec<Match> {
        let matches = self.fetched.hits.iter().filter_map(|hit| self.to_match(hit)).collect();
        if self.moments { suppress(matches) } else { matches }
    }

    fn to_match(&self, hit: &Hit) -> Option<Match> {
        let span = self.rows.get(&hit.key)?.clone()?;
        let found = Match { rank: 0, score: hit.score, span, merged: Vec::new() };
        (!self.is_excluded(&found)).then_some(found)
    }

    fn is_excluded(&self, found: &Match) -> bool {
        let Some(origin) = self.cursor.state.origin else { return false };
        let exclude = self.cursor.state.exclude;
        let same_video = found.span.span.video == origin.video;
        let itself = same_video && (self.at.level == Level::Video || overlaps(&origin, found));
        (exclude.same_video && same_video) || (exclude.itself && itself)
    }

    /// Whether a match comes after the pages before.
    fn is_ahead(&self, found: &Match) -> bool {
        self.cursor.state.last.is_none_or(|last| {
            let last_score = f32::from_bits(last.score_bits);
            found.score < last_score || (found.score == last_score && last.key < found.span.span.key)
        })
    }

    /// Completes groups with the best hits of their videos, wherever they rank.
    async fn fill(&mut self, groups: &mut [Group], per_group: usize) -> Result<(), SearchError> {
        let lacking: Vec<Uuid> =
            groups.iter().filter(|group| group.matches.len() < per_group).map(|group| group.video).collect();
        if !lacking.is_empty() && !self.is_all() {
            let filter = Filter::parse(&json!({"field": "video_id", "in": lacking}))
                .map_err(|error| SearchError::Internal(error.to_string()))?;
            let mut keys = self.app.catalog.keys_matching(&filter).await?;
            if let Some(only) = &self.keys {
                keys &= &**only;
            }
            let hits = self.search(keys.len() as usize, Some(Arc::new(keys))).await?;
            self.fetch_rows(&hits.hits.iter().map(|hit| hit.key).collect::<Vec<_>>()).await?;
            let matches: Vec<Match> = hits.hits.iter().filter_map(|hit| self.to_match(hit)).collect();
            for full in group(if self.moments { suppress(matches) } else { matches }) {
                if let Some(group) = groups.iter_mut().find(|group| group.video == full.video)
                    && group.matches.len() < full.matches.len()
                {
                    group.matches = full.matches;
                }
            }
        }
        groups.iter_mut().for_each(|group| group.matches.truncate(per_group));
        Ok(())
    }

    fn merged(&self, matches: Vec<Match>) -> Vec<Match> {
        if !self.cursor.state.merge_adjacent {
            return matches;
        }
        merge(matches, self.app.config.max_clip_ms())
    }

    fn explain(&self) -> serde_json::Value {
        json!({
            "matching": self.fetched.matching,
            "fetched": self.fetched.hits.len(),
            "rounds": self.rounds,
            "filtered": self.keys.is_some(),
            "exact": self.fetched.exact,
            "gone": self.rows.values().filter(|row| row.is_none()).count(),
        })
    }
}

/// The best `wanted` of two levels, in the order that the index gives: by score, then by key.
fn best(mut hits: Hits, others: Hits, wanted: usize) -> Hits {
    hits.hits.extend(others.hits);
    hits.hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.key.cmp(&other.key)));
    hits.hits.truncate(wanted);
    hits.unreadable.extend(others.unreadable);
    let matching = hits.matching.saturating_add(others.matching);
    Hits { matching, exact: hits.exact && others.exact, ..hits }
}

/// Leaves out what overlaps a better match of its video by more than half of their union, where one of the two
/// is a moment: windows overlap each other and their clip, and one event is one answer. Clips stay: those that
/// overlap were given so.
fn suppress(matches: Vec<Match>) -> Vec<Match> {
    let mut kept: Vec<Match> = Vec::with_capacity(matches.len());
    let mut of_video: HashMap<Uuid, Vec<usize>> = HashMap::new();
    for found in matches {
        let better = of_video.entry(found.span.span.video).or_default();
        if better.iter().any(|at| is_same_event(&kept[*at].span.span, &found.span.span)) {
            continue;
        }
        better.push(kept.len());
        kept.push(found);
    }
    kept
}

fn is_same_event(one: &Span, other: &Span) -> bool {
    let shared = one.end_ms.min(other.end_ms) - one.start_ms.max(other.start_ms);
    let union = one.end_ms.max(other.end_ms) - one.start_ms.min(other.start_ms);
    (one.level == Level::Moment || other.level == Level::Moment) && union < 2 * shared
}

fn place(found: &Match) -> Last {
    Last { score_bits: found.score.to_bits(), key: found.span.span.key, video: found.span.span.video }
}

fn number(matches: &mut [Match], before: usize) {
    for (index, found) in matches.iter_mut().enumerate() {
        found.rank = before + index + 1;
    }
}

/// Groups in order of their best match; members in order of score.
fn group(matches: Vec<Match>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<Uuid, usize> = HashMap::new();
    for found in matches {
        let video = found.span.span.video;
        let place = *places.entry(video).or_insert_with(|| {
            groups.push(Group { video, score: found.score, matches: Vec::new() });
            groups.len() - 1
        });
        groups[place].matches.push(found);
    }
    groups
}

/// Whether the two share more than half of the shorter one.
fn overlaps(origin: &Origin, found: &Match) -> bool {
    let span = &found.span.span;
    // A cursor may carry any origin.
    let shared = origin.end_ms.min(span.end_ms).saturating_sub(origin.start_ms.max(span.start_ms));
    let shorter = origin.end_ms.saturating_sub(origin.start_ms).min(span.end_ms - span.start_ms);
    0 < shared && shorter < 2 * shared
}

/// Joins neighbours that both score near the best of the list, never past the longest clip.
fn merge(matches: Vec<Match>, max_clip_ms: i64) -> Vec<Match> {
    let Some(best) = matches.first().map(|best| best.score) else { return matches };
    let is_good = |it: &Match| best > 0.0 && MERGE_SHARE * best <= it.score;
    let joins = |it: &Match, found: &Match| touches(it, found) && joined_ms(it, found) <= max_clip_ms;
    let (good, others): (Vec<Match>, Vec<Match>) = matches.into_iter().partition(is_good);
    let mut merged: Vec<Match> = Vec::new();
    for mut found in good {
        let mut place = merged.len();
        // What lies between two neighbours joins both of them; the best keeps its place.
        while let Some(at) = merged.iter().position(|it| joins(it, &found)) {
            found = join(merged.remove(at), found);
            place = place.min(at);
        }
        merged.insert(place.min(merged.len()), found);
    }
    merged.extend(others);
    merged
}

fn touches(one: &Match, other: &Match) -> bool {
    let (one, other) = (&one.span.span, &other.span.span);
    one.video == other.video && (one.end_ms == other.start_ms || other.end_ms == one.start_ms)
}

fn joined_ms(one: &Match, other: &Match) -> i64 {
    let (one, other) = (&one.span.span, &other.span.span);
    one.end_ms.max(other.end_ms) - one.start_ms.min(other.start_ms)
}

/// The better one grows and keeps score and rank; the original hits stay inside, in order of rank.
fn join(one: Match, other: Match) -> Match {
    let (mut better, worse) = if one.rank <= other.rank { (one, other) } else { (other, one) };
    let (start_ms, end_ms) = (worse.span.span.start_ms, worse.span.span.end_ms);
    let mut inside = [originals(better.clone()), originals(worse)].concat();
    inside.sort_by_key(|it| it.rank);
    better.merged = inside;
    let span = &mut better.span.span;
    span.start_ms = span.start_ms.min(start_ms);
    span.end_ms = span.end_ms.max(end_ms);
    better
}

fn originals(found: Match) -> Vec<Match> {
    if found.merged.is_empty() { vec![found] } else { found.merged }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Span;

    fn found(video: u128, start_ms: i64, end_ms: i64, score: f32) -> Match {
        let span = Span {
            key: u32::try_from(start_ms).unwrap(),
            id: Uuid::from_u128(1),
            video: Uuid::from_u128(video),
            level: Level::Clip,
            given: false,
            start_ms,
            end_ms,
            metadata: json!({}),
        };
        let span = SpanWithVideo {
            span,
            title: String::new(),
            video_metadata: json!({}),
            media_offset_ms: 0,
            duration_ms: 60_000,
        };
        Match { rank: 0, score, span, merged: Vec::new() }
    }

    /// Hits as (video, start, end, score), best first; after merging at most 10 s: (rank, start, end, hits inside).
    #[track_caller]
    fn check(hits: &[(u128, i64, i64, f32)], expected: &[(usize, i64, i64, usize)]) {
        let mut matches: Vec<Match> = hits.iter().map(|it| found(it.0, it.1, it.2, it.3)).collect();
        number(&mut matches, 0);
        let merged = merge(matches, 10_000);
        let got: Vec<_> = merged
            .iter()
            .map(|it| (it.rank, it.span.span.start_ms, it.span.span.end_ms, it.merged.len()))
            .collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn neighbours_are_joined_in_whatever_order_they_rank() {
        check(&[(1, 0, 2000, 0.5), (1, 2000, 4000, 0.49)], &[(1, 0, 4000, 2)]);
        check(&[(1, 2000, 4000, 0.5), (1, 0, 2000, 0.49)], &[(1, 0, 4000, 2)]);
    }

    #[test]
    fn what_lies_between_two_hits_joins_both() {
        check(
            &[(2, 0, 1000, 0.5), (1, 0, 2000, 0.5), (1, 4000, 6000, 0.5), (1, 2000, 4000, 0.49)],
            &[(1, 0, 1000, 0), (2, 0, 6000, 3)],
        );
    }

    #[test]
    fn hits_that_score_under_nine_tenths_of_the_best_stay_alone() {
        check(&[(1, 0, 2000, 0.5), (1, 2000, 4000, 0.44)], &[(1, 0, 2000, 0), (2, 2000, 4000, 0)]);
        check(&[(1, 0, 2000, -0.1), (1, 2000, 4000, -0.1)], &[(1, 0, 2000, 0), (2, 2000, 4000, 0)]);
    }

    #[test]
    fn nothing_is_joined_past_the_longest_clip_or_across_a_gap_or_two_videos() {
        check(&[(1, 0, 6000, 0.5), (1, 6000, 12_000, 0.5)], &[(1, 0, 6000, 0), (2, 6000, 12_000, 0)]);
        check(&[(1, 0, 2000, 0.5), (1, 2001, 4000, 0.5)], &[(1, 0, 2000, 0), (2, 2001, 4000, 0)]);
        check(&[(1, 0, 2000, 0.5), (2, 2000, 4000, 0.5)], &[(1, 0, 2000, 0), (2, 2000, 4000, 0)]);
    }

    /// Hits of one video as (level, start, end), best first; which are left, by start and end.
    #[track_caller]
    fn check_suppressed(hits: &[(Level, i64, i64)], expected: &[(i64, i64)]) {
        let of_level = |(level, start_ms, end_ms): &(Level, i64, i64)| {
            let mut found = found(1, *start_ms, *end_ms, 0.5);
            found.span.span.level = *level;
            found
        };
        let left = suppress(hits.iter().map(of_level).collect());
        let left: Vec<(i64, i64)> =
            left.iter().map(|it| (it.span.span.start_ms, it.span.span.end_ms)).collect();
        assert_eq!(left, expected);
    }

    #[test]
    fn of_windows_that_overlap_by_more_than_half_of_their_union_the_best_is_left() {
        use Level::{Clip, Moment};
        check_suppressed(
            &[(Moment, 0, 2000), (Moment, 500, 2400), (Moment, 1000, 3000)],
            &[(0, 2000), (1000, 3000)],
        );
        check_suppressed(&[(Clip, 0, 3000), (Moment, 0, 2000), (Moment, 0, 1000)], &[(0, 3000), (0, 1000)]);
        check_suppressed(&[(Moment, 0, 2000), (Clip, 0, 3000)], &[(0, 2000)]);
        check_suppressed(&[(Clip, 0, 3000), (Clip, 0, 2900)], &[(0, 3000), (0, 2900)]);
    }

    #[test]
    fn windows_of_two_videos_do_not_suppress_each_other() {
        let mut other = found(2, 0, 2000, 0.4);
        other.span.span.level = Level::Moment;
        assert_eq!(suppress(vec![found(1, 0, 2000, 0.5), other]).len(), 2);
    }

    #[test]
    fn the_query_itself_is_what_shares_over_half_of_the_shorter_one() {
        let origin = Origin { video: Uuid::from_u128(1), start_ms: 1000, end_ms: 3000 };
        let overlapping = |start_ms, end_ms| overlaps(&origin, &found(1, start_ms, end_ms, 0.5));
        assert!(overlapping(1000, 3000));
        assert!(overlapping(1500, 2000));
        assert!(overlapping(0, 9000));
        assert!(overlapping(1999, 4000));
        assert!(!overlapping(2000, 4000));
        assert!(!overlapping(3000, 4000));
        let forged = Origin { start_ms: i64::MIN, end_ms: i64::MAX, ..origin };
        assert!(overlaps(&forged, &found(1, 0, 1000, 0.5)));
        let inverted = Origin { start_ms: i64::MAX, end_ms: i64::MIN, ..origin };
        assert!(!overlaps(&inverted, &found(1, 0, 1000, 0.5)));
    }
}
