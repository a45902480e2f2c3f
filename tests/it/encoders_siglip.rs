//! Invalid SigLIP folders (encoders.rs compares the vectors of valid ones).

use std::path::Path;

use reprise_encoders::text::Tokens;
use reprise_encoders::{Embedder, Input};
use serde_json::{Value, json};

use super::encoders::{edit, load_changed, refused};

#[track_caller]
fn check(file: &'static str, change: impl Fn(&mut Value), expected: &[&str]) {
    refused("siglip/one", edit(file, change), expected);
}

#[test]
fn what_would_give_wrong_vectors_is_refused_by_its_name() {
    check("config.json", |it| it["model_type"] = json!("siglip2"), &["siglip2", "NaFlex"]);
    check("config.json", |it| it["vision_config"]["vision_use_head"] = json!(false), &["vision_use_head"]);
    check("config.json", |it| it["vision_config"]["hidden_act"] = json!("mish"), &["mish"]);
    check(
        "config.json",
        |it| it["vision_config"]["num_attention_heads"] = json!(5),
        &["num_attention_heads"],
    );
    check("config.json", |it| it["text_config"]["projection_size"] = json!(16), &["24", "16"]);
    check(
        "tokenizer_config.json",
        |it| it["padding_side"] = json!("middle"),
        &["tokenizer_config.json", "middle"],
    );
    check("tokenizer_config.json", |it| it["pad_token"] = json!("<nothing>"), &["<nothing>"]);
    check(
        "tokenizer_config.json",
        |it| it["pad_token"] = json!(null),
        &["tokenizer_config.json", "pad_token"],
    );
}

#[test]
fn the_padding_is_the_tokenizers_or_else_the_files() {
    let space = |change: &dyn Fn(&Path)| load_changed("siglip/one", change).unwrap().space.id;
    let own = space(&|_| ());
    let described =
        edit("tokenizer_config.json", |it| it["pad_token"] = json!({"content": "</s>", "lstrip": true}));
    assert_eq!(space(&described), own);
    let nothing = edit("tokenizer_config.json", |it| it["pad_token"] = json!(null));
    let stated = |id: u32| edit("config.json", move |it| it["text_config"]["pad_token_id"] = json!(id));
    let in_config = |id: u32| {
        space(&|folder: &Path| {
            nothing(folder);
            stated(id)(folder);
        })
    };
    assert_ne!(in_config(0), in_config(1), "another padding makes another space");
}

#[test]
fn padding_on_the_left_is_that_of_a_text_with_padding_before_it() {
    let vector = |model: Embedder, ids: &[u32]| {
        let text = Input::Text(Tokens { ids: ids.to_vec() });
        let Embedder { mut encoders, .. } = model;
        encoders[0].encode(&[text]).unwrap().remove(0)
    };
    let beside =
        |change: fn(&mut Value)| load_changed("siglip/one", edit("tokenizer_config.json", change)).unwrap();
    let own = beside(|_| ());
    let longest = own.space.max_text_tokens;
    let pad = own.tokenizer.as_ref().unwrap().ids("").unwrap()[0];
    let text = [7, 9, 11, pad];
    let before: Vec<u32> = std::iter::repeat_n(pad, longest - text.len()).chain(text).collect();
    let expected = vector(own, &before);
    assert_eq!(vector(beside(|it| it["padding_side"] = json!("left")), &text), expected);
    for class in ["Siglip2Tokenizer", "GemmaTokenizer", "GemmaTokenizerFast"] {
        let by_class = edit("tokenizer_config.json", |it| {
            it["padding_side"] = json!(null);
            it["tokenizer_class"] = json!(class);
        });
        assert_eq!(vector(load_changed("siglip/one", by_class).unwrap(), &text), expected, "{class}");
    }
    assert_ne!(vector(beside(|_| ()), &text), expected);
    let nothing = vector(beside(|_| ()), &[]);
    assert_eq!(
        nothing,
        vector(beside(|_| ()), &vec![pad; longest]),
        "a tokenizer may add nothing to no text"
    );
}
