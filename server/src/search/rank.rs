//! Ranks one page: joins rows, drops excluded hits, fuses, groups, cuts and merges.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use uuid::Uuid;

use super::arrange::Arrangement;
use super::error::SearchError;
use super::facets;
use super::fold;
use super::fuse::{self, FUSED_DEPTH};
use super::input::RankInput;
use super::late::{self, OfVideo};
use super::merge::merge;
use super::paging::{Position, cut};
use super::plan::SearchPlan;
use super::query_vectors;
use super::spoken::SpokenHit;
use super::standing;
use super::timings::{Timings, millis};
use super::types::{Evidence, Facets, Group, IndexInfo, Levels, Match, Origin, Overlaps, Source};
use crate::app::Authorized;
use crate::catalog::{Filter, SpanWithVideo};
use crate::models::LoadedSpace;
use crate::terms::{Collection, KeySet, Level, QueryVectors, SpanKey, UnitVector, VideoNumber};
use crate::vectors::{Allowed, Ask, Hit, Hits};

/// Hits fetched beyond a page, so that exclusions seldom force a second fetch.
const SLACK: usize = 32;

/// A ranking, best first, as far as it was fetched.
struct Ranking<'a> {
    app: &'a Authorized,
    at: Collection,
    /// Whether these are the results, and not the full videos beside them.
    is_main: bool,
    /// Whether moments rank among the clips.
    moments: bool,
    plan: &'a SearchPlan,
    after: Option<&'a Position>,
    keys: Option<KeySet>,
    /// The videos of these keys, if computed.
    of_videos: Option<Arc<[VideoNumber]>>,
    spoken: Option<Vec<SpokenHit>>,
    /// Pooled score and peak of full videos that are ranked by their clips.
    videos: HashMap<SpanKey, OfVideo>,
    rows: HashMap<SpanKey, Option<SpanWithVideo>>,
    /// How entries are arranged. `None`: they stay as they are.
    arrangement: Option<Arrangement>,
    /// Vectors of entries that were compared.
    units: HashMap<SpanKey, UnitVector>,
    facets: Option<Facets>,
    fetched: Hits,
    wanted: usize,
    rounds: usize,
    timings: Timings,
}

/// One page of a ranking.
pub(super) struct RankedPage {
    pub(super) results: Vec<Match>,
    pub(super) groups: Option<Vec<Group>>,
    /// Full videos beside a first page of clips.
    pub(super) videos: Option<Vec<Match>>,
    /// Position of the last entry. `None` if nothing follows.
    pub(super) end: Option<Position>,
    /// Counts of the best hits, on a first page.
    pub(super) facets: Option<Facets>,
    pub(super) index: IndexInfo,
    pub(super) timings: Timings,
    pub(super) explain: Option<serde_json::Value>,
}

/// Ranks the page after `after`, or the first page.
pub(super) async fn page(
    app: &Authorized,
    space: &LoadedSpace,
    plan: &SearchPlan,
    after: Option<&Position>,
    input: RankInput,
) -> Result<RankedPage, SearchError> {
    let RankInput { keys, videos: allowed, spoken, spoken_of_videos, behind, .. } = input;
    let videos = match (plan.levels, after) {
        (Levels::Both, None) => {
            let of_videos = RankInput {
                keys: keys.clone(),
                videos: allowed.clone(),
                spoken: spoken_of_videos,
                ..RankInput::default()
            };
            let mut ranking = Ranking::new(app, space, Level::Video, plan, of_videos);
            Some((ranking.flat().await?.results, ranking.timings))
        }
        _ => None,
    };
    let input = RankInput { keys, videos: allowed, spoken, ..RankInput::default() };
    let mut ranking = Ranking::new(app, space, plan.levels.of_results(), plan, input);
    ranking.after = after;
    ranking.arrangement = Arrangement::of(plan);
    let page = match plan.shape.per_group {
        None => ranking.flat().await?,
        Some(per_group) => ranking.grouped(per_group).await?,
    };
    let mut timings = ranking.timings;
    timings.add(videos.as_ref().map(|(_, timings)| *timings).unwrap_or_default());
    Ok(RankedPage {
        index: IndexInfo { behind, ..ranking.index_info(space).await? },
        facets: ranking.facets.take(),
        explain: plan.shape.explain.then(|| ranking.explain()),
        results: page.results,
        groups: page.groups,
        videos: videos.map(|(results, _)| results),
        end: page.end,
        timings,
    })
}

