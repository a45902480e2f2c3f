//! Renames the tensors of OpenAI's CLIP, OpenCLIP and AIM to the names of Hugging Face's CLIP:
//!
//! | OpenAI | Hugging Face |
//! |---|---|
//! | `visual.conv1`, `visual.class_embedding`, `visual.positional_embedding` | `vision_model.embeddings.*` |
//! | `visual.ln_pre`, `visual.ln_post` | `vision_model.pre_layrnorm`, `vision_model.post_layernorm` |
//! | `visual.proj`, transposed | `visual_projection.weight` |
//! | `visual.transformer.resblocks.N` | `vision_model.encoder.layers.N` |
//! | `token_embedding`, `positional_embedding` | `text_model.embeddings.*` |
//! | `transformer.resblocks.N`, `ln_final` | `text_model.encoder.layers.N`, `text_model.final_layer_norm` |
//! | `text_projection`, transposed | `text_projection.weight` |
//! | in blocks `attn.in_proj_*` | `self_attn.{q,k,v}_proj.*`, a third each |
//! | in blocks `attn.out_proj`, `ln_1`, `ln_2`, `mlp.c_fc`, `mlp.c_proj` | `self_attn.out_proj`, `layer_norm1`, `layer_norm2`, `mlp.fc1`, `mlp.fc2` |
//!
//! Either layout may have a prefix (`backbone.`, `visual.`, `module.`), which is removed. Tensors outside both towers
//! and AIM's adapters keep their names.

use candle_core::Tensor;

use crate::LoadError;
use crate::loading::Weights;

/// One tower: its prefix in the file and its new prefix.
struct Tower {
    prefix: String,
    new: &'static str,
    /// Tensors outside the blocks: old name, new name.
    names: &'static [(&'static str, &'static str)],
    /// The tensor that the file stores transposed: old name, new name.
    transposed: (&'static str, &'static str),
}

const VISION: [(&str, &str); 4] = [
    ("conv1.weight", "embeddings.patch_embedding.weight"),
    ("class_embedding", "embeddings.class_embedding"),
    ("positional_embedding", "embeddings.position_embedding.weight"),
    ("temporal_embedding", "embeddings.temporal_embedding"),
];
const TEXT: [(&str, &str); 2] = [
    ("token_embedding.weight", "embeddings.token_embedding.weight"),
    ("positional_embedding", "embeddings.position_embedding.weight"),
];
/// Name prefixes of layer norms outside the blocks, in both towers: old, new.
const NORMS: [(&str, &str); 3] =
    [("ln_pre.", "pre_layrnorm."), ("ln_post.", "post_layernorm."), ("ln_final.", "final_layer_norm.")];
/// Name prefixes inside a block: old, new.
const BLOCK: [(&str, &str); 5] = [
    ("attn.out_proj.", "self_attn.out_proj."),
    ("ln_1.", "layer_norm1."),
    ("ln_2.", "layer_norm2."),
    ("mlp.c_fc.", "mlp.fc1."),
    ("mlp.c_proj.", "mlp.fc2."),
];

/// The vision tower with Hugging Face's names; unchanged if `weights` already have them.
///
/// # Errors
/// [`LoadError::WrongShape`] for attention weights that do not split into query, key and value.
pub(crate) fn vision(weights: Weights) -> Result<Weights, LoadError> {
    let marker = "conv1.weight";
    match prefix(&weights, marker, "vision_model.embeddings.patch_embedding.weight") {
        None => Ok(weights),
        Some(prefix) => Tower {
            prefix,
            new: "vision_model.",
            names: &VISION,
            transposed: ("proj", "visual_projection.weight"),
        }
        .rename(weights),
    }
}

/// The text tower with Hugging Face's names; unchanged if `weights` already have them.
///
/// # Errors
/// As [`vision`].
pub(crate) fn text(weights: Weights) -> Result<Weights, LoadError> {
    let marker = "token_embedding.weight";
    match prefix(&weights, marker, "text_model.embeddings.token_embedding.weight") {
        None => Ok(weights),
        Some(prefix) => Tower {
            prefix,
            new: "text_model.",
            names: &TEXT,
            transposed: ("text_projection", "text_projection.weight"),
        }
        .rename(weights),
    }
}

/// Positions that Long-CLIP keeps from CLIP (arXiv 2403.15378, section 3.1).
const KEPT_POSITIONS: usize = 20;

