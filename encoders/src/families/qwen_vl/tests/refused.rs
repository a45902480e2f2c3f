//! Folders that do not hold the model that they say, and inputs beyond a model's limits.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use candle_core::{Device, Tensor};
use serde_json::{Value, json};

use super::super::embedding::EmbeddingKind;
use super::super::model::{QwenVl, renamed};
use super::embedding::{clip, folder, key, kind, load};
use super::fixture::{Fixture, each};
use super::pixels::picture;
use crate::generator::{Conversation, Generator, Message, Part, Role, Sampling};
use crate::loading::Weights;
use crate::registry::{load_generator, load_with};
use crate::sample::spread;
use crate::{Clip, DeviceChoice, EncodeError, Frame, Input, LoadError, LoadOptions};

const WEIGHTS: &str = "model.safetensors";

fn options() -> LoadOptions {
    LoadOptions { devices: vec![DeviceChoice::Cpu], ..LoadOptions::default() }
}

fn generator(folder: &Path) -> Result<Box<dyn Generator>, LoadError> {
    load_generator(&folder.to_str().unwrap().parse().unwrap(), &options())
}

fn tensors(fixture: &Fixture) -> HashMap<String, Tensor> {
    candle_core::safetensors::load(fixture.folder.join(WEIGHTS), &Device::Cpu).unwrap()
}

/// The name of a tensor as this family reads it, whichever layout the file has.
fn read_as(name: &str) -> String {
    match name.strip_prefix("model.visual.") {
        Some(rest) => format!("visual.{rest}"),
        None => name.replacen("model.language_model.", "model.", 1),
    }
}

/// Fails unless the folder is refused as generator, and as embedder where that reads the tensor too. The message must
/// have all `parts`.
#[track_caller]
fn check(fixture: &Fixture, folder: &Path, parts: &[&str]) {
    let embedder_reads_it = parts[0] != "lm_head.weight";
    let errors =
        [generator(folder).err(), load(folder).err().filter(|_| embedder_reads_it)].into_iter().flatten();
    let said: Vec<String> = errors.map(|error| error.to_string()).collect();
    assert_eq!(said.len(), 1 + usize::from(embedder_reads_it), "{} {parts:?}: {said:?}", fixture.name);
    for error in said {
        assert!(
            parts.iter().all(|part| error.contains(part)),
            "{}: {error:?} without {parts:?}",
            fixture.name
        );
    }
}

#[test]
fn a_tensor_that_is_missing_or_of_another_shape_is_named_with_both_shapes() {
    each(|fixture| {
        let folder = folder(fixture, Some(key(kind(fixture))));
        let (whole, file) = (tensors(fixture), folder.path().join(WEIGHTS));
        let with = |tensors: &HashMap<String, Tensor>| {
            // The copy of a read-only file may not be written to.
            std::fs::remove_file(&file).unwrap();
            candle_core::safetensors::save(tensors, &file).unwrap();
        };
        for (at, (name, tensor)) in whole.iter().enumerate() {
            let mut changed = whole.clone();
            let twice = Tensor::cat(&[tensor, tensor], 0).unwrap();
            let [wrong, right] = [&twice, tensor].map(|it| format!("{:?}", it.dims()));
            let (is_head, read) = (name == "lm_head.weight", read_as(name));
            let mut refused = |change: Option<Tensor>, parts: &[&str]| {
                match change {
                    Some(tensor) => changed.insert(name.clone(), tensor),
                    None => changed.remove(name),
                };
                with(&changed);
                // Whole folders take longer, so that a few stand for all.
                if is_head || at % 32 == 0 {
                    check(fixture, folder.path(), parts);
                }
                let weights = renamed(Weights::read(std::slice::from_ref(&file)).unwrap());
                let error = QwenVl::load(fixture.config(), &weights).err().map(|error| error.to_string());
                let said = |error: &String| parts.iter().all(|part| error.contains(part));
                assert!(is_head || error.as_ref().is_some_and(said), "{}: {error:?}", fixture.name);
            };
            refused(Some(twice), &[&read, &wrong, &right]);
            refused(None, &[&read, "no tensor"]);
        }
        with(&whole);
        assert!(load(folder.path()).is_ok() && generator(folder.path()).is_ok(), "{}", fixture.name);
    });
}

