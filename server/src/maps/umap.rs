//! UMAP (McInnes, Healy and Melville, arXiv 1802.03426): lays points out in the plane, those of near rows close to each other.
//!
//! It follows the reference's defaults: 15 neighbours, least distance 0.1, five negative samples. Start and draws are seeded,
//! and it runs in one thread, so equal input gives equal output.

use super::neighbours::Near;
use super::random::Random;

/// Neighbours of a point.
pub(super) const NEIGHBOURS: usize = 15;
/// The curve `1 / (1 + A d^(2 B))` for the least distance 0.1 and the spread 1.
const A: f32 = 1.576_943;
const B: f32 = 0.895_061;
/// Points that a point is pushed away from, for each neighbour that pulls it.
const PUSHES: usize = 5;
/// Largest step of one coordinate, before the rate.
const STEP: f32 = 4.0;
/// Half the width of the start.
const WIDTH: f32 = 10.0;
const SEED: u64 = 2;

/// A point of the plane.
pub(super) type Point = [f32; 2];

/// Two points that pull each other, one in `every` epochs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pull {
    one: usize,
    other: usize,
    every: f32,
}

/// Lays out points. `neighbours`: of each point, the nearest first; `start`: where it begins, in any scale. `None` if `stop`
/// says so, which is asked once an epoch.
pub(super) fn layout(
    neighbours: &[Vec<Near>],
    start: &[Point],
    stop: impl Fn() -> bool,
) -> Option<Vec<Point>> {
    let epochs: usize = if neighbours.len() <= 10_000 { 500 } else { 200 };
    let mut random = Random::new(SEED);
    let mut points = spread(start, &mut random);
    let pulls = pulls(neighbours, epochs);
    let mut due: Vec<f32> = pulls.iter().map(|pull| pull.every).collect();
    for epoch in 0..epochs {
        if stop() {
            return None;
        }
        let rate = 1.0 - epoch as f32 / epochs as f32;
        for (pull, due) in pulls.iter().zip(&mut due).filter(|(_, due)| **due <= (epoch + 1) as f32) {
            *due += pull.every;
            for (one, other) in [(pull.one, pull.other), (pull.other, pull.one)] {
                attract(&mut points, [one, other], rate);
                for _ in 0..PUSHES {
                    let other = random.below(points.len());
                    repel(&mut points, [one, other], rate);
                }
            }
        }
    }
    Some(points)
}

/// The start in a square around the origin, with a little noise, so that no two points are the same.
fn spread(start: &[Point], random: &mut Random) -> Vec<Point> {
    let widest = start.iter().flatten().fold(0.0_f32, |widest, value| widest.max(value.abs()));
    let scale = if widest > 0.0 { WIDTH / widest } else { 0.0 };
    start.iter().map(|point| point.map(|value| value * scale + 1e-3 * random.signed())).collect()
}

/// The pairs of the fuzzy graph that are drawn at least once.
fn pulls(neighbours: &[Vec<Near>], epochs: usize) -> Vec<Pull> {
    // Both directions of a pair, with the weight that each end gives it.
    let mut pairs: Vec<(usize, usize, f32)> = Vec::new();
    for (point, near) in neighbours.iter().enumerate() {
        let weights = near.iter().zip(weights(near));
        pairs.extend(weights.map(|(near, weight)| (point.min(near.row), point.max(near.row), weight)));
    }
    pairs.sort_by(|one, other| (one.0, one.1).cmp(&(other.0, other.1)).then(other.2.total_cmp(&one.2)));
    let merged = pairs.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)).map(|pair| {
        // The probabilistic union of the two.
        let union = pair.iter().fold(0.0, |union, (_, _, weight)| union + weight - union * weight);
        (pair[0].0, pair[0].1, union)
    });
    let merged: Vec<(usize, usize, f32)> = merged.collect();
    let strongest = merged.iter().map(|pair| pair.2).fold(0.0, f32::max);
    let drawn = merged.into_iter().filter(|pair| pair.2 * epochs as f32 >= strongest);
    drawn.map(|(one, other, weight)| Pull { one, other, every: strongest / weight }).collect()
}

/// How strongly a point belongs to each of its neighbours, 0 to 1: the nearest is 1, and they add up to log2 of their number.
fn weights(near: &[Near]) -> Vec<f32> {
    let distances: Vec<f32> = near.iter().map(|near| near.squared.max(0.0).sqrt()).collect();
    let Some(nearest) = distances.first().copied() else { return Vec::new() };
    let target = (near.len() as f32).log2();
    let sum = |width: f32| -> f32 { distances.iter().map(|it| belongs(it - nearest, width)).sum() };
    let (mut low, mut high) = (0.0_f32, f32::INFINITY);
    let mut width = 1.0_f32;
    for _ in 0..64 {
        if sum(width) > target {
            high = width;
            width = (low + high) / 2.0;
        } else {
            low = width;
            width = if high.is_finite() { (low + high) / 2.0 } else { width * 2.0 };
        }
    }
    // A floor, for neighbours that are all equally far.
    let mean = distances.iter().sum::<f32>() / distances.len() as f32;
    let width = width.max(1e-3 * mean);
    distances.iter().map(|it| belongs(it - nearest, width)).collect()
}