/// Merges Long-CLIP's two position tables, if `weights` have them. The first 20 rows come from `positional_embedding`,
/// the others from `positional_embedding_res`, as the masks of the released code select them.
///
/// # Errors
/// [`LoadError::WrongShape`] for tables of different shapes or of at most 20 rows.
pub(crate) fn long(weights: Weights) -> Result<Weights, LoadError> {
    let marker = "positional_embedding_res";
    let Some(second) = weights.names().find(|name| name.ends_with(marker)).map(str::to_owned) else {
        return Ok(weights);
    };
    let first = second.trim_end_matches("_res").to_owned();
    let shape = weights.shape(&second).unwrap_or_default().to_vec();
    let (head, tail) = (weights.get(&first, &shape)?, weights.get(&second, &shape)?);
    let rows = shape.first().copied().unwrap_or(0);
    if shape.len() != 2 || rows <= KEPT_POSITIONS {
        return Err(LoadError::WrongShape { name: second, expected: vec![248, 512], found: shape });
    }
    let tail = tail.narrow(0, KEPT_POSITIONS, rows - KEPT_POSITIONS)?;
    let whole = Tensor::cat(&[&head.narrow(0, 0, KEPT_POSITIONS)?, &tail], 0)?;
    weights.changed(|name, tensor| match name {
        _ if name == second => Ok(Vec::new()),
        _ if name == first => Ok(vec![(name.to_owned(), whole.clone())]),
        _ => Ok(vec![(name.to_owned(), tensor)]),
    })
}

/// The prefix of the tensor whose name ends with `marker`; `None` if `weights` have the tensor `known`.
fn prefix(weights: &Weights, marker: &str, known: &str) -> Option<String> {
    if weights.shape(known).is_some() {
        return None;
    }
    weights.names().find_map(|name| name.strip_suffix(marker)).map(str::to_owned)
}

impl Tower {
    fn rename(&self, weights: Weights) -> Result<Weights, LoadError> {
        weights.changed(|name, tensor| match name.strip_prefix(&self.prefix[..]) {
            None => Ok(vec![(name.to_owned(), tensor)]),
            Some(old) => self.renamed(old, name, tensor),
        })
    }

    fn renamed(&self, old: &str, whole: &str, tensor: Tensor) -> Result<Vec<(String, Tensor)>, LoadError> {
        if old == self.transposed.0 && tensor.rank() == 2 {
            return Ok(vec![(self.transposed.1.to_owned(), tensor.t()?.contiguous()?)]);
        }
        // OpenCLIP's projection with a bias is a linear layer, which is not stored transposed.
        if let Some(kind) = old.strip_prefix("text_projection.") {
            return Ok(vec![(format!("text_projection.{kind}"), tensor)]);
        }
        if let Some((_, new)) = self.names.iter().find(|(known, _)| *known == old) {
            return Ok(vec![(format!("{}{new}", self.new), tensor)]);
        }
        if let Some(new) = replaced(old, &NORMS) {
            return Ok(vec![(format!("{}{new}", self.new), tensor)]);
        }
        let inside = old.strip_prefix("transformer.resblocks.").and_then(|rest| rest.split_once('.'));
        let Some((layer, part)) = inside else { return Ok(vec![(whole.to_owned(), tensor)]) };
        let block = format!("{}encoder.layers.{layer}", self.new);
        if let Some(kind) = part.strip_prefix("attn.in_proj_") {
            return thirds(&format!("{block}.self_attn"), kind, whole, &tensor);
        }
        // Adapters keep their names.
        let part = replaced(part, &BLOCK).unwrap_or_else(|| part.to_owned());
        Ok(vec![(format!("{block}.{part}"), tensor)])
    }
}

/// Replaces the first matching prefix of `name`; `None` if none matches.
fn replaced(name: &str, beginnings: &[(&str, &str)]) -> Option<String> {
    beginnings.iter().find_map(|(old, new)| name.strip_prefix(old).map(|rest| format!("{new}{rest}")))
}

