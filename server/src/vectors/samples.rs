//! Samples of the vectors of a gallery, from which the background of a query is measured.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use uuid::Uuid;

use super::{EngineError, ROWS_PER_READ, Vectors};
use crate::terms::{
    Background, Collection, KeySet, Level, QueryVectors, SampledSpan, SpanKey, duplicate_cosine,
};

/// Largest number of samples in memory: 4 MB each for a thousand vectors of 1,024 values.
const MOST: usize = 32;
/// The keys of a shared engine's gallery are listed up to this number of vectors. A list of 10^8 keys takes minutes there.
const LISTED: u64 = 200_000;
/// Number of ranges of keys that a larger gallery is sampled in.
const RANGES: u64 = 128;
/// Number of keys that a range has on average.
const OF_RANGE: u64 = 32;
/// A sample is taken again when this share of its gallery has changed.
const STALE: f64 = 0.05;

/// The vectors that one sample is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gallery {
    /// The space.
    pub space: u32,
    /// The level.
    pub level: Level,
    /// Whether moments belong to it too.
    pub moments: bool,
    /// The API key of a caller who may see some videos only. `None`: all videos.
    pub viewer: Option<Uuid>,
}

impl Gallery {
    fn collections(self) -> impl Iterator<Item = Collection> {
        let levels = std::iter::once(self.level).chain(self.moments.then_some(Level::Moment));
        levels.map(move |level| Collection { space: self.space, level })
    }
}

/// Keys of a gallery, and the number of its vectors.
struct Found {
    keys: KeySet,
    gallery: u64,
}

/// Vectors drawn evenly from a gallery.
pub struct Sample {
    spans: Vec<SampledSpan>,
    /// Number of vectors in the gallery.
    gallery: u64,
    /// The newest change of the catalog before the sample was taken.
    seq: i64,
    /// The least cosine of near duplicates, once measured.
    duplicates: OnceLock<Option<f32>>,
}

/// The samples in memory.
#[derive(Default)]
pub(super) struct Samples {
    kept: Mutex<HashMap<Gallery, Arc<Sample>>>,
    /// Held while a sample is taken. Others use the one before.
    taking: tokio::sync::Mutex<()>,
}

impl Vectors {
    /// The sample of a gallery, unless over 5 % of it have changed since. `seq`: the catalog's newest change.
    pub fn fresh_sample(&self, gallery: Gallery, seq: i64) -> Option<Arc<Sample>> {
        self.samples.get(gallery).filter(|it| !it.is_stale(seq))
    }

    /// The least cosine of near duplicates in a gallery, if a search has measured it. `None` also if the gallery is too small.
    pub fn known_duplicate_cosine(&self, gallery: Gallery) -> Option<f32> {
        self.samples.get(gallery)?.duplicates.get().copied().flatten()
    }

    /// Takes a new sample of a gallery. While another search takes one, the old one serves. `visible`: the keys that the
    /// viewer may see; `None`: all.
    ///
    /// # Errors
    /// [`EngineError`] if the catalog or the engine can't be read.
    pub async fn sample(
        &self,
        gallery: Gallery,
        visible: Option<&KeySet>,
        seq: i64,
    ) -> Result<Arc<Sample>, EngineError> {
        let _taking = match (self.samples.get(gallery), self.samples.taking.try_lock()) {
            (_, Ok(taking)) => taking,
            (Some(old), Err(_)) => return Ok(old),
            (None, Err(_)) => self.samples.taking.lock().await,
        };
        if let Some(sample) = self.fresh_sample(gallery, seq) {
            return Ok(sample);
        }
        let sample = Arc::new(self.draw(gallery, visible, seq).await?);
        self.samples.put(gallery, Arc::clone(&sample));
        Ok(sample)
    }

    async fn draw(
        &self,
        gallery: Gallery,
        visible: Option<&KeySet>,
        seq: i64,
    ) -> Result<Sample, EngineError> {
        let Found { keys, gallery: size } = match (visible, self.size_if_large(gallery).await?) {
            (None, Some(live)) => Found { keys: self.in_ranges(gallery, live).await?, gallery: live },
            (Some(visible), Some(_)) => return self.draw_visible(gallery, visible, seq).await,
            (_, None) => self.listed(gallery, visible).await?,
        };
        let spans = self.spans(gallery, &evenly(&keys, Background::SAMPLE)).await?;
        Ok(Sample::new(spans, size, seq))
    }

