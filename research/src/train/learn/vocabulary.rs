//! A WordPiece tokenizer learnt from the training texts: whole words, and single letters for unknown words.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;

use super::{Random, TrainError};
use reprise_encoders::text::{Specials, Tokenizer};

/// Numbers, words, and each other character by itself.
const PATTERN: &str = r"\d+\.\d+|\d+|[a-z]+|[^\sa-z\d]";
/// Characters with tokens of their own, to spell unknown words.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz0123456789.,()-'!?:;/\"&%+";
/// Occurrences that a word needs for a token of its own.
const SEEN: usize = 2;

/// Changes to texts in training.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Probability of spelling a word letter by letter.
    pub spelt: f32,
    /// Probability of an unknown word before each word.
    pub strange: f32,
}

impl Noise {
    /// No changes.
    pub const NONE: Noise = Noise { spelt: 0.0, strange: 0.0 };
}

/// The tokenizer, and the ids of its tokens.
pub struct Vocabulary {
    json: Vec<u8>,
    tokenizer: Tokenizer,
    ids: HashMap<String, u32>,
}

impl Vocabulary {
    /// Builds the vocabulary of `texts`, for a model with at most `longest` tokens.
    ///
    /// # Errors
    /// [`TrainError::Data`] without texts.
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>, longest: usize) -> Result<Self, TrainError> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for text in texts {
            words(text).for_each(|word| *counts.entry(word).or_default() += 1);
        }
        if counts.is_empty() {
            return Err(TrainError::Data("there are no texts".into()));
        }
        let mut tokens = vec!["[UNK]".to_owned(), "[CLS]".to_owned()];
        tokens.extend(LETTERS.chars().map(String::from));
        tokens.extend(LETTERS.chars().map(|letter| format!("##{letter}")));
        let known = counts.into_iter().filter(|(word, count)| *count >= SEEN && word.chars().count() > 1);
        tokens.extend(known.map(|(word, _)| word));
        let ids: HashMap<String, u32> = tokens.into_iter().zip(0..).collect();
        let json = tokenizer(&ids).to_string().into_bytes();
        Vocabulary::new(json, ids, longest)
    }

    fn new(json: Vec<u8>, ids: HashMap<String, u32>, longest: usize) -> Result<Self, TrainError> {
        let tokenizer = Tokenizer::from_json(&json, Specials::default(), longest)
            .map_err(|error| TrainError::Data(error.into()))?;
        Ok(Vocabulary { json, tokenizer, ids })
    }

    /// The contents of `tokenizer.json`.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// Number of tokens.
    pub fn size(&self) -> usize {
        self.ids.len()
    }

    /// The ids of `text`, at most the model's limit. Spelling known words trains the letters. Unknown words
    /// teach the model to ignore them. `noise` gives the probabilities of both.
    ///
    /// # Errors
    /// [`TrainError::Data`] if the tokenizer can't read the text.
    pub fn ids(&self, text: &str, noise: Noise, random: &mut Random) -> Result<Vec<u32>, TrainError> {
        let unreadable = |error: reprise_encoders::text::TextError| TrainError::Data(error.into());
        if noise == Noise::NONE {
            let mut ids = self.tokenizer.ids(text).map_err(unreadable)?;
            ids.truncate(self.tokenizer.max_tokens());
            return Ok(ids);
        }
        let mut ids = vec![self.id("[CLS]")];
        for word in words(text) {
            if random.chance(noise.strange) {
                ids.extend(self.strange_word(random)?);
            }
            match self.ids.get(&word) {
                Some(id) if !random.chance(noise.spelt) => ids.push(*id),
                Some(_) => ids.extend(self.spell(&word)),
                None => ids.extend(self.tokenizer.ids(&word).map_err(unreadable)?.into_iter().skip(1)),
            }
        }
        ids.truncate(self.tokenizer.max_tokens());
        Ok(ids)
    }

    /// The ids of a random word of two to nine letters, so that the model learns to ignore unknown words.
    ///
    /// # Errors
    /// See [`ids`](Self::ids).
    fn strange_word(&self, random: &mut Random) -> Result<Vec<u32>, TrainError> {
        let word: String = (0..random.below(8) + 2)
            .map(|at| if at % 2 == 0 { "bcdfghklmnprstvw" } else { "aeiouy" })
            .filter_map(|letters| letters.chars().nth(random.below(letters.len())))
            .collect();
        let ids = self.tokenizer.ids(&word).map_err(|error| TrainError::Data(error.into()))?;
        Ok(ids.into_iter().skip(1).collect())
    }

    fn id(&self, token: &str) -> u32 {
        self.ids.get(token).copied().unwrap_or(0)
    }

    fn spell(&self, word: &str) -> Vec<u32> {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| self.id(&letter.to_string()));
        first.into_iter().chain(letters.map(|letter| self.id(&format!("##{letter}")))).collect()
    }
}

