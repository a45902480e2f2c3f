//! AIM, TF-CoVR's text towers and its Combiner against the released modules (see parity/released/aim.py).

use std::path::{Path, PathBuf};

use reprise_encoders::text::{Tokenizer, normalise};
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::{
    Clip, Embedder, EncodeError, Encoder, Frame, FrameSize, Input, LoadError, Source, TrainedOn, load,
};
use serde::Deserialize;

/// Models by text tower. The first has PyTorch's own format, the last has CLIP's weights without adapters.
const MODELS: [&str; 3] = ["qformer", "bert", "clip"];

fn folder(model: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data/covr").join(model)
}

fn loaded(model: &str) -> Embedder {
    load(&folder(model).to_str().unwrap().parse().unwrap(), 1).unwrap()
}

#[derive(Deserialize)]
struct Text {
    text: String,
    normalised: String,
    ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Expected {
    texts: Vec<Text>,
    /// Sizes of each clip's pictures.
    clips: Vec<Vec<(u32, u32)>>,
    videos: Vec<Vec<f32>>,
    /// Vectors by text, then by clip.
    queries: Vec<Vec<Vec<f32>>>,
}

fn expected(model: &str) -> Expected {
    serde_json::from_slice(&std::fs::read(folder(model).join("expected.json")).unwrap()).unwrap()
}

fn clips(expected: &Expected) -> Vec<Clip> {
    let clip = |sizes: &Vec<(u32, u32)>| {
        let frames = sizes.iter().enumerate();
        let frames = frames.map(|(at, (width, height))| Frame {
            time_ms: at as i64 * 40,
            ..super::encoders::picture(*width, *height, at as u32)
        });
        Clip { frames: frames.collect() }
    };
    expected.clips.iter().map(clip).collect()
}

fn tokens(tokenizer: &Tokenizer, text: &str) -> reprise_encoders::text::Tokens {
    tokenizer.modification(text).unwrap().windows[0].tokens.clone()
}

#[track_caller]
fn check(got: &[f32], expected: &[f32], most: f32) {
    assert_eq!(got.len(), expected.len());
    let off = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off < most, "{off} off: {got:?} instead of {expected:?}");
}

/// The reference, and the largest difference from it over clips and composed queries.
pub(crate) fn farthest() -> (String, f32) {
    let mut most = 0_f32;
    let mut compare = |got: &[f32], expected: &[f32]| {
        let off = got.iter().zip(expected).map(|(a, b)| (a - b).abs());
        most = off.fold(most, f32::max);
    };
    for model in MODELS {
        let (expected, mut loaded) = (expected(model), loaded(model));
        let tokenizer = loaded.tokenizer.clone().unwrap();
        let videos: Vec<Input> = clips(&expected).into_iter().map(Input::Frames).collect();
        let videos = loaded.encoders[0].encode(&videos).unwrap();
        videos.iter().zip(&expected.videos).for_each(|(got, expected)| compare(got, expected));
        for (text, references) in expected.texts.iter().zip(&expected.queries) {
            let modification = tokens(&tokenizer, &text.text);
            let composed = videos.iter().map(|raw| Input::Composed {
                query: Source::Raw(raw.clone()),
                modification: modification.clone(),
            });
            let got = loaded.encoders[0].encode(&composed.collect::<Vec<_>>()).unwrap();
            got.iter().zip(references).for_each(|(got, expected)| compare(got, expected));
        }
    }
    ("AIM's and TF-CoVR's released modules, b3580d2 and ae0b4aa".to_owned(), most)
}

#[test]
fn clips_have_the_reference_vectors() {
    for model in MODELS {
        let (expected, mut loaded) = (expected(model), loaded(model));
        for (clip, expected) in clips(&expected).into_iter().zip(&expected.videos) {
            let got = loaded.encoders[0].encode(&[Input::Frames(clip)]).unwrap();
            check(&got[0], expected, 1e-5);
        }
    }
}

#[test]
fn texts_are_normalised_and_tokenised_as_in_the_reference() {
    for model in MODELS {
        let (expected, loaded) = (expected(model), loaded(model));
        let tokenizer = loaded.tokenizer.unwrap();
        for text in &expected.texts {
            assert_eq!(normalise::normalise_modification(&text.text), text.normalised);
            assert_eq!(tokens(&tokenizer, &text.text).ids, text.ids, "{model}: {:?}", text.text);
        }
    }
}

