//! Prompts before queries and passages, for encoders trained with them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::head::optional;
use crate::loading::{LoadError, ModelFiles};

/// The file with a model's prompts.
pub(super) const PROMPTS: &str = "config_sentence_transformers.json";

#[derive(Debug, Default, Deserialize)]
struct PromptsConfig {
    #[serde(default)]
    prompts: BTreeMap<String, String>,
}

/// Prompts before queries and before passages; empty for most models.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prompts {
    pub(super) query: String,
    pub(super) passage: String,
}

/// The prompts in the model's files, otherwise the known ones of its kind.
///
/// # Errors
/// [`LoadError::BadFile`].
pub(super) fn prompts(model: &ModelFiles, name_or_path: Option<&str>) -> Result<Prompts, LoadError> {
    let given: PromptsConfig = optional(model, PROMPTS)?.unwrap_or_default();
    let find = |names: &[&str]| names.iter().find_map(|name| given.prompts.get(*name)).cloned();
    let query = find(&["query"]).unwrap_or_default();
    let passage = find(&["passage", "document", "corpus"]).unwrap_or_default();
    let given = Prompts { query, passage };
    // Newer versions of sentence-transformers write empty prompts for every model.
    if given != Prompts::default() {
        return Ok(given);
    }
    let from = name_or_path.unwrap_or_default();
    Ok(known_prompts(&model.name().short()).or_else(|| known_prompts(from)).unwrap_or_default())
}

/// The prompts in the model cards of E5 (arXiv 2212.03533) and BGE (arXiv 2309.07597), by words of the model's name.
fn known_prompts(name: &str) -> Option<Prompts> {
    let name = name.to_lowercase();
    let words: Vec<&str> = name.split(|letter: char| !letter.is_ascii_alphanumeric()).collect();
    let has = |word: &str| words.contains(&word);
    let prompts =
        |query: &str, passage: &str| Some(Prompts { query: query.to_owned(), passage: passage.to_owned() });
    match () {
        // The user of an instruct model writes the instruction; BGE-M3 has no prompt.
        () if has("instruct") || (has("bge") && has("m3")) => None,
        () if has("e5") => prompts("query: ", "passage: "),
        () if has("bge") && has("zh") => prompts("为这个句子生成表示以用于检索相关文章：", ""),
        () if has("bge") => prompts("Represent this sentence for searching relevant passages: ", ""),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, expected: Option<(&str, &str)>) {
        let got = known_prompts(name);
        assert_eq!(got.as_ref().map(|it| (&it.query[..], &it.passage[..])), expected, "{name}");
    }

    #[test]
    fn families_with_prompts_are_known_by_their_names() {
        let e5 = Some(("query: ", "passage: "));
        check("e5-small-v2", e5);
        check("intfloat/multilingual-E5-base", e5);
        check("bge-small-en-v1.5", Some(("Represent this sentence for searching relevant passages: ", "")));
        check("BAAI/bge-large-zh", Some(("为这个句子生成表示以用于检索相关文章：", "")));
        check("bge-m3", None);
        check("multilingual-e5-large-instruct", None);
        check("all-minilm-l6-v2", None);
        check("size5-model", None);
    }
}
