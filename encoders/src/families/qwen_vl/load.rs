//! Loads a folder as an embedder or a generator.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::ID;
use super::config::{Config, Generation, Ids};
use super::conversation::QwenVlGenerator;
use super::decoder::Head;
use super::embedding::{EmbeddingKind, recognised};
use super::encoder::{MOST_FRAMES, QwenVlEncoder, Reader};
use super::instructions::{PROMPTS, PromptFile, PromptIds, Prompts};
use super::model::{QwenVl, renamed};
use super::patches::{self, FrameSizes, Patching, PreprocessorFile};
use super::prompt::PromptTokenizer;
use super::template::ChatTemplate;
use super::writer::Writer;
use crate::area::{Lift, SizeRule};
use crate::device::{Placement, Precision};
use crate::generator::{Generator, Sampling};
use crate::loading::{
    Embedder, Identity, LoadError, LoadOptions, ModelFiles, SpaceName, Weights, folder, memory,
};
use crate::sample::Sampler;
use crate::text::{Specials, Tokenizer};
use crate::{Abilities, EncodeError, Encoder, FrameSize, Scaling, Space, TrainedOn};

pub(super) const PREPROCESSOR: &str = "preprocessor_config.json";
pub(super) const VIDEO_PREPROCESSOR: &str = "video_preprocessor_config.json";
pub(super) const GENERATION: &str = "generation_config.json";

/// What both purposes read from a folder.
struct Parts {
    config: Config,
    tokenizer_json: Vec<u8>,
    tokenizer: PromptTokenizer,
    template: ChatTemplate,
    patching: Patching,
    identity: Identity,
    weights: Weights,
}

impl Parts {
    fn read(model: &ModelFiles, on: &Placement) -> Result<Parts, LoadError> {
        let config = Config::parse(model.config_bytes()?)?;
        let preprocessor = folder::preprocessor(model.folder(), &model.name().to_string())?;
        let preprocessor = parsed(model, PREPROCESSOR, &preprocessor)?;
        let tokenizer_json = model.read(folder::TOKENIZER)?;
        let tokenizer = PromptTokenizer::from_json(&tokenizer_json, &config)?;
        let template = ChatTemplate::of(model, config.generation)?;
        let files = folder::weight_files(model.folder(), folder::STEM, &model.name().to_string())?;
        memory::check(&files, on)?;
        let mut identity = Identity::new(on);
        identity.add(&tokenizer_json);
        let weights = renamed(identity.weights_of(&files)?);
        let patching = Patching::new(&preprocessor, &config.vision)?;
        Ok(Parts { config, tokenizer_json, tokenizer, template, patching, identity, weights })
    }
}

/// The values of `file`, or of the part of processor_config.json that stands for it.
fn parsed(model: &ModelFiles, file: &str, bytes: &[u8]) -> Result<PreprocessorFile, LoadError> {
    let read = if model.has(file) { file } else { folder::PROCESSOR };
    patches::parse(bytes).map_err(|why| model.bad(read, why))
}

fn unsupported(error: EncodeError) -> LoadError {
    LoadError::Unsupported(error.into())
}

