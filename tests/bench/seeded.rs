//! Writes folders of CLIP models of any size with seeded noise as weights. The cost of a model does not depend on its
//! training.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

/// The dimensions of a tower.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tower {
    pub(crate) width: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
}

/// A CLIP model's shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) vision: Tower,
    pub(crate) patch: usize,
    pub(crate) text: Tower,
    pub(crate) dim: usize,
}

/// The published shape, for 224 pixels and 77 tokens.
pub(crate) const VIT_B_32: Shape = Shape {
    vision: Tower { width: 768, layers: 12, heads: 12 },
    patch: 32,
    text: Tower { width: 512, layers: 12, heads: 8 },
    dim: 512,
};

const SIDE: usize = 224;
const TOKENS: usize = 77;
/// A small tokenizer. The size of its vocabulary changes only the embedding table.
const TOKENIZER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/parity/data/legacy/tokenizer.json");
const VOCABULARY: usize = 402;

/// Writes `config.json`, `preprocessor_config.json`, `tokenizer.json` and `model.safetensors`.
pub(crate) fn write(folder: &Path, shape: &Shape) {
    fs::create_dir_all(folder).unwrap();
    fs::copy(TOKENIZER, folder.join("tokenizer.json")).unwrap();
    fs::write(folder.join("config.json"), config(shape).to_string()).unwrap();
    fs::write(folder.join("preprocessor_config.json"), preprocessor().to_string()).unwrap();
    write_weights(&folder.join("model.safetensors"), &tensors(shape));
}

fn config(shape: &Shape) -> Value {
    let tower = |tower: Tower| {
        json!({
            "hidden_size": tower.width, "intermediate_size": 4 * tower.width, "hidden_act": "quick_gelu",
            "num_hidden_layers": tower.layers, "num_attention_heads": tower.heads,
        })
    };
    let (mut text, mut vision) = (tower(shape.text), tower(shape.vision));
    // The ids of CLIP's first files, in which the end token has the largest id of a text.
    for (name, value) in [("vocab_size", VOCABULARY), ("bos_token_id", 0), ("eos_token_id", 2)] {
        text[name] = value.into();
    }
    text["max_position_embeddings"] = TOKENS.into();
    (vision["image_size"], vision["patch_size"]) = (SIDE.into(), shape.patch.into());
    json!({"model_type": "clip", "projection_dim": shape.dim, "text_config": text, "vision_config": vision})
}

fn preprocessor() -> Value {
    json!({
        "do_resize": true, "size": {"shortest_edge": SIDE}, "resample": 3,
        "do_center_crop": true, "crop_size": {"height": SIDE, "width": SIDE},
        "do_rescale": true, "rescale_factor": 1.0 / 255.0, "do_convert_rgb": true,
        "do_normalize": true, "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711],
    })
}

type Tensors = Vec<(String, Vec<usize>)>;

/// Names and shapes of the tensors in Hugging Face's layout.
fn tensors(shape: &Shape) -> Tensors {
    let (vision, text) = (shape.vision.width, shape.text.width);
    let patches = (SIDE / shape.patch).pow(2);
    let mut all: Tensors = vec![
        ("vision_model.embeddings.class_embedding".to_owned(), vec![vision]),
        (
            "vision_model.embeddings.patch_embedding.weight".to_owned(),
            vec![vision, 3, shape.patch, shape.patch],
        ),
        ("vision_model.embeddings.position_embedding.weight".to_owned(), vec![patches + 1, vision]),
        ("visual_projection.weight".to_owned(), vec![shape.dim, vision]),
        ("text_model.embeddings.token_embedding.weight".to_owned(), vec![VOCABULARY, text]),
        ("text_model.embeddings.position_embedding.weight".to_owned(), vec![TOKENS, text]),
        ("text_projection.weight".to_owned(), vec![shape.dim, text]),
        ("logit_scale".to_owned(), vec![]),
    ];
    let mut layer = |name: String, shape: Vec<usize>| {
        all.push((format!("{name}.weight"), shape.clone()));
        all.push((format!("{name}.bias"), shape[..1].to_vec()));
    };
    for name in ["vision_model.pre_layrnorm", "vision_model.post_layernorm"] {
        layer(name.to_owned(), vec![vision]);
    }
    layer("text_model.final_layer_norm".to_owned(), vec![text]);
    for (model, tower) in [("vision_model", shape.vision), ("text_model", shape.text)] {
        for block in 0..tower.layers {
            let name = |part: &str| format!("{model}.encoder.layers.{block}.{part}");
            for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                layer(name(&format!("self_attn.{part}")), vec![tower.width, tower.width]);
            }
            layer(name("layer_norm1"), vec![tower.width]);
            layer(name("layer_norm2"), vec![tower.width]);
            layer(name("mlp.fc1"), vec![4 * tower.width, tower.width]);
            layer(name("mlp.fc2"), vec![tower.width, 4 * tower.width]);
        }
    }
    all
}

/// Writes safetensors: a header with each tensor's offsets, then all values.
fn write_weights(path: &Path, tensors: &Tensors) {
    let (mut header, mut at) = (Map::new(), 0);
    for (name, shape) in tensors {
        let bytes = 4 * shape.iter().product::<usize>();
        let tensor = json!({"dtype": "F32", "shape": shape, "data_offsets": [at, at + bytes]});
        header.insert(name.clone(), tensor);
        at += bytes;
    }
    let header = Value::from(header).to_string();
    let mut file = BufWriter::new(File::create(path).unwrap());
    file.write_all(&(header.len() as u64).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    for (name, shape) in tensors {
        let is_norm = name.contains("norm") || name.contains("layrnorm");
        for _ in 0..shape.iter().product::<usize>() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let noise = ((state >> 40) as f32 / (1 << 23) as f32 - 1.0) * 0.05;
            let value = if is_norm && name.ends_with("weight") { 1.0 } else { noise };
            file.write_all(&value.to_le_bytes()).unwrap();
        }
    }
    file.flush().unwrap();
}
