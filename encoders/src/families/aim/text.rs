//! The text side of TF-CoVR's composed queries: CLIP's text tower, BERT, or the text path of BLIP-2's Q-Former. A
//! projection into the video's space and normalisation follow.

use candle_core::{Result, Tensor};
use serde::{Deserialize, Serialize};

use crate::LoadError;
use crate::blocks::bert::{self, Bert};
use crate::blocks::layers::divided_by_norm;
use crate::blocks::text_transformer::TextTransformer;
use crate::blocks::transformer::Linear;
use crate::families::clip::config::TextConfig;
use crate::loading::Weights;
use crate::text::Specials;
use crate::text::clean::Cleaning;

/// The text tower's config.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model_type", rename_all = "snake_case")]
pub(crate) enum Config {
    /// CLIP's configuration; only its text part is read.
    Clip {
        /// The fields of transformers' `CLIPConfig`.
        #[serde(default)]
        text_config: TextConfig,
    },
    /// BERT, or BLIP-2's Q-Former.
    #[serde(alias = "blip_2_qformer")]
    Bert(bert::Config),
}

/// Token limit of modification texts for BERT and the Q-Former in the paper's code.
const BERT_TOKENS: usize = 32;
/// Name of the projection in the released code.
const PROJECTION: &str = "text_proj";

/// A text tower and its projection.
#[derive(Debug)]
pub(crate) struct TextTower {
    words: Words,
    projection: Option<Linear>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of it a model")]
enum Words {
    Clip { specials: Specials, tower: TextTransformer },
    Bert(Bert),
}

impl TextTower {
    /// The cleaning of the tower's released tokenizer.
    pub(crate) fn cleaning(&self) -> Cleaning {
        match self.words {
            Words::Clip { .. } => Cleaning::FtfyHtml,
            Words::Bert(_) => Cleaning::None,
        }
    }

    /// Reads the text tower of `weights`, and a projection to `dim` values from `weights` or `head`.
    ///
    /// # Errors
    /// [`LoadError`], also if there is no projection and the tower's width differs from `dim`.
    pub(crate) fn load(
        config: &Config,
        dim: usize,
        weights: &Weights,
        head: &Weights,
    ) -> std::result::Result<Self, LoadError> {
        let (words, width) = Words::load(config, weights)?;
        let projection = [weights, head].into_iter().find_map(|weights| {
            let name = projection_name(weights)?;
            Some(Linear::load(weights, &name, width, dim))
        });
        let projection = projection.transpose()?;
        if projection.is_none() && width != dim {
            return Err(LoadError::MissingTensor { name: format!("{PROJECTION}.weight") });
        }
        Ok(TextTower { words, projection })
    }

    /// Size of the vocabulary.
    pub(crate) fn vocabulary(&self) -> usize {
        match &self.words {
            Words::Clip { tower, .. } => tower.config().vocabulary,
            Words::Bert(bert) => bert.vocabulary(),
        }
    }

    /// Token limit of the paper's code, specials included.
    pub(crate) fn longest(&self) -> usize {
        match &self.words {
            Words::Clip { .. } => self.positions(),
            Words::Bert(_) => self.positions().min(BERT_TOKENS),
        }
    }

    /// Longest text in tokens, specials included.
    pub(crate) fn positions(&self) -> usize {
        match &self.words {
            Words::Clip { tower, .. } => tower.config().longest,
            Words::Bert(bert) => bert.positions(),
        }
    }

    /// Whether the tower reads `ids` at the last position; always true for BERT, which reads the first.
    pub(crate) fn ends(&self, ids: &[u32]) -> bool {
        match &self.words {
            Words::Clip { tower, .. } => tower.config().reading.at(ids) + 1 == ids.len(),
            Words::Bert(_) => true,
        }
    }

    /// Special tokens for a tokenizer that adds none itself.
    pub(crate) fn specials(&self) -> Specials {
        match &self.words {
            Words::Clip { specials, .. } => *specials,
            Words::Bert(_) => Specials::default(),
        }
    }

    /// Encodes texts to (texts, dim) of norm 1. The ids must have passed `check_ids`.
    pub(crate) fn forward(&self, texts: &[&[u32]]) -> Result<Tensor> {
        let vectors = match &self.words {
            Words::Clip { tower, .. } => tower.forward(texts)?,
            Words::Bert(bert) => bert.forward(texts)?,
        };
        match &self.projection {
            Some(projection) => divided_by_norm(&projection.forward(&vectors)?),
            None => divided_by_norm(&vectors),
        }
    }
}

impl Words {
    /// The tower and its output size.
    fn load(config: &Config, weights: &Weights) -> std::result::Result<(Self, usize), LoadError> {
        match config {
            Config::Clip { text_config } => {
                let name = "text_projection.weight";
                let missing = || LoadError::MissingTensor { name: name.to_owned() };
                let dim = weights.shape(name).and_then(<[usize]>::first).copied().ok_or_else(missing)?;
                let tower = text_config.tower(dim);
                tower.check()?;
                let tower = TextTransformer::load(tower, weights)?;
                Ok((Words::Clip { specials: text_config.specials(), tower }, dim))
            }
            Config::Bert(config) => {
                let bert = Bert::load(config, weights)?;
                let width = bert.width();
                Ok((Words::Bert(bert), width))
            }
        }
    }
}

/// The name of the projection with its prefix, without `.weight`.
fn projection_name(weights: &Weights) -> Option<String> {
    let marker = format!("{PROJECTION}.weight");
    let name = weights.names().find(|name| name.ends_with(&marker))?;
    name.strip_suffix(".weight").map(str::to_owned)
}