struct Page {
    results: Vec<Match>,
    groups: Option<Vec<Group>>,
    end: Option<Position>,
}

impl<'a> Ranking<'a> {
    fn new(
        app: &'a Authorized,
        space: &LoadedSpace,
        level: Level,
        plan: &'a SearchPlan,
        input: RankInput,
    ) -> Self {
        Ranking {
            app,
            at: Collection { space: space.key, level },
            is_main: level == plan.levels.of_results(),
            moments: space.space.temporal && level == Level::Clip,
            plan,
            after: None,
            keys: input.keys,
            of_videos: input.videos,
            spoken: input.spoken,
            videos: HashMap::new(),
            rows: HashMap::new(),
            arrangement: None,
            units: HashMap::new(),
            facets: None,
            fetched: nothing(),
            wanted: 0,
            rounds: 0,
            timings: Timings::default(),
        }
    }

    async fn flat(&mut self) -> Result<Page, SearchError> {
        let (limit, seen) = (self.plan.shape.limit, Position::seen(self.after));
        let mut wanted =
            self.at_least(seen.saturating_add(limit).max(self.known_least()).saturating_add(SLACK));
        loop {
            self.fetch(wanted).await?;
            let ranking = self.matches().await?;
            let is_known = self.known_least() <= ranking.len();
            let mut page = cut(ranking, self.after, limit, self.plan.scores());
            if (page.more && is_known) || self.is_all() {
                number(&mut page.entries, seen);
                let results = self.merged(page.entries.into_iter().map(fold::shown).collect());
                return Ok(Page { results, groups: None, end: page.end.filter(|_| page.more) });
            }
            wanted = wanted.saturating_mul(2);
        }
    }

    async fn grouped(&mut self, per_group: usize) -> Result<Page, SearchError> {
        let limit = self.plan.shape.limit;
        let groups = Position::seen(self.after).saturating_add(limit);
        let hits = groups.saturating_mul(per_group).max(self.known_least());
        let mut wanted = self.at_least(hits.saturating_add(SLACK));
        loop {
            self.fetch(wanted).await?;
            let ranking = self.matches().await?;
            let is_known = self.known_least() <= ranking.len();
            let mut page = cut(group(ranking), self.after, limit, self.plan.scores());
            if (page.more && is_known) || self.is_all() {
                self.fill(&mut page.entries, per_group).await?;
                for group in &mut page.entries {
                    number(&mut group.matches, 0);
                    let entries = std::mem::take(&mut group.matches);
                    group.matches = self.merged(entries.into_iter().map(fold::shown).collect());
                }
                let end = page.end.filter(|_| page.more);
                return Ok(Page { results: Vec::new(), groups: Some(page.entries), end });
            }
            wanted = wanted.saturating_mul(2);
        }
    }

    /// Number of entries that must be known before a page can be cut, if there are as many.
    fn known_least(&self) -> usize {
        let reordered = self.arrangement.map_or(0, |it| it.reordered());
        if self.counts() { reordered.max(facets::DEPTH) } else { reordered }
    }

    /// Whether the page has facets.
    fn counts(&self) -> bool {
        self.after.is_none() && self.is_main && !self.plan.facets.is_empty()
    }

    /// A fused ranking needs each source to its full fusion depth.
    fn at_least(&self, wanted: usize) -> usize {
        if self.spoken.is_some() { wanted.max(FUSED_DEPTH + SLACK) } else { wanted }
    }