#[test]
fn composed_queries_have_the_reference_vectors_from_frames_and_from_a_stored_vector() {
    for model in MODELS {
        let (expected, mut loaded) = (expected(model), loaded(model));
        let tokenizer = loaded.tokenizer.clone().unwrap();
        let stored: Vec<Input> = clips(&expected).into_iter().map(Input::Frames).collect();
        let stored = loaded.encoders[0].encode(&stored).unwrap();
        for (text, references) in expected.texts.iter().zip(&expected.queries) {
            let modification = tokens(&tokenizer, &text.text);
            let composed = |query| Input::Composed { query, modification: modification.clone() };
            let frames: Vec<Input> =
                clips(&expected).into_iter().map(|clip| composed(Source::Frames(clip))).collect();
            let raw: Vec<Input> = stored.iter().map(|raw| composed(Source::Raw(raw.clone()))).collect();
            let frames = loaded.encoders[0].encode(&frames).unwrap();
            let raw = loaded.encoders[0].encode(&raw).unwrap();
            for ((from_frames, from_raw), reference) in frames.iter().zip(&raw).zip(references) {
                check(from_frames, reference, 1e-5);
                check(from_raw, from_frames, 1e-5);
            }
        }
    }
}

#[test]
fn a_batch_gives_the_vectors_of_single_inputs() {
    for model in MODELS {
        let (expected, mut loaded) = (expected(model), loaded(model));
        let tokenizer = loaded.tokenizer.clone().unwrap();
        let clips = clips(&expected);
        let mut inputs: Vec<Input> = clips.iter().cloned().map(Input::Frames).collect();
        for (at, text) in expected.texts.iter().enumerate() {
            let raw = Source::Raw(expected.videos[at % expected.videos.len()].clone());
            let query = if at % 2 == 0 { raw } else { Source::Frames(clips[at % clips.len()].clone()) };
            inputs.insert(at * 2, Input::Composed { query, modification: tokens(&tokenizer, &text.text) });
        }
        let batch = loaded.encoders[0].encode(&inputs).unwrap();
        for (input, from_batch) in inputs.iter().zip(&batch) {
            let single = loaded.encoders[0].encode(std::slice::from_ref(input)).unwrap();
            check(from_batch, &single[0], 1e-5);
        }
    }
}

#[test]
fn the_space_tells_what_the_model_takes() {
    let space = |model| loaded(model).space;
    let (qformer, bert, clip) = (space("qformer"), space("bert"), space("clip"));
    assert_eq!((qformer.dim, bert.dim, clip.dim), (24, 16, 16));
    assert_eq!((qformer.max_text_tokens, bert.max_text_tokens, clip.max_text_tokens), (32, 12, 20));
    assert_eq!(qformer.sampler, Sampler::Middles { frames: 3 });
    assert_eq!(clip.sampler, Sampler::Middles { frames: 5 });
    assert_eq!(bert.scaling.size, FrameSize::Exact { width: 12, height: 12 });
    for space in [&qformer, &bert, &clip] {
        assert_eq!(space.family, "aim");
        assert!(
            space.can.frames
                && space.can.composed
                && !space.can.text
                && space.trained_on == TrainedOn::Unstated
        );
    }
    assert!(qformer.temporal && bert.temporal);
    assert!(!clip.temporal, "without adapters the order of frames is not seen");
    assert_eq!(qformer.id, space("qformer").id, "loading twice gives the same space");
    assert_ne!(bert.id, clip.id);
}

/// Loads a changed copy of a model folder.
fn changed(model: &str, change: impl Fn(&Path)) -> Result<Embedder, LoadError> {
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join("text")).unwrap();
    for part in ["", "text"] {
        for entry in std::fs::read_dir(folder(model).join(part)).unwrap() {
            let entry = entry.unwrap();
            if entry.path().is_file() {
                std::fs::copy(entry.path(), copy.path().join(part).join(entry.file_name())).unwrap();
            }
        }
    }
    change(copy.path());
    load(&copy.path().to_str().unwrap().parse().unwrap(), 1)
}

