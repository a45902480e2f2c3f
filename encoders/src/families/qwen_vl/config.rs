//! config.json of Qwen2-VL, Qwen2.5-VL and Qwen3-VL, in both layouts: as published (decoder fields at the top in 2 and
//! 2.5, `rope_scaling`) and as transformers 5 saves it (`text_config`, `rope_parameters`). Fields that published files
//! leave out have the defaults of transformers' classes.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blocks::layers::Activation;
use crate::{Cause, LoadError};

/// What differs between the three models beside sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Generation {
    Two,
    TwoFive,
    Three,
}

impl Generation {
    /// By `model_type`.
    pub(crate) fn of(model_type: &str) -> Option<Generation> {
        match model_type {
            "qwen2_vl" => Some(Generation::Two),
            "qwen2_5_vl" => Some(Generation::TwoFive),
            "qwen3_vl" => Some(Generation::Three),
            _ => None,
        }
    }
}

/// Sizes and settings of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Config {
    pub(crate) generation: Generation,
    pub(crate) vision: VisionConfig,
    pub(crate) text: TextConfig,
    pub(crate) ids: VisualIds,
    /// Whether the head's weights are those of the embedding; `None`: if there are no others.
    pub(crate) tied: Option<bool>,
    /// Ids that end a generated text, by config.json.
    pub(crate) ends: Vec<u32>,
}

/// The ids of tokens that stand for pictures and videos.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct VisualIds {
    pub(crate) picture: u32,
    pub(crate) video: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The vision tower.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct VisionConfig {
    pub(crate) depth: usize,
    pub(crate) width: usize,
    pub(crate) heads: usize,
    /// Width of the MLP's middle.
    pub(crate) middle: usize,
    pub(crate) activation: Activation,
    /// Pixels of a patch's side.
    pub(crate) patch: usize,
    /// Patches of a merged token's side.
    pub(crate) merge: usize,
    /// Width of the decoder.
    pub(crate) output: usize,
    /// Qwen2.5-VL: the side of a window in merged tokens, and the layers that attend beyond it.
    pub(crate) windows: Option<WindowConfig>,
    /// Qwen3-VL: rows of the square grid of learned positions.
    pub(crate) positions: Option<usize>,
    /// Qwen3-VL: the layers after which DeepStack takes features.
    pub(crate) deepstack: Vec<usize>,
    /// Qwen2.5-VL: time positions a second.
    pub(crate) tokens_per_second: f32,
}

impl VisionConfig {
    /// Values of one patch of two frames.
    pub(crate) fn patch_values(&self) -> usize {
        3 * FRAMES_PER_PATCH * self.patch * self.patch
    }

    /// Patches of a merged token.
    pub(crate) fn merged(&self) -> usize {
        self.merge * self.merge
    }
}

/// Frames of a temporal patch; other models of these types are refused.
pub(crate) const FRAMES_PER_PATCH: usize = 2;

/// Window attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct WindowConfig {
    pub(crate) side: usize,
    pub(crate) full_layers: Vec<usize>,
}

/// The decoder.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TextConfig {
    pub(crate) vocabulary: usize,
    pub(crate) width: usize,
    pub(crate) middle: usize,
    pub(crate) depth: usize,
    pub(crate) heads: usize,
    /// Heads of keys and values; divides `heads`.
    pub(crate) kv_heads: usize,
    /// Values of a head, even.
    pub(crate) head: usize,
    pub(crate) epsilon: f32,
    pub(crate) rope_theta: f64,
    /// Pairs of a head that follow time, rows and columns.
    pub(crate) sections: [usize; 3],
    pub(crate) longest: usize,
}

impl Config {
    /// # Errors
    /// [`LoadError::Unsupported`] for missing sizes and for settings that are not read.
    pub(crate) fn parse(json: &[u8]) -> Result<Config, LoadError> {
        let unsupported = |why: Cause| LoadError::Unsupported(why);
        let file: File = serde_json::from_slice(json).map_err(|error| unsupported(error.into()))?;
        let generation = Generation::of(&file.model_type)
            .ok_or_else(|| unsupported(format!("models of type {}", file.model_type).into()))?;
        let text = file.text_config.as_ref().unwrap_or(&file.rest);
        let text = TextFile::deserialize(text).map_err(|error| unsupported(error.into()))?;
        let vision =
            VisionFile::deserialize(&file.vision_config).map_err(|error| unsupported(error.into()))?;
        let tied = file.tie_word_embeddings.or(text.tie_word_embeddings);
        let config = Config {
            generation,
            vision: vision.sized(generation, text.hidden_size)?,
            ids: VisualIds {
                picture: file.image_token_id,
                video: file.video_token_id,
                start: file.vision_start_token_id,
                end: file.vision_end_token_id,
            },
            tied,
            ends: file.eos_token_id.map(Ids::list).unwrap_or_default(),
            text: text.sized(generation)?,
        };
        config.check().map_err(|why| unsupported(why.into()))?;
        Ok(config)
    }

