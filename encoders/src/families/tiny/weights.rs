//! Generates the weights of `builtin:tiny` from a seed.
//!
//! With unstructured noise all vectors would have similar directions. Here colour and layout survive: the patch
//! embedding takes colour averages and differences between halves. [`CONTENT`] values of a token hold this content, the
//! others its position. Attention compares positions and carries content. Only additions and multiplications in a fixed
//! order are used, so every machine gets the same bits and the same space.

use std::ops::Range;

use crate::blocks::transformer::Activation;
use crate::families::clip::config::{Config, TextConfig, VisionConfig};

/// The best of six seeds on a few dozen real clips: it places copies of a video nearest to each other. Its ranking on
/// those clips is therefore a fit, not a measurement.
const SEED: u64 = 4;
/// Hidden size of both towers, and size of a vector.
const WIDTH: usize = 64;
/// The first values of a token hold its content, the rest its position.
const CONTENT: usize = 48;
const INNER: usize = 128;
const LAYERS: usize = 2;
const IMAGE: usize = 64;
const PATCH: usize = 16;
const LONGEST_TEXT: usize = 77;

/// Size of the vocabulary; `<|startoftext|>` has id 0, `<|endoftext|>` 1.
const VOCABULARY: usize = 941;

/// All tensors: name, shape, values.
pub(super) fn make() -> Vec<(String, Vec<usize>, Vec<f32>)> {
    Maker::new().make()
}

/// The dimensions as CLIP's configuration.
pub(super) fn config() -> Config {
    Config {
        projection_dim: WIDTH,
        text_config: TextConfig {
            vocab_size: VOCABULARY,
            hidden_size: WIDTH,
            intermediate_size: INNER,
            num_hidden_layers: LAYERS,
            num_attention_heads: 4,
            max_position_embeddings: LONGEST_TEXT,
            hidden_act: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
            bos_token_id: Some(0),
            eos_token_id: 1,
        },
        vision_config: VisionConfig {
            hidden_size: WIDTH,
            intermediate_size: INNER,
            num_hidden_layers: LAYERS,
            num_attention_heads: 4,
            num_channels: 3,
            image_size: IMAGE,
            patch_size: PATCH,
            hidden_act: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
        },
    }
}

/// Lightness, red against cyan, green against blue; natural pictures vary in all three.
const OPPONENTS: [[f32; 3]; 3] = [[0.333, 0.333, 0.333], [1.333, -0.667, -0.667], [0.0, 1.5, -1.5]];

/// Dimensions of a matrix.
#[derive(Debug, Clone, Copy)]
struct Size {
    rows: usize,
    columns: usize,
}

const SQUARE: Size = Size { rows: WIDTH, columns: WIDTH };

/// The part of a matrix with noise; all other values are 0.
#[derive(Debug, Clone)]
struct Noise {
    scale: f32,
    rows: Range<usize>,
    columns: Range<usize>,
}

impl Noise {
    /// Noise in `columns` of every row of a square matrix.
    fn of_columns(scale: f32, columns: Range<usize>) -> Noise {
        Noise { scale, rows: 0..WIDTH, columns }
    }

    /// The same noise in the transposed matrix.
    fn across(self) -> Noise {
        Noise { rows: self.columns, columns: self.rows, ..self }
    }
}

/// Generates tensors from one stream of random numbers, so their order determines their values.
struct Maker {
    state: u64,
    tensors: Vec<(String, Vec<usize>, Vec<f32>)>,
}

impl Maker {
    fn new() -> Self {
        Maker { state: SEED, tensors: Vec::new() }
    }

    fn make(mut self) -> Vec<(String, Vec<usize>, Vec<f32>)> {
        self.vision();
        self.text();
        self.tensors
    }

    fn vision(&mut self) {
        let patches = (IMAGE / PATCH) * (IMAGE / PATCH);
        let name = "vision_model.embeddings";
        let kernels = self.kernels();
        self.add(format!("{name}.patch_embedding.weight"), &[WIDTH, 3, PATCH, PATCH], kernels);
        self.add(format!("{name}.class_embedding"), &[WIDTH], vec![0.0; WIDTH]);
        let places = (0..=patches).flat_map(|_| self.place()).collect();
        self.add(format!("{name}.position_embedding.weight"), &[patches + 1, WIDTH], places);
        self.norm("vision_model.pre_layrnorm");
        for layer in 0..LAYERS {
            let name = format!("vision_model.encoder.layers.{layer}");
            self.attention(&name, Noise::of_columns(0.8, CONTENT..WIDTH), Noise::of_columns(0.3, 0..CONTENT));
            self.mlp(&name, 0.3, 0.05, 0..CONTENT);
        }
        self.norm("vision_model.post_layernorm");
        let projection = self.block(SQUARE, &Noise::of_columns(0.2, 0..CONTENT));
        self.add("visual_projection.weight".to_owned(), &[WIDTH, WIDTH], projection);
    }

