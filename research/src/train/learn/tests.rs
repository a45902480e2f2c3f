//! All stages on a few drawn clips, and the resulting model.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use super::augment::Augment;
use super::clips::{ClipFeatures, ClipRecipe, train_clips};
use super::composed::{
    ComposedData, ComposedFolders, ComposedRecipe, Description, Modification, Objective, Texts,
    train_composed,
};
use super::examples::{Attribute, Classes, FrameTruth, TrainingClips, Visible};
use super::features::Features;
use super::footage::{Footage, decode_all};
use super::frames::{extract_features, train_frames};
use super::{Settings, TrainError};
use reprise_encoders::families::sports::{Config, FusionInputs, StemLayer, TimeModel};
use reprise_encoders::text::Tokens;
use reprise_encoders::video::ffmpeg::ffmpeg_path;
use reprise_encoders::{Clip, Encoder, Frame, Input, ModelName, Source};

/// A small model.
fn config() -> Config {
    let layer = |kernel, stride, channels| StemLayer { kernel, stride, channels };
    Config {
        image_size: 16,
        frames: 4,
        width: 16,
        inner: 24,
        heads: 2,
        stem: vec![layer(6, 4, 8), layer(3, 2, 16)],
        temporal_layers: 1,
        text_layers: 1,
        fusion_inner: 12,
        dim: 16,
        vocab_size: 9,
        max_position_embeddings: 7,
        ..Config::default()
    }
}

const SIDE: usize = 32;
const LABELS: [&str; 4] = ["(Day) right", "(Day) left", "(Night) right", "(Night) left"];

/// A square that crosses a light or dark picture; the class depends on brightness and direction.
fn pixels(class: usize, frame: usize, frames: usize) -> Vec<u8> {
    let (ground, square) = if class < 2 { (200_u8, 20_u8) } else { (30, 230) };
    let along = (frame * (SIDE - 8)) / frames;
    let left = if class.is_multiple_of(2) { along } else { SIDE - 8 - along };
    let inside = |at: usize| (12..20).contains(&(at / SIDE)) && (left..left + 8).contains(&(at % SIDE));
    (0..SIDE * SIDE).flat_map(|at| [if inside(at) { square } else { ground }; 3]).collect()
}

