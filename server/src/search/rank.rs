//! Index hits to one page of matches: joined with their rows, cut down by what is excluded, grouped, merged.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use reprise_index::{Filter as KeyFilter, Hit, Hits, Level, Mode, SpaceLevel};
use roaring::RoaringBitmap;
use serde_json::json;
use uuid::Uuid;

use super::cursor::Last;
use super::fuse::FUSED_DEPTH;
use super::merge::merge;
use super::spoken::Heard;
use super::windows::QueryVectors;
use super::{
    Cursor, Evidence, Group, IndexInfo, Levels, Match, Origin, Outcome, SearchError, Source, Timings, fuse,
    late, millis,
};
use crate::app::App;
use crate::catalog::{Filter, SpanWithVideo};
use crate::config::QueryKind;
use crate::gallery::GalleryError;
use crate::spaces::LoadedSpace;

/// Hits fetched beyond those asked for, so that exclusions seldom need a second round.
const SLACK: usize = 32;

/// Matches from the best on, as far as they were fetched.
struct Ranking<'a> {
    app: &'a App,
    at: SpaceLevel,
    /// Whether moments are answered among the clips.
    moments: bool,
    cursor: &'a Cursor,
    keys: Option<Arc<RoaringBitmap>>,
    heard: Option<Vec<Heard>>,
    /// Of full videos whose clips decide: the cosine with their own vector, and where the best clip is.
    videos: HashMap<u32, (f32, Option<i64>)>,
    rows: HashMap<u32, Option<SpanWithVideo>>,
    fetched: Hits,
    wanted: usize,
    rounds: usize,
    timings: Timings,
}

/// What is looked for, beside the cursor: which keys may be answered, and what was heard at each level.
pub(super) struct Sought {
    pub(super) keys: Option<Arc<RoaringBitmap>>,
    /// `None`: what is said is not part of this ranking.
    pub(super) heard: Option<Vec<Heard>>,
    /// The same for the full videos beside clips.
    pub(super) heard_of_videos: Option<Vec<Heard>>,
}