    /// Fetches the best `wanted` hits, and the rows that are still missing.
    async fn fetch(&mut self, wanted: usize) -> Result<(), SearchError> {
        self.wanted = wanted;
        self.fetched = self.search(wanted, self.keys.clone()).await?;
        self.rounds += 1;
        let spoken = self.spoken.iter().flatten().map(|hit| hit.key);
        let keys: Vec<SpanKey> = self.fetched.hits.iter().map(|hit| hit.key).chain(spoken).collect();
        self.fetch_rows(&keys).await
    }

    async fn search(&mut self, wanted: usize, only: Option<KeySet>) -> Result<Hits, SearchError> {
        let Some(query) = self.plan.ranking_vectors().cloned() else {
            return Ok(Hits { hits: Vec::new(), complete: true, exact: true });
        };
        let started = Instant::now();
        let only = only.map(|keys| Allowed { keys, videos: self.of_videos.clone() });
        let ask = Ask { k: wanted, only, exact: self.plan.exact };
        let hits = match self.at.level == Level::Video && self.plan.ranks_videos_by_clips() {
            true => self.late(&query, &ask).await?,
            false => self.near(&query, &ask).await?,
        };
        self.timings.search_ms += millis(started);
        Ok(hits)
    }

    async fn near(&self, query: &QueryVectors, ask: &Ask) -> Result<Hits, SearchError> {
        let vectors = &self.app.vectors;
        let hits = query_vectors::search(vectors, self.at, query, ask).await?;
        if !self.moments {
            return Ok(hits);
        }
        let moments = Collection { level: Level::Moment, ..self.at };
        Ok(best(hits, query_vectors::search(vectors, moments, query, ask).await?, ask.k))
    }

    async fn late(&mut self, query: &QueryVectors, ask: &Ask) -> Result<Hits, SearchError> {
        let found = late::search(self.app, self.at.space, query, ask).await?;
        self.videos.extend(found.more);
        Ok(found.hits)
    }

    async fn fetch_rows(&mut self, keys: &[SpanKey]) -> Result<(), SearchError> {
        let started = Instant::now();
        let missing: Vec<SpanKey> = keys.iter().filter(|key| !self.rows.contains_key(key)).copied().collect();
        // A key that stays `None` was deleted after the index returned it.
        self.rows.extend(missing.iter().map(|key| (*key, None)));
        for row in self.app.view().spans_by_key(&missing).await? {
            self.rows.insert(row.span.key, Some(row));
        }
        self.timings.catalog_ms += millis(started);
        Ok(())
    }

    /// Whether the index has no more hits, or the engine returns no more.
    fn is_all(&self) -> bool {
        self.fetched.complete
            || self.is_depth_limited()
            || self.wanted >= self.app.vectors.limits().most_hits
            || self.all_others_are_weaker()
    }

    /// Whether all hits of the search were fetched.
    fn is_complete(&self) -> bool {
        self.fetched.complete || self.all_others_are_weaker()
    }

    /// Whether the last fetched hit has a lower z than the request wants, and therefore all that follow.
    fn all_others_are_weaker(&self) -> bool {
        let backgrounds = self.plan.backgrounds.unwrap_or_default();
        let last = self.fetched.hits.last().filter(|_| self.videos.is_empty());
        let z = last.and_then(|last| backgrounds.visual_z(self.at.level, last.score));
        self.plan.min_z.zip(z).is_some_and(|(min_z, z)| z < min_z)
    }

    /// Whether the engine returned fewer hits than were asked for, although it has more. Engines of this process never do:
    /// there a deletion during the search took hits away.
    fn is_depth_limited(&self) -> bool {
        let is_short = !self.fetched.complete && self.fetched.hits.len() < self.wanted;
        is_short && self.app.vectors.limits().shared
    }

