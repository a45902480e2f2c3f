//! Loads a folder with LanguageBind's video model:
//!
//! ```text
//! config.json         "model_type": "LanguageBindVideo"
//! tokenizer.json      CLIP's
//! model.safetensors   or its parts, pytorch_model.bin, ...
//! ```
//!
//! Preprocessing is the released code's: the short side is resized to the model's (bilinear), then the centre cropped.
//! Frames are the released code's too: the first and last of a clip, and equally spaced ones between.

mod config;
mod known;

use config::Config;
use serde_json::json;

use crate::TrainedOn;
use crate::blocks::assembly::{Parts, assemble, check_side, towers};
use crate::device::Placement;
use crate::families::clip::config as clip;
use crate::families::family::{Family, KnownModel, Model};
use crate::hub::Repository;
use crate::loading::{CONFIG, FamilyId, Identity, LoadError, LoadOptions, ModelFiles, folder};
use crate::preprocess::Preprocessing;
use crate::sample::Sampler;
use crate::text::Tokenizer;
use crate::text::clean::Cleaning;

/// LanguageBind's video and text towers.
pub(crate) const ID: FamilyId = FamilyId { name: "languagebind", version: 1 };

/// LanguageBind's video model.
pub(crate) struct LanguageBind;

impl Family for LanguageBind {
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
        &["LanguageBindVideo"]
    }

    fn download(&self, hub: &Repository) -> Result<(), LoadError> {
        hub.get(folder::TOKENIZER)?;
        hub.get_weights(folder::STEM)
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        let clip: clip::Config = model.config()?;
        let video: Config = model.config()?;
        let (vision, text) = (video.vision(&clip)?, clip.text()?);
        let side = vision.sides.image;
        let preprocessor = json!({"size": side, "crop_size": side, "resample": 2}).to_string();
        let preprocessing =
            Preprocessing::from_json(preprocessor.as_bytes()).map_err(|why| model.bad(CONFIG, why))?;
        check_side(&preprocessing, &vision)?;
        let mut identity = Identity::new(on);
        let weights = identity.weights(model.folder(), folder::STEM, model.name())?;
        let json = model.read(folder::TOKENIZER)?;
        identity.add(&json);
        let parts = Parts {
            family: ID,
            identity,
            config: json!({"clip": clip, "video": video}),
            tokenizer: Tokenizer::from_json(&json, clip.text_config.specials(), text.longest)?
                .cleaned(Cleaning::Ftfy),
            foreign_token: None,
            towers: towers(vision, text, &weights)?,
            preprocessing,
            trained_on: TrainedOn::Unstated,
            sampler: |frames| Sampler::Ends { frames },
        };
        Ok(Model::Embedder(assemble(model.name(), parts, options)?))
    }
}
