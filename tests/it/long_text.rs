//! Texts of many sentences, through `reprise eval long` and through a server.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use reprise_research::synth::{self, Settings, Split};
use reprise_tests::film::{Store, film};
use reprise_tests::server::{Server, binary};
use serde_json::{Value, json};

/// Renders descriptions and clips of enough labels to make chance hits rare.
fn render(folder: &Path) {
    let settings = Settings {
        size: 96,
        clips: 80,
        labels: 20,
        triplets: 60,
        broadcasts: 0,
        ..Settings::new(11, Split::Test)
    };
    synth::generate(folder, &settings, &|_, _| {}).unwrap();
}

fn measured(folder: &Path) -> Value {
    let mut command = Command::new(binary());
    command
        .args(["eval", "long", "--queries", "12", "--json", "--model", "builtin:sports", "--data"])
        .arg(folder);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_telling_sentence_is_found_wherever_it_stands_in_a_long_text() {
    let folder = tempfile::tempdir().unwrap();
    render(folder.path());
    let figures = measured(folder.path());
    let lost = |reading: &str| -> Vec<i64> {
        let places = figures["ranks_lost"][reading].as_array().unwrap_or_else(|| panic!("{figures}"));
        places.iter().map(|it| it.as_i64().unwrap()).collect()
    };
    assert_eq!(lost("coverage").len(), 10);
    assert!(lost("coverage").iter().all(|ranks| *ranks <= 2), "{figures}");
    assert!(lost("truncate")[5..].iter().all(|ranks| *ranks > 2), "{figures}");
    let recall = |method: &str| figures["full_videos"][method]["R@1"].as_f64().unwrap();
    assert!(recall("late interaction") >= recall("pooled, mean of windows"), "{figures}");
}

fn sentences(count: usize) -> Vec<String> {
    (0..count)
        .map(|at| format!("In scene number {at} a dog runs to the left past {} red houses.", at % 7))
        .collect()
}

async fn ranking(server: &Server, text: &str) -> (Vec<f64>, Value) {
    let body = json!({"query": {"text": text}, "limit": 50, "sources": ["visual"]});
    let answer = server.search(&body).await;
    let scores = answer["results"].as_array().unwrap().iter().map(|hit| hit["score"].as_f64().unwrap());
    (scores.collect(), answer["query_info"].clone())
}

#[tokio::test]
async fn every_token_of_a_long_text_is_used_and_every_window_counts() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let file = film(folder.path(), "shots", &["testsrc2", "smptebars", "mandelbrot"], Store::Lossless);
    server.ingest(&file).await;
    let sentences = sentences(30);
    let (scores, info) = ranking(&server, &sentences.join(" ")).await;
    assert_eq!((&info["tokens_used"], &info["truncated"]), (&info["tokens_total"], &json!(false)), "{info}");
    assert_eq!(info["windows"], 30, "{info}");
    let mut seen = HashSet::from([format!("{scores:?}")]);
    for changed in [0, 7, 15, 29] {
        let mut others = sentences.clone();
        others[changed] = "Nobody has ever seen the green piano upon that hill.".to_owned();
        let (scores, _) = ranking(&server, &others.join(" ")).await;
        assert!(seen.insert(format!("{scores:?}")), "window {changed} changes nothing");
    }
    let two_thousand = "the quick brown fox jumps over a lazy dog and sleeps ".repeat(182);
    let (_, info) = ranking(&server, &two_thousand).await;
    assert_eq!((&info["tokens_used"], &info["truncated"]), (&info["tokens_total"], &json!(false)), "{info}");
}

#[tokio::test]
async fn pages_of_a_long_text_are_the_ranking_cut_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--max-clip-seconds", "1"]);
    let file =
        film(folder.path(), "shots", &["testsrc2", "smptebars", "mandelbrot", "testsrc"], Store::Lossless);
    server.ingest(&file).await;
    let text = sentences(30).join(" ");
    let whole = server.search(&json!({"query": {"text": text}, "limit": 50})).await;
    let ids = |answer: &Value| -> Vec<String> {
        let hits = answer["results"].as_array().unwrap().iter();
        hits.map(|hit| hit["clip_id"].as_str().unwrap().to_owned()).collect()
    };
    let mut page = server.search(&json!({"query": {"text": text}, "limit": 3})).await;
    let mut paged = ids(&page);
    while let Some(cursor) = page["next_cursor"].as_str().map(str::to_owned) {
        page = server.search(&json!({"cursor": cursor})).await;
        paged.extend(ids(&page));
    }
    assert!(paged.len() > 6, "{paged:?}");
    assert_eq!(paged, ids(&whole));
}
