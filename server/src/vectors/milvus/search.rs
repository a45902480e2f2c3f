//! Searches: how Milvus is asked for allowed keys only, and when an answer is complete.

use std::collections::HashMap;

use milvus::v2::prelude::{ConsistencyLevel, Ids, MetricType, SearchRequest, SearchVectors};

use super::client::{ANSWER_BYTES, Client, ROWS, UNIT, odd};
use super::rows::{self, KEY, LISTED, REQUEST_BYTES};
use crate::terms::{KeySet, SpanKey, UnitVector};
use crate::vectors::{Allowed, EngineError, Hit, Hits, Scored};

/// Up to this many allowed keys are read and compared one by one, which is exact.
const COMPARED: u64 = 1_000;
/// Most videos in one filter.
const VIDEOS: usize = 100_000;
/// Further hits per query. They order most equal scores at the last place by key. They also show without a count that
/// an answer is not complete.
const SPARE: usize = 64;
/// Scores that differ by no more may be of equal vectors.
const NEARLY: f32 = 1e-6;
/// Fewest candidates of a search (HNSW's ef).
const CANDIDATES: usize = 256;
/// Most candidates of a search; Milvus wants at least as many as hits.
const MOST_CANDIDATES: usize = 2 * ROWS;

/// A search of one collection.
pub(super) struct Search<'a> {
    pub(super) client: &'a Client,
    /// The collection.
    pub(super) name: &'a str,
    /// Most hits per query.
    pub(super) k: usize,
    pub(super) only: Option<&'a Allowed>,
}

/// What Milvus answered to one query.
#[derive(Clone, Default)]
struct Found {
    /// The allowed hits; may be more than `k`.
    hits: Vec<Hit>,
    /// Number of hits, allowed or not.
    all: u64,
}

