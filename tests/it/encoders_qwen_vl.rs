//! Models that read, through the service: a small GME and a small Qwen3-VL-Embedding by folder, three videos, queries by
//! text, by stored range and by upload, against vectors of transformers for the same prompts and frames (see
//! parity/qwen_vl.py). The models lie outside this repository.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use reprise_tests::film::ffmpeg;
use reprise_tests::server::{Server, binary};
use reprise_tests::skip;
use serde_json::{Value, json};

use super::encoders::picture;

/// Largest accepted difference of a vector's values.
const TOLERANCE: f32 = 1e-4;
/// Scores come from queries that are rounded to f16.
const OF_SCORES: f32 = 2e-3;

/// The small models' folder; `None` after saying so.
pub(crate) fn words() -> Option<PathBuf> {
    let beside = || Some(PathBuf::from(std::env::var_os("REPRISE_TEST_DATA")?).join("../words"));
    let folder = std::env::var_os("REPRISE_TEST_WORDS").map(PathBuf::from).or_else(beside);
    let folder = folder.map(|folder| folder.join("fixtures")).filter(|folder| folder.is_dir());
    if folder.is_none() {
        skip("REPRISE_TEST_WORDS names no folder with fixtures");
    }
    folder
}

/// A copy of a small model as an embedder of this kind, with room for real prompts.
pub(crate) fn embedder(words: &Path, kind: &str, to: &Path) -> String {
    let from = words.join(if kind == "qwen3" { "qwen3-vl" } else { "qwen2-vl" });
    std::fs::create_dir_all(to).unwrap();
    for file in ["model.safetensors", "tokenizer.json", "preprocessor_config.json"] {
        std::fs::copy(from.join(file), to.join(file)).unwrap();
    }
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(from.join("config.json")).unwrap()).unwrap();
    config["embedding"] = json!({"kind": kind});
    let text = if kind == "qwen3" { &mut config["text_config"] } else { &mut config };
    text["max_position_embeddings"] = 8192.into();
    std::fs::write(to.join("config.json"), config.to_string()).unwrap();
    to.to_str().unwrap().to_owned()
}

fn expected() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data/qwen-vl/served.json");
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

/// A film of 4 s without loss, whose frame `n` is picture `20 * number + n`.
fn film(folder: &Path, expected: &Value, number: u32) -> PathBuf {
    let [width, height, rate] =
        ["width", "height", "per_second"].map(|name| expected["frame"][name].as_u64().unwrap() as u32);
    let file = folder.join(format!("{number}.mkv"));
    let (size, rate_text) = (format!("{width}x{height}"), rate.to_string());
    let mut ffmpeg = ffmpeg();
    ffmpeg.args(["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", &size, "-r", &rate_text, "-i", "-"]);
    ffmpeg.args(["-c:v", "ffv1", "-pix_fmt", "gbrp"]).arg(&file).stdin(Stdio::piped());
    let mut running = ffmpeg.spawn().unwrap();
    let mut pixels = running.stdin.take().unwrap();
    for frame in 0..4 * rate {
        pixels.write_all(&picture(width, height, 20 * number + frame).rgb).unwrap();
    }
    drop(pixels);
    assert!(running.wait().unwrap().success());
    file
}

fn vector(value: &Value) -> Vec<f32> {
    serde_json::from_value(value.clone()).unwrap()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A server with one small model and the three films.
struct Library {
    server: Server,
    expected: Value,
    kind: &'static str,
    videos: Vec<Value>,
    files: Vec<PathBuf>,
    _data: tempfile::TempDir,
}

impl Library {
    async fn of(kind: &'static str) -> Option<Library> {
        let words = words()?;
        let data = tempfile::tempdir().unwrap();
        let model = embedder(&words, kind, &data.path().join(format!("{kind}-model")));
        let folder = data.path().join("data");
        std::fs::create_dir(&folder).unwrap();
        let server = Server::start(&folder, &["--model", &model]);
        let (expected, mut videos, mut files) = (expected(), Vec::new(), Vec::new());
        let cut = json!({"policy": "fixed", "params": {"every_seconds": 2}});
        for number in 0..3 {
            let file = film(data.path(), &expected, number);
            videos.push(server.ingest_with(&file, &[("segmentation", cut.clone())]).await);
            files.push(file);
        }
        Some(Library { server, expected, kind, videos, files, _data: data })
    }

    /// The vector that the service has for an input.
    async fn embedded(&self, input: Value) -> Vec<f32> {
        let (status, answer) = self.server.post("/v1/embeddings", &json!({"input": input})).await;
        assert!(status.is_success(), "{answer}");
        vector(&answer["vector"])
    }

    #[track_caller]
    fn same(&self, got: &[f32], expected: &Value, what: &str) {
        let expected = vector(expected);
        assert_eq!(got.len(), expected.len());
        let off = got.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < TOLERANCE, "{} {what}: {off}", self.kind);
    }

    /// The hits are all clips, ranked and scored as the reference's vectors.
    #[track_caller]
    fn ranked(&self, answer: &Value, query: &Value) {
        let query = vector(query);
        let mut expected: Vec<(f32, usize, f64)> = Vec::new();
        for clip in self.expected[self.kind]["clips"].as_array().unwrap() {
            let score = dot(&query, &vector(&clip["vector"]));
            expected.push((score, clip["video"].as_u64().unwrap() as usize, clip["start"].as_f64().unwrap()));
        }
        expected.sort_by(|one, other| other.0.total_cmp(&one.0));
        let hits = answer["results"].as_array().unwrap();
        assert_eq!(hits.len(), expected.len(), "{answer}");
        for (hit, (score, video, start)) in hits.iter().zip(&expected) {
            let found = hit["score"].as_f64().unwrap() as f32;
            assert!((found - score).abs() < OF_SCORES, "{found} instead of {score}");
            let place = (&hit["video_id"], hit["start"].as_f64().unwrap());
            assert_eq!(place, (&self.videos[*video]["id"], *start), "{hit}");
        }
    }
}