/// Stores the weights in two shards and their index.
fn in_shards(fixture: &Fixture, folder: &Path) -> [&'static str; 2] {
    let shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    let mut parts = [HashMap::new(), HashMap::new()];
    let mut map = serde_json::Map::new();
    for (at, (name, tensor)) in tensors(fixture).into_iter().enumerate() {
        map.insert(name.clone(), shards[at % 2].into());
        parts[at % 2].insert(name, tensor);
    }
    for (shard, part) in shards.iter().zip(&parts) {
        candle_core::safetensors::save(part, folder.join(shard)).unwrap();
    }
    let index = json!({"metadata": {}, "weight_map": map}).to_string();
    std::fs::write(folder.join("model.safetensors.index.json"), index).unwrap();
    std::fs::remove_file(folder.join(WEIGHTS)).unwrap();
    shards
}

#[test]
fn a_shard_that_the_index_names_and_the_folder_lacks_is_named() {
    each(|fixture| {
        let folder = folder(fixture, Some(key(kind(fixture))));
        let whole = load(folder.path()).unwrap().space.id;
        let shards = in_shards(fixture, folder.path());
        assert_eq!(load(folder.path()).unwrap().space.id, whole, "shards are the same model");
        for shard in shards {
            let bytes = std::fs::read(folder.path().join(shard)).unwrap();
            std::fs::remove_file(folder.path().join(shard)).unwrap();
            check(fixture, folder.path(), &["has no", shard]);
            // A download that was cut off.
            std::fs::write(folder.path().join(shard), &bytes[..bytes.len() / 2]).unwrap();
            check(fixture, folder.path(), &["can't be used", shard]);
            std::fs::write(folder.path().join(shard), bytes).unwrap();
        }
        assert!(load(folder.path()).is_ok(), "{}", fixture.name);
    });
}

#[test]
fn a_config_of_another_model_is_refused_with_the_shapes() {
    each(|fixture| {
        let folder = folder(fixture, Some(key(kind(fixture))));
        let file = folder.path().join("config.json");
        let mut config: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let text = if config.get("text_config").is_some() { &mut config["text_config"] } else { &mut config };
        let inner = text["intermediate_size"].as_u64().unwrap();
        text["intermediate_size"] = (inner + 8).into();
        std::fs::write(&file, config.to_string()).unwrap();
        let [is, should] = [inner, inner + 8].map(|it| it.to_string());
        check(fixture, folder.path(), &["model.layers.0.mlp.", &is, &should]);
    });
}

#[test]
fn a_clip_of_thousands_of_frames_is_thinned_to_64_evenly() {
    each(|fixture| {
        let kind = kind(fixture);
        let folder = folder(fixture, Some(key(kind)));
        let small = LoadOptions { max_pixels: Some(1024), ..options() };
        let mut model = load_with(&folder.path().to_str().unwrap().parse().unwrap(), &small).unwrap();
        let all = clip(4000);
        let of = |picked: &[usize]| {
            let frames = picked.iter().map(|at| all.frames[*at].clone()).collect();
            Input::Frames(Clip { frames })
        };
        let times: Vec<i64> = all.frames.iter().map(|frame| frame.time_ms).collect();
        let picked = model.space.sampler.pick(&times, 0);
        let most = if kind == EmbeddingKind::Care { 32 } else { 64 };
        assert_eq!(picked, spread(4000, most), "{}", fixture.name);
        let sampled = model.encoders[0].encode(&[of(&picked)]).unwrap();
        assert_eq!(sampled[0].len(), model.space.dim);
        // Frames that no sampler picked: a model that reads videos takes 64 of them, one that reads pictures takes each.
        if kind != EmbeddingKind::Gme {
            let thinned = model.encoders[0].encode(&[of(&spread(4000, 64))]).unwrap();
            assert_eq!(model.encoders[0].encode(&[Input::Frames(all.clone())]).unwrap(), thinned);
        }
    });
}

