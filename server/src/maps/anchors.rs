//! Anchors: the spans that UMAP lays out. Others are placed between them.

use super::MOST_ANCHORS;
use super::axes::Axes;
use super::neighbours::{self, Cells, Near};
use super::random::mixed;
use super::rows::Rows;
use super::umap::{self, NEIGHBOURS, Point};
use crate::catalog::MapPoint;
use crate::terms::{KeySet, SpanKey, UnitVector};

/// Anchors between which a span is placed.
const BETWEEN: usize = 5;
/// Seed of the choice of anchors.
const SEED: u64 = 3;
/// Digits of a coordinate after the point.
const SCALE: f32 = 1e4;

/// The anchors among keys. A library that grows keeps most of them.
pub(super) fn chosen(keys: &KeySet) -> Vec<SpanKey> {
    let mut drawn: Vec<(u64, SpanKey)> =
        keys.iter().map(|key| (mixed(key.number() ^ mixed(SEED)), key)).collect();
    if drawn.len() > MOST_ANCHORS {
        drawn.select_nth_unstable(MOST_ANCHORS);
        drawn.truncate(MOST_ANCHORS);
    }
    drawn.sort_unstable();
    drawn.into_iter().map(|(_, key)| key).collect()
}

/// Anchors in the plane.
pub(super) struct Anchors {
    axes: Axes,
    rows: Rows,
    points: Vec<Point>,
    cells: Cells,
}

impl Anchors {
    /// Lays out anchors by their coordinates on the axes. `None` if `stop` says so.
    pub(super) fn lay_out(axes: Axes, rows: Rows, stop: impl Fn() -> bool) -> Option<Anchors> {
        let mut neighbours: Vec<Vec<Near>> = Vec::with_capacity(rows.len());
        for row in 0..rows.len() {
            if stop() {
                return None;
            }
            neighbours.push(neighbours::of_row(&rows, row, NEIGHBOURS));
        }
        let start: Vec<Point> = rows.iter().map(|row| [row[0], row[1]]).collect();
        let points = scaled(umap::layout(&neighbours, &start, stop)?);
        Some(Anchors { axes, cells: Cells::of(&rows), rows, points })
    }

    /// Where a span lies: the mean of its nearest anchors' points, the nearer the heavier. An anchor lies at its own point.
    pub(super) fn place(&self, key: SpanKey, unit: &UnitVector) -> MapPoint {
        let mut row = Rows::new(self.axes.count());
        let row = row.add();
        self.axes.project(unit.values(), row);
        let near = self.cells.near(&self.rows, row, BETWEEN);
        let (mut sum, mut weights) = ([0.0_f32; 2], 0.0_f32);
        for near in near {
            let weight = 1.0 / (near.squared + 1e-9);
            weights += weight;
            (0..2).for_each(|axis| sum[axis] += weight * self.points[near.row][axis]);
        }
        let [x, y] =
            sum.map(|value| if weights > 0.0 { (value / weights * SCALE).round() / SCALE } else { 0.0 });
        MapPoint { key, x, y }
    }
}

/// The points in the square from -1 to 1, with one scale for both axes.
fn scaled(mut points: Vec<Point>) -> Vec<Point> {
    let ends = |axis: usize| {
        let values = points.iter().map(move |point| point[axis]);
        values.fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), it| (low.min(it), high.max(it)))
    };
    let ends = [ends(0), ends(1)];
    let half = ends.iter().map(|(low, high)| (high - low) / 2.0).fold(0.0, f32::max);
    for point in &mut points {
        for (value, (low, high)) in point.iter_mut().zip(ends) {
            *value = if half > 0.0 { ((*value - (low + high) / 2.0) / half).clamp(-1.0, 1.0) } else { 0.0 };
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::super::random::Random;
    use super::*;

    fn unit(group: usize, random: &mut Random) -> UnitVector {
        let mut raw: Vec<f32> = (0..64).map(|_| 0.1 * random.signed()).collect();
        raw[group] += 1.0;
        UnitVector::from_raw(&raw).unwrap().0
    }

    #[test]
    fn anchors_are_drawn_evenly_and_stay_when_the_library_grows() {
        let keys = |count: u64| (0..count).map(SpanKey::new).collect::<KeySet>();
        assert_eq!(chosen(&keys(0)), []);
        assert_eq!(chosen(&keys(9)).len(), 9);
        let (before, after) = (chosen(&keys(50_000)), chosen(&keys(55_000)));
        assert_eq!((before.len(), after.len()), (MOST_ANCHORS, MOST_ANCHORS));
        let known: KeySet = before.into_iter().collect();
        let kept = after.iter().filter(|key| known.contains(**key)).count();
        assert!(kept > MOST_ANCHORS * 85 / 100, "{kept}");
        let low = after.iter().filter(|key| key.number() < 27_500).count();
        assert!((9_500..10_500).contains(&low), "{low}");
    }

    /// Checks that spans of `groups` groups, anchors or not, lie beside anchors of their own group.
    #[track_caller]
    fn check(groups: usize, anchors: usize) {
        let mut random = Random::new(5);
        let units: Vec<UnitVector> = (0..anchors).map(|number| unit(number % groups, &mut random)).collect();
        let raw: Vec<Vec<f32>> = units.iter().map(|unit| unit.values().to_vec()).collect();
        let axes = Axes::of(&raw, 64);
        let mut rows = Rows::new(axes.count());
        units.iter().for_each(|unit| axes.project(unit.values(), rows.add()));
        let laid_out = Anchors::lay_out(axes, rows, || false).unwrap();
        let own: Vec<MapPoint> = units.iter().map(|unit| laid_out.place(SpanKey::new(1), unit)).collect();
        for (placed, point) in own.iter().zip(&laid_out.points) {
            let apart = (placed.x - point[0]).abs().max((placed.y - point[1]).abs());
            assert!(apart < 0.01, "an anchor lies at its own point: {placed:?} {point:?}");
            assert!(placed.x.abs() <= 1.0 && placed.y.abs() <= 1.0, "{placed:?}");
        }
        for group in 0..groups {
            let new = laid_out.place(SpanKey::new(2), &unit(group, &mut random));
            let apart = |point: &MapPoint| (point.x - new.x).powi(2) + (point.y - new.y).powi(2);
            let nearest =
                (0..own.len()).min_by(|one, other| apart(&own[*one]).total_cmp(&apart(&own[*other])));
            assert_eq!(nearest.map(|nearest| nearest % groups), Some(group));
        }
    }

    #[test]
    fn a_span_lies_beside_those_that_are_like_it() {
        check(5, 150);
        check(3, 60);
        check(1, 1);
    }
}
