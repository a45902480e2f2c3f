//! Pairs of labels that differ in the action within one event, or in the event of one action, with their similarity.

use std::collections::{BTreeMap, BTreeSet};

use reprise_index::UnitVector;

use super::check::words;
use super::label::Label;

/// The difference within a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// Another action in the same event.
    Temporal,
    /// The same action in another event.
    Event,
}

impl Change {
    /// The name in `pairs.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Change::Temporal => "temporal",
            Change::Event => "event",
        }
    }
}

/// The indices of two labels. Each of the two becomes query and target in turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelPair {
    /// The lower index.
    pub one: usize,
    /// The higher index.
    pub other: usize,
    /// Similarity of the two labels (temporal), or of the two actions (event).
    pub similarity: f32,
    /// The difference.
    pub change: Change,
}

/// The vectors of a label.
#[derive(Debug, Clone)]
pub struct LabelVectors {
    /// Vector of the whole label as a sentence.
    pub text: UnitVector,
    /// Vector of the action alone.
    pub action: UnitVector,
}

/// Similarity measure of labels.
#[derive(Debug, Clone)]
pub enum Similarity {
    /// Cosine of sentence vectors, -1 to 1. One entry per label.
    Vectors(Vec<LabelVectors>),
    /// Share of common words, 0 to 1.
    Words,
}

impl Similarity {
    fn of(&self, labels: &[Label], one: usize, other: usize, change: Change) -> f32 {
        match (self, change) {
            (Similarity::Vectors(of), Change::Temporal) => cosine(&of[one].text, &of[other].text),
            (Similarity::Vectors(of), Change::Event) => cosine(&of[one].action, &of[other].action),
            (Similarity::Words, _) => shared_words(&labels[one].action(), &labels[other].action()),
        }
    }
}

/// Limits on pairs; `None` sets no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PairLimits {
    /// Largest number of pairs per label and kind of change, the most similar first.
    pub neighbours: Option<usize>,
    /// Lowest similarity of a pair.
    pub similarity: Option<f32>,
    /// Lowest similarity of the actions of a pair of two events. `None`: the actions must be equal.
    pub same_action: Option<f32>,
}

/// All pairs, ordered by index. Labels with equal parts form no pair, because they do not differ. `similarity` has an
/// entry for each label.
pub fn label_pairs(labels: &[Label], similarity: &Similarity, limits: PairLimits) -> Vec<LabelPair> {
    let pairs = (0..labels.len()).flat_map(|one| (one + 1..labels.len()).map(move |other| [one, other]));
    let pairs = pairs.filter_map(|[one, other]| pair(labels, [one, other], similarity, limits)).collect();
    match limits.neighbours {
        None => pairs,
        Some(most) => nearest(&pairs, labels.len(), most),
    }
}

/// Keeps the `most` most similar pairs for each label and kind of change. One of a pair's two labels is enough to
/// keep it.
fn nearest(pairs: &Vec<LabelPair>, labels: usize, most: usize) -> Vec<LabelPair> {
    let mut of_label: Vec<Vec<&LabelPair>> = vec![Vec::new(); labels];
    for pair in pairs {
        of_label[pair.one].push(pair);
        of_label[pair.other].push(pair);
    }
    let mut taken = BTreeMap::new();
    for near in &mut of_label {
        near.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
        for change in [Change::Temporal, Change::Event] {
            let near = near.iter().filter(|it| it.change == change).take(most);
            taken.extend(near.map(|it| ((it.one, it.other), **it)));
        }
    }
    taken.into_values().collect()
}

fn pair(labels: &[Label], at: [usize; 2], by: &Similarity, limits: PairLimits) -> Option<LabelPair> {
    let [one, other] = at;
    let (first, second) = (&labels[one], &labels[other]);
    let same = first.same_action(second);
    let change = if first.parts.event == second.parts.event { Change::Temporal } else { Change::Event };
    let similarity = match (same, change) {
        (true, Change::Temporal) => return None,
        (true, Change::Event) => 1.0,
        (false, _) => by.of(labels, one, other, change),
    };
    let near = match change {
        Change::Temporal => true,
        Change::Event => same || limits.same_action.is_some_and(|least| similarity >= least),
    };
    let enough = limits.similarity.is_none_or(|least| similarity >= least);
    (near && enough).then_some(LabelPair { one, other, similarity, change })
}

