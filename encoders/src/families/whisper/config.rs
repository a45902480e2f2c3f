//! A model's shape, from config.json, and how it writes, from generation_config.json.

use serde::{Deserialize, Serialize};

use super::mel::HOP;
use crate::LoadError;
use crate::blocks::layers::Activation;
use crate::blocks::transformer::{Extras, Shape};
use crate::transcriber::SAMPLE_RATE;

/// Epsilon of every layer norm.
const EPSILON: f32 = 1e-5;
/// Vocabularies with fewer tokens know English only.
const MULTILINGUAL: usize = 51_865;

/// The model's shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Config {
    #[serde(rename = "d_model")]
    pub(super) width: usize,
    #[serde(rename = "num_mel_bins", default = "default_bands")]
    pub(super) bands: usize,
    #[serde(rename = "vocab_size")]
    pub(super) vocabulary: usize,
    /// Positions of the encoder: half as many as frames of a window.
    #[serde(rename = "max_source_positions")]
    pub(super) positions: usize,
    /// Most tokens of a prompt and its text.
    #[serde(rename = "max_target_positions")]
    pub(super) longest: usize,
    encoder_layers: usize,
    encoder_attention_heads: usize,
    encoder_ffn_dim: usize,
    decoder_layers: usize,
    decoder_attention_heads: usize,
    decoder_ffn_dim: usize,
    #[serde(default = "default_activation")]
    activation_function: String,
    #[serde(default)]
    scale_embedding: bool,
    /// Width of the median filter of word times, odd.
    #[serde(rename = "median_filter_width", default = "default_median")]
    pub(super) median: usize,
    /// Older folders have these here.
    #[serde(default)]
    suppress_tokens: Option<Vec<i64>>,
    #[serde(default)]
    begin_suppress_tokens: Option<Vec<i64>>,
}

fn default_bands() -> usize {
    80
}

fn default_activation() -> String {
    "gelu".into()
}

fn default_median() -> usize {
    7
}

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] for dimensions that no such model has.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let unsupported = |why: String| Err(LoadError::Unsupported(why.into()));
        self.encoder().check()?;
        self.decoder().check()?;
        if self.activation_function != "gelu" {
            return unsupported(format!("activation_function {:?}; gelu is known", self.activation_function));
        }
        if self.scale_embedding {
            return unsupported("scale_embedding".into());
        }
        let limits = [
            ("d_model", self.width, 1..=16_384),
            ("encoder_layers", self.encoder_layers, 1..=1_000),
            ("decoder_layers", self.decoder_layers, 1..=1_000),
            ("num_mel_bins", self.bands, 1..=512),
            ("vocab_size", self.vocabulary, 1..=1_000_000),
            ("max_source_positions", self.positions, 50..=15_000),
            ("max_target_positions", self.longest, 16..=10_000),
            ("median_filter_width", self.median, 1..=99),
        ];
        for (name, value, range) in limits {
            if !range.contains(&value) {
                let (least, most) = range.into_inner();
                return unsupported(format!("{name} is {value}, not {least} to {most}"));
            }
        }
        Ok(())
    }

    pub(super) fn encoder(&self) -> Shape {
        Shape {
            width: self.width,
            inner: self.encoder_ffn_dim,
            layers: self.encoder_layers,
            heads: self.encoder_attention_heads,
            activation: Activation::Gelu,
            epsilon: EPSILON,
            extras: Extras::default(),
        }
    }

    pub(super) fn decoder(&self) -> Shape {
        Shape {
            inner: self.decoder_ffn_dim,
            layers: self.decoder_layers,
            heads: self.decoder_attention_heads,
            ..self.encoder()
        }
    }

    /// Frames of a window's spectrogram.
    pub(super) fn frames(&self) -> usize {
        2 * self.positions
    }

    /// Samples of a window.
    pub(super) fn samples(&self) -> usize {
        self.frames() * HOP
    }
}

/// How a model writes. What is left out has the reference's defaults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Generation {
    suppress_tokens: Option<Vec<i64>>,
    begin_suppress_tokens: Option<Vec<i64>>,
    is_multilingual: Option<bool>,
    /// Layer and head pairs whose cross-attention follows the words.
    pub(super) alignment_heads: Option<Vec<[usize; 2]>>,
    /// Latest first timestamp, in steps of 20 ms.
    pub(super) max_initial_timestamp_index: Option<usize>,
}