/// One page: the hits after `cursor`'s place.
pub(super) async fn page(
    app: &App,
    space: &Arc<LoadedSpace>,
    cursor: Cursor,
    sought: Sought,
) -> Result<Outcome, SearchError> {
    let level = cursor.state.levels.of_results();
    let mut ranking = Ranking::new(app, (space, level), &cursor, (sought.keys.clone(), sought.heard));
    let page = match cursor.state.per_group {
        None => ranking.flat().await?,
        Some(per_group) => ranking.grouped(per_group).await?,
    };
    let videos = match (cursor.state.levels, cursor.state.last) {
        (Levels::Both, None) => {
            let keys = (sought.keys, sought.heard_of_videos);
            Some(full_videos(app, space, &cursor, keys, &mut ranking.timings).await?)
        }
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
    sought: (Option<Arc<RoaringBitmap>>, Option<Vec<Heard>>),
    timings: &mut Timings,
) -> Result<Vec<Match>, SearchError> {
    let mut ranking = Ranking::new(app, (space, Level::Video), cursor, sought);
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
        (keys, heard): (Option<Arc<RoaringBitmap>>, Option<Vec<Heard>>),
    ) -> Self {
        let fetched = nothing();
        Ranking {
            app,
            at: SpaceLevel { space: space.key, level },
            moments: space.space.temporal && level == Level::Clip,
            cursor,
            keys,
            heard,
            videos: HashMap::new(),
            rows: HashMap::new(),
            fetched,
            wanted: 0,
            rounds: 0,
            timings: Timings::default(),
        }
    }

    async fn flat(&mut self) -> Result<Page, SearchError> {
        let limit = self.cursor.state.limit;
        let mut wanted = self.at_least(self.cursor.state.seen + limit + SLACK);
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
        let mut wanted = self.at_least((self.cursor.state.seen + limit) * per_group + SLACK);
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

    /// A fused ranking needs as much of each source as counts for the other.
    fn at_least(&self, wanted: usize) -> usize {
        if self.heard.is_some() { wanted.max(FUSED_DEPTH + SLACK) } else { wanted }
    }

    /// Fetches the best `wanted` hits and the rows of those not seen yet.
    async fn fetch(&mut self, wanted: usize) -> Result<(), SearchError> {
        self.wanted = wanted;
        self.fetched = self.search(wanted, self.keys.clone()).await?;
        self.rounds += 1;
        let heard = self.heard.iter().flatten().map(|heard| heard.key);
        let keys: Vec<u32> = self.fetched.hits.iter().map(|hit| hit.key).chain(heard).collect();
        self.fetch_rows(&keys).await
    }

    /// What is seen counts if a vector is sought and its source has a weight.
    fn sees(&self) -> Option<QueryVectors> {
        let weight = if self.heard.is_some() { self.cursor.state.info.weights.visual } else { Some(1.0) };
        self.cursor.vectors.clone().filter(|_| weight.is_some_and(|weight| weight > 0.0))
    }

    async fn search(&mut self, wanted: usize, only: Option<Arc<RoaringBitmap>>) -> Result<Hits, SearchError> {
        let Some(query) = self.sees() else { return Ok(Hits { matching: 0, exact: true, ..nothing() }) };
        let started = Instant::now();
        let mode = if self.cursor.state.exact { Mode::Exact } else { Mode::Auto };
        let hits = match self.at.level == Level::Video && self.cursor.state.info.kind == QueryKind::Text {
            true => self.late(&query, wanted, only, mode).await?,
            false => self.near(query, wanted, only, mode).await?,
        };
        self.timings.search_ms += millis(started);
        Ok(hits)
    }

    async fn near(
        &self,
        query: QueryVectors,
        wanted: usize,
        only: Option<Arc<RoaringBitmap>>,
        mode: Mode,
    ) -> Result<Hits, SearchError> {
        let (gallery, at) = (Arc::clone(&self.app.gallery), self.at);
        let moments = self.moments.then_some(SpaceLevel { level: Level::Moment, ..at });
        let searched = tokio::task::spawn_blocking(move || {
            let filter = KeyFilter { only };
            let hits = query.search(&gallery, at, wanted, (&filter, mode))?;
            match moments {
                Some(at) => Ok(best(hits, query.search(&gallery, at, wanted, (&filter, mode))?, wanted)),
                None => Ok::<_, GalleryError>(hits),
            }
        });
        Ok(searched.await.map_err(|panic| SearchError::Internal(panic.to_string()))??)
    }

    async fn late(
        &mut self,
        query: &QueryVectors,
        wanted: usize,
        only: Option<Arc<RoaringBitmap>>,
        mode: Mode,
    ) -> Result<Hits, SearchError> {
        let found = late::search(self.app, self.at.space, query, (wanted, only), mode).await?;
        self.videos.extend(found.more);
        Ok(found.hits)
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

    /// All that was fetched and may be answered, best first.
    fn matches(&self) -> Vec<Match> {
        let seen = self.one_a_event(&self.fetched.hits);
        let Some(heard) = &self.heard else { return seen };
        let heard = heard.iter().filter_map(|it| {
            let found = self.to_match(&Hit { key: it.key, score: it.evidence.score })?;
            Some(Match { evidence: vec![it.evidence.clone()], ..found })
        });
        fuse::fuse(seen, heard.collect(), self.cursor.state.info.weights)
    }

    /// What is seen in these hits, with its evidence; of windows that show one event the best.
    fn one_a_event(&self, hits: &[Hit]) -> Vec<Match> {
        let matches: Vec<Match> = hits.iter().filter_map(|hit| self.to_match(hit)).collect();
        let mut kept = match self.moments {
            true => fuse::suppress(&matches),
            false => matches.clone(),
        };
        if self.moments {
            fuse::point_at_moments(&mut kept, &matches);
        }
        fuse::seen(&mut kept);
        kept.iter_mut().for_each(|found| self.add_pooled(found));
        kept
    }

    fn add_pooled(&self, found: &mut Match) {
        if let Some(&(score, peak_ms)) = self.videos.get(&found.span.span.key) {
            let rank = 1 + self.videos.values().filter(|it| it.0 > score).count();
            found.evidence.push(Evidence { source: Source::FullVideo, score, rank, said: None });
            found.peak_ms = peak_ms;
        }
    }

    fn to_match(&self, hit: &Hit) -> Option<Match> {
        let span = self.rows.get(&hit.key)?.clone()?;
        let found = Match::new(hit.score, span);
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
        if !lacking.is_empty() && !self.is_all() && self.heard.is_none() {
            let filter = Filter::parse(&json!({"field": "video_id", "in": lacking}))
                .map_err(|error| SearchError::Internal(error.to_string()))?;
            let mut keys = self.app.catalog.keys_matching(&filter).await?;
            if let Some(only) = &self.keys {
                keys &= &**only;
            }
            let hits = self.search(keys.len() as usize, Some(Arc::new(keys))).await?;
            self.fetch_rows(&hits.hits.iter().map(|hit| hit.key).collect::<Vec<_>>()).await?;
            for full in group(self.one_a_event(&hits.hits)) {
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

/// Before anything was fetched.
fn nothing() -> Hits {
    Hits { hits: Vec::new(), matching: u64::MAX, exact: false, unreadable: Vec::new() }
}

/// The best `wanted` of two levels, in the order that the index gives: by score, then by key.
fn best(mut hits: Hits, others: Hits, wanted: usize) -> Hits {
    hits.hits.extend(others.hits);
    hits.hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.key.cmp(&other.key)));
    hits.hits.truncate(wanted);
    let matching = hits.matching.saturating_add(others.matching);
    Hits { matching, exact: hits.exact && others.exact, ..hits }
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

#[cfg(test)]
mod tests {
    use super::super::fuse::tests::found;
    use super::*;

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