fn render(path: &Path, class: usize, frames: usize) {
    let size = format!("{SIDE}x{SIDE}");
    let arguments =
        ["-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", &size, "-r", "25", "-i", "-"];
    let mut child = Command::new(ffmpeg_path())
        .args(arguments)
        .args(["-c:v", "mpeg4", "-qscale:v", "3", "-y"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    (0..frames).for_each(|frame| stdin.write_all(&pixels(class, frame, frames)).unwrap());
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// Twelve clips of 8 to 11 frames, drawn once for all tests.
fn clips() -> TrainingClips {
    static CLIPS: LazyLock<(tempfile::TempDir, TrainingClips)> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let clips = drawn(folder.path());
        (folder, clips)
    });
    CLIPS.1.clone()
}

fn drawn(folder: &Path) -> TrainingClips {
    let attribute = |name: &str, of_class: [usize; 4], visible| Attribute {
        name: name.to_owned(),
        values: 2,
        of_class: of_class.to_vec(),
        visible,
    };
    let classes = Classes {
        labels: LABELS.map(str::to_owned).to_vec(),
        attributes: vec![
            attribute("light", [0, 0, 1, 1], Visible::Always),
            attribute("direction", [0, 1, 0, 1], Visible::Never),
        ],
    };
    let mut clips = TrainingClips { classes, ..TrainingClips::default() };
    for number in 0..12 {
        let (class, frames) = (number % 4, 8 + number % 3 + number / 8);
        let path = folder.join(format!("it's {number}.mp4"));
        render(&path, class, frames);
        let truth = |frame: usize| FrameTruth {
            somersault: frame as f32 / 4.0 * if class.is_multiple_of(2) { 1.0 } else { -1.0 },
            airborne: true,
            ..FrameTruth::default()
        };
        clips.footage.push(Footage { path, frames });
        clips.class.push(class);
        clips.truth.push((0..frames).map(truth).collect());
    }
    clips
}

fn texts() -> Texts {
    let change = |(from, to, text): (usize, usize, &str)| Modification { from, to, text: text.to_owned() };
    let changes = [(0, 1, "to the left"), (1, 0, "to the right"), (2, 3, "show left"), (3, 2, "show right")];
    let longer = [(0, 3, "left at night"), (3, 0, "right by day")];
    let describe = |(class, text): (usize, &str)| Description { class, text: text.to_owned() };
    let described = [(0, "right by day"), (1, "left by day"), (2, "right at night"), (3, "left at night")];
    Texts {
        modifications: changes.into_iter().chain(longer).map(change).collect(),
        descriptions: described.into_iter().map(describe).collect(),
    }
}

fn quick(usual: Settings, steps: usize) -> Settings {
    Settings { steps, batch: 16, warmup: 4, learning_rate: 5e-3, checkpoint_every: 50, ..usual }
}

/// Runs all stages in `folder` and loads the model in `folder/model`.
fn trained(folder: &Path, time: TimeModel, fusion: FusionInputs) -> (TrainingClips, Box<dyn Encoder>) {
    let (clips, config) = (clips(), Config { time, fusion, ..config() });
    let config = Config { max_position_embeddings: 16, ..config };
    let mut go = |_: &super::Progress| ControlFlow::Continue(());
    train_frames(&clips, &config, &quick(Settings::frames(), 12), folder, &mut go).unwrap();
    let features = extract_features(&clips, &config, folder, &mut |_, _| ()).unwrap();
    assert_eq!(Features::load(&folder.join("features.npy"), &clips.frames()).unwrap(), features);
    if time != TimeModel::Mean {
        let settings = quick(Settings::clips(), 60);
        let data = ClipFeatures { clips: &clips, features: &features };
        let recipe = ClipRecipe { config: &config, augment: Augment::NONE };
        train_clips(data, recipe, &settings, folder, &mut go).unwrap();
    }
    let (work, model) = (folder.join("stage2"), folder.join("model"));
    let recipe = ComposedRecipe { config: &config, augment: Augment::NONE, objective: Objective::USUAL };
    let folders = ComposedFolders { stages: folder, work: &work, model: &model };
    let texts = texts();
    let data = ComposedData { clips: &clips, features: &features, texts: &texts };
    let settings = quick(Settings::composed(), 80);
    train_composed(data, recipe, &settings, folders, &mut go).unwrap();
    let name: ModelName = model.to_str().unwrap().parse().unwrap();
    let mut loaded = reprise_encoders::load(&name, 1).unwrap();
    (clips, loaded.encoders.remove(0))
}

fn tokens(folder: &Path, text: &str) -> Tokens {
    let name: ModelName = folder.join("model").to_str().unwrap().parse().unwrap();
    Tokens { ids: reprise_encoders::load(&name, 1).unwrap().tokenizer.unwrap().ids(text).unwrap() }
}

fn decoded(clips: &TrainingClips) -> Vec<Clip> {
    let mut decoded = vec![Clip { frames: Vec::new() }; clips.footage.len()];
    decode_all(&clips.footage, 16, 2, &mut |clip, frames| {
        decoded[clip] = Clip { frames };
        Ok(())
    })
    .unwrap();
    decoded
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// The class whose clips have the largest mean similarity.
fn nearest(query: &[f32], clips: &TrainingClips, vectors: &[Vec<f32>]) -> usize {
    let mean = |class: usize| {
        let own = clips.class.iter().zip(vectors).filter(|(it, _)| **it == class);
        own.map(|(_, vector)| cosine(query, vector)).sum::<f32>()
    };
    (0..4).max_by(|a, b| mean(*a).total_cmp(&mean(*b))).unwrap()
}

#[track_caller]
fn check_close(a: &[Vec<f32>], b: &[Vec<f32>]) {
    let worst = a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(a.len() == b.len() && worst < 1e-5, "{worst}");
}

#[test]
fn a_trained_model_finds_what_the_text_asks_for() {
    let folder = tempfile::tempdir().unwrap();
    let (clips, mut encoder) = trained(folder.path(), TimeModel::Ordered, FusionInputs::Both);
    let pictures = decoded(&clips);
    let inputs: Vec<Input> = pictures.iter().cloned().map(Input::Frames).collect();
    let vectors = encoder.encode(&inputs).unwrap();

    let left = tokens(folder.path(), "to the left");
    let compose = |query| Input::Composed { query, modification: left.clone() };
    let from_raw = encoder.encode(&[compose(Source::Raw(vectors[0].clone()))]).unwrap();
    let from_frames = encoder.encode(&[compose(Source::Frames(pictures[0].clone()))]).unwrap();
    check_close(&from_raw, &from_frames);
    assert_eq!(nearest(&from_raw[0], &clips, &vectors), 1);
    let text = encoder.encode(&[Input::Text(tokens(folder.path(), "Right at NIGHT"))]).unwrap();
    assert_eq!(nearest(&text[0], &clips, &vectors), 2);

    let batch = [
        Input::Text(left.clone()),
        inputs[3].clone(),
        compose(Source::Frames(pictures[5].clone())),
        Input::Text(tokens(folder.path(), "show it left night")),
        compose(Source::Raw(vectors[2].clone())),
        inputs[1].clone(),
    ];
    let together = encoder.encode(&batch).unwrap();
    let apart: Vec<Vec<f32>> =
        batch.iter().flat_map(|it| encoder.encode(std::slice::from_ref(it)).unwrap()).collect();
    check_close(&together, &apart);
    assert!(encoder.space().temporal && encoder.space().can.composed);
}

#[test]
fn baselines_know_less() {
    let folder = tempfile::tempdir().unwrap();
    let (clips, mut encoder) = trained(folder.path(), TimeModel::Shuffled, FusionInputs::Text);
    let pictures = decoded(&clips);
    let backwards = |clip: &Clip| Clip { frames: clip.frames.iter().rev().cloned().collect() };
    let clip = Clip { frames: pictures[0].frames[..4].to_vec() };
    let one = encoder.encode(&[Input::Frames(clip.clone())]).unwrap();
    check_close(&one, &encoder.encode(&[Input::Frames(backwards(&clip))]).unwrap());
    let modification = tokens(folder.path(), "to the left");
    let compose =
        |query| Input::Composed { query: Source::Frames(query), modification: modification.clone() };
    let queries = [compose(pictures[0].clone()), compose(pictures[2].clone())];
    let composed = encoder.encode(&queries).unwrap();
    check_close(&composed[..1], &composed[1..]);

    let folder = tempfile::tempdir().unwrap();
    let (_, mut encoder) = trained(folder.path(), TimeModel::Mean, FusionInputs::Video);
    let one = encoder.encode(&[Input::Frames(clip.clone())]).unwrap();
    check_close(&one, &encoder.encode(&[Input::Frames(backwards(&clip))]).unwrap());
    let other = Tokens { ids: vec![1, 2] };
    let query = || Source::Frames(clip.clone());
    let queries = [modification, other].map(|modification| Input::Composed { query: query(), modification });
    let composed = encoder.encode(&queries).unwrap();
    check_close(&composed[..1], &composed[1..]);
}

#[test]
fn clips_come_in_whole_even_where_counts_are_wrong() {
    let mut clips = clips();
    let pictures = decoded(&clips);
    assert!(pictures.iter().zip(&clips.footage).all(|(got, footage)| got.frames.len() == footage.frames));
    let light = |frame: &Frame| frame.rgb[0] > 128;
    assert!(pictures.iter().zip(&clips.class).all(|(got, class)| light(&got.frames[3]) == (*class < 2)));
    clips.footage[7].frames += 1;
    let error = decode_all(&clips.footage, 16, 2, &mut |_, _| Ok(()));
    assert!(matches!(&error, Err(TrainError::Data(why)) if why.to_string().contains("it's 7")), "{error:?}");
}
