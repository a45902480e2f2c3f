//! Loads a folder with a sentence encoder in the layout of sentence-transformers:
//!
//! ```text
//! config.json                        "model_type": "bert", "roberta", "xlm-roberta" or "camembert"
//! tokenizer.json
//! model.safetensors                  or its parts, or pytorch_model.bin
//! modules.json                       the modules after the tower; without it, mean pooling
//! 1_Pooling/config.json              pooling_mode_mean_tokens or pooling_mode_cls_token
//! 2_Dense/config.json                in_features, out_features, activation_function Tanh or Identity
//! 2_Dense/model.safetensors
//! sentence_bert_config.json          max_seq_length
//! config_sentence_transformers.json  prompts: "query", and "passage" or "document"
//! ```
//!
//! E5 and BGE models mark queries and passages with prompts. If a folder states no prompts, the model's name decides.

mod encoder;
mod head;
mod known;
mod prompts;

use std::sync::Arc;

use encoder::{Sentence, SentenceEncoder};
use head::{Head, optional};
use prompts::{PROMPTS, Prompts, prompts};
use serde::Deserialize;
use serde_json::Value;

use crate::blocks::bert::{self, Bert};
use crate::device::Placement;
use crate::families::family::{Family, KnownModel, Model};
use crate::hub::Repository;
use crate::loading::{
    Embedder, FamilyId, Identity, LoadError, LoadOptions, ModelFiles, ModelName, SpaceName, folder,
};
use crate::sample::Sampler;
use crate::text::{Specials, Tokenizer};
use crate::{Abilities, Encoder, FrameSize, Space, TrainedOn};

/// BERT-type sentence encoders, used for subtitles.
const ID: FamilyId = FamilyId { name: "sentence", version: 1 };

/// Sentence encoders in the layout of sentence-transformers.
pub(crate) struct Sentences;

impl Family for Sentences {
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
        &["bert", "roberta", "xlm-roberta", "camembert"]
    }

    fn download(&self, hub: &Repository) -> Result<(), LoadError> {
        hub.get_if_there(LIMITS)?;
        hub.get_if_there(PROMPTS)?;
        head::download(hub)?;
        hub.get(folder::TOKENIZER)?;
        hub.get_weights(folder::STEM)
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        let mut config: Config = model.config()?;
        if let Some(kind) = config.position_embedding_type.as_deref().filter(|kind| *kind != "absolute") {
            return Err(LoadError::Unsupported(
                format!("positions of type {kind}; absolute ones are").into(),
            ));
        }
        if config.model_type != "bert" {
            // RoBERTa's positions start after the padding id.
            config.tower.position_offset = config.pad_token_id.unwrap_or(1) + 1;
        }
        let mut identity = Identity::new(on);
        let weights = identity.weights(model.folder(), folder::STEM, model.name())?;
        let tower = Bert::load(&config.tower, &weights)?;
        // The pooler was trained for the next sentence; sentence encoders pool by themselves.
        weights.check_taken(&["embeddings", "encoder"], &["position_ids", "pooler"])?;
        let head = Head::load(model, tower.width(), &mut identity)?;
        let limits: Limits = optional(model, LIMITS)?.unwrap_or_default();
        let longest = limits.max_seq_length.unwrap_or(tower.positions()).min(tower.positions());
        let prompts = prompts(model, config.name_or_path.as_deref())?;
        if !head.includes_prompt && prompts != Prompts::default() {
            return Err(LoadError::Unsupported("its pooling leaves the prompt's tokens out".into()));
        }
        let json = model.read(folder::TOKENIZER)?;
        identity.add(&json);
        let tokenizer = Tokenizer::from_json(&json, Specials::default(), longest)?;
        let tokenizer = tokenizer.with_prompts(&prompts.query, &prompts.passage)?;
        check_tokenizer(&tokenizer, &tower, &limits)?;
        let rest = serde_json::json!({
            "family": ID.name,
            "version": ID.version,
            "config": config.tower,
            "position_offset": config.tower.position_offset,
            "pooling": head.pooling,
            "steps": head.said,
            "longest": longest,
            "prompts": [prompts.query, prompts.passage],
        });
        let space = space(model.name(), &identity, &rest, head.dim, longest);
        let model = Arc::new(Sentence { tower, pooling: head.pooling, steps: head.steps, longest });
        let encoder = || SentenceEncoder::new(Arc::clone(&model), space.clone());
        let encoders = (0..options.replicas.max(1)).map(|_| Box::new(encoder()) as Box<dyn Encoder>);
        let encoders = encoders.collect();
        Ok(Model::Embedder(Embedder::new(space, Some(Arc::new(tokenizer)), encoders)))
    }
}

/// The file with the limit of text lengths.
const LIMITS: &str = "sentence_bert_config.json";

#[derive(Debug, Deserialize)]
struct Config {
    #[serde(default)]
    model_type: String,
    pad_token_id: Option<usize>,
    position_embedding_type: Option<String>,
    #[serde(rename = "_name_or_path")]
    name_or_path: Option<String>,
    #[serde(flatten)]
    tower: bert::Config,
}

#[derive(Debug, Default, Deserialize)]
struct Limits {
    max_seq_length: Option<usize>,
    do_lower_case: Option<bool>,
}

fn space(name: &ModelName, identity: &Identity, rest: &Value, dim: usize, longest: usize) -> Space {
    let SpaceName { id, readable } = identity.space(name, rest);
    Space {
        name: readable,
        id,
        model: name.to_string(),
        family: ID.name.to_owned(),
        dim,
        // Required fields; a space without frames decodes nothing.
        sampler: Sampler::Stride { frames: 1 },
        scaling: FrameSize::Exact { width: 1, height: 1 }.into(),
        max_text_tokens: longest,
        temporal: false,
        frame_stage: None,
        can: Abilities { text: true, frames: false, composed: false },
        composed_frames: None,
        trained_on: TrainedOn::Unstated,
        precision: identity.precision(),
    }
}

/// Refuses another model's tokenizer: it would silently give wrong vectors.
fn check_tokenizer(tokenizer: &Tokenizer, tower: &Bert, limits: &Limits) -> Result<(), LoadError> {
    let (ids, rows) = (tokenizer.id_bound(), tower.vocabulary());
    if ids > rows {
        let why = format!("tokenizer.json gives {ids} ids, the model has {rows} tokens");
        return Err(LoadError::Unsupported(why.into()));
    }
    let ids = |text| tokenizer.ids(text).map_err(|error| LoadError::Unsupported(error.into()));
    if limits.do_lower_case == Some(true) && ids("Turn")? != ids("turn")? {
        let why = format!("{LIMITS} asks for lower case, which tokenizer.json does not make");
        return Err(LoadError::Unsupported(why.into()));
    }
    Ok(())
}