    async fn index_info(&self, space: &LoadedSpace) -> Result<IndexInfo, SearchError> {
        let status = self.app.vectors.status().await?;
        let moments = Collection { level: Level::Moment, ..self.at };
        let searched = |at: Collection| at == self.at || (self.moments && at == moments);
        // A caller with a filter does not learn how many vectors others have.
        let is_limited = self.app.caller().visibility().is_limited();
        let live = match is_limited {
            true => {
                let seen = self.app.view().vector_counts().await?.into_iter();
                seen.filter(|it| searched(it.collection())).map(|it| it.vectors).sum()
            }
            false => status.collections.iter().filter(|it| searched(it.at)).map(|it| it.live).sum(),
        };
        Ok(IndexInfo {
            space: space.space.name.clone(),
            generation: if is_limited { 0 } else { status.generation },
            exact: self.fetched.exact,
            live,
            behind: 0,
            depth_limited: self.is_depth_limited() || self.wanted > self.app.vectors.limits().most_hits,
        })
    }

    /// All fetched hits that are not excluded, best first. Overlapping ones are folded if the request says so.
    /// Near duplicates are folded and hits reordered likewise. Counts them.
    async fn matches(&mut self) -> Result<Vec<Match>, SearchError> {
        let mut ranking = self.ranking();
        self.judge(&mut ranking);
        let ranking = self.arranged(ranking).await?;
        if self.counts() {
            let complete = self.is_complete();
            self.facets = Some(facets::of_ranking(self.app, &self.plan.facets, &ranking, complete).await?);
        }
        Ok(ranking)
    }

    /// Folds near duplicates and reorders hits, if the plan says so.
    async fn arranged(&mut self, ranking: Vec<Match>) -> Result<Vec<Match>, SearchError> {
        let Some(arrangement) = self.arrangement else { return Ok(ranking) };
        let compared = ranking.iter().take(arrangement.compared()).map(|it| it.span.span.key);
        self.fetch_units(compared.collect()).await?;
        let units = std::mem::take(&mut self.units);
        let arrange = move || (arrangement.apply(ranking, &units), units);
        let (ranking, units) = tokio::task::spawn_blocking(arrange).await?;
        self.units = units;
        Ok(ranking)
    }

    /// Fetches the vectors that are still missing.
    async fn fetch_units(&mut self, mut keys: Vec<SpanKey>) -> Result<(), SearchError> {
        let started = Instant::now();
        keys.retain(|key| !self.units.contains_key(key));
        let stored = self.app.catalog.vectors_of(self.at.space, &keys).await?;
        self.units.extend(stored.into_iter().map(|it| (it.span, it.unit)));
        self.timings.catalog_ms += millis(started);
        Ok(())
    }

    /// Compares hits with the query's backgrounds, and leaves out those that are too weak.
    fn judge(&self, ranking: &mut Vec<Match>) {
        let backgrounds = self.plan.backgrounds.unwrap_or_default();
        for found in ranking.iter_mut() {
            let nearest = self.videos.get(&found.span.span.key).map(|it| it.nearest);
            backgrounds.judge(found, nearest);
        }
        if let Some(min_z) = self.plan.min_z {
            ranking.retain(|found| standing::reaches(found, min_z));
        }
    }

    fn ranking(&self) -> Vec<Match> {
        let visual = self.one_per_event(&self.fetched.hits);
        let Some(spoken) = &self.spoken else { return visual };
        let spoken = spoken.iter().filter_map(|it| {
            let found = self.to_match(&Hit { key: it.key, score: it.evidence.score })?;
            Some(Match { evidence: vec![it.evidence.clone()], ..found })
        });
        let mut fused = fuse::fuse(visual, spoken.collect(), self.plan.info.weights);
        match self.plan.shape.overlaps {
            Overlaps::Fold => fold::fold(fused),
            Overlaps::Keep => {
                fused.iter_mut().for_each(|it| it.folded.clear());
                fused
            }
        }
    }

    /// Turns hits into visual matches with evidence. Overlapping ones are folded. Where they are kept, overlapping moments
    /// are suppressed (NMS).
    fn one_per_event(&self, hits: &[Hit]) -> Vec<Match> {
        let matches: Vec<Match> = hits.iter().filter_map(|hit| self.to_match(hit)).collect();
        let mut kept = match self.plan.shape.overlaps {
            Overlaps::Fold => fold::fold(matches.clone()),
            Overlaps::Keep if self.moments => fuse::suppress(&matches),
            Overlaps::Keep => matches.clone(),
        };
        if self.moments {
            fuse::point_at_moments(&mut kept, &matches);
        }
        fuse::add_visual_evidence(&mut kept);
        kept.iter_mut().for_each(|found| self.add_pooled(found));
        kept
    }

