//! Gradual transitions in frames that are drawn here: boundaries in the middle of dissolves, fades and wipes, and none at
//! what only looks alike.

use std::ops::RangeInclusive;

use proptest::prelude::*;

use super::{ClipRange, Curve, CurveWriter, Meter, Segmentation};
use crate::Frame;

const WIDTH: i64 = 256;
const HEIGHT: i64 = 144;
/// Frames before and after what happens.
const SHOT: i64 = 60;

/// Red, green and blue, 0 to 255.
type Colour = [f64; 3];

/// An endless picture: spots of many sizes, different for each number. Even ones are darker.
fn scene(number: u64, x: f64, y: f64) -> Colour {
    let mut light = 0.0;
    for (octave, size) in [90.0, 41.0, 19.0].into_iter().enumerate() {
        let (column, row) = ((x / size).floor(), (y / size).floor());
        let (right, below) = (x / size - column, y / size - row);
        let at = |dx: f64, dy: f64| noise(number * 8 + octave as u64, column + dx, row + dy);
        let above = at(0.0, 0.0) + (at(1.0, 0.0) - at(0.0, 0.0)) * right;
        let under = at(0.0, 1.0) + (at(1.0, 1.0) - at(0.0, 1.0)) * right;
        light += (above + (under - above) * below) / 3.0;
    }
    let tint = noise(number, 7.0, 7.0) * 40.0;
    let light = if number.is_multiple_of(2) { 150.0 * light } else { 70.0 + 180.0 * light };
    [light, light + tint, 20.0 + 0.8 * light]
}

/// A value from 0 to 1 for each point of a grid.
fn noise(number: u64, x: f64, y: f64) -> f64 {
    let mut bits = number ^ ((x as i64 as u64) << 20) ^ ((y as i64 as u64) << 40);
    for _ in 0..2 {
        bits = (bits ^ (bits >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    }
    (bits >> 40) as f64 / (1_u64 << 24) as f64
}

fn mixed(a: Colour, b: Colour, part: f64) -> Colour {
    std::array::from_fn(|at| a[at] + (b[at] - a[at]) * part)
}

/// Two scenes; the camera follows the first and the second slowly.
fn pair(frame: i64, x: i64, y: i64) -> [Colour; 2] {
    let moved = frame as f64 * 0.4;
    [scene(1, x as f64 + moved, y as f64), scene(2, x as f64, y as f64 - moved)]
}

/// How far a transition of `length` frames is, which begins after the first shot.
fn part(frame: i64, length: i64) -> f64 {
    ((frame - SHOT + 1) as f64 / (length + 1) as f64).clamp(0.0, 1.0)
}

/// The scores of frames at 25 per second.
fn measured(frames: i64, draw: impl Fn(i64, i64, i64) -> Colour) -> Curve {
    let (mut meter, mut writer) = (Meter::new(false), CurveWriter::new(false));
    for at in 0..frames {
        let pixels = (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y)));
        let rgb: Vec<u8> =
            pixels.flat_map(|(x, y)| draw(at, x, y).map(|it| it.clamp(0.0, 255.0) as u8)).collect();
        writer.push(&meter.measure(&Frame {
            time_ms: at * 40,
            width: WIDTH as u32,
            height: HEIGHT as u32,
            rgb: rgb.into(),
        }));
    }
    Curve::read(&writer.finish(frames * 40)).unwrap()
}

fn boundaries(curve: &Curve, segmentation: Segmentation) -> Vec<i64> {
    let clips: Vec<ClipRange> = curve.clips(segmentation, &[]);
    clips.iter().skip(1).map(|clip| clip.start_ms / 40).collect()
}

/// The default without slide changes, which things drawn at rest may look like.
fn hybrid(finds_gradual: bool) -> Segmentation {
    let mut segmentation = Segmentation::hybrid(60.0);
    if let Segmentation::Hybrid { gradual, slide_area_percent, .. } = &mut segmentation {
        (*gradual, *slide_area_percent) = (finds_gradual, 0.0);
    }
    segmentation
}

/// Checks the boundaries of what takes `length` frames between two shots: one in each of the `expected` ranges.
#[track_caller]
fn check(length: i64, draw: impl Fn(i64, i64, i64) -> Colour, expected: &[RangeInclusive<i64>]) {
    let curve = measured(2 * SHOT + length, draw);
    let found = boundaries(&curve, hybrid(true));
    let all_in = found.len() == expected.len() && found.iter().zip(expected).all(|(at, it)| it.contains(at));
    assert!(all_in, "length {length}: {found:?}, not {expected:?}");
}

