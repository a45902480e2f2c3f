//! A rendered sports broadcast with a commentary track: visual and spoken results in one ranking.

use std::path::{Path, PathBuf};

use reprise_research::synth::{Settings, Split, generate};
use reprise_tests::film::{ffmpeg, run};
use reprise_tests::server::Server;
use serde_json::{Value, json};

/// A routine between two cuts, in seconds.
#[derive(Debug)]
struct Routine {
    start: f64,
    end: f64,
    label: String,
}

/// Renders the broadcast; each routine has a label of its own.
fn broadcast(folder: &Path) -> Vec<Routine> {
    let settings = Settings {
        size: 96,
        clips: 1,
        triplets: 0,
        descriptions: 1,
        broadcasts: 1,
        routines: 8,
        ..Settings::new(23, Split::Test)
    };
    generate(folder, &settings, &|_, _| ()).unwrap();
    let truth = std::fs::read_to_string(folder.join("broadcasts.jsonl")).unwrap();
    let ranges: Vec<Value> = truth.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_alone = |label: &Value| ranges.iter().filter(|it| it["label"] == *label).count() == 1;
    let routines = ranges.iter().filter(|it| it["kind"] == "routine" && is_alone(&it["label"]));
    let routine = |it: &Value| Routine {
        start: it["start"].as_f64().unwrap(),
        end: it["end"].as_f64().unwrap(),
        label: it["label"].as_str().unwrap().to_owned(),
    };
    routines.map(routine).collect()
}

/// The broadcast with its commentary as a subtitle stream.
fn commented(folder: &Path, routines: &[Routine]) -> PathBuf {
    let time = |seconds: f64| {
        let ms = (seconds * 1000.0).round() as u64;
        format!("{:02}:{:02}:{:02},{:03}", ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000)
    };
    let cue = |(at, it): (usize, &Routine)| {
        let (start, end) = (time(it.start + 0.1), time(it.end - 0.1));
        format!("{}\n{start} --> {end}\nAnd here comes the {}\n\n", at + 1, it.label)
    };
    let (said, file) = (folder.join("said.srt"), folder.join("commented.mp4"));
    std::fs::write(&said, routines.iter().enumerate().map(cue).collect::<String>()).unwrap();
    let mut mux = ffmpeg();
    mux.arg("-i").arg(folder.join("broadcasts/01.mp4")).arg("-i").arg(said);
    run(mux.args(["-map", "0:v", "-map", "1", "-c:v", "copy", "-c:s", "mov_text"]).arg(&file));
    file
}

/// Checks that both sources contribute to the ranking, and that the first hit, found by both, is `expected`.
async fn check(server: &Server, query: Value, expected: &Routine) {
    let mut body = query;
    body["sources"] = json!(["visual", "spoken"]);
    body["limit"] = json!(50);
    let hits = server.search_hits(body.clone()).await;
    let sources = |hit: &Value| -> Vec<String> {
        let evidence = hit["evidence"].as_array().unwrap().iter();
        evidence.map(|it| it["source"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(sources(&hits[0]), ["visual", "spoken"], "{body}: {hits:?}");
    let times = ["start", "end"].map(|it| hits[0][it].as_f64().unwrap());
    let shared = times[1].min(expected.end) - times[0].max(expected.start);
    assert!(shared > 0.9 * (expected.end - expected.start), "{body}: {times:?} is not {expected:?}");
    let said = &hits[0]["evidence"][1];
    assert!((said["start"].as_f64().unwrap() - expected.start - 0.1).abs() < 0.05, "{said}");
    assert!(hits.iter().any(|hit| sources(hit) == ["visual"]), "{hits:?}");
    let scores: Vec<f64> = hits.iter().map(|it| it["score"].as_f64().unwrap()).collect();
    assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
}

#[tokio::test]
async fn what_is_seen_and_what_is_said_make_one_ranking() {
    let folder = tempfile::tempdir().unwrap();
    let routines = broadcast(folder.path());
    assert!(routines.len() >= 4, "{routines:?}");
    let file = commented(folder.path(), &routines);
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), &["--model", "builtin:sports"]);
    let video = server.ingest(&file).await["id"].clone();
    for (from, to) in [(0, 1), (1, 2), (2, 3)] {
        let (from, to) = (&routines[from], &routines[to]);
        check(&server, json!({"query": {"text": to.label}}), to).await;
        let clip = json!({"video_id": video, "start": from.start, "end": from.end});
        let composed = json!({"clip": clip, "modification": format!("the {}", to.label)});
        check(&server, json!({"query": composed}), to).await;
    }
}
