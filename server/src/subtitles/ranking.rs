//! Which cues answer a text best: BM25 over their words, those that hold the text's words in sequence first.
//!
//! Computed here and not by a database, so that SQLite and Postgres rank alike.

use std::collections::{HashMap, HashSet};

use super::words::{is_stop_word, words};

/// Words of a query that are looked for at most: its rarest.
const MAX_TERMS: usize = 64;
/// Distinct words of a query that are looked at.
const MAX_WORDS: usize = 4096;
/// Longer texts are not sought as a quotation.
const MAX_SEQUENCE: usize = 100;
/// How much a repeated word counts, and how much a cue's length (BM25's k1 and b).
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.5;
/// Words of a usual cue.
const USUAL_WORDS: f64 = 10.0;

/// What is sought among the cues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CueQuery {
    words: Vec<String>,
}

impl CueQuery {
    /// Of a text of any length.
    pub fn new(text: &str) -> CueQuery {
        CueQuery { words: words(text) }
    }

    /// Whether it has no word at all: then it finds nothing.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Its words in order, folded.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Its distinct words, the stop words left out unless there are no others.
    pub fn telling_words(&self) -> Vec<&str> {
        let distinct = |keep: &dyn Fn(&str) -> bool| -> Vec<&str> {
            let mut seen = HashSet::new();
            let kept = self.words.iter().map(String::as_str).filter(|word| keep(word) && seen.insert(*word));
            kept.take(MAX_WORDS).collect()
        };
        let telling = distinct(&|word| !is_stop_word(word));
        if telling.is_empty() { distinct(&|_| true) } else { telling }
    }
}

/// The words that cues are sought by and how much each counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// Rarest first: word, cues that have it, weight.
    chosen: Vec<(String, i64, f64)>,
    weights: HashMap<String, f64>,
}

impl Terms {
    /// The rarest words of `query` that are in cues at all; `frequencies` says in how many of `cues` each is.
    pub fn new(query: &CueQuery, frequencies: &HashMap<String, i64>, cues: i64) -> Terms {
        let known = query.telling_words().into_iter().filter_map(|word| {
            let cues_with = frequencies.get(word).copied().filter(|count| *count > 0)?;
            Some((word.to_owned(), cues_with, rarity(cues_with, cues)))
        });
        let mut chosen: Vec<(String, i64, f64)> = known.collect();
        chosen.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        chosen.truncate(MAX_TERMS);
        let weights = chosen.iter().map(|(word, _, weight)| (word.clone(), *weight)).collect();
        Terms { chosen, weights }
    }

    /// The words, rarest first, as long as they are in no more than `most` cues together; at least one, if
    /// there is one.
    pub fn within(&self, most: i64) -> Vec<&str> {
        let mut sum = 0;
        let fits = |(number, (_, count, _)): &(usize, &(String, i64, f64))| {
            sum += count;
            *number == 0 || sum <= most
        };
        let fitting = self.chosen.iter().enumerate().take_while(fits);
        fitting.map(|(_, (word, ..))| word.as_str()).collect()
    }

    /// The rarest word.
    pub fn rarest(&self) -> Option<&str> {
        self.chosen.first().map(|(word, ..)| word.as_str())
    }

    /// How well a cue with these words answers.
    pub fn score(&self, cue: &[&str]) -> f64 {
        let mut counts: HashMap<&str, f64> = HashMap::new();
        for word in cue.iter().filter(|word| self.weights.contains_key(**word)) {
            *counts.entry(word).or_default() += 1.0;
        }
        let length = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * cue.len() as f64 / USUAL_WORDS);
        let mut parts: Vec<f64> = counts
            .into_iter()
            .map(|(word, count)| self.weights[word] * count * (SATURATION + 1.0) / (count + length))
            .collect();
        // A sum of floats depends on their order, and a map has none.
        parts.sort_by(f64::total_cmp);
        parts.into_iter().sum()
    }
}

/// BM25's inverse document frequency.
fn rarity(cues_with: i64, cues: i64) -> f64 {
    let (with, all) = (cues_with as f64, cues.max(cues_with) as f64);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

/// How the words of a query may lie across a cue that has some of them in sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// Words of the query that must stand in the cues before.
    pub before: usize,
    /// Words of the query that must stand in the cues after.
    pub after: usize,
}

