//! Lists for editing programs, as OpenTimelineIO and its adapters read them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reprise_tests::numbered::Numbered;
use reprise_tests::skip;
use serde_json::{Value, json};

use super::{Exported, Studio, VARIABLE, at, named, range};

/// Reads a list and prints, for each track, its kind and its clips: name, start, duration, rate.
const READ: &str = r#"
import json, sys
import opentimelineio as otio
kind, rate, path = sys.argv[1:4]
numerator, denominator = map(int, rate.split('/'))
options = {'rate': numerator / denominator} if kind == 'edl' else {}
names = {'edl': 'cmx_3600', 'otio': 'otio_json', 'fcpxml': 'fcpx_xml'}
read = otio.adapters.read_from_file(path, adapter_name=names[kind], **options)
timeline = read[0] if kind == 'fcpxml' else read
def clip(it):
    span = it.source_range
    gap = isinstance(it, otio.schema.Gap)
    return [None if gap else it.name, span.start_time.value, span.duration.value, span.duration.rate]
print(json.dumps([[track.kind, [clip(it) for it in track]] for track in timeline.tracks]))
"#;

/// A Python with OpenTimelineIO; `None` after `skip`.
fn python() -> Option<PathBuf> {
    let python = reprise_tests::engines().map(|folder| folder.join("bin/python"));
    let can = |python: &PathBuf| {
        let mut command = Command::new(python);
        command.args(["-c", "import opentimelineio, otio_cmx3600_adapter, otio_fcpx_xml_adapter"]);
        command.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let found = python.filter(can);
    if found.is_none() {
        skip("OpenTimelineIO is not installed (scripts/engines.sh)");
    }
    found
}

fn read(python: &Path, kind: &str, rate: (i64, i64), file: &Path) -> Value {
    let mut child = Command::new(python)
        .args(["-", kind, &named(rate)])
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(READ.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{kind}: {}", std::fs::read_to_string(file).unwrap());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The clips of the first track of pictures: start and duration in seconds. Where the adapter of FCPXML rounds 23.976 to
/// 23 frames a second, it puts gaps of a frame between them.
fn seconds(read: &Value) -> Vec<(f64, f64)> {
    let track = read.as_array().unwrap().iter().find(|track| track[0] == "Video").unwrap();
    let clip = |clip: &Value| {
        let number = |place: usize| clip[place].as_f64().unwrap();
        (number(1) / number(3), number(2) / number(3))
    };
    track[1].as_array().unwrap().iter().filter(|clip| clip[0].is_string()).map(clip).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_programs_read_the_same_times() {
    let Some(python) = python() else { return };
    let studio = Studio::open();
    for (rate, frames) in
        [((24_000, 1001), 200), ((25, 1), 200), ((30_000, 1001), 2000), ((50, 1), 200), ((60_000, 1001), 200)]
    {
        let film = Numbered { rate: &named(rate), frames, sound: true, ..Numbered::default() };
        let video = studio.film(&format!("film {}.mp4", rate.0), film).await;
        let last = frames as i64 - 50;
        let asked = [(0, 30), (last - 20, last + 31), (7, 8)];
        let ranges: Vec<Value> =
            asked.iter().map(|&(first, end)| range(&video, at(first, rate), at(end, rate))).collect();
        for kind in ["edl", "otio", "fcpxml"] {
            let made = studio.export(&json!({"format": kind, "title": "A <reel>", "ranges": ranges})).await;
            let found = read(&python, kind, rate, &made.file);
            check_times(&seconds(&found), &asked, rate, &format!("{kind} at {}", named(rate)));
            if kind != "fcpxml" {
                // The adapter of FCPXML rounds rates; the others keep frames.
                let exact: Vec<Value> =
                    asked.iter().map(|&(first, end)| json!([first as f64, (end - first) as f64])).collect();
                let frames: Vec<Value> =
                    found[0][1].as_array().unwrap().iter().map(|clip| json!([clip[1], clip[2]])).collect();
                assert_eq!(frames, exact, "{kind} at {}", named(rate));
                assert!(found.as_array().unwrap().iter().any(|track| track[0] == "Audio"), "{kind}");
            }
        }
    }
}

/// Frames of a variable rate have no numbers of their own: lists count them at the list's rate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_programs_read_the_same_times_of_a_variable_rate() {
    let Some(python) = python() else { return };
    let studio = Studio::open();
    let video = studio.film("variable.mp4", VARIABLE).await;
    assert_eq!(studio.server.get(&format!("/v1/videos/{video}")).await.1["variable_frame_rate"], true);
    // Where frames are even, over the change, and where they are far apart.
    let asked = [(0.0, 1.2), (1.6, 4.0), (6.0, 6.2)];
    let ranges = asked.map(|(start, end)| range(&video, start, end));
    for (name, rate) in [("25", (25, 1)), ("29.97", (30_000, 1001)), ("59.94", (60_000, 1001))] {
        for kind in ["edl", "otio", "fcpxml"] {
            let request = json!({"format": kind, "frame_rate": name, "ranges": ranges});
            let Exported { answer, file } = studio.export(&request).await;
            assert_eq!(answer["frame_rate"], name, "{kind}");
            let found = seconds(&read(&python, kind, rate, &file));
            check_spans(&found, &asked, rate, &format!("{kind} of a variable rate at {name}"));
        }
    }
    let usual = studio.export(&json!({"format": "otio", "ranges": ranges})).await;
    // 80 frames in 8 s: the next rate of editing programs.
    assert_eq!(usual.answer["frame_rate"], "23.976");
    let found = seconds(&read(&python, "otio", (24_000, 1001), &usual.file));
    check_spans(&found, &asked, (24_000, 1001), "otio of a variable rate at its usual one");
}

/// Checks times within one frame.
fn check_times(found: &[(f64, f64)], asked: &[(i64, i64)], rate: (i64, i64), what: &str) {
    let frame = rate.1 as f64 / rate.0 as f64;
    let asked: Vec<(f64, f64)> =
        asked.iter().map(|&(first, end)| (first as f64 * frame, end as f64 * frame)).collect();
    check_spans(found, &asked, rate, what);
}

/// Checks starts and durations in seconds against starts and ends, within one frame.
fn check_spans(found: &[(f64, f64)], asked: &[(f64, f64)], rate: (i64, i64), what: &str) {
    let frame = rate.1 as f64 / rate.0 as f64;
    assert_eq!(found.len(), asked.len(), "{what}");
    for ((start, duration), (first, end)) in found.iter().zip(asked) {
        // The adapter of FCPXML counts whole frames a second: 29 for 29.97.
        let frame = frame * 1.04;
        assert!((start - first).abs() <= frame, "{what}: starts at {start}, not {first}");
        assert!((duration - (end - first)).abs() <= frame, "{what}: lasts {duration}, not {}", end - first);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_several_rates_have_one() {
    let Some(python) = python() else { return };
    let studio = Studio::open();
    let slow = studio.film("slow.mp4", Numbered::default()).await;
    let fast = studio.film("fast.mp4", Numbered { rate: "50", frames: 100, ..Numbered::default() }).await;
    let ranges = [range(&slow, 0.2, 1.0), range(&fast, 0.5, 1.5)];
    for (request, rate) in [(json!({}), (25, 1)), (json!({"frame_rate": "29.97"}), (30_000, 1001))] {
        let mut request = request;
        request["format"] = json!("edl");
        request["ranges"] = json!(ranges);
        let Exported { answer, file } = studio.export(&request).await;
        let name = if rate.0 == 25 { "25" } else { "29.97" };
        assert_eq!(answer["frame_rate"], name);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with(&format!("TITLE: export ({name} FPS)\r\nFCM: ")), "{text}");
        let found = seconds(&read(&python, "edl", rate, &file));
        let frame = rate.1 as f64 / rate.0 as f64;
        for ((start, duration), (expected, length)) in found.iter().zip([(0.2, 0.8), (0.5, 1.0)]) {
            assert!((start - expected).abs() <= frame && (duration - length).abs() <= frame, "{found:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_and_chapters_name_the_ranges() {
    let studio = Studio::open();
    let video = studio.film("dive.mp4", Numbered::default()).await;
    let body = json!({"name": "Dives", "ranges": [
        {"video_id": video, "start": 0.4, "end": 1.2, "note": "first, \"best\""}, range(&video, 1.0, 9.0),
    ]});
    let (_, reel) = studio.server.post("/v1/reels", &body).await;
    let text = async |format: &str| {
        let made = studio.export(&json!({"format": format, "reel_id": reel["id"]})).await;
        assert_eq!(made.answer["title"], "Dives");
        std::fs::read_to_string(made.file).unwrap()
    };
    let table = text("csv").await;
    assert_eq!(table.lines().count(), 3);
    assert!(table.contains(",0.4,1.2,00:00:00:10,00:00:01:05,0.0,0.8,"), "{table}");
    assert!(table.contains("\"first, \"\"best\"\"\""), "{table}");
    let listed: Value = serde_json::from_str(&text("json").await).unwrap();
    assert_eq!(listed["ranges"][1]["end"], 2.0, "cut to the video's end");
    assert_eq!(listed["ranges"][1]["record_start"], 0.8);
    let chapters = text("vtt").await;
    assert!(
        chapters.starts_with("WEBVTT\n\n1\n00:00:00.000 --> 00:00:00.800\nfirst, \"best\"\n"),
        "{chapters}"
    );
}