    /// Refuses sizes that no model can have; later code relies on them.
    fn check(&self) -> Result<(), String> {
        let (vision, text) = (&self.vision, &self.text);
        let sizes = [
            vision.depth,
            vision.width,
            vision.middle,
            vision.patch,
            vision.merge,
            text.vocabulary,
            text.width,
            text.middle,
            text.depth,
            text.head,
            text.longest,
        ];
        if sizes.contains(&0) || sizes.iter().any(|size| *size > LARGEST) {
            return Err(format!("sizes of 0 or over {LARGEST}"));
        }
        if vision.heads == 0 || vision.width % (4 * vision.heads) != 0 {
            return Err(format!("a tower of {} heads in {} values", vision.heads, vision.width));
        }
        if text.kv_heads == 0 || text.heads % text.kv_heads != 0 || text.head % 2 != 0 {
            let (heads, kv, head) = (text.heads, text.kv_heads, text.head);
            return Err(format!("{heads} heads of {head} values on {kv} heads of keys"));
        }
        if text.sections.iter().sum::<usize>() != text.head / 2 {
            let (sections, head) = (text.sections, text.head);
            return Err(format!("mrope_section {sections:?} for heads of {head} values"));
        }
        if vision.output != text.width {
            let (from, to) = (vision.output, text.width);
            return Err(format!("a tower that gives {from} values to a decoder of {to}"));
        }
        let beyond = |layers: &[usize]| layers.iter().any(|layer| *layer >= vision.depth);
        if vision.windows.as_ref().is_some_and(|it| it.side == 0) || beyond(&vision.deepstack) {
            return Err("windows of 0 tokens, or DeepStack after layers that do not exist".to_owned());
        }
        Ok(())
    }
}

/// Bound of every size: larger ones are typing errors, and their products would overflow.
const LARGEST: usize = 1 << 20;

#[derive(Deserialize)]
struct File {
    model_type: String,
    text_config: Option<Value>,
    #[serde(default = "empty")]
    vision_config: Value,
    tie_word_embeddings: Option<bool>,
    #[serde(default = "picture_id")]
    image_token_id: u32,
    #[serde(default = "video_id")]
    video_token_id: u32,
    #[serde(default = "start_id")]
    vision_start_token_id: u32,
    #[serde(default = "end_id")]
    vision_end_token_id: u32,
    eos_token_id: Option<Ids>,
    #[serde(flatten)]
    rest: Value,
}

fn empty() -> Value {
    Value::Object(serde_json::Map::new())
}

fn picture_id() -> u32 {
    151_655
}

fn video_id() -> u32 {
    151_656
}

fn start_id() -> u32 {
    151_652
}

fn end_id() -> u32 {
    151_653
}

/// One id or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Ids {
    One(u32),
    Several(Vec<u32>),
}

impl Ids {
    pub(super) fn list(self) -> Vec<u32> {
        match self {
            Ids::One(id) => vec![id],
            Ids::Several(ids) => ids,
        }
    }
}

#[derive(Deserialize)]
struct TextFile {
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    rms_norm_eps: Option<f32>,
    hidden_act: Option<String>,
    max_position_embeddings: Option<usize>,
    rope_theta: Option<f64>,
    rope_scaling: Option<Rope>,
    rope_parameters: Option<Rope>,
    use_sliding_window: Option<bool>,
    attention_bias: Option<bool>,
    tie_word_embeddings: Option<bool>,
}

/// `rope_scaling` or `rope_parameters`. Its type reads "mrope" or "default" for the same positions.
#[derive(Deserialize)]
struct Rope {
    mrope_section: Option<[usize; 3]>,
    mrope_interleaved: Option<bool>,
    rope_theta: Option<f64>,
    #[serde(rename = "type")]
    kind: Option<String>,
    rope_type: Option<String>,
}

