//! The files of a sports model to encoders.

use std::sync::Arc;

use super::identity::Identity;
use super::{Files, LoadError, Loaded, ModelName};
use crate::models::Family;
use crate::models::sports::encoder::SportsEncoder;
use crate::models::sports::parameters::Learnt;
use crate::models::sports::{Config, Model, TimeModel};
use crate::preprocess::Preprocessing;
use crate::text::{Specials, Tokenizer};
use crate::video::sample::Sampler;
use crate::{Abilities, Encoder, FrameSize, Space};

/// # Errors
/// [`LoadError`] for files that do not belong together.
pub(super) fn load(name: &ModelName, files: &Files, replicas: usize) -> Result<Loaded, LoadError> {
    let bad = |file: &str, why: String| LoadError::BadFile { path: files.folder.join(file), why };
    let config: Config =
        serde_json::from_slice(&files.config).map_err(|error| bad("config.json", error.to_string()))?;
    config.check()?;
    let preprocessing =
        Preprocessing::from_json(&files.preprocessor).map_err(|why| bad("preprocessor_config.json", why))?;
    let side = config.image_size as u32;
    if preprocessing.crop != (side, side) || !matches!(preprocessing.size, FrameSize::Exact { .. }) {
        let why = format!("frames must be squashed to {side}x{side} pixels and not cropped");
        return Err(LoadError::Unsupported(why));
    }
    let tokenizer =
        Tokenizer::from_json(&files.tokenizer, Specials::default(), config.max_position_embeddings)?;
    if tokenizer.id_bound() > config.vocab_size {
        let (ids, rows) = (tokenizer.id_bound(), config.vocab_size);
        let why = format!("tokenizer.json gives {ids} ids, the model has {rows} tokens");
        return Err(LoadError::Unsupported(why));
    }
    let space = space(name, files, &config, &preprocessing);
    let device = files.weights.placement().device();
    let mut parameters = Learnt { weights: &files.weights };
    let model = Arc::new(Model::new(&mut parameters, &config)?);
    let encoder = || {
        let (config, space) = (config.clone(), space.clone());
        SportsEncoder::new(Arc::clone(&model), config, space, preprocessing.clone(), device.clone())
    };
    let encoders = (0..replicas).map(|_| Box::new(encoder()) as Box<dyn Encoder>).collect();
    Ok(Loaded::new(space, Some(Arc::new(tokenizer)), encoders))
}

fn space(name: &ModelName, files: &Files, config: &Config, preprocessing: &Preprocessing) -> Space {
    let family = Family::Sports;
    let sampler = Sampler::Spread { frames: config.frames };
    let rest = serde_json::json!({
        "family": family.name(),
        "version": family.version(),
        "config": config,
        "preprocessing": preprocessing,
        "sampler": sampler,
        "pooling": "temporal transformer",
    });
    let (id, readable) = Identity::of(files).id_and_name(name, &rest);
    Space {
        name: readable,
        id,
        model: name.to_string(),
        family: family.name().to_owned(),
        dim: config.dim,
        sampler,
        scaling: preprocessing.scaling(),
        max_text_tokens: config.max_position_embeddings,
        temporal: true,
        // A clip whose frames are put into the order of a hash of their pictures needs the pictures.
        frame_stage: (config.time != TimeModel::Shuffled).then_some(config.width),
        can: Abilities { text: true, frames: true, composed: true },
        composed_frames: None,
        trained_on: config.trained_on,
        precision: files.weights.placement().precision(),
    }
}
