//! Samples of the vectors of a gallery, from which the background of a query is measured.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use uuid::Uuid;

use super::{EngineError, Vectors};
use crate::catalog::StoredVector;
use crate::terms::{
    Background, Collection, KeySet, Level, QueryVectors, SampledSpan, SpanKey, duplicate_cosine,
};

/// Largest number of samples in memory: 4 MB each for a thousand vectors of 1,024 values.
const MOST: usize = 32;
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
        let mut keys = KeySet::default();
        for level in std::iter::once(gallery.level).chain(gallery.moments.then_some(Level::Moment)) {
            let at = Collection { space: gallery.space, level };
            keys = &keys | &self.reach.ask(self.engine.keys(at, SpanKey::ALL)).await?;
        }
        if let Some(visible) = visible {
            keys &= visible;
        }
        let stored = self.catalog.vectors_of(gallery.space, &evenly(&keys)).await?;
        let span = |it: StoredVector| SampledSpan { video: it.video.number(), unit: it.unit };
        let spans = stored.into_iter().map(span).collect();
        Ok(Sample::new(spans, keys.len(), seq))
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

/// At most [`Background::SAMPLE`] keys at even distances.
fn evenly(keys: &KeySet) -> Vec<SpanKey> {
    let (all, most) = (keys.len(), Background::SAMPLE as u64);
    let is_drawn = |place: u64| all <= most || place * most / all != (place + 1) * most / all;
    keys.iter().zip(0..).filter(|(_, place)| is_drawn(*place)).map(|(key, _)| key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `all`: number of keys. `expected`: number of drawn ones and the largest distance of two.
    #[track_caller]
    fn check(all: u64, expected: (usize, u64)) {
        let keys: KeySet = (0..all).map(SpanKey::new).collect();
        let drawn = evenly(&keys);
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
