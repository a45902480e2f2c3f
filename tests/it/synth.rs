//! The benchmark folder: its tables describe its films, and equal seeds give equal folders.

use std::fs;
use std::path::Path;

use reprise_research::synth::check::{Effort, check as probe};
use reprise_research::synth::{Settings, Split, SynthError, generate};
use reprise_tests::film::ffprobe;
use serde_json::Value;

fn small(split: Split) -> Settings {
    Settings {
        size: 48,
        clips: 40,
        triplets: 90,
        descriptions: 1,
        broadcasts: 1,
        routines: 3,
        ..Settings::new(11, split)
    }
}

fn render(folder: &Path, settings: &Settings) {
    generate(folder, settings, &|_, _| ()).unwrap();
}

fn json_lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn check(folder: &Path, video: &str, frames: usize) {
    let probe = ffprobe(&folder.join(video));
    let stream = &probe["streams"][0];
    assert_eq!(stream["nb_read_frames"], frames.to_string(), "{video}");
    assert_eq!((&stream["codec_name"], &stream["pix_fmt"]), (&"h264".into(), &"yuv420p".into()), "{video}");
    assert_eq!(stream["r_frame_rate"], "25/1", "{video}");
    let start: f64 = stream["start_time"].as_str().unwrap().parse().unwrap();
    assert!(start.abs() < 1e-6, "{video} begins at {start}");
}

#[test]
fn films_hold_as_many_frames_as_the_truth_has_rows() {
    let folder = tempfile::tempdir().unwrap();
    render(folder.path(), &small(Split::Test));
    let truth = json_lines(&folder.path().join("truth.jsonl"));
    assert_eq!(truth.len(), 40);
    // First and last clips of both ffmpeg runs.
    for at in [0, 15, 31, 32, 39] {
        let frames = truth[at]["frames"].as_array().unwrap();
        check(folder.path(), truth[at]["video"].as_str().unwrap(), frames.len());
    }
    let ranges = json_lines(&folder.path().join("broadcasts.jsonl"));
    let end = ranges.last().unwrap()["end"].as_f64().unwrap();
    check(folder.path(), "broadcasts/01.mp4", (end * 25.0).round() as usize);
    let plan: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("plan.json")).unwrap()).unwrap();
    let columns = plan["truth_columns"].as_array().unwrap().len();
    assert_eq!(truth[0]["frames"][0].as_array().unwrap().len(), columns);
    assert!(fs::read(folder.path().join("contact_sheet.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn the_same_seed_writes_the_same_tables() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let settings = Settings { clips: 4, broadcasts: 0, ..small(Split::Train) };
    folders.iter().for_each(|it| render(it.path(), &settings));
    let names =
        ["plan.json", "labels.csv", "truth.jsonl", "triplets.csv", "triplets.jsonl", "descriptions.csv"];
    for name in names {
        let [one, other] = [0, 1].map(|at| fs::read(folders[at].path().join(name)).unwrap());
        assert!(one == other, "{name} differs");
        assert!(!one.is_empty(), "{name} is empty");
    }
}

#[test]
fn a_folder_with_other_files_is_left_alone_and_an_earlier_run_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("thesis.txt");
    fs::write(&mine, "mine").unwrap();
    let settings = Settings { clips: 3, triplets: 0, broadcasts: 0, ..small(Split::Test) };
    let refused = generate(folder.path(), &settings, &|_, _| ());
    assert!(matches!(refused, Err(SynthError::NotOurs(_))), "{refused:?}");
    assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
    fs::remove_file(&mine).unwrap();
    render(folder.path(), &settings);
    render(folder.path(), &Settings { clips: 2, ..settings });
    assert_eq!(fs::read_dir(folder.path().join("clips")).unwrap().count(), 2);
}

#[test]
fn sizes_that_cannot_be_encoded_are_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for size in [0, 31, 33, 4096] {
        let refused = generate(folder.path(), &Settings { size, ..small(Split::Test) }, &|_, _| ());
        assert!(matches!(refused, Err(SynthError::Size(_))), "{size}: {refused:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn probes_judge_a_test_split_and_no_other_folder() {
    let folder = tempfile::tempdir().unwrap();
    render(folder.path(), &Settings { clips: 248, broadcasts: 0, size: 32, ..small(Split::Test) });
    let effort = Effort { clips: 1, epochs: 1 };
    let lines = probe(folder.path(), effort, &|_| ()).unwrap();
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|it| (0.0..=100.0).contains(&it.map)), "{lines:?}");
    // The known gallery labels make the ranking better.
    assert!(lines[0].known_gallery > lines[0].map, "{lines:?}");
    let empty = tempfile::tempdir().unwrap();
    let error = probe(empty.path(), effort, &|_| ()).unwrap_err().to_string();
    assert!(error.contains("plan.json"), "{error}");
    render(empty.path(), &Settings { clips: 1, triplets: 0, broadcasts: 0, ..small(Split::Train) });
    let error = probe(empty.path(), effort, &|_| ()).unwrap_err().to_string();
    assert!(error.contains("training split"), "{error}");
}