#[track_caller]
fn refused(model: &str, change: impl Fn(&Path), expected: &str) {
    let error = match changed(model, change) {
        Ok(_) => panic!("it loaded"),
        Err(error) => error.to_string(),
    };
    assert!(error.contains(expected), "{error}");
}

fn write(file: &'static str, text: &'static str) -> impl Fn(&Path) {
    move |folder| std::fs::write(folder.join(file), text).unwrap()
}

fn remove(file: &'static str) -> impl Fn(&Path) {
    move |folder| std::fs::remove_file(folder.join(file)).unwrap()
}

#[test]
fn a_video_encoder_alone_takes_clips_and_no_words() {
    let alone = changed("qformer", |folder| {
        std::fs::remove_dir_all(folder.join("text")).unwrap();
        std::fs::remove_file(folder.join("combiner.pth")).unwrap();
    });
    let mut alone = alone.unwrap();
    assert!(alone.space.can.frames && !alone.space.can.composed && alone.tokenizer.is_none());
    let expected = expected("qformer");
    let clip = clips(&expected).remove(0);
    let got = alone.encoders[0].encode(&[Input::Frames(clip.clone())]).unwrap();
    check(&got[0], &expected.videos[0], 1e-5);
    let modification = reprise_encoders::text::Tokens { ids: vec![0] };
    let composed = Input::Composed { query: Source::Frames(clip), modification };
    let error = alone.encoders[0].encode(&[composed]).unwrap_err();
    assert!(matches!(error, EncodeError::Unsupported { .. }), "{error}");
}

#[test]
fn what_a_folder_lacks_is_named() {
    refused("qformer", remove("model.pth"), "model.safetensors");
    refused("bert", remove("combiner.safetensors"), "combiner.safetensors");
    refused("bert", |folder| std::fs::remove_dir_all(folder.join("text")).unwrap(), "text/");
    refused("bert", remove("text/tokenizer.json"), "tokenizer.json");
    refused("bert", remove("text/model.safetensors"), "model.safetensors");
}

#[test]
fn files_that_do_not_belong_together_are_refused() {
    let from = |other: &'static str, file: &'static str| {
        move |to: &Path| {
            std::fs::copy(folder(other).join(file), to.join(file)).unwrap();
        }
    };
    refused("bert", from("clip", "model.safetensors"), "temporal_embedding");
    refused("bert", from("clip", "text/model.safetensors"), "word_embeddings");
    refused("bert", from("clip", "text/tokenizer.json"), "302 ids");
    refused("clip", from("bert", "text/config.json"), "word_embeddings");
    refused("bert", write("config.json", r#"{"model_type": "aim", "vidoe": {}}"#), "vidoe");
    refused("bert", write("config.json", r#"{"model_type": "aim"}"#), "num_attention_heads");
    refused("qformer", write("model.pth", "no archive"), "model.pth");
    let truncated = |folder: &Path| {
        let path = folder.join("model.pth");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    };
    refused("qformer", truncated, "model.pth");
}

#[track_caller]
fn bad_input(encoder: &mut Box<dyn Encoder>, input: Input) {
    let error = encoder.encode(&[input]).unwrap_err();
    assert!(matches!(error, EncodeError::BadInput(_)), "{error}");
}

#[test]
fn inputs_that_the_model_can_not_take_are_refused() {
    let mut model = loaded("bert");
    let encoder = &mut model.encoders[0];
    let composed = |raw: Vec<f32>, ids: Vec<u32>| Input::Composed {
        query: Source::Raw(raw),
        modification: reprise_encoders::text::Tokens { ids },
    };
    bad_input(encoder, Input::Frames(Clip { frames: Vec::new() }));
    bad_input(encoder, composed(vec![0.1; 15], vec![2, 3]));
    bad_input(encoder, composed(vec![f32::NAN; 16], vec![2, 3]));
    bad_input(encoder, composed(vec![0.1; 16], Vec::new()));
    bad_input(encoder, composed(vec![0.1; 16], vec![2; 13]));
    bad_input(encoder, composed(vec![0.1; 16], vec![100_000]));
    let text = Input::Text(reprise_encoders::text::Tokens { ids: vec![2, 3] });
    let error = encoder.encode(&[text]).unwrap_err();
    assert!(matches!(error, EncodeError::Unsupported { .. }), "{error}");
}