/// The embedder of a folder.
///
/// # Errors
/// [`LoadError::Unsupported`] for a folder of a model that writes texts, and the usual ones.
pub(super) fn embedder(
    model: &ModelFiles,
    on: &Placement,
    options: &LoadOptions,
) -> Result<Embedder, LoadError> {
    let kind = recognised(model)?.ok_or_else(|| LoadError::Unsupported(WRITES.into()))?;
    let dim = dimension(kind, &Config::parse(model.config_bytes()?)?, options)?;
    let parts = Parts::read(model, on)?;
    let prompts = prompts(model, kind, &parts.template)?;
    let text_limit =
        limit(kind).map_or(parts.config.text.longest, |most| most.min(parts.config.text.longest));
    let tokenizer = Tokenizer::from_json(&parts.tokenizer_json, Specials::default(), text_limit)?;
    let end = tokenizer.after().to_vec();
    let ids = PromptIds::new(&prompts, &parts.tokenizer, &end).map_err(unsupported)?;
    let before = ids.text.clone();
    let after = parts.tokenizer.ids(&prompts.text.after).map_err(unsupported)?;
    let tokenizer = tokenizer.plain().within(&before, &after)?;
    let patching = sized(parts.patching, kind);
    let patching = match options.max_pixels {
        Some(most) => patching.within(most),
        None => patching,
    };
    let size = patching.decoded(prompts.reads_pictures()).map(FrameSize::Area);
    let scaling = Scaling::from(size.ok_or_else(|| LoadError::Unsupported("bounds of whole videos".into()))?);
    let sampler = sampler(kind, options);
    let mut rest = json!({
        "family": ID.name,
        "version": ID.version,
        "config": parts.config,
        "patching": patching,
        "prompts": prompts,
        "text_limit": text_limit,
        "sampler": sampler,
        "scaling": scaling,
    });
    if dim < parts.config.text.width {
        rest["dim"] = dim.into();
    }
    let precision = parts.identity.precision();
    if matches!(precision, Precision::Int8 | Precision::Bf16) {
        rest["embeddings"] = precision.name().into();
    }
    let SpaceName { id, readable } = parts.identity.space(model.name(), &rest);
    let space = Space {
        id,
        name: readable,
        model: model.name().to_string(),
        family: ID.name.to_owned(),
        dim,
        sampler,
        scaling,
        max_text_tokens: text_limit,
        // Moments would be read again as videos of their own, at many times the cost of the clip.
        temporal: false,
        // The frame stage would encode the frames that are left out, too.
        frame_stage: (prompts.reads_pictures() && options.frames_per_clip.is_none()).then_some(dim),
        can: Abilities { text: true, frames: true, composed: true },
        composed_frames: Some(composed_sampler(kind, sampler)),
        trained_on: TrainedOn::Unstated,
        precision: parts.identity.precision(),
    };
    let model = QwenVl::load(parts.config, &parts.weights)?;
    let reader = Arc::new(Reader { model, tokenizer: parts.tokenizer, patching, prompts, ids });
    let encoder = || QwenVlEncoder::new(Arc::clone(&reader), space.clone());
    let encoders = (0..options.replicas.max(1)).map(|_| Box::new(encoder()) as Box<dyn Encoder>).collect();
    Ok(Embedder::new(space, Some(Arc::new(tokenizer)), encoders))
}

/// Why a folder is no embedder.
pub(super) const WRITES: &str = "this model writes texts and was not trained for vectors; give it to `reprise generate`, \
     or say in config.json with \"embedding\": {\"kind\": \"gme\"} (or \"qwen3\", \"care\") how it was trained";

/// The folder's own prompts, else the released ones.
fn prompts(model: &ModelFiles, kind: EmbeddingKind, template: &ChatTemplate) -> Result<Prompts, LoadError> {
    if !model.has(PROMPTS) {
        let prompts = Prompts::new(kind, &PromptFile::default(), template);
        return prompts.map_err(|why| LoadError::Unsupported(why.into()));
    }
    let file: PromptFile = model.json(PROMPTS)?;
    Prompts::new(kind, &file, template).map_err(|why| model.bad(PROMPTS, why))
}

/// Values of a vector: the wanted prefix if the model was trained for that (Matryoshka, arXiv 2205.13147), else all.
///
/// # Errors
/// [`LoadError::Unsupported`] for a prefix longer than the vector.
fn dimension(kind: EmbeddingKind, config: &Config, options: &LoadOptions) -> Result<usize, LoadError> {
    let width = config.text.width;
    match options.dim {
        Some(dim) if kind == EmbeddingKind::Qwen3 && dim > width => Err(LoadError::Unsupported(
            format!("--dim {dim}: the model's vectors have {width} values").into(),
        )),
        Some(dim) if kind == EmbeddingKind::Qwen3 => Ok(dim.max(1)),
        _ => Ok(width),
    }
}

/// Most tokens of a text, the prompt included, by the released code. CARE's names none: the context is the limit.
fn limit(kind: EmbeddingKind) -> Option<usize> {
    match kind {
        EmbeddingKind::Gme => Some(1800),
        EmbeddingKind::Qwen3 => Some(8192),
        EmbeddingKind::Care => None,
    }
}