/// Splits PyTorch's joined tensor `name` into query, key and value of `attention`; `kind` is `weight` or `bias`.
///
/// # Errors
/// [`LoadError::WrongShape`] for a tensor that does not split into three.
pub(crate) fn thirds(
    attention: &str,
    kind: &str,
    name: &str,
    tensor: &Tensor,
) -> Result<Vec<(String, Tensor)>, LoadError> {
    let rows = tensor.dims().first().copied().unwrap_or(0);
    if rows == 0 || rows % 3 != 0 {
        let (name, found) = (name.to_owned(), tensor.dims().to_vec());
        return Err(LoadError::WrongShape { name, expected: vec![rows.div_ceil(3) * 3], found });
    }
    let third = |(at, part): (usize, &str)| {
        let tensor = tensor.narrow(0, at * rows / 3, rows / 3)?.contiguous()?;
        Ok((format!("{attention}.{part}_proj.{kind}"), tensor))
    };
    ["q", "k", "v"].into_iter().enumerate().map(third).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(names: &[&str]) -> Weights {
        let tensor = |name: &&str| ((*name).to_owned(), vec![3, 2], vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        Weights::from_values(names.iter().map(tensor).collect()).unwrap()
    }

    #[track_caller]
    fn check(change: fn(Weights) -> Result<Weights, LoadError>, names: &[&str], expected: &[&str]) {
        let changed = change(weights(names)).unwrap();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(changed.names().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_vision_tower_is_found_under_any_prefix() {
        for prefix in ["", "visual.", "backbone.", "module.backbone."] {
            let old = ["conv1.weight", "ln_pre.bias", "temporal_embedding", "proj"];
            let old = old.map(|name| format!("{prefix}{name}"));
            let new = [
                "vision_model.embeddings.patch_embedding.weight",
                "vision_model.pre_layrnorm.bias",
                "vision_model.embeddings.temporal_embedding",
                "visual_projection.weight",
            ];
            check(vision, &old.each_ref().map(|name| &name[..]), &new);
        }
    }

    #[test]
    fn blocks_get_their_parts_apart_and_adapters_keep_their_names() {
        let block = "backbone.transformer.resblocks.11";
        let old = ["attn.in_proj_weight", "ln_2.weight", "mlp.c_proj.bias", "T_Adapter.D_fc1.weight"];
        let mut old: Vec<String> = old.iter().map(|name| format!("{block}.{name}")).collect();
        old.push("backbone.conv1.weight".to_owned());
        let new = [
            "vision_model.embeddings.patch_embedding.weight",
            "vision_model.encoder.layers.11.self_attn.q_proj.weight",
            "vision_model.encoder.layers.11.self_attn.k_proj.weight",
            "vision_model.encoder.layers.11.self_attn.v_proj.weight",
            "vision_model.encoder.layers.11.layer_norm2.weight",
            "vision_model.encoder.layers.11.mlp.fc2.bias",
            "vision_model.encoder.layers.11.T_Adapter.D_fc1.weight",
        ];
        check(vision, &old.iter().map(|name| &name[..]).collect::<Vec<_>>(), &new);
    }

    #[test]
    fn the_thirds_of_attention_are_query_key_and_value() {
        let changed =
            vision(weights(&["conv1.weight", "transformer.resblocks.0.attn.in_proj_weight"])).unwrap();
        let block = "vision_model.encoder.layers.0.self_attn";
        for (part, expected) in [("q", [0.0, 1.0]), ("k", [2.0, 3.0]), ("v", [4.0, 5.0])] {
            let tensor = changed.get(&format!("{block}.{part}_proj.weight"), &[1, 2]).unwrap();
            assert_eq!(tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap(), expected);
        }
    }

    #[test]
    fn the_text_tower_of_a_whole_clip_leaves_its_vision_tower_alone() {
        check(
            text,
            &["token_embedding.weight", "visual.conv1.weight", "ln_final.weight", "text_projection"],
            &[
                "text_model.embeddings.token_embedding.weight",
                "visual.conv1.weight",
                "text_model.final_layer_norm.weight",
                "text_projection.weight",
            ],
        );
    }

    #[test]
    fn two_tables_of_positions_become_one() {
        let table = |from: usize| (from..from + 44).map(|value| value as f32).collect::<Vec<_>>();
        let tables = |second: Vec<usize>| {
            let names = ["positional_embedding", "positional_embedding_res"].map(str::to_owned);
            let [first_name, second_name] = names;
            let values = table(100)[..second.iter().product()].to_vec();
            let both = vec![(first_name, vec![22, 2], table(0)), (second_name, second, values)];
            long(Weights::from_values(both).unwrap())
        };
        let whole = tables(vec![22, 2]).unwrap();
        assert_eq!(whole.names().collect::<Vec<_>>(), ["positional_embedding"]);
        let rows = whole.get("positional_embedding", &[22, 2]).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!((&rows[19], &rows[20]), (&vec![38.0, 39.0], &vec![140.0, 141.0]));
        assert!(matches!(tables(vec![20, 2]), Err(LoadError::WrongShape { .. })));
    }

    #[test]
    fn the_names_of_hugging_face_stay() {
        let names = ["text_model.embeddings.token_embedding.weight", "text_projection.weight"];
        check(text, &names, &names);
        let names = ["vision_model.embeddings.patch_embedding.weight", "conv1.weight"];
        check(vision, &names, &names);
    }

    #[test]
    fn attention_that_has_no_thirds_is_refused() {
        let odd = vec![
            ("conv1.weight".to_owned(), vec![1], vec![0.0]),
            ("transformer.resblocks.0.attn.in_proj_bias".to_owned(), vec![2], vec![0.0, 1.0]),
        ];
        let error = vision(Weights::from_values(odd).unwrap()).unwrap_err();
        assert!(matches!(error, LoadError::WrongShape { .. }), "{error}");
    }
}