    fn add_pooled(&self, found: &mut Match) {
        if let Some(&OfVideo { pooled: score, peak_ms, .. }) = self.videos.get(&found.span.span.key) {
            let rank = 1 + self.videos.values().filter(|it| it.pooled > score).count();
            found.evidence.push(Evidence { source: Source::FullVideo, score, z: None, rank, excerpt: None });
            found.peak_ms = peak_ms;
        }
    }

    fn to_match(&self, hit: &Hit) -> Option<Match> {
        let span = self.rows.get(&hit.key)?.clone()?;
        let found = Match::new(hit.score, span);
        (!self.is_excluded(&found)).then_some(found)
    }

    fn is_excluded(&self, found: &Match) -> bool {
        let exclude = self.plan.exclude;
        self.plan.origins.iter().any(|origin| {
            let same_video = found.span.span.video == origin.video;
            let itself = same_video && (self.at.level == Level::Video || overlaps(origin, found));
            (exclude.same_video && same_video) || (exclude.itself && itself)
        })
    }

    /// Fills each group with its video's best hits, whatever their rank.
    async fn fill(&mut self, groups: &mut [Group], per_group: usize) -> Result<(), SearchError> {
        let lacking: Vec<Uuid> =
            groups.iter().filter(|group| group.matches.len() < per_group).map(|group| group.video).collect();
        if !lacking.is_empty() && !self.is_all() && self.spoken.is_none() {
            let filter = Filter::parse(&json!({"field": "video_id", "in": lacking}))
                .map_err(|_| SearchError::Internal("a page has more groups than a filter has values"))?;
            let mut keys = self.app.view().keys_matching(&filter).await?;
            if let Some(only) = &self.keys {
                keys &= only;
            }
            let hits = self.search(keys.len() as usize, Some(keys)).await?;
            self.fetch_rows(&hits.hits.iter().map(|hit| hit.key).collect::<Vec<_>>()).await?;
            let mut ranking = self.one_per_event(&hits.hits);
            self.judge(&mut ranking);
            for full in group(self.arranged(ranking).await?) {
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
        if !self.plan.shape.merge_adjacent {
            return matches;
        }
        merge(matches, self.app.config.max_clip_ms())
    }

    fn explain(&self) -> serde_json::Value {
        json!({
            "matching": self.fetched.complete.then_some(self.fetched.hits.len()),
            "fetched": self.fetched.hits.len(),
            "rounds": self.rounds,
            "filtered": self.keys.is_some(),
            "exact": self.fetched.exact,
            "gone": self.rows.values().filter(|row| row.is_none()).count(),
        })
    }
}

/// Hits before the first fetch.
fn nothing() -> Hits {
    Hits { hits: Vec::new(), complete: false, exact: false }
}

/// Merges the hits of two levels and keeps the best `wanted`, by score, then by key.
fn best(mut hits: Hits, others: Hits, wanted: usize) -> Hits {
    hits.hits.extend(others.hits);
    let complete = hits.complete && others.complete && hits.hits.len() <= wanted;
    Hit::sort(&mut hits.hits);
    hits.hits.truncate(wanted);
    Hits { complete, exact: hits.exact && others.exact, ..hits }
}

fn number(matches: &mut [Match], before: usize) {
    for (index, found) in matches.iter_mut().enumerate() {
        found.rank = before + index + 1;
        found.folded.iter_mut().chain(&mut found.duplicates).for_each(|it| it.rank = found.rank);
    }
}

/// Groups hits by video, in order of the best match. Members stay in order of score.
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
    // A forged cursor may carry any origin, so the arithmetic must not overflow.
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
