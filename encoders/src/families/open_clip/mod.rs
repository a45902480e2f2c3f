//! Loads a folder with a model in OpenCLIP's layout:
//!
//! ```text
//! open_clip_config.json         "model_cfg" and "preprocess_cfg"
//! tokenizer.json
//! tokenizer_config.json         "pad_token", for SigLIP
//! open_clip_model.safetensors   or open_clip_pytorch_model.bin
//! ```
//!
//! OpenCLIP's own vision towers are CLIP's; [`timm`] lists the supported towers of timm. Text towers are OpenCLIP's,
//! which read the largest id, or SigLIP's, which four settings mark ([`config`]). OpenCLIP finds a tokenizer by name;
//! here it must be in the folder, as in most repositories.
//!
//! `"timm_model_args": {"num_heads": 4}` in `vision_cfg` is not OpenCLIP's. It states the heads of a tower whose width
//! differs from the named model's.

mod config;
mod known;
mod timm;

use config::{Config, File};
use serde::Deserialize;
use serde_json::json;
use timm::Preset;

use crate::TrainedOn;
use crate::blocks::assembly::{Parts, assemble, check_side, spread, towers};
use crate::blocks::openai_names;
use crate::blocks::padding::{Padding, TOKENIZER_CONFIG};
use crate::blocks::text_transformer::Reading;
use crate::blocks::vision_transformer::Projection;
use crate::device::Placement;
use crate::families::family::{Family, KnownModel, Model, Verdict};
use crate::families::{clip, siglip};
use crate::hub::Repository;
use crate::loading::{FamilyId, Identity, LoadError, LoadOptions, ModelFiles, folder};
use crate::preprocess::Preprocessing;
use crate::text::clean::Cleaning;
use crate::text::{Specials, Tokenizer};

/// File name of OpenCLIP's configuration.
const CONFIG: &str = "open_clip_config.json";
/// File name of the weights without its ending.
const STEM: &str = "open_clip_model";

/// The models of one family in OpenCLIP's layout.
pub(crate) struct OpenClip {
    family: FamilyId,
    known: &'static [KnownModel],
}

/// OpenCLIP's own towers, which are CLIP's. Also refuses models with unsupported towers.
pub(crate) static CLIP: OpenClip = OpenClip { family: clip::ID, known: &[] };
/// OpenCLIP's text tower beside an EVA or EVA-02 vision tower.
pub(crate) static EVA_CLIP: OpenClip = OpenClip { family: timm::EVA_CLIP, known: known::EVA_CLIP };
/// The Perception Encoder's towers.
pub(crate) static PE_CORE: OpenClip = OpenClip { family: timm::PE_CORE, known: known::PE_CORE };
/// SigLIP's towers.
pub(crate) static SIGLIP: OpenClip = OpenClip { family: siglip::ID, known: &[] };

impl Family for OpenClip {
    fn name(&self) -> &'static str {
        self.family.name
    }

    fn version(&self) -> u32 {
        self.family.version
    }

    fn known(&self) -> &'static [KnownModel] {
        self.known
    }

    fn mark(&self) -> Option<&'static str> {
        Some(CONFIG)
    }

    /// Reads models without a config.json. The registry hides a config.json that no family reads.
    fn reads(&self, model: &ModelFiles) -> Verdict {
        let its = model.model_type().is_none() && model.has(CONFIG) && family_of(model) == self.family;
        if its { Verdict::Yes } else { Verdict::No }
    }

    fn download(&self, hub: &Repository) -> Result<(), LoadError> {
        hub.get_if_there(TOKENIZER_CONFIG)?;
        hub.get(folder::TOKENIZER)?;
        hub.get_weights(STEM)
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        let File { model_cfg: config, preprocess_cfg } = model.json(CONFIG)?;
        config.check()?;
        let preprocess = if preprocess_cfg.is_null() { json!({}) } else { preprocess_cfg };
        let preprocessing = Preprocessing::from_open_clip(&preprocess, config.vision_cfg.image_size as u32)
            .map_err(|why| model.bad(CONFIG, why))?;
        let json = tokenizer(model, &config)?;
        let mut identity = Identity::new(on);
        let weights = openai_names::text(identity.weights(model.folder(), STEM, model.name())?)?;
        identity.add(&json);
        let clip = config.clip()?;
        let (weights, vision) = match &config.vision_cfg.timm_model_name {
            None => (openai_names::vision(weights)?, clip.vision()?),
            Some(name) => {
                let weights = timm::renamed(weights)?;
                let tower = timm::Tower {
                    preset: Preset::named(name)?,
                    image: config.vision_cfg.image_size,
                    dim: config.embed_dim,
                    heads: config.vision_cfg.timm_model_args.map(|args| args.num_heads),
                };
                let vision = tower.config(&weights)?;
                (weights, vision)
            }
        };
        check_side(&preprocessing, &vision)?;
        let mut text = clip.text()?;
        let mut tokenizer =
            Tokenizer::from_json(&json, Specials::default(), text.longest)?.cleaned(Cleaning::FtfyHtml);
        let mut described = json!(config);
        if config.text_cfg.is_siglips() {
            let Padding { id: pad, side, .. } = Padding::of(model.folder(), &json, &tokenizer, None)?;
            described = json!({"model": config, "pad": pad, "side": side});
            text.reading = Reading::LastOfPadded { pad, side };
            text.projection = Projection::Biased;
            text.check()?;
            tokenizer = tokenizer.canonical()?;
        }
        let parts = Parts {
            family: self.family,
            identity,
            config: described,
            towers: towers(vision, text, &weights)?,
            tokenizer,
            foreign_token: None,
            preprocessing,
            trained_on: TrainedOn::Unstated,
            sampler: spread,
        };
        Ok(Model::Embedder(assemble(model.name(), parts, options)?))
    }
}

/// The part of the configuration that identifies the family.
#[derive(Deserialize)]
struct Outline {
    model_cfg: OutlineModel,
}

#[derive(Deserialize)]
struct OutlineModel {
    vision_cfg: OutlineVision,
}

#[derive(Deserialize)]
struct OutlineVision {
    timm_model_name: Option<String>,
}

/// The family of the vision tower; CLIP for anything unreadable, which [`Family::load`] then refuses.
fn family_of(model: &ModelFiles) -> FamilyId {
    let outline = model.json::<Outline>(CONFIG).ok();
    let name = outline.and_then(|outline| outline.model_cfg.vision_cfg.timm_model_name);
    let preset = name.and_then(|name| Preset::named(&name).ok());
    preset.map_or(clip::ID, |preset| preset.family)
}

/// The contents of tokenizer.json; the error for a missing file names a source.
fn tokenizer(model: &ModelFiles, config: &Config) -> Result<Vec<u8>, LoadError> {
    model.read(folder::TOKENIZER).map_err(|error| match error {
        LoadError::MissingFile { model, file } => {
            let from = config.text_cfg.hf_tokenizer_name.as_deref().unwrap_or("openai/clip-vit-base-patch32");
            LoadError::MissingFile { model, file: format!("{file}; copy that of {from} into the folder") }
        }
        other => other,
    })
}
