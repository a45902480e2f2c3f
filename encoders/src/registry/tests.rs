use std::sync::Arc;

use super::load;
use crate::device::Placement;
use crate::families::clip::config::TextConfig;
use crate::families::{clip, tiny};
use crate::loading::{Embedder, LoadError, LoadOptions, ModelName, PretrainedFiles};
use crate::text::{Tokenizer, Tokens};
use crate::{Clip, EncodeError, Frame, FrameSize, Input, TrainedOn};

/// Checks the display of a parsed name, or a part of the error.
#[track_caller]
fn check(name: &str, expected: Result<&str, &str>) {
    match (name.parse::<ModelName>(), expected) {
        (Ok(name), Ok(expected)) => assert_eq!(name.to_string(), expected),
        (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
        (got, expected) => panic!("{got:?} instead of {expected:?}"),
    }
}

#[test]
fn a_name_is_the_built_in_model_a_folder_or_a_hub_id() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    check("builtin:tiny", Ok("builtin:tiny"));
    check("builtin:sports", Ok("builtin:sports"));
    check(folder, Ok(folder));
    check("openai/clip-vit-base-patch32", Ok("openai/clip-vit-base-patch32"));
    check("org/name.v1@refs-1", Ok("org/name.v1@refs-1"));
}

#[test]
fn other_names_are_refused_with_the_forms_that_exist() {
    for name in
        ["", "tiny", "builtin:huge", "/no/such/folder", "a/b/c", "a/", "a/b@", "../b", "a/..", "a/b c"]
    {
        check(name, Err("builtin:tiny, an existing folder or .pt file, or a hub id"));
    }
}

fn tiny(replicas: usize) -> Embedder {
    load(&"builtin:tiny".parse().unwrap(), replicas).unwrap()
}

#[test]
fn the_sports_model_is_in_the_binary_and_takes_every_kind_of_query() {
    let loaded = load(&"builtin:sports".parse().unwrap(), 1).unwrap();
    let space = loaded.space;
    assert!(space.can.text && space.can.frames && space.can.composed && space.temporal);
    assert_eq!(space.trained_on, TrainedOn::RenderedClips);
    assert!(space.max_text_tokens >= 64 && space.name.starts_with("sports-"), "{space:?}");
    assert!(crate::families::sports::pretrained::WEIGHTS.len() <= 8 << 20);
}

#[test]
fn the_built_in_model_is_the_same_space_on_every_machine() {
    let space = tiny(1).space;
    assert_eq!(space.id, TINY);
    assert_eq!(space.name, format!("tiny-{}", &TINY[..6]));
    assert!(space.trained_on == TrainedOn::Nothing && !space.temporal);
    assert_eq!((space.dim, space.max_text_tokens, space.family.as_str()), (64, 77, "clip"));
    assert_eq!(space.scaling.size, FrameSize::ShortEdge(64));
}

/// Changes only with the family's version.
const TINY: &str = "1ade909cf65742029a7d57ec2c285177bece35893ef93bc2c532ec6ef9af278b";