fn ask(parts: Vec<Part>) -> Conversation {
    let sampling = Sampling { max_tokens: 1, ..Sampling::default() };
    Conversation { messages: vec![Message { role: Role::User, parts }], sampling }
}

#[test]
fn prompts_longer_than_the_context_are_the_callers_fault() {
    each(|fixture| {
        let folder = folder(fixture, None);
        // The fixture's own context.
        std::fs::copy(fixture.folder.join("config.json"), folder.path().join("config.json")).unwrap();
        let mut model = generator(folder.path()).unwrap();
        assert_eq!(model.longest(), 512);
        let mut refused = |part: Part, says: &str| {
            let error =
                model.generate(&[ask(vec![part])], &mut |_, _| ControlFlow::Continue(())).unwrap_err();
            assert!(matches!(error, EncodeError::BadInput(_)), "{error}");
            assert!(error.to_string().contains(says), "{}: {error}", fixture.name);
        };
        let long = Part::Text("7".repeat(100_000));
        refused(long, "the model takes 1 to 512");
        let frames: Vec<Frame> =
            (0..64).map(|at| Frame { time_ms: i64::from(at) * 500, ..picture(640, 360, at) }).collect();
        refused(Part::Video { frames, per_second: 2.0 }, "and the model reads 512");
    });
}

/// Moves both files of a folder's pixels into one, as transformers 5 writes them.
fn in_one_file(fixture: &Fixture, folder: &Path, broken: bool) {
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(fixture.folder.join(name)).unwrap()).unwrap()
    };
    let both = json!({
        "processor_class": "Qwen2VLProcessor",
        "image_processor": read("preprocessor_config.json"),
        "video_processor": read("video_preprocessor_config.json"),
    });
    for file in ["preprocessor_config.json", "video_preprocessor_config.json"] {
        let _ = std::fs::remove_file(folder.join(file));
    }
    let text = both.to_string();
    let text = if broken { &text[..text.len() / 2] } else { &text };
    std::fs::write(folder.join("processor_config.json"), text).unwrap();
}

#[test]
fn one_file_for_pictures_and_videos_is_the_same_model() {
    each(|fixture| {
        let folder = folder(fixture, Some(key(kind(fixture))));
        let tokens = |folder: &Path| {
            let frames = (0..4).map(|at| Frame { time_ms: at * 500, ..picture(64, 48, at as u32) }).collect();
            let parts = vec![Part::Picture(picture(48, 32, 1)), Part::Video { frames, per_second: 2.0 }];
            let mut model = generator(folder).unwrap();
            let texts = model.generate(&[ask(parts)], &mut |_, _| ControlFlow::Continue(())).unwrap();
            texts[0].prompt_tokens
        };
        let (space, without_video) = (load(folder.path()).unwrap().space.id, tokens(folder.path()));
        let video = "video_preprocessor_config.json";
        std::fs::copy(fixture.folder.join(video), folder.path().join(video)).unwrap();
        let in_two = tokens(folder.path());
        in_one_file(fixture, folder.path(), false);
        assert_eq!(load(folder.path()).unwrap().space.id, space, "{}", fixture.name);
        assert_eq!(tokens(folder.path()), in_two, "{}", fixture.name);
        // Only Qwen3-VL's bounds of videos stand in a file.
        assert_eq!(in_two != without_video, kind(fixture) == EmbeddingKind::Qwen3, "{}", fixture.name);
        in_one_file(fixture, folder.path(), true);
        check(fixture, folder.path(), &["processor_config.json", "can't be used"]);
    });
}