fn belongs(beyond: f32, width: f32) -> f32 {
    if beyond <= 0.0 { 1.0 } else { (-beyond / width.max(f32::MIN_POSITIVE)).exp() }
}

/// Moves two points towards each other.
fn attract(points: &mut [Point], [one, other]: [usize; 2], rate: f32) {
    let (apart, squared) = apart(points, [one, other]);
    if squared <= 0.0 {
        return;
    }
    let power = squared.powf(B);
    let pull = -2.0 * A * B * power / squared / (1.0 + A * power);
    for axis in 0..2 {
        let step = rate * (pull * apart[axis]).clamp(-STEP, STEP);
        points[one][axis] += step;
        points[other][axis] -= step;
    }
}

/// Moves a point away from another.
fn repel(points: &mut [Point], [one, other]: [usize; 2], rate: f32) {
    if one == other {
        return;
    }
    let (apart, squared) = apart(points, [one, other]);
    if squared <= 0.0 {
        return;
    }
    let push = 2.0 * B / ((0.001 + squared) * (1.0 + A * squared.powf(B)));
    for axis in 0..2 {
        points[one][axis] += rate * (push * apart[axis]).clamp(-STEP, STEP);
    }
}

fn apart(points: &[Point], [one, other]: [usize; 2]) -> (Point, f32) {
    let (one, other) = (points[one], points[other]);
    let apart = [one[0] - other[0], one[1] - other[1]];
    (apart, apart[0] * apart[0] + apart[1] * apart[1])
}

#[cfg(test)]
mod tests {
    use super::super::neighbours;
    use super::super::rows::Rows;
    use super::*;

    /// Rows in `groups` groups of `size`, far apart, and the layout of them.
    fn laid_out(groups: usize, size: usize) -> Vec<Point> {
        let (mut rows, mut random) = (Rows::new(16), Random::new(9));
        for number in 0..groups * size {
            let row = rows.add();
            row.iter_mut().for_each(|value| *value = 0.1 * random.signed());
            row[number % groups % 16] += 1.0 + (number % groups / 16) as f32;
        }
        let neighbours: Vec<Vec<Near>> =
            (0..rows.len()).map(|row| neighbours::of_row(&rows, row, NEIGHBOURS)).collect();
        let start: Vec<Point> = rows.iter().map(|row| [row[0], row[1]]).collect();
        layout(&neighbours, &start, || false).expect("nobody stops it")
    }

    /// Checks that the nearest point of each is of its own group.
    #[track_caller]
    fn check(groups: usize, size: usize) {
        let points = laid_out(groups, size);
        assert_eq!(points, laid_out(groups, size), "equal input gives equal output");
        assert!(points.iter().flatten().all(|value| value.is_finite()), "{points:?}");
        let squared = |one: usize, other: usize| apart(&points, [one, other]).1;
        let own = (0..points.len()).filter(|one| {
            let others = (0..points.len()).filter(|other| other != one);
            let nearest = others.min_by(|left, right| squared(*one, *left).total_cmp(&squared(*one, *right)));
            nearest.is_none_or(|nearest| nearest % groups == one % groups)
        });
        assert!(own.count() * 100 >= points.len() * 99, "groups are torn apart");
    }

    #[test]
    fn like_rows_stay_together() {
        check(4, 40);
        check(9, 25);
        check(1, 1);
        check(1, 3);
    }

    #[test]
    fn nothing_and_equal_rows_are_laid_out_too() {
        assert_eq!(layout(&[], &[], || false), Some(Vec::new()));
        let same = vec![vec![Near { row: 0, squared: 0.0 }; 3]; 5];
        let points = layout(&same, &[[0.0; 2]; 5], || false).unwrap();
        assert!(points.iter().flatten().all(|value| value.is_finite()), "{points:?}");
        assert_eq!(layout(&same, &[[0.0; 2]; 5], || true), None);
    }

    #[test]
    fn the_weights_of_a_point_add_up_to_the_logarithm_of_their_number() {
        let near: Vec<Near> = (1..16).map(|row| Near { row, squared: (row * row) as f32 }).collect();
        let weights = weights(&near);
        assert!((weights.iter().sum::<f32>() - 15.0_f32.log2()).abs() < 1e-3, "{weights:?}");
        assert!(weights[0] == 1.0 && weights.windows(2).all(|pair| pair[0] > pair[1]), "{weights:?}");
    }
}
