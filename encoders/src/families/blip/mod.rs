//! Loads a folder with a BLIP model, in the layout of transformers' `BlipForImageTextRetrieval`:
//!
//! ```text
//! config.json               "model_type": "blip"
//! preprocessor_config.json
//! tokenizer.json            BERT's
//! model.safetensors         or its parts, pytorch_model.bin, model.ckpt, ...
//! ```
//!
//! The weights may also have the released code's names; then `layer_norm_eps` of `vision_config` must be 1e-6.
//! BLIP-CoVR (arXiv 2308.14746) has the tensors of any BLIP whose text tower has cross-attention. A field of our own in
//! config.json marks it:
//!
//! ```text
//! "composed_queries": {"enc_token_id": 30523, "max_tokens": 64}
//! ```
//!
//! Its composed queries use the middle frame of the clip. Modification texts are cleaned and cut at `max_tokens` tokens
//! as in its code; 64 is its value and the default.

pub(crate) mod config;
mod known;

use config::Config;

use crate::TrainedOn;
use crate::blocks::assembly::{Parts, assemble, check_side, spread};
use crate::blocks::pictures::Pictures;
use crate::blocks::two_towers::TwoTowers;
use crate::blocks::vision_transformer::VisionTransformer;
use crate::device::Placement;
use crate::families::family::{Family, KnownModel, Model};
use crate::hub::Repository;
use crate::loading::{FamilyId, Identity, LoadError, LoadOptions, ModelFiles, PretrainedFiles};
use crate::preprocess::Preprocessing;
use crate::text::{Specials, Tokenizer};

/// The parts of a checkpoint that are read whole.
const READ_WHOLE: [&str; 4] = ["vision_model", "visual_projection", "text_encoder", "text_proj"];
/// Parts of names that may stay: cross-attention serves composed queries and matching, `cls` and `pooler` other heads.
const LEFT_OUT: [&str; 4] = ["position_ids", "crossattention", "cls", "pooler"];

/// BLIP's vision transformer and BERT.
pub(crate) const ID: FamilyId = FamilyId { name: "blip", version: 1 };

/// BLIP and BLIP-CoVR.
pub(crate) struct Blip;

impl Family for Blip {
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
        &["blip"]
    }

    fn tokenizer_source(&self) -> Option<&'static str> {
        Some("google-bert/bert-base-uncased")
    }

    fn download(&self, hub: &Repository) -> Result<(), LoadError> {
        hub.get_pretrained()
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        let files = PretrainedFiles::read(model, on)?;
        let config: Config = files.parsed()?;
        let preprocessing = Preprocessing::from_blip_json(&files.preprocessor)
            .map_err(|why| files.bad("preprocessor_config.json", why))?;
        let vision = config.vision()?;
        check_side(&preprocessing, &vision)?;
        config.check_released(&files.weights)?;
        let identity = Identity::of(&files);
        let weights = config::renamed(files.weights)?;
        let text = config.texts(&weights)?;
        let tokenizer = Tokenizer::from_json(&files.tokenizer, Specials::default(), text.longest())?;
        let tokenizer = match config.composed_queries {
            Some(composed) => tokenizer.cleaning_modifications(composed.max_tokens),
            None => tokenizer,
        };
        let vision = Pictures::Transformer(VisionTransformer::load(vision, &weights)?);
        weights.check_taken(&READ_WHOLE, &LEFT_OUT)?;
        let parts = Parts {
            family: ID,
            identity,
            config: serde_json::json!(config),
            towers: TwoTowers { vision, text },
            tokenizer,
            foreign_token: None,
            preprocessing,
            trained_on: TrainedOn::Unstated,
            sampler: spread,
        };
        Ok(Model::Embedder(assemble(model.name(), parts, options)?))
    }
}