/// The words of a text, split as the tokenizer's pre-tokenizer splits them.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut letters = text.to_lowercase().chars().collect::<Vec<_>>().into_iter().peekable();
    std::iter::from_fn(move || {
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        let first = letters.next()?;
        let mut word = String::from(first);
        if first.is_ascii_digit() {
            while let Some(letter) = letters.next_if(char::is_ascii_digit) {
                word.push(letter);
            }
            let mut ahead = letters.clone();
            if ahead.next() == Some('.') && ahead.peek().is_some_and(char::is_ascii_digit) {
                word.extend(letters.next());
                while let Some(letter) = letters.next_if(char::is_ascii_digit) {
                    word.push(letter);
                }
            }
        } else if first.is_ascii_lowercase() {
            while let Some(letter) = letters.next_if(char::is_ascii_lowercase) {
                word.push(letter);
            }
        }
        Some(word)
    })
}

/// A WordPiece model: the longest known prefix of a word, then its letters.
fn tokenizer(ids: &HashMap<String, u32>) -> serde_json::Value {
    let special = |content: &str, id: u32| {
        json!({"id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true})
    };
    let vocabulary: BTreeMap<&String, &u32> = ids.iter().collect();
    json!({
        "version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [special("[UNK]", 0), special("[CLS]", 1)],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Removed", "invert": true},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [1], "tokens": ["[CLS]"]}}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": false},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100, "vocab": vocabulary},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary() -> Vocabulary {
        let texts = ["show 2.5 twists", "Show 2.5 twists (piked)", "show it piked, twist", "twist"];
        Vocabulary::of(texts.into_iter(), 16).unwrap()
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let vocabulary = vocabulary();
        let names: HashMap<u32, &String> = vocabulary.ids.iter().map(|(name, id)| (*id, name)).collect();
        let read = |ids: Vec<u32>| ids.into_iter().map(|id| &names[&id][..]).collect::<Vec<_>>();
        let got = vocabulary.ids(text, Noise::NONE, &mut Random::new(&[])).unwrap();
        assert_eq!(read(got)[1..], *expected);
        // Without random spelling, training must tokenize as search does.
        let got = vocabulary
            .ids(text, Noise { spelt: f32::MIN_POSITIVE, ..Noise::NONE }, &mut Random::new(&[]))
            .unwrap();
        assert_eq!(read(got)[1..], *expected);
    }

    #[test]
    fn known_words_are_one_token_and_others_are_spelt() {
        check("Show 2.5 TWISTS", &["show", "2.5", "twists"]);
        check("(show) piked.", &["(", "show", ")", "piked", "."]);
        check("twister", &["twist", "##e", "##r"]);
        check("twistss", &["twists", "##s"]);
        check("3.5x", &["3", "##.", "##5", "x"]);
        check("2.", &["2", "."]);
        check("", &[]);
    }

    #[test]
    fn a_sign_that_nobody_knows_is_unknown() {
        check("show \u{2603} 2.5", &["show", "[UNK]", "2.5"]);
        check("\u{e9}lan", &["[UNK]", "l", "##a", "##n"]);
    }

    #[test]
    fn all_words_can_be_spelt_and_no_text_is_too_long() {
        let vocabulary = vocabulary();
        let ids =
            vocabulary.ids("show it", Noise { spelt: 1.0, ..Noise::NONE }, &mut Random::new(&[1])).unwrap();
        assert_eq!(ids.len(), 1 + 4 + 1 + 1);
        assert_eq!(
            vocabulary
                .ids(&"show ".repeat(99), Noise { spelt: 0.5, strange: 0.5 }, &mut Random::new(&[1]))
                .unwrap()
                .len(),
            16
        );
        assert_eq!(
            vocabulary.ids(&"show ".repeat(99), Noise::NONE, &mut Random::new(&[1])).unwrap().len(),
            16
        );
    }
}
