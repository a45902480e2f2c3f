//! Loads a folder with a SigLIP or SigLIP 2 model with a fixed resolution, in Hugging Face's layout:
//!
//! ```text
//! config.json               "model_type": "siglip"
//! preprocessor_config.json
//! tokenizer.json
//! tokenizer_config.json     "pad_token", "do_lower_case"
//! model.safetensors         or its parts, pytorch_model.bin, ...
//! ```
//!
//! The tokenizer's files define the padding ([`Padding`]), otherwise config.json's `pad_token_id`. Texts become lower
//! case if `do_lower_case` is set: both models were trained on lower case.

mod config;
mod known;

use config::Config;
use serde_json::json;

use crate::TrainedOn;
use crate::blocks::assembly::{Parts, assemble, check_side, spread, towers};
use crate::blocks::padding::{Padding, TOKENIZER_CONFIG};
use crate::device::Placement;
use crate::families::family::{Family, KnownModel, Model, Verdict};
use crate::hub::Repository;
use crate::loading::{FamilyId, Identity, LoadError, LoadOptions, ModelFiles, PretrainedFiles};
use crate::preprocess::Preprocessing;
use crate::text::{Specials, Tokenizer};

/// Image and text towers trained with a sigmoid loss per pair.
pub(crate) const ID: FamilyId = FamilyId { name: "siglip", version: 1 };

/// SigLIP in Hugging Face's layout.
pub(crate) struct Siglip;

impl Family for Siglip {
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
        &["siglip"]
    }

    fn reads(&self, model: &ModelFiles) -> Verdict {
        match model.model_type() {
            Some("siglip") => Verdict::Yes,
            Some("siglip2") => Verdict::Refused(
                "model_type siglip2 (NaFlex, which keeps the shape of pictures); SigLIP 2 of a fixed resolution is"
                    .to_owned(),
            ),
            _ => Verdict::No,
        }
    }

    fn download(&self, hub: &Repository) -> Result<(), LoadError> {
        hub.get_if_there(TOKENIZER_CONFIG)?;
        hub.get_pretrained()
    }

    fn load(&self, model: &ModelFiles, on: &Placement, options: &LoadOptions) -> Result<Model, LoadError> {
        let files = PretrainedFiles::read(model, on)?;
        let config: Config = files.parsed()?;
        let preprocessing = Preprocessing::from_siglip_json(&files.preprocessor)
            .map_err(|why| files.bad("preprocessor_config.json", why))?;
        let vision = config.vision()?;
        check_side(&preprocessing, &vision)?;
        let longest = config.text_config.max_position_embeddings;
        let tokenizer = Tokenizer::from_json(&files.tokenizer, Specials::default(), longest)?;
        let stated = config.text_config.pad_token_id;
        let Padding { id: pad, side, lower_case } =
            Padding::of(&files.folder, &files.tokenizer, &tokenizer, stated)?;
        let tokenizer = if lower_case { tokenizer.lower_case()? } else { tokenizer };
        let (text, identity) = (config.text(pad, side)?, Identity::of(&files));
        let parts = Parts {
            family: ID,
            identity,
            config: json!({"model": config, "pad": pad, "side": side, "lower_case": lower_case}),
            towers: towers(vision, text, &config::renamed(files.weights)?)?,
            tokenizer,
            foreign_token: None,
            preprocessing,
            trained_on: TrainedOn::Unstated,
            sampler: spread,
        };
        Ok(Model::Embedder(assemble(model.name(), parts, options)?))
    }
}
