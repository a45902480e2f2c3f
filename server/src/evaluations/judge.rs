//! The ranks at which hits find relevant ranges.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::catalog::VideoRange;
use crate::search::{Levels, Match};

use super::settings::Settings;

/// What one space found for a query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Ranks of the hits that find a relevant range, ascending, from 1.
    pub ranks: Vec<u32>,
    /// Duration of the search, in milliseconds.
    pub ms: f64,
    /// Whether every vector was compared.
    pub exact: bool,
    /// Why the query could not be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

impl Found {
    /// A query that could not be asked.
    pub(super) fn nothing(trouble: String) -> Found {
        Found { trouble: Some(trouble), ..Found::default() }
    }

    /// Rank of the first hit that finds a relevant range.
    pub fn rank(&self) -> Option<u32> {
        self.ranks.first().copied()
    }
}

/// How a query fares in one space, compared with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A relevant range comes earlier.
    Better,
    /// A relevant range comes later, or not at all.
    Worse,
    /// The first relevant range has the same rank, or is found by neither.
    Same,
}

/// How a query fares with `now`, compared with `before`.
pub fn change(before: &Found, now: &Found) -> Change {
    let rank = |found: &Found| found.rank().unwrap_or(u32::MAX);
    match rank(now).cmp(&rank(before)) {
        Ordering::Less => Change::Better,
        Ordering::Greater => Change::Worse,
        Ordering::Equal => Change::Same,
    }
}

/// The ranks at which `hits` find ranges of `relevant`, ascending. A range is found once, by the first hit that shows it; a hit
/// finds one range: the one with the largest overlap. A hit shows its own range and the ranges of its folded hits.
pub(super) fn ranks(hits: &[Match], relevant: &[VideoRange], settings: &Settings) -> Vec<u32> {
    let shown = hits.iter().map(|hit| {
        let all = std::iter::once(hit).chain(&hit.folded);
        all.map(|it| {
            let span = &it.span.span;
            VideoRange { video: span.video, start_ms: span.start_ms, end_ms: span.end_ms }
        })
        .collect()
    });
    let is_full = settings.levels == Levels::Video;
    found_at(shown, relevant, |hit, wanted| match is_full {
        true => (hit.video == wanted.video).then_some(1.0),
        false => Some(iou(hit, wanted)).filter(|iou| *iou >= settings.min_iou),
    })
}

/// See [`ranks`]. `overlap`: how well a shown range finds a relevant one; `None`: not at all.
fn found_at(
    hits: impl Iterator<Item = Vec<VideoRange>>,
    relevant: &[VideoRange],
    overlap: impl Fn(&VideoRange, &VideoRange) -> Option<f64>,
) -> Vec<u32> {
    let mut missing: Vec<&VideoRange> = relevant.iter().collect();
    let mut ranks = Vec::new();
    for (rank, shown) in (1_u32..).zip(hits) {
        if missing.is_empty() {
            break;
        }
        let best = |wanted: &VideoRange| {
            shown.iter().filter_map(|shown| overlap(shown, wanted)).max_by(f64::total_cmp)
        };
        let found = missing.iter().enumerate().filter_map(|(at, wanted)| Some((at, best(wanted)?)));
        if let Some((at, _)) = found.max_by(|one, other| one.1.total_cmp(&other.1)) {
            missing.swap_remove(at);
            ranks.push(rank);
        }
    }
    ranks
}

/// Temporal intersection over union, 0 to 1; 0 in different videos.
fn iou(one: &VideoRange, other: &VideoRange) -> f64 {
    let shared = one.end_ms.min(other.end_ms).saturating_sub(one.start_ms.max(other.start_ms));
    if one.video != other.video || shared <= 0 {
        return 0.0;
    }
    let length = |range: &VideoRange| range.end_ms.saturating_sub(range.start_ms);
    shared as f64 / (length(one).saturating_add(length(other)).saturating_sub(shared)) as f64
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    /// A range of a video: its number, start and end.
    type Numbers = [i64; 3];

    fn range([video, start_ms, end_ms]: Numbers) -> VideoRange {
        VideoRange { video: Uuid::from_u128(video as u128), start_ms, end_ms }
    }

    #[track_caller]
    fn check(hits: &[&[Numbers]], relevant: &[Numbers], expected: &[u32]) {
        let relevant: Vec<VideoRange> = relevant.iter().copied().map(range).collect();
        let hits = hits.iter().map(|shown| shown.iter().copied().map(range).collect());
        let overlap = |hit: &VideoRange, wanted: &VideoRange| Some(iou(hit, wanted)).filter(|it| *it >= 0.5);
        assert_eq!(found_at(hits, &relevant, overlap), expected);
    }

    #[test]
    fn a_range_is_found_by_half_of_the_union() {
        check(&[&[[1, 0, 1000]]], &[[1, 0, 1000]], &[1]);
        check(&[&[[1, 0, 1000]]], &[[1, 0, 2000]], &[1]);
        check(&[&[[1, 0, 1000]]], &[[1, 0, 2001]], &[]);
        check(&[&[[1, 0, 1000]]], &[[1, 500, 1000]], &[1]);
        check(&[&[[1, 0, 1000]]], &[[1, 1000, 2000]], &[]);
        check(&[&[[2, 0, 1000]], &[[1, 0, 1000]]], &[[1, 0, 1000]], &[2]);
    }

    #[test]
    fn a_range_is_found_once_and_a_hit_finds_one() {
        check(&[&[[1, 0, 1000]], &[[1, 0, 1000]]], &[[1, 0, 1000]], &[1]);
        check(&[&[[1, 0, 1000]], &[[1, 10, 1000]]], &[[1, 0, 1000], [1, 5, 1000]], &[1, 2]);
        check(&[&[[1, 0, 1000]]], &[[1, 100, 1000], [1, 0, 1000]], &[1]);
        check(&[&[[1, 0, 1000]], &[[1, 100, 600]]], &[[1, 100, 1000], [1, 0, 1000]], &[1, 2]);
    }

    #[test]
    fn what_is_folded_into_a_hit_is_shown_by_it() {
        check(&[&[[3, 0, 9]], &[[1, 0, 8000], [1, 1000, 2000]]], &[[1, 1000, 2000]], &[2]);
        check(&[], &[[1, 0, 1000]], &[]);
        check(&[&[[1, 0, 1000]]], &[], &[]);
    }

    #[track_caller]
    fn check_change(before: &[u32], now: &[u32], expected: Change) {
        let found = |ranks: &[u32]| Found { ranks: ranks.to_vec(), ..Found::default() };
        assert_eq!(change(&found(before), &found(now)), expected, "{before:?} {now:?}");
    }

    #[test]
    fn the_first_rank_decides_what_is_better() {
        check_change(&[3], &[2], Change::Better);
        check_change(&[], &[90], Change::Better);
        check_change(&[1], &[2, 3], Change::Worse);
        check_change(&[7], &[], Change::Worse);
        check_change(&[2, 9], &[2], Change::Same);
        check_change(&[], &[], Change::Same);
    }
}
