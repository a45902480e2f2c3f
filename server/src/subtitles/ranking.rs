//! Ranks cues for a query: BM25 over their words, and whether a cue has the query's words in sequence.
//!
//! Computed here, not in a database, so that SQLite and Postgres rank alike.

use std::collections::{HashMap, HashSet};

use super::words::{is_stop_word, words};

/// Largest number of a query's words to search. The rarest words are searched.
const MAX_TERMS: usize = 64;
/// Largest number of distinct words of a query that are considered.
const MAX_WORDS: usize = 4096;
/// Longer queries, in words, are not searched as a quotation.
const MAX_SEQUENCE: usize = 100;
/// BM25's k1 (saturation of repeated words) and b (weight of a cue's length).
const SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.2;
/// BM25's average length, fixed.
const USUAL_WORDS: f64 = 10.0;
/// Neighbouring cues on each side that add to a cue's score, the weight of the nearest, and the factor per further
/// cue. A thought often spans cues. A weight below 1 lets the cue with the words itself rank first.
const NEIGHBOURS: i64 = 5;
const NEIGHBOUR_WEIGHT: f64 = 0.4;
const FARTHER_WEIGHT: f64 = 0.9;

/// The words to search for in cues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CueQuery {
    words: Vec<String>,
}

impl CueQuery {
    /// Splits a text of any length into words.
    pub fn new(text: &str) -> CueQuery {
        CueQuery { words: words(text) }
    }

    /// Whether it has no word. It then finds nothing.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Its words in order, folded.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Its distinct words without stop words. A query of stop words only keeps them.
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

/// A cue to rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankedCue<'a> {
    /// Number of its track.
    pub track: i64,
    /// Its place in the track.
    pub place: i64,
    /// Its folded words, separated by spaces.
    pub words: &'a str,
}

/// The words to search for, with their weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// Rarest first, at most 64: word, number of cues with it, weight.
    chosen: Vec<(String, i64, f64)>,
    /// Index of each word in `chosen`.
    places: HashMap<String, usize>,
}

impl Terms {
    /// The rarest words of `query` that occur in cues. `frequencies`: in how many of the `cues` cues each word occurs.
    pub fn new(query: &CueQuery, frequencies: &HashMap<String, i64>, cues: i64) -> Terms {
        let known = query.telling_words().into_iter().filter_map(|word| {
            let cues_with = frequencies.get(word).copied().filter(|count| *count > 0)?;
            Some((word.to_owned(), cues_with, rarity(cues_with, cues)))
        });
        let mut chosen: Vec<(String, i64, f64)> = known.collect();
        chosen.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        chosen.truncate(MAX_TERMS);
        let places = chosen.iter().enumerate().map(|(at, (word, ..))| (word.clone(), at)).collect();
        Terms { chosen, places }
    }

    /// The rarest words that together occur in at most `most` cues. Returns at least one word, if there is one.
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

    /// Scores cues by their own words, by further words of their neighbours in `cues`, and by `whole` times the score
    /// of their whole track.
    pub fn scores(&self, cues: &[RankedCue<'_>], whole: f64) -> Vec<f64> {
        let found: Vec<(f64, u64)> = cues.iter().map(|cue| self.own(cue.words)).collect();
        let at: HashMap<(i64, i64), u64> =
            cues.iter().zip(&found).map(|(cue, (_, held))| ((cue.track, cue.place), *held)).collect();
        let mut tracks: HashMap<i64, [u32; MAX_TERMS]> = HashMap::new();
        for (cue, (_, held)) in cues.iter().zip(&found) {
            let counts = tracks.entry(cue.track).or_insert([0; MAX_TERMS]);
            bits(*held).for_each(|term| counts[term] += 1);
        }
        let of_track: HashMap<i64, f64> =
            tracks.into_iter().map(|(track, counts)| (track, self.whole(&counts))).collect();
        let score = |(cue, (own, held)): (&RankedCue<'_>, &(f64, u64))| {
            let near = |distance: i64| {
                [cue.place + distance, cue.place - distance].map(|place| at.get(&(cue.track, place)).copied())
            };
            own + self.around(*held, near) + whole * of_track.get(&cue.track).copied().unwrap_or(0.0)
        };
        cues.iter().zip(&found).map(score).collect()
    }

    /// The score of a cue's own words, and their bits.
    fn own(&self, cue: &str) -> (f64, u64) {
        let (mut counts, mut length) = ([0_u32; MAX_TERMS], 0.0);
        for word in cue.split(' ') {
            length += 1.0;
            if let Some(term) = self.places.get(word) {
                counts[*term] += 1;
            }
        }
        let saturation = SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / USUAL_WORDS);
        let held = (0..MAX_TERMS).filter(|term| counts[*term] > 0).fold(0, |held, term| held | 1 << term);
        (self.saturated(&counts, saturation), held)
    }

    fn whole(&self, counts: &[u32; MAX_TERMS]) -> f64 {
        self.saturated(counts, SATURATION)
    }

