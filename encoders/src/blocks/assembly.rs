//! Builds an embedder from two towers, a tokenizer and a preprocessing: shared by all two-tower families.

use std::sync::Arc;

use serde_json::Value;

use super::pictures::Pictures;
use super::text_transformer::{self, TextTransformer};
use super::two_towers::{Texts, TwoTowers, TwoTowersEncoder};
use super::vision_transformer::{self, VisionTransformer};
use crate::loading::{
    Embedder, FamilyId, Identity, LoadError, LoadOptions, ModelName, SpaceName, Weights, add_cleaning,
};
use crate::preprocess::{Preprocessing, Resampling};
use crate::sample::Sampler;
use crate::text::Tokenizer;
use crate::{Abilities, Encoder, Space, TrainedOn};

/// The parts that a family reads from a model's files.
pub(crate) struct Parts {
    pub(crate) family: FamilyId,
    /// The weights and files that enter the space's id.
    pub(crate) identity: Identity,
    /// The configuration values that enter the space's id.
    pub(crate) config: Value,
    pub(crate) towers: TwoTowers,
    pub(crate) tokenizer: Tokenizer,
    /// A special token of the tokenizer that never occurs in a text and has no row in the text tower's embedding.
    pub(crate) foreign_token: Option<&'static str>,
    pub(crate) preprocessing: Preprocessing,
    pub(crate) trained_on: TrainedOn,
    /// How a tower of several frames samples that many from a clip.
    pub(crate) sampler: fn(usize) -> Sampler,
}

/// Frames evenly over the clip: the default sampler of a family without one in its released code.
pub(crate) fn spread(frames: usize) -> Sampler {
    Sampler::Spread { frames }
}

/// Builds an embedder with `options.replicas` encoders, at least one.
///
/// # Errors
/// [`LoadError::Unsupported`] if the towers' dimensions or the tokenizer do not fit.
pub(crate) fn assemble(name: &ModelName, parts: Parts, options: &LoadOptions) -> Result<Embedder, LoadError> {
    check_dimensions(&parts.towers)?;
    check_tokenizer(&parts)?;
    let space = space(name, &parts, sampler(options, &parts));
    let Parts { towers, tokenizer, preprocessing, .. } = parts;
    let towers = Arc::new(towers);
    let encoder = || TwoTowersEncoder::new(Arc::clone(&towers), space.clone(), preprocessing.clone());
    let replicas = 0..options.replicas.max(1);
    let encoders = replicas.map(|_| Box::new(encoder()) as Box<dyn Encoder>).collect();
    Ok(Embedder::new(space, Some(Arc::new(tokenizer)), encoders))
}

/// The parts of a checkpoint that are read whole.
const TOWERS: [&str; 4] = ["vision_model", "text_model", "visual_projection", "text_projection"];
/// Parts of names that may stay: numbers from 0 on, and the temperature and bias of the training's loss.
const LEFT_OUT: [&str; 4] = ["position_ids", "logit_scale", "logit_bias", "temp"];

/// A vision tower and a CLIP text tower, both with the tensor names of Hugging Face's CLIP.
///
/// # Errors
/// [`LoadError`] for missing tensors or wrong shapes.
pub(crate) fn towers(
    vision: vision_transformer::Config,
    text: text_transformer::Config,
    weights: &Weights,
) -> Result<TwoTowers, LoadError> {
    let towers = TwoTowers {
        vision: Pictures::Transformer(VisionTransformer::load(vision, weights)?),
        text: Texts::Transformer(TextTransformer::load(text, weights)?),
    };
    weights.check_taken(&TOWERS, &LEFT_OUT)?;
    Ok(towers)
}

/// # Errors
/// [`LoadError::Unsupported`] if the preprocessing's crop differs from the tower's image size.
pub(crate) fn check_side(
    preprocessing: &Preprocessing,
    vision: &vision_transformer::Config,
) -> Result<(), LoadError> {
    let side = vision.sides.image as u64;
    let (width, height) = preprocessing.crop;
    if (u64::from(width), u64::from(height)) != (side, side) {
        return Err(LoadError::Unsupported(
            format!("the preprocessor makes pictures of {width}x{height}, the model takes {side}x{side}")
                .into(),
        ));
    }
    Ok(())
}

fn check_dimensions(towers: &TwoTowers) -> Result<(), LoadError> {
    let (pictures, texts) = (towers.vision.dim(), towers.text.dim());
    if pictures != texts {
        let why = format!("vectors of pictures have {pictures} values, those of texts {texts}");
        return Err(LoadError::Unsupported(why.into()));
    }
    Ok(())
}

/// Refuses another model's tokenizer: it would silently give wrong vectors.
fn check_tokenizer(parts: &Parts) -> Result<(), LoadError> {
    let (tokenizer, text) = (&parts.tokenizer, &parts.towers.text);
    let ids = match parts.foreign_token {
        Some(token) => tokenizer.id_bound_without(token),
        None => tokenizer.id_bound(),
    };
    let rows = text.vocabulary();
    if ids > rows {
        return Err(LoadError::Unsupported(
            format!("tokenizer.json gives {ids} ids, the model has {rows} tokens").into(),
        ));
    }
    if matches!(text, Texts::Bert { .. }) && !tokenizer.encloses() {
        let why = "tokenizer.json puts no special tokens before and after a text, as BERT's [CLS] and [SEP]";
        return Err(LoadError::Unsupported(why.into()));
    }
    let ids = tokenizer.ids("a").map_err(|error| LoadError::Unsupported(error.into()))?;
    if !text.ends(&ids) {
        let last = ids.last().copied().unwrap_or_default();
        let why =
            format!("tokenizer.json ends texts with id {last}, which config.json does not take for the end");
        return Err(LoadError::Unsupported(why.into()));
    }
    Ok(())
}

/// A tower with a fixed number of frames gets that number. Others average frames, two a second by default.
fn sampler(options: &LoadOptions, parts: &Parts) -> Sampler {
    if let Some(frames) = parts.towers.vision.frames() {
        return (parts.sampler)(frames);
    }
    Sampler::PerSecond { rate: options.frames_per_second.unwrap_or(2.0).clamp(0.01, 240.0), at_most: 64 }
}

fn space(name: &ModelName, parts: &Parts, sampler: Sampler) -> Space {
    let Parts { family, identity, config, towers, tokenizer, preprocessing, .. } = parts;
    let composed_frames = towers.composed_frames();
    let (dim, temporal) = (towers.vision.dim(), towers.vision.frames().is_some());
    // Spaces with another filter than bicubic have a new id: earlier versions always scaled bicubically.
    let scaled = (preprocessing.resampling != Resampling::Bicubic).then_some("by the model's filter");
    let mut rest = serde_json::json!({
        "family": family.name,
        "version": family.version,
        "config": config,
        "preprocessing": preprocessing,
        "sampler": sampler,
        "pooling": towers.vision.pooling(),
    });
    if let (Some(scaled), Some(all)) = (scaled, rest.as_object_mut()) {
        all.insert("frames".to_owned(), scaled.into());
    }
    add_cleaning(&mut rest, tokenizer.cleaning());
    let SpaceName { id, readable } = identity.space(name, &rest);
    Space {
        name: readable,
        id,
        model: name.to_string(),
        family: family.name.to_owned(),
        dim,
        sampler,
        scaling: preprocessing.scaling(),
        max_text_tokens: towers.text.longest(),
        temporal,
        frame_stage: (!temporal).then_some(dim),
        can: Abilities { text: true, frames: true, composed: composed_frames.is_some() },
        composed_frames,
        trained_on: parts.trained_on,
        precision: identity.precision(),
    }
}
