//! Invalid folders in OpenCLIP's layout (encoders.rs compares the vectors of valid ones).

use std::path::Path;

use serde_json::{Value, json};

use super::encoders::{load_changed, refused};

fn edit(change: impl Fn(&mut Value)) -> impl Fn(&Path) {
    move |folder| {
        let path = folder.join("open_clip_config.json");
        let mut value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut value);
        std::fs::write(path, value.to_string()).unwrap();
    }
}

/// Checks the error of loading a folder after a change in `model_cfg`.
#[track_caller]
fn check(variant: &str, at: &[&str], to: &Value, expected: &[&str]) {
    let change = |config: &mut Value| {
        let place = at.iter().fold(&mut config["model_cfg"], |value, key| &mut value[*key]);
        *place = to.clone();
    };
    refused(variant, edit(change), expected);
}

#[test]
fn settings_that_would_change_the_vectors_are_refused_by_name() {
    let clip = "open-clip/clip";
    for (part, key, value) in [
        ("vision_cfg", "ls_init_value", json!(0.1)),
        ("vision_cfg", "attentional_pool", json!(true)),
        ("vision_cfg", "pool_type", json!("avg")),
        ("vision_cfg", "pos_embed_type", json!("sin_cos_2d")),
        ("vision_cfg", "no_ln_pre", json!(true)),
        ("vision_cfg", "layers", json!([3, 4, 6, 3])),
        ("vision_cfg", "timm_model_args", json!({"num_heads": 2})),
        ("text_cfg", "no_causal_mask", json!(true)),
        ("text_cfg", "pool_type", json!("last")),
        ("text_cfg", "embed_cls", json!(true)),
        ("text_cfg", "proj_bias", json!(true)),
        ("text_cfg", "hf_model_name", json!("roberta-base")),
        ("text_cfg", "tokenizer_kwargs", json!({"clean": "canonicalize"})),
        ("text_cfg", "a_setting_of_tomorrow", json!(1)),
    ] {
        check(clip, &[part, key], &value, &[part, key]);
    }
    check(clip, &["multimodal_cfg"], &json!({"layers": 2}), &["multimodal_cfg"]);
    check("open-clip/custom", &["vision_cfg", "act_kwargs"], &json!({"approximate": "other"}), &["other"]);
    let eva = "open-clip/eva";
    check(eva, &["vision_cfg", "timm_model_name"], &json!("convnext_base"), &["convnext_base", "eva02_base"]);
    check(eva, &["vision_cfg", "timm_pool"], &json!("avg"), &["timm_pool"]);
    check(eva, &["vision_cfg", "timm_proj"], &json!("linear"), &["timm_proj"]);
    check(eva, &["vision_cfg", "timm_model_args"], &json!(null), &["num_heads"]);
    check(eva, &["vision_cfg", "image_size"], &json!(40), &["40x40"]);
}

#[test]
fn a_text_tower_is_siglips_wholly_or_refused_by_what_it_lacks() {
    let siglip = "open-clip-siglip/one";
    let clean = |how: &str| json!({"clean": how});
    check(siglip, &["text_cfg", "tokenizer_kwargs"], &clean("lower"), &["text_cfg", "tokenizer_kwargs"]);
    check(siglip, &["text_cfg", "proj_bias"], &json!(false), &["without text_cfg.proj_bias"]);
    check(siglip, &["text_cfg", "no_causal_mask"], &json!(false), &["text_cfg", "pool_type"]);
    check(siglip, &["text_cfg", "pool_type"], &json!("first"), &["text_cfg", "no_causal_mask"]);
    check(siglip, &["text_cfg", "use_pad_mask"], &json!(true), &["text_cfg", "use_pad_mask"]);
    check(siglip, &["vision_cfg", "timm_pool"], &json!("avg"), &["timm_pool"]);
    check(siglip, &["vision_cfg", "timm_proj"], &json!("linear"), &["timm_proj"]);
    check(siglip, &["vision_cfg", "timm_proj"], &json!(null), &["timm_proj"]);
    let unsaid = |folder: &Path| std::fs::remove_file(folder.join("tokenizer_config.json")).unwrap();
    refused(siglip, unsaid, &["tokenizer_config.json", "pad_token"]);
    assert_eq!(load_changed(siglip, |_| ()).unwrap().space.family, "siglip");
}

#[test]
fn settings_that_leave_the_vectors_alone_are_read_over() {
    let harmless = edit(|config| {
        config["model_cfg"]["init_logit_bias"] = json!(-10);
        config["model_cfg"]["vision_cfg"]["patch_dropout"] = json!(0.5);
        config["model_cfg"]["text_cfg"]["hf_tokenizer_name"] = json!("org/name");
    });
    load_changed("open-clip/clip", harmless).unwrap();
}

#[test]
fn a_folder_without_a_tokenizer_says_where_to_get_one() {
    let remove = |folder: &Path| std::fs::remove_file(folder.join("tokenizer.json")).unwrap();
    refused("open-clip/clip", remove, &["tokenizer.json", "openai/clip-vit-base-patch32"]);
    let named = |folder: &Path| {
        edit(|config| config["model_cfg"]["text_cfg"]["hf_tokenizer_name"] = json!("org/name"))(folder);
        remove(folder);
    };
    refused("open-clip/clip", named, &["tokenizer.json", "org/name"]);
}

#[test]
fn a_config_of_another_program_beside_it_does_not_matter() {
    let timm = |folder: &Path| {
        std::fs::write(folder.join("config.json"), r#"{"architecture": "eva02_base_patch16_clip_224"}"#)
            .unwrap();
    };
    let space = load_changed("open-clip/eva", timm).unwrap().space;
    assert_eq!(space.family, "eva-clip");
}

#[test]
fn a_tensor_that_has_no_place_in_the_tower_is_named() {
    let odd = |folder: &Path| {
        let path = folder.join("open_clip_model.safetensors");
        let bytes = std::fs::read(&path).unwrap();
        // The names have equal lengths, so the header stays valid.
        let (from, to) =
            (b"visual.trunk.blocks.0.attn.norm.weight", b"visual.trunk.blocks.0.attn.gate.weight");
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        let bytes = [&bytes[..at], to, &bytes[at + to.len()..]].concat();
        std::fs::write(path, bytes).unwrap();
    };
    refused("open-clip/eva", odd, &["visual.trunk.blocks.0.attn.gate.weight"]);
}
