//! Loads a folder with a BLIP-2 model, in the layout of transformers' `Blip2ForImageTextRetrieval`:
//!
//! ```text
//! config.json               "model_type": "blip-2"
//! preprocessor_config.json
//! tokenizer.json            BERT's
//! model.safetensors         or its parts, pytorch_model.bin, ...
//! ```
//!
//! Models for captions or answers have no text vectors. They are refused by their `architectures`, or else because
//! tensors are missing.

mod config;
mod known;

use config::{Config, IMAGE_TOKEN};

use crate::TrainedOn;
use crate::blocks::assembly::{Parts, assemble, check_side, spread};
use crate::blocks::pictures::Pictures;
use crate::blocks::two_towers::TwoTowers;
use crate::device::Placement;
use crate::families::family::{Family, KnownModel, Model, Verdict};
use crate::hub::Repository;
use crate::loading::{FamilyId, Identity, LoadError, LoadOptions, ModelFiles, PretrainedFiles};
use crate::preprocess::Preprocessing;
use crate::text::{Specials, Tokenizer};

/// The class whose weights are read.
const ARCHITECTURE: &str = "Blip2ForImageTextRetrieval";

/// The parts of a checkpoint that are read whole; the language model and the matching head are not read.
const READ_WHOLE: [&str; 5] =
    ["vision_model", "vision_projection", "embeddings", "encoder", "text_projection"];
/// Parts of names that may stay.
const LEFT_OUT: [&str; 2] = ["position_ids", "cls"];

/// BLIP-2's vision transformer and Q-Former.
pub(crate) const ID: FamilyId = FamilyId { name: "blip-2", version: 1 };

/// BLIP-2.
pub(crate) struct Blip2;

impl Family for Blip2 {
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
        &["blip-2"]
    }

    /// Refuses other classes before it reads many gigabytes.
    fn reads(&self, model: &ModelFiles) -> Verdict {
        if model.model_type() != Some("blip-2") {
            return Verdict::No;
        }
        let named = model.architectures();
        match named.as_array() {
            Some(classes) if !classes.iter().any(|class| class == ARCHITECTURE) => {
                Verdict::Refused(format!("architectures {named}; of BLIP-2's {ARCHITECTURE} is"))
            }
            _ => Verdict::Yes,
        }
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
        check_side(&preprocessing, &config.vision()?)?;
        let identity = Identity::of(&files);
        let weights = config::renamed(files.weights)?;
        let (pictures, text) = config.towers(&weights)?;
        weights.check_taken(&READ_WHOLE, &LEFT_OUT)?;
        let tokenizer = Tokenizer::from_json(&files.tokenizer, Specials::default(), text.longest())?;
        let parts = Parts {
            family: ID,
            identity,
            config: serde_json::json!(config),
            towers: TwoTowers { vision: Pictures::QFormer(pictures), text },
            tokenizer,
            foreign_token: Some(IMAGE_TOKEN),
            preprocessing,
            trained_on: TrainedOn::Unstated,
            sampler: spread,
        };
        Ok(Model::Embedder(assemble(model.name(), parts, options)?))
    }
}
