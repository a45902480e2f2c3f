//! An hour of slides on which only text changes.

use std::path::Path;

use reprise_encoders::video::segment::{ClipRange, Curve, CurveWriter, Meter, Segmentation, Segmenter};
use reprise_encoders::video::{Event, Limits, Request, decode, probe};
use reprise_tests::slides::{Slides, slides};

const SECONDS: usize = 3600;
const MAX_CLIP_MS: i64 = 30_000;

fn measured(path: &Path) -> Curve {
    let limits = Limits::default();
    let probe = probe(path, &limits).unwrap();
    let mut meter = Meter::new(false);
    let mut writer = CurveWriter::new(false);
    let mut decoder =
        decode(path, &probe, Request { detect_width: Some(256), outputs: vec![] }, &limits).unwrap();
    for event in decoder.by_ref() {
        if let Event::Detect(frame) = event.unwrap() {
            writer.push(&meter.measure(&frame));
        }
    }
    Curve::read(&writer.finish(decoder.summary().duration_ms)).unwrap()
}

fn is_near(times: &[i64], at: i64) -> bool {
    times.iter().any(|time| (time - at).abs() <= 1000)
}

/// Number of boundaries far from any change, beyond those that the longest clip length requires.
fn extra(boundaries: &[i64], changes: &[i64]) -> usize {
    let ends = [&[0], changes, &[SECONDS as i64 * 1000]].concat();
    let needed: i64 = ends.windows(2).map(|it| (it[1] - it[0] - 1) / MAX_CLIP_MS).sum();
    let elsewhere = boundaries.iter().filter(|at| !is_near(changes, **at)).count();
    elsewhere.saturating_sub(needed as usize)
}

#[test]
fn an_hour_of_slides_is_cut_where_the_slides_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lecture.mp4");
    let Slides { changes, largest } = slides(&path, SECONDS, 5);
    assert!(changes.len() >= 80 && largest < 0.12, "{} changes of at most {largest}", changes.len());
    let curve = measured(&path);
    let duration_ms = SECONDS as i64 * 1000;
    assert_eq!(curve.duration_ms, duration_ms);

    let mut cuts = Segmenter::new(Segmentation::content(MAX_CLIP_MS as f64 / 1000.0));
    curve.scores.iter().for_each(|it| drop(cuts.push(it)));
    assert_eq!(cuts.cuts(), [], "no change reaches the content threshold");

    let hybrid = Segmentation::hybrid(MAX_CLIP_MS as f64 / 1000.0);
    let clips: Vec<ClipRange> = curve.clips(hybrid, &[]);
    assert_eq!((clips[0].start_ms, clips[clips.len() - 1].end_ms), (0, duration_ms));
    assert!(clips.windows(2).all(|pair| pair[0].end_ms == pair[1].start_ms));
    assert!(clips.iter().all(|clip| (1..=MAX_CLIP_MS).contains(&(clip.end_ms - clip.start_ms))));
    let boundaries: Vec<i64> = clips[1..].iter().map(|clip| clip.start_ms).collect();
    let found = changes.iter().filter(|at| is_near(&boundaries, **at)).count();
    let extra = extra(&boundaries, &changes);
    println!("{} changes, {found} found, {extra} extra boundaries of {}", changes.len(), boundaries.len());
    assert!(found * 10 >= changes.len() * 9, "{found} of {} changes", changes.len());
    assert!(extra * 10 <= boundaries.len(), "{extra} extra boundaries of {}", boundaries.len());
}