fn distance(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn colours(red: u8, green: u8, blue: u8) -> Frame {
    let rgb: Vec<u8> = (0..64 * 80).flat_map(|at| [red, green.wrapping_add(at as u8 / 2), blue]).collect();
    Frame { time_ms: 0, width: 80, height: 64, rgb: rgb.into() }
}

fn inputs(tokenizer: &Tokenizer) -> Vec<Input> {
    let text = |text: &str| Input::Text(Tokens { ids: tokenizer.ids(text).unwrap() });
    let clip = |frames: &[Frame]| Input::Frames(Clip { frames: frames.to_vec() });
    let (a, b, c) = (colours(200, 10, 10), colours(10, 40, 200), colours(90, 90, 90));
    vec![
        text("a brown dog runs past"),
        clip(&[a.clone(), b.clone()]),
        text(""),
        clip(std::slice::from_ref(&c)),
        text("two and a half turns in the pike position, seen from above"),
        clip(&[c, b, a]),
    ]
}

#[test]
fn replicas_and_batches_give_the_vectors_of_single_inputs() {
    let Embedder { encoders, tokenizer, .. } = tiny(2);
    let inputs = inputs(&tokenizer.unwrap());
    for mut encoder in encoders {
        let batch = encoder.encode(&inputs).unwrap();
        for (input, from_batch) in inputs.iter().zip(&batch) {
            let single = encoder.encode(std::slice::from_ref(input)).unwrap();
            assert!(distance(&single[0], from_batch) < 1e-5);
        }
        assert!(distance(&batch[0], &batch[4]) > 1e-2, "different texts must differ");
        assert!(distance(&batch[1], &batch[3]) > 1e-2, "different clips must differ");
    }
}

#[test]
fn a_clips_raw_vector_is_the_mean_of_its_frames_unit_vectors() {
    let Embedder { mut encoders, .. } = tiny(1);
    let clip = |frames: Vec<Frame>| Input::Frames(Clip { frames });
    let (a, b) = (colours(200, 10, 10), colours(10, 40, 200));
    let vectors =
        encoders[0].encode(&[clip(vec![a.clone()]), clip(vec![b.clone()]), clip(vec![a, b])]).unwrap();
    let norm = |vector: &[f32]| vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    assert!((norm(&vectors[0]) - 1.0).abs() < 1e-5);
    let mean: Vec<f32> = vectors[0].iter().zip(&vectors[1]).map(|(a, b)| (a + b) / 2.0).collect();
    assert!(distance(&mean, &vectors[2]) < 1e-6);
}

#[track_caller]
fn refused(input: Input, is_expected: fn(&EncodeError) -> bool) {
    let error = tiny(1).encoders[0].encode(&[input]).unwrap_err();
    assert!(is_expected(&error), "{error}");
}

#[test]
fn inputs_that_the_model_can_not_take_are_refused() {
    let bad = |error: &EncodeError| matches!(error, EncodeError::BadInput(_));
    refused(Input::Frames(Clip { frames: Vec::new() }), bad);
    refused(Input::Text(Tokens { ids: Vec::new() }), bad);
    refused(Input::Text(Tokens { ids: vec![0; 78] }), bad);
    refused(Input::Text(Tokens { ids: vec![0, 5000, 1] }), bad);
    let composed =
        Input::Composed { query: crate::Source::Raw(vec![0.0]), modification: Tokens { ids: vec![0, 1] } };
    refused(composed, |error| matches!(error, EncodeError::Unsupported { .. }));
}

#[test]
fn the_end_of_a_text_is_where_transformers_finds_it() {
    let end = |eos_token_id: u32, ids: &[u32]| {
        TextConfig { eos_token_id, ..TextConfig::default() }.tower(1).reading.at(ids)
    };
    assert_eq!(end(2, &[5, 3, 9, 9]), 2, "legacy: the first of the largest ids");
    assert_eq!(end(9, &[5, 3, 9, 12, 9]), 2, "the first end-of-text id");
    assert_eq!(end(9, &[5, 3]), 0, "no end of text");
}

/// The error of loading tiny's files after `change`.
fn broken(change: impl Fn(&mut serde_json::Value, &mut PretrainedFiles)) -> LoadError {
    let mut files = tiny::files(&Placement::default()).unwrap();
    let mut config = serde_json::from_slice(&files.config).unwrap();
    change(&mut config, &mut files);
    files.config = serde_json::to_vec(&config).unwrap();
    let name = "builtin:tiny".parse().unwrap();
    match clip::load(&name, files, TrainedOn::Nothing, &LoadOptions::default()) {
        Ok(_) => panic!("it loaded"),
        Err(error) => error,
    }
}

#[test]
fn a_configuration_that_does_not_fit_is_an_error_and_no_wrong_vector() {
    let error = broken(|config, _| config["vision_config"]["patch_size"] = 8.into());
    assert!(matches!(error, LoadError::WrongShape { .. }), "{error}");
    let error = broken(|config, _| config["vision_config"]["num_hidden_layers"] = 3.into());
    assert!(matches!(error, LoadError::MissingTensor { .. }), "{error}");
    let error = broken(|config, _| config["text_config"]["num_attention_heads"] = 5.into());
    assert!(matches!(error, LoadError::Unsupported(_)), "{error}");
    let error = broken(|config, _| config["vision_config"]["hidden_act"] = "mish".into());
    assert!(matches!(error, LoadError::BadFile { .. }), "{error}");
    let error = broken(|config, _| config["text_config"]["eos_token_id"] = 7.into());
    assert!(matches!(error, LoadError::Unsupported(_)), "{error}");
    let error = broken(|_, files| files.preprocessor = br#"{"crop_size": 32}"#.to_vec());
    assert!(matches!(error, LoadError::Unsupported(_)), "{error}");
    let error = broken(|_, files| files.tokenizer = b"{}".to_vec());
    assert!(matches!(error, LoadError::Tokenizer(_)), "{error}");
}

#[test]
fn a_span_made_from_the_features_of_its_frames_is_the_span_made_from_the_frames() {
    for name in ["builtin:tiny", "builtin:sports"] {
        let Embedder { space, mut encoders, .. } = load(&name.parse().unwrap(), 1).unwrap();
        let frames: Vec<Frame> = (0..20).map(|at| colours(10 * at, 200 - 7 * at, 90)).collect();
        let one_by_one: Vec<Input> = frames.iter().cloned().map(Input::Frame).collect();
        let features = encoders[0].encode(&one_by_one).unwrap();
        assert!(features.iter().all(|row| Some(row.len()) == space.frame_stage), "{name}");
        let features: Vec<Arc<[f32]>> = features.into_iter().map(Arc::from).collect();
        for frames_of_span in [1, 5, 20] {
            let clip = Clip { frames: frames[..frames_of_span].to_vec() };
            let spans = [Input::Frames(clip), Input::Features(features[..frames_of_span].to_vec())];
            let vectors = encoders[0].encode(&spans).unwrap();
            assert!(distance(&vectors[0], &vectors[1]) < 1e-5, "{name}, {frames_of_span} frames");
        }
        let bad = [Vec::new(), vec![Arc::from(vec![0.5; 3])], vec![Arc::from(vec![f32::NAN; 64])]];
        for features in bad {
            let refused = encoders[0].encode(&[Input::Features(features)]);
            assert!(matches!(refused, Err(EncodeError::BadInput(_))), "{name}");
        }
    }
}

#[test]
fn the_built_in_vocabulary_knows_sports_and_misses_other_words() {
    let tokenizer = load(&"builtin:sports".parse().unwrap(), 1).unwrap().tokenizer.unwrap();
    for (word, missed) in [
        ("somersault", false),
        ("platform", false),
        ("the", false),
        ("attention", true),
        ("mask", true),
        ("水", true),
    ] {
        assert_eq!(tokenizer.misses(word), missed, "{word}");
    }
}
