//! The methods of the paper's table: a model, and how it turns a clip and a modification text into a query.

use std::path::{Path, PathBuf};

use anyhow::Context;
use reprise_encoders::{Clip, Embedder, Input, ModelName, Source, Space};
use reprise_index::UnitVector;

use super::benchmark::ComposedQuery;
use crate::compute::{ComputeArgs, FrameArgs};
use crate::encode::{self, Stretch};

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Method {
    /// Name in reports.
    pub(super) name: &'static str,
    /// Index of the model.
    pub(super) model: usize,
    /// Fusion of clip and text.
    pub(super) fusion: Fusion,
}

/// Fusion of a clip and a modification text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fusion {
    /// The model's own composition head.
    Trained,
    /// The mean of both unit vectors.
    Average,
    /// The text's vector.
    Text,
    /// The clip's vector.
    Video,
}

/// The loaded models, the one under test first, and the methods that they allow.
pub(super) struct Models {
    /// Loaded models; index 0 is under test.
    pub(super) loaded: Vec<Embedder>,
    /// Methods in the order of the report.
    pub(super) methods: Vec<Method>,
}

/// Method, folder under the baselines, and fusion. The first existing folder counts.
const BASELINES: [(&str, &str, Fusion); 5] = [
    ("text_only", "text_only", Fusion::Trained),
    ("video_only", "video_only", Fusion::Trained),
    ("average_frames", "stage2_only", Fusion::Average),
    ("order_blind", "order_blind", Fusion::Trained),
    ("stage2_only", "stage2_only", Fusion::Trained),
];
/// Methods of the model under test. The first two apply only without a trained baseline.
const OWN: [(&str, Fusion); 4] = [
    ("text_only", Fusion::Text),
    ("video_only", Fusion::Video),
    ("average", Fusion::Average),
    ("two_stage", Fusion::Trained),
];
/// The order of the report.
const ORDER: [&str; 7] =
    ["text_only", "video_only", "average_frames", "average", "order_blind", "stage2_only", "two_stage"];

/// How models are loaded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loading {
    pub(super) compute: ComputeArgs,
    /// What models that read take of a clip.
    pub(super) frames: FrameArgs,
}

impl From<ComputeArgs> for Loading {
    fn from(compute: ComputeArgs) -> Loading {
        Loading { compute, frames: FrameArgs::default() }
    }
}

impl Models {
    /// Loads the model under test and the existing baselines. A method without its model is left out.
    ///
    /// # Errors
    /// An existing model that does not load.
    pub(super) fn load(
        model: &ModelName,
        baselines: Option<&Path>,
        Loading { compute, frames }: Loading,
    ) -> anyhow::Result<Models> {
        let mut loaded = vec![compute.load_with(model, &frames).with_context(|| model.to_string())?];
        let mut methods: Vec<Method> = Vec::new();
        let mut folders: Vec<&str> = vec![""];
        for (name, folder, fusion) in BASELINES {
            let Some(path) = baselines.map(|all| all.join(folder)).filter(|path| path.is_dir()) else {
                continue;
            };
            let known = folders.iter().position(|known| *known == folder);
            let model = match known {
                Some(model) => model,
                None => {
                    let name: ModelName = path.to_string_lossy().parse()?;
                    loaded.push(compute.load_with(&name, &frames).with_context(|| name.to_string())?);
                    folders.push(folder);
                    loaded.len() - 1
                }
            };
            methods.extend(can(&loaded[model], fusion).then_some(Method { name, model, fusion }));
        }
        for (name, fusion) in OWN {
            let taken = methods.iter().any(|method| method.name == name);
            methods.extend((!taken && can(&loaded[0], fusion)).then_some(Method { name, model: 0, fusion }));
        }
        methods.sort_by_key(|method| ORDER.iter().position(|name| *name == method.name));
        Ok(Models { loaded, methods })
    }
}

/// Whether the model supports the fusion.
fn can(model: &Embedder, fusion: Fusion) -> bool {
    let can = model.space.can;
    can.frames
        && match fusion {
            Fusion::Trained => can.composed,
            Fusion::Average | Fusion::Text => can.text,
            Fusion::Video => true,
        }
}

/// The query vectors, in order. `clips` are the raw vectors of all clips by the same model, `files` their paths.
///
/// # Errors
/// A model that fails, a zero vector, or a clip that cannot be decoded.
pub(super) fn queries(
    model: &mut Embedder,
    fusion: Fusion,
    queries: &[&ComposedQuery],
    clips: &[Vec<f32>],
    files: &[PathBuf],
) -> anyhow::Result<Vec<UnitVector>> {
    match fusion {
        Fusion::Video => queries.iter().map(|query| unit(&clips[query.clip])).collect(),
        Fusion::Text => texts(model, queries),
        Fusion::Average => {
            let texts = texts(model, queries)?;
            queries
                .iter()
                .zip(texts)
                .map(|(query, text)| average(&unit(&clips[query.clip])?, &text))
                .collect()
        }
        Fusion::Trained => {
            let tokenizer = model.tokenizer.clone().context("the model takes no text")?;
            let composed = |(query, source): (&&ComposedQuery, Source)| -> anyhow::Result<Input> {
                let windows = tokenizer.modification(&query.modification)?.windows;
                let modification = windows.into_iter().next().context("no text")?.tokens;
                Ok(Input::Composed { query: source, modification })
            };
            let mut vectors = Vec::with_capacity(queries.len());
            for queries in queries.chunks(encode::CLIPS_AT_ONCE) {
                let sources = sources(&model.space, queries, clips, files)?;
                let inputs = queries.iter().zip(sources).map(composed);
                let raw = encode::inputs(model, &inputs.collect::<anyhow::Result<Vec<Input>>>()?)?;
                vectors.extend(raw.iter().map(|raw| unit(raw)).collect::<anyhow::Result<Vec<_>>>()?);
            }
            Ok(vectors)
        }
    }
}

/// The model's inputs from the query clips: vectors or frames.
fn sources(
    space: &Space,
    queries: &[&ComposedQuery],
    clips: &[Vec<f32>],
    files: &[PathBuf],
) -> anyhow::Result<Vec<Source>> {
    let Some(sampler) = space.composed_frames else {
        return Ok(queries.iter().map(|query| Source::Raw(clips[query.clip].clone())).collect());
    };
    let whole: Vec<Stretch> = queries.iter().map(|query| Stretch::whole(&files[query.clip])).collect();
    let frames = encode::frames(&whole, sampler, space.scaling)?;
    Ok(frames.into_iter().map(|frames| Source::Frames(Clip { frames })).collect())
}

fn texts(model: &mut Embedder, queries: &[&ComposedQuery]) -> anyhow::Result<Vec<UnitVector>> {
    queries.iter().map(|query| encode::text(model, &query.modification)).collect()
}

fn average(video: &UnitVector, text: &UnitVector) -> anyhow::Result<UnitVector> {
    let sum: Vec<f32> = video.values().iter().zip(text.values()).map(|(video, text)| video + text).collect();
    unit(&sum)
}

/// The direction of a raw vector.
///
/// # Errors
/// A zero vector.
pub(super) fn unit(raw: &[f32]) -> anyhow::Result<UnitVector> {
    let (unit, _) = UnitVector::from_raw(raw).context("a vector is zero or not finite")?;
    Ok(unit)
}
