//! Feedback as training data: what a server has stored leaves as a file, becomes triplets, and trains a Combiner, by the
//! commands of docs/query-log.md.

use std::fs::{read_dir, read_to_string};
use std::process::{Command, Output};

use reprise_tests::server::{Server, binary};
use serde_json::{Value, json};

use crate::faults::bed::{Bed, clips, on_both, text};

on_both!(feedback_on_composed_searches_becomes_triplets_and_trains_a_combiner);

/// Changes that are asked of every clip.
const CHANGES: [&str; 2] = ["in another colour", "with a second, \"brighter\" light"];

/// A clip of a stored video, and its name in the files of training.
struct Clip {
    id: Value,
    name: String,
}

async fn a_film(bed: &Bed, server: &Server, number: usize) -> Vec<Clip> {
    let video = server.ingest(&bed.film(number, 4)).await;
    let id = text(&video, "/id");
    let mut stored = read_dir(bed.data().join("videos")).unwrap().map(|entry| entry.unwrap().path());
    let file = stored.find(|file| file.to_string_lossy().contains(id)).unwrap();
    let time = |clip: &Value, end: &str| clip[end].as_f64().unwrap();
    let name = |clip: &Value| format!("{}#t={},{}", file.display(), time(clip, "start"), time(clip, "end"));
    let clips = clips(server, id).await;
    assert_eq!(clips.len(), 4, "{clips:?}");
    clips.iter().map(|clip| Clip { id: clip["id"].clone(), name: name(clip) }).collect()
}

/// Searches, and gives a verdict on one of the hits.
async fn judge(server: &Server, query: Value, hit: &Clip, verdict: &str) {
    let found = server.search(&json!({"query": query, "limit": 50, "overlaps": "keep"})).await;
    let path = format!("/v1/searches/{}/feedback", text(&found, "/search_id"));
    let (status, problem) = server.post(&path, &json!({"clip_id": hit.id, "verdict": verdict})).await;
    assert_eq!(status, 204, "{query}: {problem}");
}

/// Runs a command that must succeed. Returns what it prints.
#[track_caller]
fn prints(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap() + &said
}

async fn feedback_on_composed_searches_becomes_triplets_and_trains_a_combiner(bed: &Bed) {
    let server = bed.start(&[]);
    let (queries, targets) = (a_film(bed, &server, 0).await, a_film(bed, &server, 1).await);
    let composed = |query: &Clip, change: &str| json!({"clip_id": query.id, "modification": change});
    let mut expected = Vec::new();
    for (place, query) in queries.iter().enumerate() {
        for (next, change) in CHANGES.iter().enumerate() {
            let target = &targets[(place + next) % targets.len()];
            judge(&server, composed(query, change), target, "relevant").await;
            let (query, target, change) = (&query.name, &target.name, change.replace('"', "\"\""));
            let change = if change.contains(',') { format!("\"{change}\"") } else { change };
            expected.push(format!("\"{query}\",\"{target}\",\"{query}\",\"{target}\",{change}"));
        }
    }
    // None of these makes a triplet: what was only looked at, a text, and verdicts that contradict each other.
    judge(&server, composed(&queries[0], "slower"), &targets[0], "opened").await;
    judge(&server, json!({"text": "slower"}), &targets[0], "relevant").await;
    for verdict in ["relevant", "not_relevant"] {
        judge(&server, composed(&queries[0], "faster"), &targets[0], verdict).await;
    }
    assert!(server.stop(), "it did not stop well");

    let at = |name: &str| bed.folder().join(name).to_str().unwrap().to_owned();
    let (feedback, mine) = (at("feedback.jsonl"), at("mine"));
    prints(bed.run(&["feedback", "export", &feedback]));
    let reprise = |arguments: &[&str]| {
        let mut command = Command::new(binary());
        prints(command.env_remove("REPRISE_MODEL").args(arguments).output().unwrap())
    };
    let said = reprise(&["covr", "triplets", "--feedback", &feedback, "--out", &mine]);
    let summary = "8 triplets of 8 clips from 12 lines; 1 left out, because verdicts contradict each other";
    assert!(said.contains(summary), "{said}");
    let table = read_to_string(at("mine/triplets.csv")).unwrap();
    let (header, rows) = table.split_once('\n').unwrap();
    assert_eq!(header, "query_video,target_video,label1,label2,modification");
    let mut rows: Vec<&str> = rows.lines().collect();
    rows.sort_unstable();
    expected.sort_unstable();
    assert_eq!(rows, expected);

    let (videos, texts, out) = (at("videos.npy"), at("texts.npy"), at("run"));
    // A cache of its own: two commands must not write one at the same time.
    let model = ["--model", "builtin:tiny", "--cache", &at("cache")];
    reprise(&[&["embed", "--videos", &at("mine/clips.csv"), "--out", &videos][..], &model].concat());
    reprise(&[&["embed", "--texts", &at("mine/triplets.csv"), "--out", &texts][..], &model].concat());
    let names = at("videos.names.csv");
    let files = ["--vectors", &videos, "--names", &names, "--texts", &texts];
    let small = ["--projection", "8", "--hidden", "8", "--steps", "3", "--batch", "4"];
    let said = reprise(&[&["train", "stage2", "--data", &mine, "--out", &out][..], &files, &small].concat());
    assert!(said.contains("combiner.safetensors"), "{said}");
}