/// Frames near the middle of a transition.
fn middle(length: i64) -> RangeInclusive<i64> {
    let middle = SHOT + length / 2;
    middle - 2..=middle + 2
}

#[test]
fn a_dissolve_ends_a_clip_in_its_middle() {
    for length in [6, 12, 25, 40] {
        let dissolve = |at, x, y| {
            let [a, b] = pair(at, x, y);
            mixed(a, b, part(at, length))
        };
        check(length, dissolve, &[middle(length)]);
    }
}

#[test]
fn a_fade_through_black_or_white_ends_a_clip_in_its_middle() {
    for (length, ground) in [(16, 0.0), (30, 0.0), (40, 255.0)] {
        let fade = |at, x, y| {
            let ([a, b], part) = (pair(at, x, y), part(at, length));
            let (of, to) = if part < 0.5 { (a, 2.0 * part) } else { (b, 2.0 - 2.0 * part) };
            mixed(of, [ground; 3], to)
        };
        check(length, fade, &[middle(length)]);
    }
}

#[test]
fn a_wipe_ends_a_clip_inside_it() {
    for length in [12, 25, 40] {
        let wipe = |at, x, y| {
            let [a, b] = pair(at, x, y);
            if (x as f64) < part(at, length) * WIDTH as f64 { b } else { a }
        };
        check(length, wipe, &[SHOT..=SHOT + length]);
    }
}

#[test]
fn a_flash_is_no_boundary() {
    for length in [1, 2, 4] {
        let flash = |at: i64, x, y| {
            let lit = (SHOT..SHOT + length).contains(&at);
            mixed(pair(at, x, y)[0], [255.0; 3], if lit { 0.9 } else { 0.0 })
        };
        check(length, flash, &[]);
        assert!(
            !boundaries(&measured(2 * SHOT + length, flash), hybrid(false)).is_empty(),
            "it looks like a cut"
        );
    }
}

#[test]
fn a_pan_is_no_boundary() {
    for (length, way) in [(8, 400.0), (25, 200.0), (40, 90.0), (40, 600.0)] {
        let pan = |at, x, y| {
            let part = part(at, length);
            scene(1, x as f64 + way * part * part * (3.0 - 2.0 * part), y as f64)
        };
        check(length, pan, &[]);
    }
}

#[test]
fn a_passing_object_is_no_boundary() {
    for length in [12, 25, 40] {
        let object = |at, x, y| {
            let left = part(at, length) * (WIDTH + 130) as f64 - 130.0;
            let inside = (left..left + 130.0).contains(&(x as f64)) && (10..134).contains(&y);
            if inside { scene(3, x as f64 - left, y as f64) } else { pair(at, x, y)[0] }
        };
        check(length, object, &[]);
    }
}

#[test]
fn a_picture_that_grows_brighter_is_no_boundary() {
    for length in [8, 25] {
        let brighter = |at, x, y| pair(at, x, y)[0].map(|it| it * (0.6 + 0.5 * part(at, length)));
        check(length, brighter, &[]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]

    /// Cuts between moving scenes, the last of them dissolved.
    #[test]
    fn no_hard_cut_moves_beside_gradual_transitions(lengths in prop::collection::vec(20_i64..60, 1..4), speed in 0.0..1.0_f64) {
        let starts: Vec<i64> = lengths.iter().scan(0, |at, length| { *at += length; Some(*at) }).collect();
        let dissolved = starts[starts.len() - 1] + 40;
        let curve = measured(dissolved + 80, |at, x, y| {
            let number = starts.iter().filter(|start| **start <= at).count() as u64;
            let of = |number: u64| scene(10 + number, x as f64 + speed * at as f64, y as f64);
            mixed(of(number), of(99), ((at - dissolved + 1) as f64 / 21.0).clamp(0.0, 1.0))
        });
        let (before, after) = (boundaries(&curve, hybrid(false)), boundaries(&curve, hybrid(true)));
        let cuts: Vec<i64> = before.into_iter().filter(|it| starts.contains(it)).collect();
        prop_assert!(cuts.iter().all(|it| after.contains(it)), "{cuts:?} of {starts:?} in {after:?}");
        // The dissolve is found unless the two scenes are alike by chance.
        let others: Vec<i64> = after.into_iter().filter(|it| !cuts.contains(it)).collect();
        prop_assert!(others.len() <= 1 && others.iter().all(|it| (it - dissolved - 10).abs() <= 2), "{others:?}, not {dissolved} + 10");
    }
}
