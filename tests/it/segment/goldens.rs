//! Cuts of all videos of the test data and of generated ones, against PySceneDetect's (from
//! `tests/parity/segment.py`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use reprise_encoders::video::segment::{
    AdaptiveSettings, ContentSettings, Detector, DetectorSettings, Meter, ThresholdSettings,
};
use reprise_encoders::video::{Event, Limits, Request, VideoError, decode, probe};
use reprise_tests::film::{ffmpeg, run};
use reprise_tests::test_data;
use serde::Deserialize;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/parity/data/segment");

/// PySceneDetect's results for one video.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Golden {
    Read { content: Cuts, adaptive: Cuts, threshold: Cuts },
    Refused { unreadable: String },
}

/// The results of one detector.
#[derive(Debug, Deserialize)]
struct Cuts {
    /// Frame numbers of the cuts.
    cuts: Vec<u64>,
    /// Frame number and score of each frame within 0.5 of the threshold.
    near: Vec<(u64, f64)>,
}

fn goldens() -> BTreeMap<String, Golden> {
    let text = std::fs::read_to_string(format!("{FOLDER}/goldens.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The cuts of the three detectors, with the settings that made the goldens.
fn cuts(path: &Path) -> Result<[Vec<u64>; 3], VideoError> {
    let limits = Limits::default();
    let probe = probe(path, &limits)?;
    let fades = ThresholdSettings { add_final_scene: true, ..ThresholdSettings::default() };
    let mut detectors = [
        DetectorSettings::Content(ContentSettings::default()),
        DetectorSettings::Adaptive(AdaptiveSettings::default()),
        DetectorSettings::Threshold(fades),
    ]
    .map(Detector::new);
    let mut found: [Vec<u64>; 3] = Default::default();
    let mut meter = Meter::new(false);
    let request = Request { detect_width: Some(256), outputs: vec![] };
    for event in decode(path, &probe, request, &limits)? {
        if let Event::Detect(frame) = event? {
            let scores = meter.measure(&frame);
            for (detector, found) in detectors.iter_mut().zip(&mut found) {
                found.extend(detector.push(&scores).map(|cut| cut.frame));
            }
        }
    }
    for (detector, found) in detectors.iter_mut().zip(&mut found) {
        found.extend(detector.finish().map(|cut| cut.frame));
        found.sort_unstable();
    }
    Ok(found)
}

/// Describes the differences from the goldens. Frames that score within 0.5 of the threshold may differ.
fn differences(name: &str, path: &Path, golden: &Golden) -> Vec<String> {
    let found = match (golden, cuts(path)) {
        (Golden::Read { .. }, Ok(found)) => found,
        (Golden::Refused { .. }, Err(_)) => return Vec::new(),
        (Golden::Refused { unreadable }, Ok(_)) => {
            return vec![format!("{name}: PySceneDetect can't read it: {unreadable}")];
        }
        (Golden::Read { .. }, Err(error)) => return vec![format!("{name}: {error}")],
    };
    let Golden::Read { content, adaptive, threshold } = golden else { return Vec::new() };
    let mut differences = Vec::new();
    for (detector, golden, found) in [
        ("content", content, &found[0]),
        ("adaptive", adaptive, &found[1]),
        ("threshold", threshold, &found[2]),
    ] {
        if golden.cuts != *found {
            let expected = &golden.cuts;
            let near = &golden.near;
            differences.push(format!("{name} {detector}: {found:?}, not {expected:?}; near: {near:?}"));
        }
    }
    differences
}

/// Checks one file per core at a time. `make` renders a missing video.
#[allow(clippy::print_stdout, reason = "a test says what it let pass")]
fn check(videos: Vec<(String, PathBuf)>, make: impl Fn(&str, &Path) + Sync, allowed: &[&str]) {
    let goldens = goldens();
    let next = std::sync::Mutex::new(videos.iter());
    let all = std::sync::Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let Some((name, path)) = next.lock().unwrap().next() else { break };
                    make(name, path);
                    let found = differences(name, path, &goldens[name]);
                    all.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut all = all.into_inner().unwrap();
    all.sort();
    let is_allowed = |it: &str| allowed.iter().any(|start| it.starts_with(&format!("{start}: ")));
    let (allowed, wrong): (Vec<String>, Vec<String>) = all.into_iter().partition(|it| is_allowed(it));
    allowed.iter().for_each(|it| println!("allowed: {it}"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn real_videos_are_cut_where_pyscenedetect_cuts_them() {
    let Some(folder) = test_data("video") else { return };
    let of_data = goldens().into_keys().filter(|name| name.starts_with("video/"));
    let videos: Vec<_> = of_data.map(|name| (name.clone(), folder.join("..").join(&name))).collect();
    assert!(videos.len() >= 50 && videos.iter().all(|it| it.1.exists()));
    check(videos, |_, _| {}, ALLOWED);
}

#[test]
fn generated_videos_are_cut_where_pyscenedetect_cuts_them() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(format!("{FOLDER}/recipes.json")).unwrap();
    let recipes: BTreeMap<String, String> = serde_json::from_str(&text).unwrap();
    assert_eq!(recipes.len(), 50);
    let videos = recipes.keys().map(|name| (format!("generated/{name}"), folder.path().join(name)));
    // The command line of the script.
    let make = |name: &str, path: &Path| {
        let graph = &recipes[name.trim_start_matches("generated/")];
        run(ffmpeg()
            .args(["-filter_complex", graph, "-map", "[v]", "-c:v", "ffv1"])
            .args(["-flags", "+bitexact", "-sws_flags", "bitexact", "-f", "matroska"])
            .arg(path));
    };
    check(videos.collect(), make, ALLOWED);
}

/// Known differences. This video of 1280x720 is subsampled and ends with a fade to black. There the score of one
/// frame is slightly less than three times its neighbours'.
const ALLOWED: &[&str] = &["video/odd/psd_testvideo.mp4 adaptive"];