impl Generation {
    /// Tokens that are never written.
    pub(super) fn suppressed(&self, config: &Config) -> Vec<u32> {
        ids(self.suppress_tokens.as_ref().or(config.suppress_tokens.as_ref()))
    }

    /// Tokens that are not written first.
    pub(super) fn suppressed_first(&self, config: &Config) -> Vec<u32> {
        ids(self.begin_suppress_tokens.as_ref().or(config.begin_suppress_tokens.as_ref()))
    }

    pub(super) fn is_multilingual(&self, config: &Config) -> bool {
        self.is_multilingual.unwrap_or(config.vocabulary >= MULTILINGUAL)
    }

    /// # Errors
    /// The fault, in plain words.
    pub(super) fn check(&self, config: &Config) -> Result<(), String> {
        let decoder = config.decoder();
        let heads = self.alignment_heads.iter().flatten();
        match heads.clone().find(|[layer, head]| *layer >= decoder.layers || *head >= decoder.heads) {
            Some([layer, head]) => Err(format!("alignment_heads names layer {layer}, head {head}")),
            None if heads.count() > decoder.layers * decoder.heads => {
                Err("alignment_heads names a head twice".into())
            }
            None => Ok(()),
        }
    }
}

/// Negative ids stand for nothing.
fn ids(given: Option<&Vec<i64>>) -> Vec<u32> {
    given.into_iter().flatten().filter_map(|id| u32::try_from(*id).ok()).collect()
}

/// What preprocessor_config.json says about sound.
#[derive(Debug, Deserialize)]
#[serde(default)]
pub(super) struct Preprocessor {
    chunk_length: usize,
    feature_size: usize,
    hop_length: usize,
    n_fft: usize,
    sampling_rate: usize,
}

impl Default for Preprocessor {
    fn default() -> Self {
        Preprocessor {
            chunk_length: 30,
            feature_size: 80,
            hop_length: HOP,
            n_fft: 400,
            sampling_rate: SAMPLE_RATE,
        }
    }
}

impl Preprocessor {
    /// # Errors
    /// The fault, in plain words, if the spectrogram is not the one that the model was trained on.
    pub(super) fn check(&self, config: &Config) -> Result<(), String> {
        let expected = [
            ("sampling_rate", self.sampling_rate, SAMPLE_RATE),
            ("n_fft", self.n_fft, 400),
            ("hop_length", self.hop_length, HOP),
            ("feature_size", self.feature_size, config.bands),
            ("chunk_length", self.chunk_length, config.samples() / SAMPLE_RATE),
        ];
        match expected.into_iter().find(|(_, found, expected)| found != expected) {
            Some((name, found, expected)) => Err(format!("{name} is {found}, not {expected}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A config.json of few fields, as the older folders have it.
    fn config() -> Value {
        json!({
            "d_model": 16, "vocab_size": 100, "max_source_positions": 50, "max_target_positions": 16,
            "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 32,
            "decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 32,
            "suppress_tokens": [1, 2], "begin_suppress_tokens": [3, -1],
        })
    }

    /// `expected`: the ids of `suppress_tokens`, and those of `begin_suppress_tokens`.
    #[track_caller]
    fn check(generation: Value, expected: (&[u32], &[u32])) {
        let config: Config = serde_json::from_value(config()).unwrap();
        let generation: Generation = serde_json::from_value(generation).unwrap();
        assert_eq!((&*generation.suppressed(&config), &*generation.suppressed_first(&config)), expected);
    }

    #[test]
    fn generation_config_goes_before_config() {
        check(json!({}), (&[1, 2], &[3]));
        check(json!({"suppress_tokens": [], "begin_suppress_tokens": [7, 8]}), (&[], &[7, 8]));
        check(json!({"suppress_tokens": null}), (&[1, 2], &[3]));
    }

    #[test]
    fn what_config_leaves_out_is_as_the_reference_has_it() {
        let config: Config = serde_json::from_value(config()).unwrap();
        config.check().unwrap();
        assert_eq!((config.bands, config.median, config.frames()), (80, 7, 100));
    }
}
