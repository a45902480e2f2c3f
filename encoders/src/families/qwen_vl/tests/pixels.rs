//! Preprocessing: pixels to patches.

use std::sync::Arc;

use candle_core::{Device, Tensor};

use super::super::config::Generation;
use super::super::patches::{FrameSizes, Patching, parse};
use super::fixture::{Fixture, each};
use crate::Frame;
use crate::area::{Lift, SizeRule};

/// The picture of the parity tests' formula (tests/parity/two_towers.py).
pub(super) fn picture(width: u32, height: u32, kind: u32) -> Frame {
    let mut rgb = Vec::new();
    for y in 0..height {
        for x in 0..width {
            for c in 0..3 {
                let waves = (x * x * 3 + y * y * (5 + kind) + x * y * 7) / (width + height) + c * 60;
                let edges = ((x / 5 + y / 3 + c) % 2) * 120;
                rgb.push(((waves + edges * (kind % 2)) % 256) as u8);
            }
        }
    }
    Frame { time_ms: 0, width, height, rgb: Arc::from(rgb) }
}

/// The fixture's preprocessing, with transformers' bounds for videos.
pub(super) fn patching(fixture: &Fixture) -> Patching {
    let config = fixture.config();
    let json = std::fs::read(fixture.folder.join("preprocessor_config.json")).unwrap();
    let patching = Patching::new(&parse(&json).unwrap(), &config.vision).unwrap();
    let rule = |max_pixels| SizeRule { factor: 8, min_pixels: 256, max_pixels, lift: Lift::After };
    let frames = match config.generation {
        Generation::Three => FrameSizes::Together(rule(4096)),
        Generation::Two | Generation::TwoFive => FrameSizes::Each(rule(1024)),
    };
    Patching { frames, ..patching }
}

#[track_caller]
fn same(what: &str, got: &[f32], expected: &Tensor) {
    let expected = expected.flatten_all().unwrap();
    let got = Tensor::new(got, &Device::Cpu).unwrap();
    super::fixture::check(what, &got, &expected);
}

#[test]
fn frames_of_videos_become_the_references_patches() {
    each(|fixture| {
        let patching = patching(fixture);
        for (name, count, width, height) in [("three", 3, 28, 20), ("four", 4, 37, 45), ("long", 12, 16, 16)]
        {
            let frames: Vec<Frame> = (0..count).map(|kind| picture(width, height, kind)).collect();
            let visual = patching.video(&frames.iter().collect::<Vec<_>>(), Vec::new(), 2.0).unwrap();
            let what = format!("{} {name}", fixture.name);
            same(&what, &visual.patches, fixture.tensor(&format!("{name}.patches")).unwrap());
        }
    });
}

#[test]
fn pictures_become_pillows_patches() {
    each(|fixture| {
        let patching = patching(fixture);
        for (name, width, height) in [("wide", 50, 33), ("tiny", 9, 7)] {
            let visual = patching.picture(&picture(width, height, 1)).unwrap();
            let what = format!("{} {name}", fixture.name);
            same(&what, &visual.patches, fixture.tensor(&format!("{name}.patches.pillow")).unwrap());
        }
    });
}
