//! ffmpeg scales frames with the filter of a model's preprocessing; the result is close to Pillow's on the whole
//! picture.

use std::path::Path;

use reprise_encoders::preprocess::{Middle, Preprocessing, Resampling};
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::{Limits, VideoFile, frames_of_span, probe};
use reprise_encoders::{Frame, FrameSize, Scaling};
use reprise_tests::test_data;

const SIDE: u32 = 112;
const FILTERS: [Resampling; 4] =
    [Resampling::Lanczos, Resampling::Bicubic, Resampling::Bilinear, Resampling::Box];

fn first_frame(path: &Path, scaling: Scaling) -> Frame {
    let limits = Limits::default();
    let probe = probe(path, &limits).unwrap();
    let sampler = Sampler::Middles { frames: 1 };
    frames_of_span(
        VideoFile { path, probe: &probe, in_order: true, limits: &limits },
        0..2_000,
        &sampler,
        scaling,
    )
    .unwrap()
    .remove(0)
}

/// Pixel values of 0 to 255.
fn scaled(frame: &Frame, resampling: Resampling) -> Vec<f32> {
    let size = FrameSize::Exact { width: SIDE, height: SIDE };
    let (mean, std) = ([0.0; 3], [1.0; 3]);
    let crop = (SIDE, SIDE);
    let preprocessing = Preprocessing { size, resampling, crop, middle: Middle::Down, scale: 1.0, mean, std };
    let mut pixels = Vec::new();
    preprocessing.append(frame, &mut pixels).unwrap();
    pixels
}

fn difference(left: &[f32], right: &[f32]) -> f32 {
    left.iter().zip(right).map(|(left, right)| (left - right).abs()).sum::<f32>() / left.len() as f32
}

/// Checks that the frame is close to Pillow's result with the same filter, and closer than to any other filter's.
#[track_caller]
fn check(path: &Path, resampling: Resampling) {
    let limits = Limits::default();
    let whole =
        probe(path, &limits).map(|probe| FrameSize::Exact { width: probe.width, height: probe.height });
    let whole = first_frame(path, whole.unwrap().into());
    let size = FrameSize::Exact { width: SIDE, height: SIDE };
    let frame = scaled(&first_frame(path, Scaling { size, resampling }), resampling);
    let differences = FILTERS.map(|filter| (filter, difference(&frame, &scaled(&whole, filter))));
    let nearest = differences.iter().min_by(|left, right| left.1.total_cmp(&right.1)).unwrap();
    let of = format!("{} {resampling:?}: {differences:?}", path.display());
    assert_eq!(nearest.0, resampling, "{of}");
    assert!(nearest.1 < 2.0, "{of}");
}

#[test]
fn frames_are_scaled_by_the_filter_that_the_model_names() {
    for name in ["sam2_01_dog", "intel_car-detection", "mdn_frog", "skv_bikes"] {
        let Some(path) = test_data(&format!("video/clips/{name}.mp4")) else { return };
        FILTERS.iter().for_each(|resampling| check(&path, *resampling));
    }
}
