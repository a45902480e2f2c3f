//! The subcommands from the outside: their output as JSON and as lines, and their failures.

use std::path::Path;
use std::process::{Command, Output};

use reprise_tests::film::{Store, film};
use reprise_tests::server::{Server, binary};
use serde_json::{Value, json};

fn reprise(arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    // An empty variable counts as unset.
    for name in [
        "DATABASE_URL",
        "REPRISE_API_KEY",
        "REPRISE_DATA_DIR",
        "REPRISE_DEMO",
        "REPRISE_LISTEN",
        "REPRISE_SERVER",
    ] {
        command.env(name, "");
    }
    // The same model as the tests' servers.
    command.env("REPRISE_MODEL", "builtin:tiny");
    command.args(arguments).output().unwrap()
}

/// The output of a command that must succeed.
#[track_caller]
fn prints(arguments: &[&str]) -> String {
    let output = reprise(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn prints_json(arguments: &[&str]) -> Value {
    serde_json::from_str(&prints(arguments)).unwrap()
}

/// The error output of a command that must fail.
#[track_caller]
fn complains(arguments: &[&str]) -> String {
    let output = reprise(arguments);
    assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn segment_prints_cuts_and_clips_that_cover_the_video() {
    let folder = tempfile::tempdir().unwrap();
    let file = film(folder.path(), "cuts", &["testsrc2", "color=c=red", "smptebars"], Store::Web);
    let report = prints_json(&["segment", shown(&file), "--json"]);
    assert_eq!(
        (&report["fps"], &report["frames"], &report["duration"]),
        (&json!(25.0), &json!(150), &json!(6.0))
    );
    assert_eq!(report["cuts"], json!([50, 100]));
    let clips = json!([{"start": 0.0, "end": 2.0}, {"start": 2.0, "end": 4.0}, {"start": 4.0, "end": 6.0}]);
    assert_eq!(report["clips"], clips);
    let blunt =
        prints_json(&["segment", shown(&file), "--json", "--threshold", "255", "--detector", "content"]);
    assert_eq!(blunt["cuts"], json!([]));
    for length in ["60f", "2.4s"] {
        let long = prints_json(&["segment", shown(&file), "--json", "--min-scene-len", length]);
        assert!(long["cuts"].as_array().unwrap().len() < 2, "{long}");
    }
    let short = prints_json(&["segment", shown(&file), "--json", "--max-clip", "1"]);
    assert!(short["clips"].as_array().unwrap().len() >= 6, "{short}");
    let (stats, plot) = (folder.path().join("scores.csv"), folder.path().join("scores.png"));
    let lovr = ["segment", shown(&file), "--json", "--preset", "lovr", "--stats", shown(&stats), "--plot"];
    assert_eq!(prints_json(&[&lovr[..], &[shown(&plot)]].concat())["cuts"], json!([]));
    let table = std::fs::read_to_string(stats).unwrap();
    assert_eq!(table.lines().count(), 151, "a line a frame, and the header");
    assert!(
        table.starts_with("frame,seconds,score,hue,saturation,value,edges,brightness,moving,"),
        "{table}"
    );
    assert!(std::fs::read(plot).unwrap().starts_with(b"\x89PNG"));
    assert!(
        complains(&["segment", shown(&file), "--min-clip", "20"])
            .contains("--min-clip must be from 0 to 7.5")
    );
    let lines = prints(&["segment", shown(&file)]);
    assert!(
        lines.starts_with("150 frames, 0:06.0, 2 cuts\n") && lines.contains("0:02.0 - 0:04.0"),
        "{lines}"
    );
    std::fs::write(folder.path().join("text.mp4"), "text").unwrap();
    assert!(complains(&["segment", shown(&folder.path().join("text.mp4"))]).starts_with("reprise: "));
}

#[test]
fn what_needs_no_server_works_alone() {
    let folder = tempfile::tempdir().unwrap();
    let models = prints_json(&["models", "--json"]);
    assert!(models["items"].as_array().unwrap().iter().any(|it| it["name"] == "builtin:tiny"), "{models}");
    let listed = prints(&["models"]);
    for line in [
        "builtin:tiny",
        "gme-Qwen2-VL-7B-Instruct: answers a text, a clip, or a clip and a change",
        "about 20 s on a CPU core, licence Apache-2.0, size about 33165 MB",
        "MCG-NJU/CaRe-7B: answers long texts",
    ] {
        assert!(listed.contains(line), "{line}: {listed}");
    }
    let data = folder.path().join("data");
    for _ in 0..2 {
        assert!(prints(&["migrate", "--data-dir", shown(&data)]).contains("sqlite schema is up to date"));
    }
    assert!(data.join("catalog.sqlite").exists());
    assert_eq!(
        prints_json(&["migrate", "--data-dir", shown(&data), "--json"]),
        json!({"database": "sqlite"})
    );
    assert!(
        complains(&["migrate", "--database-url", "mysql://localhost/x"]).contains("sqlite: or postgres://")
    );
    let missing = folder.path().join("no model");
    assert!(complains(&["embed", "--text", "x", "--model", shown(&missing)]).contains("no model"));
    assert!(complains(&["embed", "--text", " "]).contains("empty"));
    let said = complains(&["search", "x", "--server", "http://127.0.0.1:9"]);
    assert!(said.contains("no server answers") && said.contains("reprise serve"), "{said}");
    assert!(complains(&["ingest", shown(&folder.path().join("missing"))]).contains("no such file"));
}

#[test]
fn bench_encode_measures_what_the_model_takes() {
    let all = prints_json(&["bench", "encode", "--runs", "1", "--precision", "int8", "--json"]);
    let measures: Vec<(&str, u64, Option<u64>)> =
        all["measures"].as_array().unwrap().iter().map(measure_of).collect();
    let pictures = [1, 8, 32].map(|batch| ("pictures", batch, None));
    let (clip, texts) = (("clips", 1, Some(8)), [16, 77].map(|tokens| ("texts", 1, Some(tokens))));
    assert_eq!(measures, [&pictures[..], &[clip], &texts].concat(), "{all}");
    assert_eq!((&all["precision"], &all["peak"]["side"]), (&json!("int8"), &json!(2048)));

    let one = ["bench", "encode", "--runs", "1", "--batch", "2"];
    let two = prints_json(&[&one[..], &["--json", "--vectors"]].concat());
    assert_eq!(two["measures"].as_array().unwrap().len(), 1, "{two}");
    let vectors: Vec<Vec<f32>> = serde_json::from_value(two["measures"][0]["vectors"].clone()).unwrap();
    assert!(vectors.len() == 2 && vectors[0] != vectors[1] && vectors[0].len() == 64, "{vectors:?}");
    let lines = prints(&one);
    assert!(lines.contains("pictures, 2 at a time: ") && lines.lines().count() == 3, "{lines}");
    assert!(complains(&["bench", "encode", "--tokens", "78"]).contains("at most 77 tokens"));
    assert!(complains(&["bench", "encode", "--batch", "0"]).contains("from 1 to 4096"));
}

#[test]
fn bench_generate_measures_prompts_and_writing() {
    let Some(words) = crate::encoders_qwen_vl::words() else { return };
    let model = words.join("qwen2-vl");
    let usual =
        ["bench", "generate", "--model", shown(&model), "--side", "56", "--frames", "2", "--runs", "1"];
    let all = prints_json(&[&usual[..], &["--tokens", "4", "--words", "4,8", "--json"]].concat());
    let prompts = all["prompts"].as_array().unwrap();
    let kinds: Vec<&str> = prompts.iter().map(|it| it["what"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["picture", "clip", "text", "text"], "{all}");
    let tokens: Vec<u64> = prompts.iter().map(|it| it["tokens"].as_u64().unwrap()).collect();
    assert!(tokens[0] < tokens[1] && tokens[3] == tokens[2] + 4, "a word is a token: {all}");
    assert!(prompts.iter().all(|it| it["seconds"].as_f64() > Some(0.0)), "{all}");
    assert_eq!(all["writing"]["tokens"], 3, "the first token belongs to the prompt: {all}");
    assert!(all["writing"]["memory_bytes_per_second"].as_f64() > Some(1e8), "{all}");
    assert!(complains(&[&usual[..], &["--words", "0"]].concat()).contains("--words"));
}

/// The measured figures, which must be positive.
#[track_caller]
fn measure_of(measure: &Value) -> (&str, u64, Option<u64>) {
    for figure in ["per_second", "gflop", "gflop_per_second", "share_of_peak"] {
        assert!(measure[figure].as_f64().unwrap() > 0.0, "{figure} of {measure}");
    }
    (measure["what"].as_str().unwrap(), measure["batch"].as_u64().unwrap(), measure["length"].as_u64())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_ingested_and_searched() {
    let folder = tempfile::tempdir().unwrap();
    let (data, films) = (folder.path().join("data"), folder.path().join("films"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::create_dir_all(films.join("deeper")).unwrap();
    let server = Server::start(&data, &[]);
    let base = server.base().to_owned();
    let red = film(&films, "a", &["testsrc2", "color=c=red"], Store::Lossless);
    film(&films.join("deeper"), "b", &["color=c=blue", "smptebars"], Store::Web);
    std::fs::copy(&red, films.join("c copy.mkv")).unwrap();
    std::fs::write(films.join("a.srt"), "1\n00:00:00,000 --> 00:00:01,000\nhello\n").unwrap();
    std::fs::write(films.join("deeper/lone.en.srt"), "1\n00:00:00,000 --> 00:00:01,000\nhello\n").unwrap();
    std::fs::write(films.join("notes.txt"), "notes").unwrap();

    let report = prints_json(&["ingest", shown(&films), "--server", &base, "--json"]);
    let items: Vec<(String, &str)> = report["items"].as_array().unwrap().iter().map(state_of).collect();
    let mut states: Vec<&str> = items.iter().map(|it| it.1).collect();
    assert_eq!(
        items.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(),
        ["a.mkv", "a.srt", "c copy.mkv", "b.mp4", "lone.en.srt", "notes.txt"],
        "in order of name, whatever ended first"
    );
    assert_eq!((states[1], states[4], states[5]), ("attached", "skipped", "skipped"));
    states.sort_unstable();
    // The server gets both copies at the same time: the later one is the duplicate.
    let expected = ["attached", "duplicate", "skipped", "skipped", "succeeded", "succeeded"];
    assert_eq!(states, expected, "{report}");
    assert_eq!(report["items"][1]["detail"], "sent with a.mkv");
    assert!(report["items"][4]["detail"].as_str().unwrap().contains("no video beside"), "{report}");
    let video = report["items"][0]["video"]["id"].as_str().unwrap().to_owned();

    let again = prints(&["ingest", shown(&films), "--server", &base]);
    assert!(again.ends_with("3 succeeded, 0 failed, 2 skipped, 1 subtitles attached\n"), "{again}");
    let (_, tracks) = server.get(&format!("/v1/videos/{video}/subtitles")).await;
    assert_eq!(
        (&tracks["items"][0]["language"], &tracks["items"][1]),
        (&json!("und"), &json!(null)),
        "{tracks}"
    );
    let text = folder.path().join("text.mp4");
    std::fs::write(&text, "text").unwrap();
    let failed = reprise(&["ingest", shown(&text), shown(&red), "--server", &base]);
    assert!(!failed.status.success());
    assert!(
        String::from_utf8_lossy(&failed.stdout).ends_with("1 succeeded, 1 failed, 0 skipped\n"),
        "a named file must be video"
    );

    let found = prints_json(&["search", "red", "--server", &base, "--json", "--limit", "3"]);
    assert_eq!(found["results"].as_array().unwrap().len(), 3);
    let lines = prints(&["search", "red", "--server", &base, "--level", "both"]);
    assert!(lines.contains("videos\n") && lines.lines().count() == 4 + 1 + 2, "{lines}");
    let clip = prints_json(&["search", "--clip", &format!("{video}@2.0-4.0"), "--server", &base, "--json"]);
    assert_eq!((&clip["query_info"]["kind"], clip["results"].as_array().unwrap().len()), (&json!("clip"), 3));
    let upload = prints_json(&[
        "search",
        "--upload",
        shown(&red),
        "--modification",
        "in blue",
        "--server",
        &base,
        "--json",
    ]);
    assert_eq!(upload["query_info"]["kind"], "composed");
    assert!(complains(&["search", "--clip", "7@1-2", "--server", &base]).contains("/query/clip/video_id"));

    embed_prints_what_the_server_answers(&server, &red, &video).await;
    index_rebuild_restores_a_lost_snapshot(server, &data).await;
}

fn state_of(item: &Value) -> (String, &str) {
    let name = Path::new(item["file"].as_str().unwrap()).file_name().unwrap();
    (name.to_string_lossy().into_owned(), item["state"].as_str().unwrap())
}

async fn embed_prints_what_the_server_answers(server: &Server, file: &Path, video: &str) {
    let long = "a red floor and bars ".repeat(60);
    for text in ["bars", long.as_str()] {
        let alone = prints_json(&["embed", "--text", text, "--json"]);
        let (_, served) = server.post("/v1/embeddings", &json!({"input": {"text": text}})).await;
        equal_embeddings(&alone, &served, 1e-5);
        assert_eq!(alone["query_info"], served["query_info"]);
    }
    let alone = prints_json(&["embed", "--video", shown(file), "--start", "0.5", "--end", "3.5", "--json"]);
    let clip = json!({"video_id": video, "start": 0.5, "end": 3.5});
    let (_, served) = server.post("/v1/embeddings", &json!({"input": {"clip": clip}})).await;
    // The server pools kept features, which are rounded to f16.
    equal_embeddings(&alone, &served, 1e-3);
    assert_eq!(alone["query_info"], served["query_info"]);
    let values: Vec<f32> = serde_json::from_value(alone["vector"].clone()).unwrap();
    let plain = prints(&["embed", "--video", shown(file), "--start", "0.5", "--end", "3.5"]);
    let printed: Vec<f32> = plain.split_whitespace().map(|it| it.parse().unwrap()).collect();
    assert_eq!(printed, values);
}

#[track_caller]
fn equal_embeddings(alone: &Value, served: &Value, tolerance: f32) {
    assert_eq!(alone["space"], served["space"]);
    let near = |a: &Value, b: &Value| {
        let (a, b): (Vec<f32>, Vec<f32>) =
            (serde_json::from_value(a.clone()).unwrap(), serde_json::from_value(b.clone()).unwrap());
        a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| (a - b).abs() < tolerance)
    };
    assert!(near(&alone["vector"], &served["vector"]));
    let norm = |it: &Value| it["norm"].as_f64().unwrap();
    assert!((norm(alone) / norm(served) - 1.0).abs() < 1e-3, "{} {}", norm(alone), norm(served));
    let (windows, others) = (alone["vectors"].as_array().unwrap(), served["vectors"].as_array().unwrap());
    assert_eq!(windows.len(), others.len());
    for (window, other) in windows.iter().zip(others) {
        assert_eq!(
            (&window["start_token"], &window["end_token"]),
            (&other["start_token"], &other["end_token"])
        );
        assert!(near(&window["values"], &other["values"]));
    }
}

async fn index_rebuild_restores_a_lost_snapshot(server: Server, data: &Path) {
    let query = json!({"query": {"text": "red"}, "limit": 100});
    let before = server.search_hits(query.clone()).await;
    assert!(server.stop());
    for entry in std::fs::read_dir(data.join("index")).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_file() {
            std::fs::write(entry, b"damaged").unwrap();
        }
    }
    let lines = prints(&["index", "rebuild", "--data-dir", shown(data), "--index-codes", "f16"]);
    assert!(lines.contains("clip: 4 vectors") && lines.contains("video: 2 vectors"), "{lines}");
    assert!(lines.lines().last().unwrap().starts_with("rebuilt up to change "), "{lines}");
    let report = prints_json(&["index", "rebuild", "--data-dir", shown(data), "--json"]);
    let space = &report["levels"][0]["space"];
    assert_eq!(report["levels"].as_array().unwrap().len(), 2);
    let clips = report["levels"].as_array().unwrap().iter().find(|level| level["level"] == "clip").unwrap();
    let bytes = &clips["bytes"];
    assert!(bytes.as_u64() > Some(0), "{report}");
    let expected = json!({"space": space, "level": "clip", "vectors": 4, "bytes": bytes, "graph": false});
    assert_eq!(*clips, expected);
    let server = Server::start(data, &[]);
    assert_eq!(server.search_hits(query).await, before);
}
