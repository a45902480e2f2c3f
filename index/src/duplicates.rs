//! The cosine from which two spans of a space are near duplicates, measured from spans of the space itself.

use super::background::{FEWEST, nearness};
use super::vector::UnitVector;

/// Share of the nearest pairs that are left out of the mean: they may be near duplicates themselves.
const LEFT_OUT: f64 = 0.01;
/// Near duplicates are nearer than this multiple of what the nearest of as many unrelated spans is by chance.
const NEARER: f64 = 2.1;
/// Near duplicates are nearer than this share of spans is to the nearest span of another video.
const NEIGHBOURS: f64 = 0.98;
/// Below this cosine two spans are never near duplicates: related pictures reach it in a space whose cosines scatter little.
const LEAST: f64 = 0.9;
/// From this cosine on they always are: in a gallery of much the same pictures, its spans are no measure.
const MOST: f64 = 0.995;

/// A span that was sampled from a gallery.
#[derive(Debug, Clone)]
pub struct SampledSpan {
    /// The number of its video.
    pub video: u64,
    /// Its vector.
    pub unit: UnitVector,
}

/// The least cosine of near duplicates, 0.9 to 0.995. `spans`: sampled evenly from a gallery of `gallery` spans. Each is
/// compared with each: half a million cosines for a thousand spans.
///
/// It is the higher one of two bounds: one above what unrelated spans of as large a gallery reach by chance, and one above
/// what different videos of the same kind have in common. `None` under 50 spans.
pub fn duplicate_cosine(spans: &[SampledSpan], gallery: u64) -> Option<f32> {
    if spans.len() < FEWEST {
        return None;
    }
    let mut cosines = Vec::with_capacity(spans.len() * (spans.len() - 1) / 2);
    let mut nearest = vec![f32::NEG_INFINITY; spans.len()];
    for (at, one) in spans.iter().enumerate() {
        for (before, other) in spans[..at].iter().enumerate() {
            let cosine = one.unit.dot(&other.unit);
            cosines.push(cosine);
            if one.video != other.video {
                nearest[at] = nearest[at].max(cosine);
                nearest[before] = nearest[before].max(cosine);
            }
        }
    }
    let least = above_chance(cosines, gallery).max(above_neighbours(nearest));
    Some(least.clamp(LEAST, MOST) as f32)
}

/// The cosine that stands above the other pairs as far as chance never does, on the logarithm of the distance.
fn above_chance(cosines: Vec<f32>, gallery: u64) -> f64 {
    let mut near: Vec<f32> = cosines.into_iter().map(nearness).collect();
    let kept = near.len() - (LEFT_OUT * near.len() as f64).round() as usize;
    near.select_nth_unstable_by(kept - 1, f32::total_cmp);
    near.truncate(kept);
    let mean = near.iter().map(|it| f64::from(*it)).sum::<f64>() / kept as f64;
    let variance = near.iter().map(|it| (f64::from(*it) - mean).powi(2)).sum::<f64>() / kept as f64;
    let chance = (2.0 * (gallery.max(2) as f64).ln()).sqrt();
    1.0 - (-(mean + NEARER * chance * variance.sqrt())).exp()
}

/// The cosine with the nearest span of another video that few spans reach. 0 if too few spans have one.
fn above_neighbours(mut nearest: Vec<f32>) -> f64 {
    nearest.retain(|it| it.is_finite());
    if nearest.len() < FEWEST {
        return 0.0;
    }
    let place = (NEIGHBOURS * (nearest.len() - 1) as f64).round() as usize;
    f64::from(*nearest.select_nth_unstable_by(place, f32::total_cmp).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A span of `video` whose vector has a share of its own, orthogonal to all others, and a share that all have.
    fn span(video: u64, at: usize, own: f32) -> SampledSpan {
        let mut values = vec![0.0; 100];
        (values[0], values[at]) = ((1.0 - own * own).sqrt(), own);
        SampledSpan { video, unit: UnitVector::from_raw(&values).unwrap().0 }
    }

    /// `own`: the own share of each span of a video of its own. Spans without one are alike.
    #[track_caller]
    fn check(spans: &[SampledSpan], gallery: u64, expected: Option<f32>) {
        let got = duplicate_cosine(spans, gallery);
        let is_near = got.zip(expected).is_some_and(|(got, expected)| (got - expected).abs() < 1e-3);
        assert!(is_near || got == expected, "{got:?}, expected {expected:?}");
    }

    #[test]
    fn few_spans_have_no_bound() {
        let spans: Vec<SampledSpan> = (1..50).map(|at| span(at as u64, at, 0.5)).collect();
        check(&spans, 49, None);
        check(&[], 0, None);
    }

    #[test]
    fn the_bound_stays_in_its_range() {
        let unrelated: Vec<SampledSpan> = (1..100).map(|at| span(at as u64, at, 1.0)).collect();
        check(&unrelated, 1000, Some(0.9));
        let alike: Vec<SampledSpan> = (1..100).map(|at| span(at as u64, at, 0.0)).collect();
        check(&alike, 1000, Some(0.995));
    }

    #[test]
    fn what_different_videos_have_in_common_is_no_near_duplicate() {
        // Any two have the cosine 1 - 0.2^2.
        let spans = |video: fn(usize) -> u64| -> Vec<SampledSpan> {
            (1..100).map(|at| span(video(at), at, 0.2)).collect()
        };
        check(&spans(|at| at as u64), 1000, Some(0.96));
        check(&spans(|_| 1), 1000, Some(0.96));
    }

    #[test]
    fn what_most_spans_have_in_another_video_is_no_near_duplicate() {
        // Two spans of a pair have a cosine of 0.97, all others have 0. A pair from two videos shows what is usual between
        // videos. A pair within one video does not count, and the least bound is left.
        let spans = |video: fn(usize) -> u64| -> Vec<SampledSpan> {
            let of = |at: usize| {
                let mut values = vec![0.0; 150];
                (values[at / 2], values[50 + at]) = (0.97_f32.sqrt(), 0.03_f32.sqrt());
                SampledSpan { video: video(at), unit: UnitVector::from_raw(&values).unwrap().0 }
            };
            (0..100).map(of).collect()
        };
        check(&spans(|at| at as u64), 1000, Some(0.97));
        check(&spans(|at| at as u64 / 2), 1000, Some(0.9));
    }

    #[test]
    fn a_larger_gallery_has_a_higher_bound() {
        let spans: Vec<SampledSpan> = (1..100).map(|at| span(1, at, 0.3 + 0.007 * at as f32)).collect();
        let of = |gallery| duplicate_cosine(&spans, gallery).unwrap();
        assert!(of(100) < of(1_000_000), "{} and {}", of(100), of(1_000_000));
    }
}