    /// A text tower of unstructured noise.
    fn text(&mut self) {
        let name = "text_model.embeddings";
        let tokens = self.noise(VOCABULARY * WIDTH, 1.0);
        self.add(format!("{name}.token_embedding.weight"), &[VOCABULARY, WIDTH], tokens);
        let positions = self.noise(LONGEST_TEXT * WIDTH, 0.3);
        self.add(format!("{name}.position_embedding.weight"), &[LONGEST_TEXT, WIDTH], positions);
        for layer in 0..LAYERS {
            let name = format!("text_model.encoder.layers.{layer}");
            self.attention(&name, Noise::of_columns(0.2, 0..WIDTH), Noise::of_columns(0.3, 0..WIDTH));
            self.mlp(&name, 0.2, 0.1, 0..WIDTH);
        }
        self.norm("text_model.final_layer_norm");
        let projection = self.noise(WIDTH * WIDTH, 0.2);
        self.add("text_projection.weight".to_owned(), &[WIDTH, WIDTH], projection);
    }

    /// Patch kernels. Each content value is a random mix of the patch's mean and its differences between halves, per
    /// opponent colour.
    fn kernels(&mut self) -> Vec<f32> {
        let gain = 0.105 / PATCH as f32;
        let side = |at: usize| if at < PATCH / 2 { 1.0_f32 } else { -1.0 };
        let mut kernels = vec![0.0; WIDTH * 3 * PATCH * PATCH];
        for kernel in kernels.chunks_exact_mut(3 * PATCH * PATCH).take(CONTENT) {
            let mix = self.noise(OPPONENTS.len() * 4, gain);
            for (at, weight) in kernel.iter_mut().enumerate() {
                let (channel, row, column) = (at / (PATCH * PATCH), at / PATCH % PATCH, at % PATCH);
                let shapes = [1.0, side(column), side(row), side(row) * side(column)];
                for (opponent, mix) in OPPONENTS.iter().zip(mix.chunks_exact(4)) {
                    for (shape, mix) in shapes.iter().zip(mix) {
                        *weight += opponent[channel] * shape * mix;
                    }
                }
            }
        }
        kernels
    }

    /// A token's position: signs with a mean of 0, so that layer norms do not shift the content.
    fn place(&mut self) -> Vec<f32> {
        let mut place = vec![0.0; WIDTH];
        let signs: Vec<f32> = (CONTENT..WIDTH).map(|_| if self.next() < 0.0 { -1.0 } else { 1.0 }).collect();
        let mean = signs.iter().sum::<f32>() / signs.len() as f32;
        place[CONTENT..].iter_mut().zip(signs).for_each(|(value, sign)| *value = sign - mean);
        place
    }

    fn attention(&mut self, name: &str, look: Noise, carry: Noise) {
        for part in ["q_proj", "k_proj"] {
            let weight = self.block(SQUARE, &look);
            self.linear(&format!("{name}.self_attn.{part}"), SQUARE, weight);
        }
        let weight = self.block(SQUARE, &carry);
        self.linear(&format!("{name}.self_attn.v_proj"), SQUARE, weight);
        let weight = self.block(SQUARE, &carry.across());
        self.linear(&format!("{name}.self_attn.out_proj"), SQUARE, weight);
        self.norm(&format!("{name}.layer_norm1"));
    }

    fn mlp(&mut self, name: &str, up: f32, down: f32, content: Range<usize>) {
        let (wide, narrow) = (Size { rows: INNER, columns: WIDTH }, Size { rows: WIDTH, columns: INNER });
        let weight = self.block(wide, &Noise { scale: up, rows: 0..INNER, columns: content.clone() });
        self.linear(&format!("{name}.mlp.fc1"), wide, weight);
        let weight = self.block(narrow, &Noise { scale: down, rows: content, columns: 0..INNER });
        self.linear(&format!("{name}.mlp.fc2"), narrow, weight);
        self.norm(&format!("{name}.layer_norm2"));
    }

    /// Noise in some rows and columns of a matrix, zeros elsewhere.
    fn block(&mut self, size: Size, noise: &Noise) -> Vec<f32> {
        let mut matrix = vec![0.0; size.rows * size.columns];
        for row in noise.rows.clone() {
            let values = self.noise(noise.columns.len(), noise.scale);
            matrix[row * size.columns..][noise.columns.clone()].copy_from_slice(&values);
        }
        matrix
    }

    fn linear(&mut self, name: &str, size: Size, weight: Vec<f32>) {
        self.add(format!("{name}.weight"), &[size.rows, size.columns], weight);
        self.add(format!("{name}.bias"), &[size.rows], vec![0.0; size.rows]);
    }

    fn norm(&mut self, name: &str) {
        self.add(format!("{name}.weight"), &[WIDTH], vec![1.0; WIDTH]);
        self.add(format!("{name}.bias"), &[WIDTH], vec![0.0; WIDTH]);
    }

    fn add(&mut self, name: String, shape: &[usize], values: Vec<f32>) {
        self.tensors.push((name, shape.to_vec(), values));
    }

    fn noise(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| self.next() * scale).collect()
    }

    /// Uniform in -1 to 1, in steps of 2^-23: SplitMix64's upper bits.
    fn next(&mut self) -> f32 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        (bits >> 40) as f32 / 8_388_608.0 - 1.0
    }
}
