//! BLIP-CoVR's composed queries: vectors against transformers (see parity/blip.py) and searches through the service.
//! Its text tower attends to a frame of the clip.

use std::path::Path;

use reprise_encoders::text::Tokens;
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::video::{self, Limits};
use reprise_encoders::{Clip, Embedder, EncodeError, Frame, Input, Source, load};
use reprise_tests::film::{Store, film};
use reprise_tests::server::Server;
use serde::Deserialize;
use serde_json::{Value, json};

use super::encoders::{folder, load_changed, picture, refused};

const MODEL: &str = "blip-covr";

#[derive(Deserialize)]
struct Modification {
    text: String,
    ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Expected {
    reference: String,
    modifications: Vec<Modification>,
    /// Kinds of pictures of each clip.
    clips: Vec<Vec<u32>>,
    /// By modification, then by clip.
    queries: Vec<Vec<Vec<f32>>>,
}

fn expected() -> Expected {
    serde_json::from_slice(&std::fs::read(folder(MODEL).join("composed.json")).unwrap()).unwrap()
}

fn loaded() -> Embedder {
    load(&folder(MODEL).to_str().unwrap().parse().unwrap(), 1).unwrap()
}

fn clip(kinds: &[u32]) -> Clip {
    let frame = |(at, kind): (usize, &u32)| Frame { time_ms: at as i64 * 40, ..picture(32, 32, *kind) };
    Clip { frames: kinds.iter().enumerate().map(frame).collect() }
}

/// Every modification with every clip, and the reference's vectors.
fn queries(expected: &Expected) -> (Vec<Input>, Vec<&Vec<f32>>) {
    let composed = |modification: &Modification, kinds: &Vec<u32>| Input::Composed {
        query: Source::Frames(clip(kinds)),
        modification: Tokens { ids: modification.ids.clone() },
    };
    let inputs = expected
        .modifications
        .iter()
        .flat_map(|modification| expected.clips.iter().map(move |kinds| composed(modification, kinds)));
    (inputs.collect(), expected.queries.iter().flatten().collect())
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The reference, and the largest difference from it over all composed queries, in batches of 1 and 4.
pub(crate) fn farthest() -> (String, f32) {
    let (expected, mut model) = (expected(), loaded());
    let (inputs, references) = queries(&expected);
    let mut most = 0_f32;
    for batch in [1, 4] {
        let got = inputs.chunks(batch).flat_map(|inputs| model.encoders[0].encode(inputs).unwrap());
        most = got.zip(&references).map(|(got, expected)| distance(&got, expected)).fold(most, f32::max);
    }
    (expected.reference.clone(), most)
}

#[test]
fn composed_queries_have_the_reference_vectors_in_every_batch() {
    let (_, off) = farthest();
    assert!(off < 1e-4, "{off}");
}

#[test]
fn modifications_are_read_as_the_released_code_cleans_them() {
    let tokenizer = loaded().tokenizer.unwrap();
    for modification in expected().modifications {
        let windows = tokenizer.modification(&modification.text).unwrap();
        assert_eq!(windows.windows[0].tokens.ids, modification.ids, "{:?}", modification.text);
    }
}

#[test]
fn a_batch_of_all_kinds_gives_the_vectors_of_single_inputs() {
    let (expected, mut model) = (expected(), loaded());
    let (composed, _) = queries(&expected);
    let mut inputs: Vec<Input> = Vec::new();
    for (at, query) in composed.into_iter().enumerate() {
        inputs.push(query);
        let ids = expected.modifications[at % expected.modifications.len()].ids.clone();
        inputs.push(Input::Text(Tokens { ids }));
        inputs.push(Input::Frames(clip(&[at as u32 % 8])));
    }
    let batch = model.encoders[0].encode(&inputs).unwrap();
    for (input, from_batch) in inputs.iter().zip(&batch) {
        let single = model.encoders[0].encode(std::slice::from_ref(input)).unwrap();
        assert!(distance(&single[0], from_batch) < 1e-5);
    }
}

#[test]
fn composed_queries_need_pictures_and_a_folder_that_says_that_it_was_trained_for_them() {
    let mut model = loaded();
    assert_eq!(model.space.composed_frames, Some(Sampler::Spread { frames: 1 }));
    assert!(model.space.can.composed && model.space.can.text && model.space.can.frames);
    let modification = Tokens { ids: expected().modifications[0].ids.clone() };
    let from = |query| Input::Composed { query, modification: modification.clone() };
    let error = model.encoders[0].encode(&[from(Source::Raw(vec![0.5; 20]))]).unwrap_err();
    assert!(matches!(error, EncodeError::Unsupported { .. }), "{error}");
    let error = model.encoders[0].encode(&[from(Source::Frames(clip(&[])))]).unwrap_err();
    assert!(matches!(error, EncodeError::BadInput(_)), "{error}");

    let mut plain = load_changed(MODEL, edit(|config| drop(config.remove("composed_queries")))).unwrap();
    assert!(!plain.space.can.composed && plain.space.composed_frames.is_none());
    assert_ne!(plain.space.id, model.space.id);
    let error = plain.encoders[0].encode(&[from(Source::Frames(clip(&[1])))]).unwrap_err();
    assert!(matches!(error, EncodeError::Unsupported { .. }), "{error}");
}

fn edit(change: impl Fn(&mut serde_json::Map<String, Value>)) -> impl Fn(&Path) {
    move |folder| {
        let path = folder.join("config.json");
        let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(config.as_object_mut().unwrap());
        std::fs::write(path, config.to_string()).unwrap();
    }
}

#[test]
fn what_composed_queries_lack_is_named_at_load() {
    let says =
        |value: Value| edit(move |config| drop(config.insert("composed_queries".into(), value.clone())));
    refused(MODEL, says(json!({"enc_token_id": 9000})), &["enc_token_id 9000"]);
    refused(MODEL, says(json!({})), &["config.json", "enc_token_id"]);
    refused(MODEL, says(json!({"enc_token_id": 5, "fusion": "late"})), &["config.json", "fusion"]);
    let epsilon =
        edit(|config| drop(config["vision_config"].as_object_mut().unwrap().remove("layer_norm_eps")));
    refused(MODEL, epsilon, &["layer_norm_eps 1e-5 of vision_config", "1e-6"]);
    // The other folder's text tower has no cross-attention to pictures.
    refused("blip", says(json!({"enc_token_id": 5})), &["crossattention"]);
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter().map(|value| value / norm).collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The model's preprocessed frames of a range of a file, in milliseconds, chosen by `sampler`.
fn frames(file: &Path, span: std::ops::Range<i64>, sampler: Sampler, model: &Embedder) -> Clip {
    let limits = Limits::default();
    let probe = video::probe(file, &limits).unwrap();
    let scaling = model.space.scaling;
    let frames = video::frames_of_span(
        video::VideoFile { path: file, probe: &probe, in_order: true, limits: &limits },
        span,
        &sampler,
        scaling,
    );
    Clip { frames: frames.unwrap() }
}

#[tokio::test]
async fn a_served_composed_query_looks_at_the_middle_of_the_clip_and_finds_by_clips_vectors() {
    const CHANGE: &str = "show it with a red car, at night.";
    let data = tempfile::tempdir().unwrap();
    let shots = ["testsrc2", "color=c=red", "rgbtestsrc"];
    let file = film(data.path(), "shots", &shots, Store::Lossless);
    let path = folder(MODEL);
    std::fs::create_dir(data.path().join("data")).unwrap();
    let server = Server::start(&data.path().join("data"), &["--model", path.to_str().unwrap()]);
    let video = server.ingest_with(&file, &[("segmentation", json!({"policy": "content"}))]).await;
    let ask = |fusion: Value| {
        let clip = json!({"video_id": video["id"], "start": 0.0, "end": 2.0});
        let query = json!({"clip": clip, "modification": CHANGE});
        json!({"query": query, "fusion": fusion, "exclude": {"self": false}})
    };

    let mut model = loaded();
    let modification =
        model.tokenizer.as_ref().unwrap().modification(CHANGE).unwrap().windows.remove(0).tokens;
    let middle = frames(&file, 0..2000, Sampler::Spread { frames: 1 }, &model);
    assert_eq!(middle.frames[0].time_ms, 1000);
    let query = Input::Composed { query: Source::Frames(middle), modification };
    let query = unit(&model.encoders[0].encode(&[query]).unwrap()[0]);
    let answer = server.search(&ask(json!({}))).await;
    let info = &answer["query_info"];
    assert_eq!((&info["fusion"], &info["frames"]), (&json!("combiner"), &json!(1)), "{info}");
    let hits = answer["results"].as_array().unwrap();
    assert_eq!(hits.len(), shots.len());
    for hit in hits {
        let at = |key: &str| (hit[key].as_f64().unwrap() * 1000.0).round() as i64;
        let seen = frames(&file, at("start")..at("end"), model.space.sampler, &model);
        let seen = model.encoders[0].encode(&[Input::Frames(seen)]).unwrap();
        let (found, wanted) = (hit["score"].as_f64().unwrap() as f32, dot(&query, &unit(&seen[0])));
        assert!((found - wanted).abs() < 3e-3, "{found} instead of {wanted}");
    }

    // An upload of the same pictures gives the same query. The averaged query needs no pictures of the stored clip.
    let upload = json!({"query": {"upload": true, "start": 0.0, "end": 2.0, "modification": CHANGE},
        "exclude": {"self": false}});
    let (status, uploaded) = server.search_upload(&upload, &file).await;
    assert!(status.is_success(), "{uploaded}");
    assert_eq!(uploaded["results"], answer["results"]);
    let average = server.search(&ask(json!({"mode": "average"}))).await;
    let info = &average["query_info"];
    assert_eq!((&info["fusion"], &info["frames"]), (&json!("average"), &json!(0)), "{info}");
    assert_ne!(average["results"], answer["results"]);
}