/// The ways in which the words of `query` may run through `cue`, where its word `anchor` is in it: those whose
/// part inside the cue is there.
pub fn fits(query: &CueQuery, anchor: &str, cue: &[&str]) -> Vec<Fit> {
    let sought = query.words();
    if sought.len() > MAX_SEQUENCE {
        return Vec::new();
    }
    let places = |word: &str, of: &[&str]| -> Vec<usize> {
        of.iter().enumerate().filter(|(_, it)| **it == word).map(|(at, _)| at).collect()
    };
    let sought: Vec<&str> = sought.iter().map(String::as_str).collect();
    let mut fits = Vec::new();
    for in_query in places(anchor, &sought) {
        for in_cue in places(anchor, cue) {
            let before = in_query.saturating_sub(in_cue);
            let from = in_cue + before - in_query;
            let inside = &sought[before..];
            let length = inside.len().min(cue.len() - from);
            let fit = Fit { before, after: inside.len() - length };
            if inside[..length] == cue[from..from + length] && !fits.contains(&fit) {
                fits.push(fit);
            }
        }
    }
    fits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(text: &str) -> Vec<&str> {
        text.split_whitespace().collect()
    }

    #[track_caller]
    fn check(query: &str, anchor: &str, cue: &str, expected: &[(usize, usize)]) {
        let got = fits(&CueQuery::new(query), anchor, &split(cue));
        let expected: Vec<Fit> =
            expected.iter().map(|(before, after)| Fit { before: *before, after: *after }).collect();
        assert_eq!(got, expected, "{query:?} in {cue:?}");
    }

    #[test]
    fn a_sequence_may_reach_over_the_ends_of_a_cue() {
        check("byte pair encoding", "pair", "the byte pair encoding is", &[(0, 0)]);
        check("byte pair encoding", "pair", "use byte pair", &[(0, 1)]);
        check("byte pair encoding", "encoding", "encoding of words", &[(2, 0)]);
        check("byte pair encoding", "pair", "pair", &[(1, 1)]);
        check("byte pair encoding", "pair", "a pair of bytes", &[]);
        check("byte pair encoding", "pair", "byte pair of byte pair encoding", &[(0, 0)]);
        check("so so so", "so", "so", &[(0, 2), (1, 1), (2, 0)]);
        check("x", "y", "y", &[]);
    }

    fn terms(query: &str) -> Terms {
        let frequencies = [("the", 900), ("model", 100), ("bias", 3), ("gone", 0)];
        let frequencies = frequencies.into_iter().map(|(word, count)| (word.to_owned(), count)).collect();
        Terms::new(&CueQuery::new(query), &frequencies, 1000)
    }

    #[test]
    fn rare_words_count_most_and_stop_words_nothing_beside_others() {
        let both = terms("the bias of the model is gone");
        assert_eq!(
            (both.within(1000), both.within(50), both.rarest()),
            (vec!["bias", "model"], vec!["bias"], Some("bias"))
        );
        assert!(both.score(&["bias"]) > both.score(&["model"]));
        assert!(both.score(&["model", "bias"]) > both.score(&["bias"]));
        assert!(both.score(&["bias"]) > both.score(&["bias", "a", "b", "c", "d", "e", "f"]));
        assert_eq!(both.score(&["the"]), 0.0);
        assert!(terms("the").score(&["the"]) > 0.0);
        assert_eq!(terms("nowhere").within(10), Vec::<&str>::new());
    }

    #[test]
    fn a_long_query_is_sought_by_its_rarest_words() {
        let text: Vec<String> = (0..2000).map(|number| format!("w{number}")).collect();
        let frequencies = (0..2000_i64).map(|number| (format!("w{number}"), 2000 - number)).collect();
        let terms = Terms::new(&CueQuery::new(&text.join(" ")), &frequencies, 5000);
        assert_eq!((terms.within(i64::MAX).len(), terms.rarest()), (MAX_TERMS, Some("w1999")));
    }

    proptest! {
        #[test]
        fn a_cut_text_is_found_again_at_every_cut(
            text in proptest::collection::vec("[a-c]", 1..12),
            cut in (0..12_usize, 0..12_usize),
            around in (proptest::collection::vec("[a-c]", 0..4), proptest::collection::vec("[a-c]", 0..4)),
        ) {
            let (from, to) = (cut.0 % text.len(), cut.1 % text.len());
            let (from, to) = (from.min(to), from.max(to) + 1);
            let before = if from == 0 { around.0 } else { Vec::new() };
            let after = if to == text.len() { around.1 } else { Vec::new() };
            let cue: Vec<&str> = before.iter().chain(&text[from..to]).chain(&after).map(String::as_str).collect();
            let query = CueQuery::new(&text.join(" "));
            let found = fits(&query, &text[from], &cue);
            prop_assert!(found.contains(&Fit { before: from, after: text.len() - to }), "{found:?}");
        }
    }
}
