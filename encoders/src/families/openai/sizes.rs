//! Configuration of a CLIP that comes without one, such as OpenAI's own files. The tensors' shapes give the sizes, as
//! in OpenAI's `build_model`. Shapes do not show the head size (64) and activation (quick_gelu), so only files known to
//! have both may be read.

use crate::LoadError;
use crate::blocks::transformer::Activation;
use crate::families::clip::config::{self as clip, LEGACY_EOS};
use crate::loading::Weights;

/// Size of an attention head.
const HEAD: usize = 64;
/// Upper bound on the layers that the loader looks for.
const MOST_LAYERS: usize = 1000;

/// CLIP's configuration of `weights`, which must have Hugging Face's names.
///
/// # Errors
/// [`LoadError`] for weights that are not CLIP's vision and text transformers.
pub(crate) fn config(weights: &Weights) -> Result<clip::Config, LoadError> {
    let (vision, text) = ("vision_model", "text_model");
    if weights.names().any(|name| name.starts_with("visual.layer1.")) {
        return Err(LoadError::Unsupported("visual.layer1, which is a ResNet's".into()));
    }
    let [_, _, _, patch_size] = weights.dims::<4>(&format!("{vision}.embeddings.patch_embedding.weight"))?;
    let [patches, vision_width] =
        weights.dims::<2>(&format!("{vision}.embeddings.position_embedding.weight"))?;
    let [vocab_size, text_width] = weights.dims::<2>(&format!("{text}.embeddings.token_embedding.weight"))?;
    let [positions, _] = weights.dims::<2>(&format!("{text}.embeddings.position_embedding.weight"))?;
    let [projection_dim, _] = weights.dims::<2>("text_projection.weight")?;
    let inner = |tower: &str| weights.dims::<2>(&format!("{tower}.encoder.layers.0.mlp.fc1.weight"));
    let ([vision_inner, _], [text_inner, _]) = (inner(vision)?, inner(text)?);
    // One position belongs to the class token.
    let grid = patches.saturating_sub(1).isqrt();
    Ok(clip::Config {
        projection_dim,
        text_config: clip::TextConfig {
            vocab_size,
            hidden_size: text_width,
            intermediate_size: text_inner,
            num_hidden_layers: layers(weights, text)?,
            num_attention_heads: heads(text_width)?,
            max_position_embeddings: positions,
            hidden_act: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
            bos_token_id: None,
            // OpenAI's code reads the largest id of a text.
            eos_token_id: LEGACY_EOS,
        },
        vision_config: clip::VisionConfig {
            hidden_size: vision_width,
            intermediate_size: vision_inner,
            num_hidden_layers: layers(weights, vision)?,
            num_attention_heads: heads(vision_width)?,
            num_channels: 3,
            image_size: grid * patch_size,
            patch_size,
            hidden_act: Activation::QuickGelu,
            layer_norm_eps: 1e-5,
        },
    })
}

fn heads(width: usize) -> Result<usize, LoadError> {
    let why = || {
        format!(
            "{width} values a token, which are no multiple of a head's {HEAD}; a config.json says otherwise"
        )
    };
    let whole = width.is_multiple_of(HEAD).then_some(width / HEAD);
    whole.ok_or_else(|| LoadError::Unsupported(why().into()))
}

/// The number of blocks of `tower`, which is `vision_model` or `text_model`.
///
/// # Errors
/// [`LoadError::Unsupported`] for a block with a tensor that CLIP does not have: without it, vectors would be wrong.
fn layers(weights: &Weights, tower: &str) -> Result<usize, LoadError> {
    let blocks = format!("{tower}.encoder.layers.");
    let parts = ["self_attn.", "layer_norm1.", "layer_norm2.", "mlp.fc1.", "mlp.fc2."];
    let odd = weights.names().find(|name| {
        let part = name.strip_prefix(&blocks).and_then(|rest| rest.split_once('.')).map(|(_, part)| part);
        // The code computes the attention mask itself.
        part.is_some_and(|part| part != "attn_mask" && !parts.iter().any(|known| part.starts_with(known)))
    });
    if let Some(odd) = odd {
        return Err(LoadError::Unsupported(format!("the tensor {odd}, which CLIP does not have").into()));
    }
    let is_there = |layer: &usize| weights.shape(&format!("{blocks}{layer}.mlp.fc2.weight")).is_some();
    Ok((0..MOST_LAYERS).take_while(is_there).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shapes of a small CLIP that determine its configuration, with Hugging Face's names.
    const SHAPES: [(&str, &[usize]); 10] = [
        ("vision_model.embeddings.patch_embedding.weight", &[64, 3, 8, 8]),
        ("vision_model.embeddings.position_embedding.weight", &[17, 64]),
        ("vision_model.encoder.layers.0.mlp.fc1.weight", &[96, 64]),
        ("vision_model.encoder.layers.0.mlp.fc2.weight", &[64, 96]),
        ("vision_model.encoder.layers.1.mlp.fc2.weight", &[64, 96]),
        ("text_model.embeddings.token_embedding.weight", &[40, 128]),
        ("text_model.embeddings.position_embedding.weight", &[20, 128]),
        ("text_model.encoder.layers.0.mlp.fc1.weight", &[256, 128]),
        ("text_model.encoder.layers.0.mlp.fc2.weight", &[128, 256]),
        ("text_projection.weight", &[16, 128]),
    ];

    /// The configuration of these shapes with one shape changed or added.
    fn changed(name: &str, shape: &[usize]) -> Result<clip::Config, LoadError> {
        let known = SHAPES.into_iter().filter(|(other, _)| *other != name);
        let tensor = |(name, shape): (&str, &[usize])| {
            (name.to_owned(), shape.to_vec(), vec![0.5; shape.iter().product()])
        };
        config(&Weights::from_values(known.chain([(name, shape)]).map(tensor).collect()).unwrap())
    }

    #[test]
    fn sizes_are_read_off_the_shapes() {
        let config = changed("logit_scale", &[]).unwrap();
        let (vision, text) = (&config.vision_config, &config.text_config);
        assert_eq!((vision.image_size, vision.patch_size), (32, 8));
        assert_eq!((vision.hidden_size, vision.num_hidden_layers, vision.num_attention_heads), (64, 2, 1));
        assert_eq!((text.hidden_size, text.num_hidden_layers, text.num_attention_heads), (128, 1, 2));
        assert_eq!((text.vocab_size, text.max_position_embeddings, config.projection_dim), (40, 20, 16));
        assert_eq!((vision.intermediate_size, text.intermediate_size), (96, 256));
    }

    #[track_caller]
    fn check(name: &str, shape: &[usize], expected: &str) {
        let error = changed(name, shape).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn what_is_no_vision_transformer_of_clips_is_refused_by_name() {
        check("visual.layer1.0.conv1.weight", &[8, 8, 1, 1], "ResNet");
        let adapter = "vision_model.encoder.layers.1.S_Adapter.D_fc1.weight";
        check(adapter, &[4, 64], adapter);
        check("text_model.embeddings.token_embedding.weight", &[40, 96], "96 values");
        check("text_projection.weight", &[16], "text_projection.weight has shape [16]");
    }
}
