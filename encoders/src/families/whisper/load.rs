//! Loads a folder as a transcriber.

use candle_core::Tensor;
use serde_json::json;

use super::ID;
use super::attempt::Thresholds;
use super::config::{Config, Generation, Preprocessor};
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::mel::LogMel;
use super::rules::Rules;
use super::tokens::Tokens;
use super::transcriber::WhisperTranscriber;
use crate::device::Placement;
use crate::loading::{Identity, LoadError, ModelFiles, Weights, folder, memory};
use crate::transcriber::TranscriberDescription;

pub(super) const GENERATION: &str = "generation_config.json";
pub(super) const PREPROCESSOR: &str = "preprocessor_config.json";

/// # Errors
/// [`LoadError`].
pub(super) fn transcriber(model: &ModelFiles, on: &Placement) -> Result<WhisperTranscriber, LoadError> {
    let config: Config = model.config()?;
    config.check()?;
    let generation: Generation =
        if model.has(GENERATION) { model.json(GENERATION)? } else { Generation::default() };
    generation.check(&config).map_err(|why| model.bad(GENERATION, why))?;
    if model.has(PREPROCESSOR) {
        let preprocessor: Preprocessor = model.json(PREPROCESSOR)?;
        preprocessor.check(&config).map_err(|why| model.bad(PREPROCESSOR, why))?;
    }
    let json = model.read(folder::TOKENIZER)?;
    let tokens = Tokens::from_json(&json, &config, generation.is_multilingual(&config))?;
    let files = folder::weight_files(model.folder(), folder::STEM, &model.name().to_string())?;
    memory::check(&files, on)?;
    let mut identity = Identity::new(on);
    identity.add(&json);
    let weights = renamed(identity.weights_of(&files)?)?;
    let rest = json!({
        "family": ID.name,
        "version": ID.version,
        "config": config,
        "generation": generation,
    });
    let description = TranscriberDescription {
        model: model.name().to_string(),
        family: ID.name.to_owned(),
        id: identity.space(model.name(), &rest).id,
        precision: identity.precision().name().to_owned(),
        is_multilingual: !tokens.languages.is_empty(),
        languages: match tokens.languages.is_empty() {
            true => vec!["en".to_owned()],
            false => tokens.languages.iter().map(|it| it.code.clone()).collect(),
        },
        has_word_times: generation.alignment_heads.as_ref().is_some_and(|heads| !heads.is_empty()),
    };
    let rules = Rules {
        suppressed: generation.suppressed(&config),
        suppressed_first: generation.suppressed_first(&config),
        latest_first: generation.max_initial_timestamp_index,
    };
    let loaded = WhisperTranscriber {
        description,
        mel: LogMel::new(config.bands),
        encoder: Encoder::load(&weights, &config)?,
        decoder: Decoder::load(&weights, &config)?,
        alignment_heads: generation.alignment_heads.unwrap_or_default(),
        config,
        tokens,
        rules,
        thresholds: Thresholds::default(),
    };
    weights.check_taken(&["encoder", "decoder"], &[])?;
    Ok(loaded)
}

/// The tensors under the names of [`crate::blocks`]. Keys have no bias; the blocks add one, of zeros.
fn renamed(weights: Weights) -> Result<Weights, LoadError> {
    weights.changed(|name, tensor| {
        let name = name.strip_prefix("model.").unwrap_or(name);
        let name = name
            .replace(".self_attn_layer_norm.", ".layer_norm1.")
            .replace(".final_layer_norm.", ".layer_norm2.")
            .replace(".fc1.", ".mlp.fc1.")
            .replace(".fc2.", ".mlp.fc2.");
        let zeros = match name.strip_suffix("q_proj.bias") {
            Some(layer) => {
                let zeros = Tensor::zeros(tensor.shape(), tensor.dtype(), tensor.device())?;
                Some((format!("{layer}k_proj.bias"), zeros))
            }
            None => None,
        };
        Ok([(name, tensor)].into_iter().chain(zeros).collect())
    })
}