async fn everything_is_the_references(kind: &'static str) {
    let Some(library) = Library::of(kind).await else { return };
    let Library { server, expected, videos, files, .. } = &library;
    let of_kind = &expected[kind];
    for clip in of_kind["clips"].as_array().unwrap() {
        let (video, start) = (clip["video"].as_u64().unwrap() as usize, clip["start"].as_f64().unwrap());
        let range = json!({"video_id": videos[video]["id"], "start": start, "end": start + 2.0});
        let got = library.embedded(json!({"clip": range})).await;
        library.same(&got, &clip["vector"], &format!("clip {video} {start}"));
    }
    let text = expected["text"].as_str().unwrap();
    library.same(&library.embedded(json!({"text": text})).await, &of_kind["text"], "text");
    library.ranked(&server.search(&json!({"query": {"text": text}})).await, &of_kind["text"]);

    for (number, composed) in of_kind["composed"].as_array().unwrap().iter().enumerate() {
        let range = json!({"video_id": videos[number]["id"], "start": 1.0, "end": 3.0});
        let ask =
            json!({"query": {"clip": range, "modification": expected["change"]}, "exclude": {"self": false}});
        let answer = server.search(&ask).await;
        let info = &answer["query_info"];
        assert_eq!(
            (&info["fusion"], &info["frames"]),
            (&json!("combiner"), &expected["frames"][kind]),
            "{info}"
        );
        library.ranked(&answer, composed);
        let changed = json!({"clip": ask["query"]["clip"], "modification": expected["change"]});
        library.same(&library.embedded(changed).await, composed, &format!("composed {number}"));
        // The range is kept: the same query decodes nothing, and neither does another change of the same clip.
        let again = server.search(&ask).await;
        assert_eq!(again["results"], answer["results"]);
        assert_eq!(again["timings_ms"]["decode"], json!(0.0), "{again}");

        let upload = json!({"upload": true, "start": 1.0, "end": 3.0, "modification": expected["change"]});
        let upload = json!({"query": upload, "exclude": {"self": false}});
        let (status, uploaded) = server.search_upload(&upload, &files[number]).await;
        assert!(status.is_success(), "{uploaded}");
        assert_eq!(uploaded["query_info"]["frames"], expected["frames"][kind]);
        library.ranked(&uploaded, composed);
    }
}

#[tokio::test]
async fn a_served_gme_gives_the_references_vectors_and_ranking() {
    everything_is_the_references("gme").await;
}

#[tokio::test]
async fn a_served_qwen3_vl_embedding_gives_the_references_vectors_and_ranking() {
    everything_is_the_references("qwen3").await;
}

/// What an evaluation of a small model prints, as JSON.
#[track_caller]
fn evaluated(arguments: &[&str]) -> Value {
    let mut command = Command::new(binary());
    let output =
        command.env_remove("REPRISE_MODEL").arg("eval").args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn models_that_read_are_evaluated_by_the_protocols_of_their_papers() {
    let Some(words) = words() else { return };
    let data = tempfile::tempdir().unwrap();
    let films = data.path().join("films");
    std::fs::create_dir(&films).unwrap();
    let expected = expected();
    let names: Vec<String> = (0..3)
        .map(|number| film(&films, &expected, number).file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let rows = [(0, 1), (1, 2), (2, 0)];
    let rows = rows.map(|(query, target)| format!("{},{},now it turns twice\n", names[query], names[target]));
    let triplets = format!("query_video,target_video,modification\n{}", rows.concat());
    std::fs::write(films.join("triplets.csv"), triplets).unwrap();
    let of = |kind: &str| embedder(&words, kind, &data.path().join(kind));
    for kind in ["gme", "qwen3"] {
        let model = of(kind);
        let covr = ["covr", "--data", films.to_str().unwrap(), "--model", &model];
        for frames in [&["--zero-shot"][..], &["--frames-per-clip", "2", "--max-pixels", "4096"]] {
            let answer = evaluated(&[&covr[..], frames].concat());
            // Joint input; the halves alone and their mean are there to compare.
            for method in ["text_only", "video_only", "average", "two_stage"] {
                let found = answer[method]["all"]["map"]["50"].as_f64();
                assert!(found.is_some_and(|map| map > 0.0), "{kind} {method}: {answer}");
            }
        }
    }
    let captions = names.iter().enumerate();
    let captions: Vec<Value> =
        captions.map(|(at, name)| json!({"video": name, "caption": format!("diver {at}")})).collect();
    for kind in ["general", "spatial", "temporal"] {
        std::fs::write(films.join(format!("{kind}.json")), Value::from(captions.clone()).to_string())
            .unwrap();
    }
    let report = evaluated(&[
        "care",
        "--data",
        films.to_str().unwrap(),
        "--model",
        &of("care"),
        "--max-pixels",
        "4096",
    ]);
    assert_eq!(report["videos"], 3, "{report}");
    assert!(
        report["rows"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["recall"]["general"]["text_to_video"]["5"] == 100.0)
    );
}
