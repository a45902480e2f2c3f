//! Loads a folder with VideoCLIP-XL. Link or rename the checkpoint; the configuration is ours, because the model has
//! none:
//!
//! ```text
//! config.json         {"model_type": "videoclip-xl"}
//! tokenizer.json      CLIP's
//! pytorch_model.bin   VideoCLIP-XL.bin or VideoCLIP-XL-v2.bin; or model.safetensors, model.pt, ...
//! ```
//!
//! The tensors' shapes give the sizes; heads have 64 values and the activation is quick_gelu. Frames are resized to
//! the model's square (bilinear) as in the released code, but antialiased. Frames are the released code's: each
//! (count / frames)-th from the first.

mod config;
mod known;

use serde_json::json;

use crate::blocks::assembly::{Parts, assemble, towers};
use crate::device::Placement;
use crate::families::family::{Family, KnownModel, Model};
use crate::families::openai::sizes;
use crate::hub::Repository;
use crate::loading::{CONFIG, FamilyId, Identity, LoadError, LoadOptions, ModelFiles, folder};
use crate::preprocess::Preprocessing;
use crate::sample::Sampler;
use crate::text::Tokenizer;
use crate::text::clean::Cleaning;
use crate::{Cause, TrainedOn};

/// VideoCLIP-XL's video and text towers.
pub(crate) const ID: FamilyId = FamilyId { name: "videoclip-xl", version: 1 };

/// VideoCLIP-XL.
pub(crate) struct VideoClipXl;

impl Family for VideoClipXl {
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
        &["videoclip-xl"]
    }

    fn download(&self, hub: &Repository) -> Result<(), LoadError> {
        hub.get(folder::TOKENIZER)?;
        hub.get_weights(folder::STEM)
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        let mut identity = Identity::new(on);
        let weights = config::renamed(identity.weights(model.folder(), folder::STEM, model.name())?)?;
        let json = model.read(folder::TOKENIZER)?;
        identity.add(&json);
        let clip = sizes::config(&weights)?;
        let (vision, text) = (config::vision(&clip, &weights)?, clip.text()?);
        let tokenizer = Tokenizer::from_json(&json, clip.text_config.specials(), text.longest)?
            .cleaned(Cleaning::FtfyHtml);
        let preprocessing = preprocessing(vision.sides.image).map_err(|why| model.bad(CONFIG, why))?;
        let parts = Parts {
            family: ID,
            identity,
            config: json!(clip),
            towers: towers(vision, text, &weights)?,
            tokenizer,
            foreign_token: None,
            preprocessing,
            trained_on: TrainedOn::Unstated,
            sampler: |frames| Sampler::Steps { frames },
        };
        Ok(Model::Embedder(assemble(model.name(), parts, options)?))
    }
}

/// With ImageNet's mean and deviation.
fn preprocessing(side: usize) -> Result<Preprocessing, Cause> {
    let preprocessor = json!({
        "size": {"height": side, "width": side},
        "do_center_crop": false,
        "resample": 2,
        "image_mean": [0.485, 0.456, 0.406],
        "image_std": [0.229, 0.224, 0.225],
    });
    Preprocessing::from_json(preprocessor.to_string().as_bytes())
}