    fn saturated(&self, counts: &[u32; MAX_TERMS], saturation: f64) -> f64 {
        let counted = self.chosen.iter().zip(counts).filter(|(_, count)| **count > 0);
        let part = |((_, _, weight), count): (&(String, i64, f64), &u32)| {
            weight * f64::from(*count) * (SATURATION + 1.0) / (f64::from(*count) + saturation)
        };
        counted.map(part).sum()
    }

    /// The score of words that neighbours have and `held` lacks.
    fn around(&self, mut held: u64, near: impl Fn(i64) -> [Option<u64>; 2]) -> f64 {
        let (mut score, mut weight) = (0.0, NEIGHBOUR_WEIGHT);
        for distance in 1..=NEIGHBOURS {
            for neighbour in near(distance).into_iter().flatten() {
                score += bits(neighbour & !held).map(|term| weight * self.chosen[term].2).sum::<f64>();
                held |= neighbour;
            }
            weight *= FARTHER_WEIGHT;
        }
        score
    }
}

/// The terms whose bit is set.
fn bits(held: u64) -> impl Iterator<Item = usize> {
    (0..MAX_TERMS).filter(move |term| held >> term & 1 == 1)
}

/// BM25's inverse document frequency.
fn rarity(cues_with: i64, cues: i64) -> f64 {
    let (with, all) = (cues_with as f64, cues.max(cues_with) as f64);
    (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
}

/// Words of the query that a cue's neighbours must have to complete a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// Words that the cues before must have.
    pub before: usize,
    /// Words that the cues after must have.
    pub after: usize,
}

/// The ways to align `query` with `cue` at the word `anchor`, such that the part inside the cue matches word for
/// word.
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
            (both.within(103), both.within(102), both.within(0), both.rarest()),
            (vec!["bias", "model"], vec!["bias"], vec!["bias"], Some("bias"))
        );
        let score = |terms: &Terms, words: &str| terms.scores(&[cue(0, words)], 0.0)[0];
        assert!(score(&both, "bias") > score(&both, "model"));
        assert!(score(&both, "model bias") > score(&both, "bias"));
        assert!(score(&both, "bias") > score(&both, "bias a b c d e f"));
        assert_eq!(score(&both, "the"), 0.0);
        assert!(score(&terms("the"), "the") > 0.0);
        assert_eq!(terms("nowhere").within(10), Vec::<&str>::new());
    }

    fn cue(place: i64, words: &str) -> RankedCue<'_> {
        RankedCue { track: 0, place, words }
    }

    #[test]
    fn neighbours_and_the_whole_track_count_less_than_the_cue_itself() {
        let terms = terms("model bias");
        let others = "some other words that make it a cue of more than usual length for all to see";
        let long = format!("bias model {others}");
        let beside = [cue(4, "bias"), cue(5, &long), cue(6, others), cue(12, "model")];
        let scores = terms.scores(&beside, 0.0);
        assert!(scores[1] > scores[0] && scores[0] > scores[2] && scores[2] > 0.0, "{scores:?}");
        assert_eq!(terms.scores(&[cue(12, "model")], 0.0)[0], scores[3], "too far away to count");
        let elsewhere = RankedCue { track: 1, ..cue(4, "bias") };
        let alone = terms.scores(&[elsewhere, cue(4, "bias"), cue(40, "bias")], 0.3);
        assert!(alone[1] > alone[0], "a track that says it more often: {alone:?}");
    }

    /// The scores that `model bias` gives to cues of one track; `whole` as in [`Terms::scores`].
    #[track_caller]
    fn check_scores(cues: &[(i64, &str)], whole: f64, expected: &[f64]) {
        let cues: Vec<RankedCue<'_>> = cues.iter().map(|(place, words)| cue(*place, words)).collect();
        let got = terms("model bias").scores(&cues, whole);
        assert!(got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-5), "{got:?}");
        assert_eq!(got.len(), expected.len());
    }

    #[test]
    fn scores_are_those_of_bm25() {
        // The weights are ln(286) = 5.65599 for bias, in 3 of 1000 cues, and 2.29860 for model, in 100.
        check_scores(&[(0, "bias")], 0.0, &[6.271_765]);
        check_scores(&[(0, "bias bias")], 0.0, &[8.273_392]);
        check_scores(&[(0, "bias model and model")], 0.0, &[9.361_630]);
        // A neighbour's word counts 0.4, 0.9 times that each cue farther, and nothing from the sixth on.
        check_scores(
            &[(4, "bias"), (5, "x"), (6, "x"), (9, "x"), (10, "x")],
            0.0,
            &[6.271_765, 2.262_397, 2.036_157, 1.484_358, 0.0],
        );
        check_scores(
            &[(4, "bias"), (5, "x"), (6, "bias model")],
            0.0,
            &[6.271_765 + 0.827_495, 3.181_836, 8.715_187],
        );
        check_scores(&[(0, "bias"), (40, "x")], 0.5, &[9.099_761, 2.827_996]);
    }

    #[test]
    fn a_quotation_has_a_hundred_words_at_most() {
        let long = |count: usize| vec!["so"; count - 1].join(" ") + " what";
        check(&long(100), "what", "what", &[(99, 0)]);
        check(&long(101), "what", "what", &[]);
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