/// The sizes of pictures and frames in the released code.
fn sized(patching: Patching, kind: EmbeddingKind) -> Patching {
    let tokens = |least, most| patching.tokens(least, most);
    let (pictures, frames) = match kind {
        // Its code resizes by qwen-vl-utils' bounds first, then by its own.
        EmbeddingKind::Gme => (vec![tokens(4, 16_384), tokens(256, 1280)], patching.frames),
        EmbeddingKind::Qwen3 => {
            let each = tokens(128, 768);
            let total = 7680 * (tokens(1, 1).min_pixels);
            (vec![tokens(4, 1800)], FrameSizes::Within { each, total })
        }
        EmbeddingKind::Care => {
            let each = SizeRule { max_pixels: 230_400, lift: Lift::Before, ..tokens(128, 768) };
            (patching.pictures.clone(), FrameSizes::Each(each))
        }
    };
    Patching { pictures, frames, ..patching }
}

/// Frames of a clip: GME and Qwen3 sample at a rate, CARE takes 32.
fn sampler(kind: EmbeddingKind, options: &LoadOptions) -> Sampler {
    let rate = options.frames_per_second.unwrap_or(1.0).clamp(0.01, 240.0);
    let most = |released: usize| options.frames_per_clip.map_or(released, |most| most.clamp(1, MOST_FRAMES));
    match kind {
        EmbeddingKind::Gme | EmbeddingKind::Qwen3 => Sampler::PerSecond { rate, at_most: most(MOST_FRAMES) },
        EmbeddingKind::Care => Sampler::Spread { frames: most(32) },
    }
}

/// Frames of a composed query's clip: GME looks at the middle one.
fn composed_sampler(kind: EmbeddingKind, sampler: Sampler) -> Sampler {
    match kind {
        EmbeddingKind::Gme => Sampler::Spread { frames: 1 },
        EmbeddingKind::Qwen3 | EmbeddingKind::Care => sampler,
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GenerationFile {
    eos_token_id: Option<Ids>,
    do_sample: Option<bool>,
    temperature: Option<f32>,
    top_k: Option<usize>,
    top_p: Option<f32>,
    repetition_penalty: Option<f32>,
}

impl GenerationFile {
    /// As transformers reads it: greedy unless `do_sample`, and what is left out has its defaults.
    fn sampling(&self) -> Sampling {
        let greedy =
            Sampling { repetition_penalty: self.repetition_penalty.unwrap_or(1.0), ..Sampling::default() };
        match self.do_sample {
            Some(true) => Sampling {
                temperature: self.temperature.unwrap_or(1.0),
                top_k: self.top_k.unwrap_or(50),
                top_p: self.top_p.unwrap_or(1.0),
                ..greedy
            },
            _ => greedy,
        }
    }
}

/// The generator of a folder.
///
/// # Errors
/// [`LoadError`].
pub(super) fn generator(model: &ModelFiles, on: &Placement) -> Result<Box<dyn Generator>, LoadError> {
    let parts = Parts::read(model, on)?;
    let mut ends: BTreeSet<u32> = parts.config.ends.iter().copied().collect();
    let mut sampling = Sampling::default();
    if model.has(GENERATION) {
        let file: GenerationFile = model.json(GENERATION)?;
        sampling = file.sampling();
        sampling.check().map_err(|error| model.bad(GENERATION, error))?;
        ends.extend(file.eos_token_id.map(Ids::list).unwrap_or_default());
    }
    ends.extend(["<|im_end|>", "<|endoftext|>"].into_iter().filter_map(|token| parts.tokenizer.id_of(token)));
    let patching = of_videos(parts.patching, model, parts.config.generation)?;
    let loaded = QwenVl::load(parts.config, &parts.weights)?;
    let head = Head::load(&loaded.config, &parts.weights)?;
    let writer = Writer { model: Arc::new(loaded), head, tokenizer: parts.tokenizer, ends };
    Ok(Box::new(QwenVlGenerator { writer: Arc::new(writer), template: parts.template, patching, sampling }))
}

/// Qwen3-VL's bounds of videos hold for all frames together, and stand in a file of their own.
fn of_videos(patching: Patching, model: &ModelFiles, generation: Generation) -> Result<Patching, LoadError> {
    if generation != Generation::Three {
        return Ok(patching);
    }
    let file = match folder::video_preprocessor(model.folder(), &model.name().to_string()) {
        Err(LoadError::MissingFile { .. }) => return Ok(patching),
        file => parsed(model, VIDEO_PREPROCESSOR, &file?)?,
    };
    let rule = SizeRule { lift: Lift::After, ..file.bounds(patching.factor()) };
    Ok(Patching { frames: FrameSizes::Together(rule), ..patching })
}