fn cosine(a: &UnitVector, b: &UnitVector) -> f32 {
    a.values().iter().zip(b.values()).map(|(a, b)| a * b).sum()
}

/// Words of both texts over words of either; 0 for texts without words.
fn shared_words(one: &str, other: &str) -> f32 {
    let (one, other): (BTreeSet<String>, BTreeSet<String>) = (words(one), words(other));
    let either = one.union(&other).count();
    if either == 0 { 0.0 } else { one.intersection(&other).count() as f32 / either as f32 }
}

#[cfg(test)]
mod tests {
    use super::super::grammar::built_in;
    use super::*;

    fn labels(texts: &[&str]) -> Vec<Label> {
        let grammars = built_in().unwrap();
        texts.iter().map(|it| Label::new(it, &grammars)).collect()
    }

    /// Vectors in the plane, at angles in degrees.
    fn at_angles(degrees: &[f32]) -> Similarity {
        let unit =
            |it: &f32| UnitVector::from_raw(&[it.to_radians().cos(), it.to_radians().sin()]).unwrap().0;
        Similarity::Vectors(
            degrees.iter().map(|it| LabelVectors { text: unit(it), action: unit(it) }).collect(),
        )
    }

    #[track_caller]
    fn check(texts: &[&str], by: &Similarity, limits: PairLimits, expected: &[(usize, usize, Change)]) {
        let pairs = label_pairs(&labels(texts), by, limits);
        let got: Vec<_> = pairs.iter().map(|it| (it.one, it.other, it.change)).collect();
        assert_eq!(got, expected);
    }

    const ALL: PairLimits = PairLimits { neighbours: None, similarity: None, same_action: None };
    const JUMPS: [&str; 4] =
        ["(FX) stag jump", "(FX) split jump", "(FX) cat leap", "(FX) salto forward tucked"];

    #[test]
    fn all_labels_of_one_event_make_temporal_pairs_unless_capped() {
        use Change::Temporal;
        let by = at_angles(&[0.0, 10.0, 50.0, 170.0]);
        let all = [
            (0, 1, Temporal),
            (0, 2, Temporal),
            (0, 3, Temporal),
            (1, 2, Temporal),
            (1, 3, Temporal),
            (2, 3, Temporal),
        ];
        check(&JUMPS, &by, ALL, &all);
        let nearest = PairLimits { neighbours: Some(1), similarity: Some(0.5), ..ALL };
        check(&JUMPS, &by, nearest, &[(0, 1, Temporal), (1, 2, Temporal)]);
        let words = PairLimits { neighbours: Some(1), similarity: Some(0.1), ..ALL };
        check(&JUMPS, &Similarity::Words, words, &[(0, 1, Temporal)]);
    }

    #[test]
    fn another_event_needs_the_same_action() {
        let texts = ["(FX) salto forward tucked", "(BB) Salto forward tucked", "(BB) salto forward piked"];
        let expected = [(0, 1, Change::Event), (1, 2, Change::Temporal)];
        check(&texts, &at_angles(&[0.0, 90.0, 40.0]), ALL, &expected);
        let near = PairLimits { same_action: Some(0.4), ..ALL };
        check(
            &texts,
            &Similarity::Words,
            near,
            &[(0, 1, Change::Event), (0, 2, Change::Event), (1, 2, Change::Temporal)],
        );
    }

    #[test]
    fn labels_of_equal_parts_make_no_pair() {
        check(
            &["(BB) switch leap", "(BB) switch leap (leap forward with leg change)"],
            &Similarity::Words,
            ALL,
            &[],
        );
    }
}