impl TextFile {
    fn sized(self, generation: Generation) -> Result<TextConfig, LoadError> {
        let three = generation == Generation::Three;
        let unsupported = |why: String| LoadError::Unsupported(why.into());
        if let Some(act) = self.hidden_act.as_deref().filter(|act| *act != "silu") {
            return Err(unsupported(format!("hidden_act {act} of the decoder; silu is")));
        }
        if self.use_sliding_window == Some(true) || (three && self.attention_bias == Some(true)) {
            return Err(unsupported("use_sliding_window, or attention_bias in Qwen3-VL".to_owned()));
        }
        let rope = self.rope_parameters.or(self.rope_scaling);
        let rope = rope.ok_or_else(|| unsupported("no rope_scaling and no rope_parameters".to_owned()))?;
        for kind in [&rope.kind, &rope.rope_type].into_iter().flatten() {
            if !["mrope", "default"].contains(&kind.as_str()) {
                return Err(unsupported(format!("rotary positions of type {kind}; mrope and default are")));
            }
        }
        if rope.mrope_interleaved.unwrap_or(three) != three {
            return Err(unsupported("mrope_interleaved of another generation".to_owned()));
        }
        let sections = rope.mrope_section.or_else(|| three.then_some([24, 20, 20]));
        let sections = sections.ok_or_else(|| unsupported("no mrope_section".to_owned()))?;
        let heads = self.num_attention_heads.max(1);
        Ok(TextConfig {
            vocabulary: self.vocab_size,
            width: self.hidden_size,
            middle: self.intermediate_size,
            depth: self.num_hidden_layers,
            heads,
            kv_heads: self.num_key_value_heads.unwrap_or(heads),
            head: self.head_dim.unwrap_or(if three { 128 } else { self.hidden_size / heads }),
            epsilon: self.rms_norm_eps.unwrap_or(1e-6),
            rope_theta: rope.rope_theta.or(self.rope_theta).unwrap_or(if three { 5e6 } else { 1e6 }),
            sections,
            longest: self.max_position_embeddings.unwrap_or(32_768),
        })
    }
}

#[derive(Deserialize)]
struct VisionFile {
    depth: Option<usize>,
    embed_dim: Option<usize>,
    hidden_size: Option<usize>,
    mlp_ratio: Option<usize>,
    intermediate_size: Option<usize>,
    hidden_act: Option<Activation>,
    num_heads: Option<usize>,
    in_channels: Option<usize>,
    in_chans: Option<usize>,
    patch_size: Option<usize>,
    spatial_patch_size: Option<usize>,
    spatial_merge_size: Option<usize>,
    temporal_patch_size: Option<usize>,
    out_hidden_size: Option<usize>,
    window_size: Option<usize>,
    fullatt_block_indexes: Option<Vec<usize>>,
    tokens_per_second: Option<f32>,
    num_position_embeddings: Option<usize>,
    deepstack_visual_indexes: Option<Vec<usize>>,
}

impl VisionFile {
    /// `decoder`: the decoder's width, the default of the tower's output.
    fn sized(self, generation: Generation, decoder: usize) -> Result<VisionConfig, LoadError> {
        let frames = self.temporal_patch_size.unwrap_or(FRAMES_PER_PATCH);
        if self.in_channels.or(self.in_chans).unwrap_or(3) != 3 || frames != FRAMES_PER_PATCH {
            let why = "patches of other than 3 channels and 2 frames";
            return Err(LoadError::Unsupported(why.into()));
        }
        let merge = self.spatial_merge_size.unwrap_or(2);
        let patch = self.patch_size.or(self.spatial_patch_size);
        let (heads, deepstack) = (self.num_heads.unwrap_or(16), self.deepstack_visual_indexes);
        let (depth, tokens_per_second) = (self.depth, self.tokens_per_second.unwrap_or(2.0));
        let shared = |width: usize, middle: usize| VisionConfig {
            depth: depth.unwrap_or(32),
            width,
            heads,
            middle,
            activation: Activation::QuickGelu,
            patch: patch.unwrap_or(14),
            merge,
            output: self.out_hidden_size.unwrap_or(decoder),
            windows: None,
            positions: None,
            deepstack: Vec::new(),
            tokens_per_second,
        };
        Ok(match generation {
            Generation::Two => {
                // `hidden_size` is the width of the output here.
                let width = self.embed_dim.unwrap_or(1280);
                let output = self.hidden_size.unwrap_or(decoder);
                let activation = self.hidden_act.unwrap_or(Activation::QuickGelu);
                let middle = width.saturating_mul(self.mlp_ratio.unwrap_or(4));
                VisionConfig { output, activation, ..shared(width, middle) }
            }
            Generation::TwoFive => {
                let side = self.window_size.unwrap_or(112) / merge.max(1) / patch.unwrap_or(14).max(1);
                let full_layers = self.fullatt_block_indexes.clone().unwrap_or_else(|| vec![7, 15, 23, 31]);
                VisionConfig {
                    activation: self.hidden_act.unwrap_or(Activation::Silu),
                    windows: Some(WindowConfig { side, full_layers }),
                    ..shared(self.hidden_size.unwrap_or(3584), self.intermediate_size.unwrap_or(3420))
                }
            }
            Generation::Three => {
                let positions = self.num_position_embeddings.unwrap_or(2304);
                let (width, middle) = (self.hidden_size, self.intermediate_size);
                VisionConfig {
                    depth: depth.unwrap_or(27),
                    activation: self.hidden_act.unwrap_or(Activation::GeluNew),
                    patch: patch.unwrap_or(16),
                    positions: Some(side(positions)?),
                    deepstack: deepstack.unwrap_or_else(|| vec![8, 16, 24]),
                    ..shared(width.unwrap_or(1152), middle.unwrap_or(4304))
                }
            }
        })
    }
}