impl Search<'_> {
    /// The nearest allowed keys of each query.
    pub(super) async fn run(&self, queries: &[UnitVector]) -> Result<Vec<Hits>, EngineError> {
        if let Some(only) = self.only
            && only.keys.len() <= COMPARED
        {
            return self.compare(&only.keys, queries).await;
        }
        let filter = self.filter();
        let found = self.ask(&filter, queries).await?;
        if found.iter().all(|found| found.hits.len() > self.k) {
            return Ok(found.into_iter().map(|found| self.answer(found, false)).collect());
        }
        let matching = self.client.count(self.name, &filter).await?;
        let is_short = |found: &Found| found.hits.len() < self.k && found.all < matching;
        if found.iter().any(is_short) && matching <= LISTED as u64 {
            // The graph has lost a few.
            return self.compare(&self.matching().await?, queries).await;
        }
        let answers = found.into_iter().map(|found| {
            let hits = found.hits.len();
            let is_all =
                found.all >= matching || self.only.is_some_and(|only| only.keys.len() == hits as u64);
            self.answer(found, is_all && hits <= self.k)
        });
        Ok(answers.collect())
    }

    fn answer(&self, found: Found, complete: bool) -> Hits {
        let mut hits = found.hits;
        hits.truncate(self.k);
        Hits { hits, complete, exact: false }
    }

    /// A filter that every allowed key matches: by keys, or by videos, or none (empty). Keys that match a filter by
    /// videos need not be allowed.
    fn filter(&self) -> String {
        match self.only {
            Some(only) if only.keys.len() <= LISTED as u64 => {
                let keys: Vec<SpanKey> = only.keys.iter().collect();
                rows::listed(&keys)
            }
            Some(Allowed { videos: Some(videos), .. }) if videos.len() <= VIDEOS => rows::of_videos(videos),
            _ => String::new(),
        }
    }

    /// The allowed live keys, or more.
    async fn matching(&self) -> Result<KeySet, EngineError> {
        match self.only {
            Some(only) if only.keys.len() <= LISTED as u64 => Ok(only.keys.clone()),
            only => {
                let live = rows::keys(self.client, self.name, SpanKey::ALL).await?;
                Ok(only.map_or_else(|| live.clone(), |only| &live & &only.keys))
            }
        }
    }

    /// Compares all these keys.
    async fn compare(&self, keys: &KeySet, queries: &[UnitVector]) -> Result<Vec<Hits>, EngineError> {
        let keys: Vec<SpanKey> = keys.iter().collect();
        let scored = rows::scores(self.client, self.name, &keys, queries).await?;
        let complete = scored.len() <= self.k;
        let hits = |query: usize| {
            let hit = |scored: &Scored| Hit { key: scored.key, score: scored.cosines[query] };
            let mut hits: Vec<Hit> = scored.iter().map(hit).collect();
            Hit::keep_best(&mut hits, self.k);
            Hits { hits, complete, exact: true }
        };
        Ok((0..queries.len()).map(hits).collect())
    }

    /// Asks for more hits, until every query has more than `k` allowed ones or Milvus has no more.
    async fn ask(&self, filter: &str, queries: &[UnitVector]) -> Result<Vec<Found>, EngineError> {
        let mut found = vec![Found::default(); queries.len()];
        let mut open: Vec<usize> = (0..queries.len()).collect();
        let wanted = if self.only.is_some() { self.k.saturating_mul(4) } else { self.k };
        let mut limit = wanted.saturating_add(SPARE).min(ROWS);
        while !open.is_empty() {
            let values = queries[open[0]].values().len();
            let most = (ANSWER_BYTES / (limit * 24)).min(REQUEST_BYTES / (values * 4 + 16)).max(1);
            for some in open.chunks(most) {
                let units: Vec<_> = some.iter().map(|&query| queries[query].values().to_vec()).collect();
                let answers = self.nearest(filter, units, limit).await?;
                some.iter().zip(answers).for_each(|(&query, answer)| found[query] = answer);
            }
            if limit == ROWS {
                break;
            }
            open.retain(|&query| found[query].hits.len() <= self.k && found[query].all >= limit as u64);
            limit = limit.saturating_mul(2).min(ROWS);
        }
        Ok(found)
    }

    /// The nearest rows, at most `limit` per query.
    async fn nearest(
        &self,
        filter: &str,
        queries: Vec<Vec<f32>>,
        limit: usize,
    ) -> Result<Vec<Found>, EngineError> {
        let number = queries.len();
        // A filter takes candidates away.
        let share = if self.only.is_some() { 4 } else { 2 };
        let candidates = (limit * share).clamp(CANDIDATES, MOST_CANDIDATES).to_string();
        let request = SearchRequest::builder()
            .collection_name(self.name)
            .vector_field(UNIT)
            .vectors(SearchVectors::Float(queries))
            .filter(filter)
            // Milvus Lite sends the vectors too, unless a field is named.
            .output_fields([KEY])
            .metric_type(MetricType::Ip)
            .extra_params(HashMap::from([("ef".to_owned(), candidates)]))
            .limit(limit as i64)
            .consistency_level(ConsistencyLevel::Strong)
            .build()
            .map_err(|error| EngineError::Failed(Box::new(error)))?;
        let Some(results) = self.client.search(self.name, request).await? else {
            return Ok(vec![Found::default(); number]);
        };
        let mut found = Vec::with_capacity(number);
        for result in results.iter() {
            let ids = match result.get_ids() {
                Ids::Int64(ids) => ids.as_slice(),
                Ids::VarChar(texts) if texts.is_empty() => &[],
                _ => return Err(odd("keys that are no numbers")),
            };
            found.push(self.allowed(ids, result.get_scores()));
        }
        // An empty collection may answer without any list.
        if found.len() < number && found.iter().any(|found| found.all > 0) {
            return Err(odd("fewer lists than queries"));
        }
        found.resize(number, Found::default());
        Ok(found)
    }

    fn allowed(&self, ids: &[i64], scores: &[f32]) -> Found {
        let may = |hit: &Hit| self.only.is_none_or(|only| only.keys.contains(hit.key));
        let all = ids.iter().zip(scores).map(|(&id, &score)| Hit { key: rows::key(id), score });
        let mut hits: Vec<Hit> = all.filter(may).collect();
        Hit::sort(&mut hits);
        level(&mut hits);
        Found { hits, all: ids.len() as u64 }
    }
}

/// Gives nearly equal scores the highest of them, in order of key: Milvus adds up equal vectors in different orders. The
/// caller computes the scores again anyway.
fn level(hits: &mut [Hit]) {
    let mut highest = f32::MAX;
    for hit in hits.iter_mut() {
        hit.score = hit.score.clamp(-1.0, 1.0);
        match highest - hit.score <= NEARLY {
            true => hit.score = highest,
            false => highest = hit.score,
        }
    }
    Hit::sort(hits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearly_equal_scores_are_ordered_by_key() {
        let scores = [(9, 1.000_000_1), (4, 0.999_999_9), (7, 0.5), (1, 0.499_999_8), (3, 0.499)];
        let mut hits = scores.map(|(key, score)| Hit { key: SpanKey::new(key), score });
        level(&mut hits);
        let order = hits.map(|hit| (hit.key.number(), hit.score));
        assert_eq!(order, [(4, 1.0), (9, 1.0), (1, 0.5), (7, 0.5), (3, 0.499)]);
    }
}
