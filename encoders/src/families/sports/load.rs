//! Loads a sports model from its files.

use std::sync::Arc;

use super::config::{Config, MODEL_TYPE, TimeModel};
use super::encoder::SportsEncoder;
use super::known;
use super::parameters::Learnt;
use super::parts::Parts;
use super::pretrained;
use crate::device::Placement;
use crate::families::family::{Family, KnownModel, Model, Verdict};
use crate::hub::Repository;
use crate::loading::{
    Embedder, FamilyId, Identity, LoadError, LoadOptions, ModelFiles, ModelName, PretrainedFiles, SpaceName,
};
use crate::preprocess::Preprocessing;
use crate::sample::Sampler;
use crate::text::{Specials, Tokenizer};
use crate::{Abilities, Cause, Encoder, FrameSize, Space};

const ID: FamilyId = FamilyId { name: "sports", version: 1 };

/// The program's own small family: clips, texts and composed queries.
pub(crate) struct Sports;

impl Family for Sports {
    fn name(&self) -> &'static str {
        ID.name
    }

    fn version(&self) -> u32 {
        ID.version
    }

    fn known(&self) -> &'static [KnownModel] {
        known::KNOWN
    }

    fn model_types(&self) -> &'static [&'static str] {
        &[MODEL_TYPE]
    }

    fn reads(&self, model: &ModelFiles) -> Verdict {
        let its = model.built_in() == Some("sports") || model.model_type() == Some(MODEL_TYPE);
        if its { Verdict::Yes } else { Verdict::No }
    }

    fn download(&self, hub: &Repository) -> Result<(), LoadError> {
        hub.get_pretrained()
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        // The layers are small and shared with training, so they support f32 only.
        let on = &on.in_f32();
        let files = match model.built_in() {
            Some(_) => pretrained::files(on)?,
            None => PretrainedFiles::read(model, on)?,
        };
        load(model.name(), &files, options)
    }
}

fn load(name: &ModelName, files: &PretrainedFiles, options: &LoadOptions) -> Result<Model, LoadError> {
    let bad = |file: &str, why: Cause| LoadError::BadFile { path: files.folder.join(file), why };
    let config: Config =
        serde_json::from_slice(&files.config).map_err(|error| bad("config.json", error.into()))?;
    config.check()?;
    let preprocessing =
        Preprocessing::from_json(&files.preprocessor).map_err(|why| bad("preprocessor_config.json", why))?;
    let side = config.image_size as u32;
    if preprocessing.crop != (side, side) || !matches!(preprocessing.size, FrameSize::Exact { .. }) {
        let why = format!("frames must be squashed to {side}x{side} pixels and not cropped");
        return Err(LoadError::Unsupported(why.into()));
    }
    let tokenizer =
        Tokenizer::from_json(&files.tokenizer, Specials::default(), config.max_position_embeddings)?;
    if tokenizer.id_bound() > config.vocab_size {
        let (ids, rows) = (tokenizer.id_bound(), config.vocab_size);
        let why = format!("tokenizer.json gives {ids} ids, the model has {rows} tokens");
        return Err(LoadError::Unsupported(why.into()));
    }
    let space = space(name, files, &config, &preprocessing);
    let device = files.weights.placement().device();
    let mut parameters = Learnt { weights: &files.weights };
    let model = Arc::new(Parts::new(&mut parameters, &config)?);
    files.weights.check_taken(&[""], &[])?;
    let encoder = || {
        let (config, space) = (config.clone(), space.clone());
        SportsEncoder::new(Arc::clone(&model), config, space, preprocessing.clone(), device.clone())
    };
    let encoders = (0..options.replicas.max(1)).map(|_| Box::new(encoder()) as Box<dyn Encoder>).collect();
    Ok(Model::Embedder(Embedder::new(space, Some(Arc::new(tokenizer)), encoders)))
}

fn space(name: &ModelName, files: &PretrainedFiles, config: &Config, preprocessing: &Preprocessing) -> Space {
    let sampler = Sampler::Spread { frames: config.frames };
    let rest = serde_json::json!({
        "family": ID.name,
        "version": ID.version,
        "config": config,
        "preprocessing": preprocessing,
        "sampler": sampler,
        "pooling": "temporal transformer",
    });
    let SpaceName { id, readable } = Identity::of(files).space(name, &rest);
    Space {
        name: readable,
        id,
        model: name.to_string(),
        family: ID.name.to_owned(),
        dim: config.dim,
        sampler,
        scaling: preprocessing.scaling(),
        max_text_tokens: config.max_position_embeddings,
        temporal: true,
        // Shuffled clips are ordered by their frames' pixels, so stored features do not suffice.
        frame_stage: (config.time != TimeModel::Shuffled).then_some(config.width),
        can: Abilities { text: true, frames: true, composed: true },
        composed_frames: None,
        trained_on: config.trained_on,
        precision: files.weights.placement().precision(),
    }
}