    /// Number of vectors of a gallery, if its keys are too many to be listed.
    async fn size_if_large(&self, gallery: Gallery) -> Result<Option<u64>, EngineError> {
        if !self.limits().shared {
            return Ok(None);
        }
        let status = self.status().await?;
        let live = gallery.collections().map(|at| status.live(at)).sum();
        Ok(Some(live).filter(|live| *live > LISTED))
    }

    /// All keys of a gallery.
    async fn listed(&self, gallery: Gallery, visible: Option<&KeySet>) -> Result<Found, EngineError> {
        let mut keys = KeySet::default();
        for at in gallery.collections() {
            keys = &keys | &self.reach.ask(self.engine.keys(at, SpanKey::ALL)).await?;
        }
        if let Some(visible) = visible {
            keys &= visible;
        }
        Ok(Found { gallery: keys.len(), keys })
    }

    /// The keys of a gallery of `live` vectors in short ranges, one at a random place in each part of all keys.
    async fn in_ranges(&self, gallery: Gallery, live: u64) -> Result<KeySet, EngineError> {
        let newest = self.catalog.newest_key().await?.number();
        let mut keys = KeySet::default();
        for range in ranges(newest, live, || Uuid::new_v4().as_u64_pair().0) {
            for at in gallery.collections() {
                keys = &keys | &self.reach.ask(self.engine.keys(at, range.clone())).await?;
            }
        }
        Ok(keys)
    }

    /// Draws from the spans that a caller sees, many of which may belong to other levels or have no vector.
    async fn draw_visible(
        &self,
        gallery: Gallery,
        visible: &KeySet,
        seq: i64,
    ) -> Result<Sample, EngineError> {
        let asked = evenly(visible, 4 * Background::SAMPLE);
        let spans = self.spans(gallery, &asked).await?;
        let share = spans.len() as f64 / asked.len().max(1) as f64;
        let size = (share * visible.len() as f64).round() as u64;
        let (all, most) = (spans.len() as u64, Background::SAMPLE as u64);
        let drawn = spans.into_iter().zip(0..).filter(|(_, place)| is_drawn(*place, all, most));
        Ok(Sample::new(drawn.map(|(span, _)| span).collect(), size, seq))
    }

    /// The vectors of these keys that belong to the gallery.
    async fn spans(&self, gallery: Gallery, keys: &[SpanKey]) -> Result<Vec<SampledSpan>, EngineError> {
        let mut spans = Vec::with_capacity(keys.len());
        for keys in keys.chunks(ROWS_PER_READ) {
            let stored = self.catalog.vectors_of(gallery.space, keys).await?.into_iter();
            let own = stored.filter(|it| gallery.collections().any(|at| at.level == it.level));
            spans.extend(own.map(|it| SampledSpan { video: it.video.number(), unit: it.unit }));
        }
        Ok(spans)
    }
}

impl Samples {
    fn get(&self, gallery: Gallery) -> Option<Arc<Sample>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&gallery).cloned()
    }

    /// Keeps a sample, in place of the oldest one if there are too many.
    fn put(&self, gallery: Gallery, sample: Arc<Sample>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST && !kept.contains_key(&gallery) {
            let oldest = kept.iter().min_by_key(|(_, it)| it.seq).map(|(gallery, _)| *gallery);
            oldest.map(|gallery| kept.remove(&gallery));
        }
        kept.insert(gallery, sample);
    }
}

impl Sample {
    fn new(spans: Vec<SampledSpan>, gallery: u64, seq: i64) -> Sample {
        Sample { spans, gallery, seq, duplicates: OnceLock::new() }
    }

    /// The least cosine of near duplicates. `None` if the gallery is too small. The first call computes half a million cosines
    /// and blocks meanwhile.
    pub fn duplicate_cosine(&self) -> Option<f32> {
        *self.duplicates.get_or_init(|| duplicate_cosine(&self.spans, self.gallery))
    }