/// The side of a square grid of `places`.
fn side(places: usize) -> Result<usize, LoadError> {
    let side = places.isqrt();
    if side == 0 || side * side != places {
        let why = format!("num_position_embeddings {places}, which is no square");
        return Err(LoadError::Unsupported(why.into()));
    }
    Ok(side)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"{"model_type": "qwen2_vl", "vocab_size": 9, "hidden_size": 24, "intermediate_size": 8,
        "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1, "rope_theta": 1e6,
        "rope_scaling": {"type": "mrope", "mrope_section": [2, 2, 2]},
        "vision_config": {"hidden_size": 24, "in_chans": 3, "spatial_patch_size": 14}}"#;

    #[track_caller]
    fn check(change: impl Fn(&mut Value), expected: Result<(), &str>) {
        let mut json: Value = serde_json::from_str(TWO).unwrap();
        change(&mut json);
        let got = Config::parse(json.to_string().as_bytes());
        match (got, expected) {
            (Ok(_), Ok(())) => {}
            (Err(got), Err(part)) => assert!(got.to_string().contains(part), "{got}"),
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn missing_fields_of_the_tower_have_the_published_values() {
        let config = Config::parse(TWO.as_bytes()).unwrap();
        let vision = &config.vision;
        assert_eq!((vision.depth, vision.width, vision.middle, vision.heads), (32, 1280, 5120, 16));
        assert_eq!((vision.patch, vision.merge, vision.output), (14, 2, 24));
        assert_eq!((config.ids.picture, config.ids.video), (151_655, 151_656));
        assert_eq!(config.text.head, 12);
    }

    #[test]
    fn settings_that_change_values_are_refused_by_name() {
        check(|_| {}, Ok(()));
        check(|json| json["hidden_act"] = "gelu".into(), Err("hidden_act gelu"));
        check(|json| json["use_sliding_window"] = true.into(), Err("use_sliding_window"));
        check(|json| json["rope_scaling"]["type"] = "yarn".into(), Err("yarn"));
        check(|json| json["rope_scaling"]["mrope_section"] = vec![1, 1, 1].into(), Err("mrope_section"));
        check(|json| json["rope_scaling"] = Value::Null, Err("no rope_scaling"));
        check(|json| json["rope_scaling"]["type"] = "default".into(), Ok(()));
    }

    #[test]
    fn sizes_that_no_model_has_are_refused() {
        check(|json| json["num_key_value_heads"] = 0.into(), Err("heads"));
        check(|json| json["vocab_size"] = 0.into(), Err("sizes of 0"));
        check(|json| json["vision_config"]["hidden_size"] = 25.into(), Err("gives 25"));
        check(|json| json["vision_config"]["num_heads"] = 7.into(), Err("7 heads"));
        check(|json| json["vision_config"]["patch_size"] = 0.into(), Err("sizes of 0"));
        check(|json| json["vision_config"]["temporal_patch_size"] = 4.into(), Err("2 frames"));
    }

    #[test]
    fn a_grid_of_positions_is_square() {
        assert_eq!(side(2_304).ok(), Some(48));
        for places in [0, 2, 2_303] {
            assert!(side(places).is_err_and(|why| why.to_string().contains("no square")), "{places}");
        }
    }
}