    /// The background of a query. `None` if the gallery is too small for one.
    pub fn background(&self, query: &QueryVectors) -> Option<Background> {
        Background::of(self.spans.iter().map(|span| query.score(&span.unit)).collect(), self.gallery)
    }

    fn is_stale(&self, seq: i64) -> bool {
        let changes = seq.saturating_sub(self.seq);
        changes as f64 > STALE * self.gallery as f64
    }
}

/// At most `most` keys at even distances.
fn evenly(keys: &KeySet, most: usize) -> Vec<SpanKey> {
    let (all, most) = (keys.len(), most as u64);
    keys.iter().zip(0..).filter(|(_, place)| is_drawn(*place, all, most)).map(|(key, _)| key).collect()
}

/// Whether the item at `place` is one of `most` at even distances, of `all`.
fn is_drawn(place: u64, all: u64, most: u64) -> bool {
    all <= most || place * most / all != (place + 1) * most / all
}

/// Ranges of keys up to `newest`, so long that each has [`OF_RANGE`] of `live` keys on average: one in each of [`RANGES`]
/// equal parts, at a place that `random` chooses.
fn ranges(newest: u64, live: u64, random: impl Fn() -> u64) -> Vec<Range<SpanKey>> {
    let part = newest / RANGES + 1;
    let per_key = (newest / live.max(1)).saturating_add(1);
    let long = OF_RANGE.saturating_mul(per_key).min(part);
    let range = |number: u64| {
        let start = number.saturating_mul(part).saturating_add(random() % (part - long + 1));
        SpanKey::new(start)..SpanKey::new(start.saturating_add(long))
    };
    (0..RANGES).map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `all`: number of keys. `expected`: number of drawn ones and the largest distance of two.
    #[track_caller]
    fn check(all: u64, expected: (usize, u64)) {
        let keys: KeySet = (0..all).map(SpanKey::new).collect();
        let drawn = evenly(&keys, 1000);
        let distance = drawn.windows(2).map(|pair| pair[1].number() - pair[0].number()).max();
        assert_eq!((drawn.len(), distance.unwrap_or_default()), expected);
    }

    #[test]
    fn keys_are_drawn_evenly() {
        check(0, (0, 0));
        check(1, (1, 0));
        check(1000, (1000, 1));
        check(1001, (1000, 1));
        check(2500, (1000, 3));
        check(1_000_000, (1000, 1000));
    }

    #[test]
    fn ranges_lie_apart_and_hold_enough_keys() {
        for (newest, live) in [(0, 0), (10, 3), (300_000, 200_001), (1 << 40, 100_000_000), (u64::MAX, 1)] {
            for random in [0, 1 << 20, u64::MAX] {
                let ranges = ranges(newest, live, || random);
                assert_eq!(ranges.len() as u64, RANGES);
                assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{newest} {live}");
                let held: u64 = ranges.iter().map(|it| it.end.number() - it.start.number()).sum();
                let probably = held as f64 * live as f64 / newest.max(1) as f64;
                assert!(
                    live <= LISTED || probably >= Background::SAMPLE as f64,
                    "{newest} {live}: {probably}"
                );
            }
        }
    }

    #[test]
    fn a_sample_is_stale_after_a_change_of_a_twentieth() {
        let sample = Sample::new(Vec::new(), 100, 7);
        assert!(!sample.is_stale(7) && !sample.is_stale(12) && sample.is_stale(13));
        assert!(Sample::new(Vec::new(), 0, 7).is_stale(8));
    }

    #[test]
    fn a_new_sample_takes_the_place_of_the_oldest() {
        let samples = Samples::default();
        let of = |space| Gallery { space, level: Level::Clip, moments: false, viewer: None };
        for space in 0..=MOST as u32 {
            let seq = i64::from(space);
            samples.put(of(space), Arc::new(Sample::new(Vec::new(), 1, seq)));
        }
        assert!(samples.get(of(0)).is_none() && samples.get(of(1)).is_some());
        assert!(samples.get(of(MOST as u32)).is_some());
    }
}
