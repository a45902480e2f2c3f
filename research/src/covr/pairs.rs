//! Pairs of labels that a text encoder finds similar and that differ in one respect.

use std::collections::BTreeMap;

use reprise_index::UnitVector;

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

/// Two labels, by index; both orders give triplets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelPair {
    /// The lower index.
    pub one: usize,
    /// The higher index.
    pub other: usize,
    /// Cosine of the two label texts (temporal), or of the two actions (event).
    pub similarity: f32,
    /// The difference.
    pub change: Change,
}

/// A label with the vectors of its text and of its action.
#[derive(Debug, Clone)]
pub struct EmbeddedLabel {
    /// The label.
    pub label: Label,
    /// Vector of the whole text.
    pub text: UnitVector,
    /// Vector of the action alone.
    pub action: UnitVector,
}

/// Limits on pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairLimits {
    /// The most pairs of each label and change, the most similar first.
    pub neighbours: usize,
    /// Lowest cosine of a pair.
    pub similarity: f32,
    /// Lowest cosine of equal actions in two events. Actions with equal words are always equal.
    pub same_action: f32,
}

/// All pairs, ordered by index.
pub fn label_pairs(labels: &[EmbeddedLabel], limits: PairLimits) -> Vec<LabelPair> {
    let mut taken = BTreeMap::new();
    for at in 0..labels.len() {
        for change in [Change::Temporal, Change::Event] {
            let mut near: Vec<LabelPair> = (0..labels.len())
                .filter(|other| *other != at)
                .filter_map(|other| pair(labels, at.min(other), at.max(other), limits))
                .filter(|it| it.change == change)
                .collect();
            near.sort_by(|a, b| b.similarity.total_cmp(&a.similarity));
            near.truncate(limits.neighbours);
            taken.extend(near.into_iter().map(|it| ((it.one, it.other), it)));
        }
    }
    taken.into_values().collect()
}

fn pair(labels: &[EmbeddedLabel], one: usize, other: usize, limits: PairLimits) -> Option<LabelPair> {
    let (first, second) = (&labels[one], &labels[other]);
    let pair = if first.label.event == second.label.event {
        let similarity = cosine(&first.text, &second.text);
        LabelPair { one, other, similarity, change: Change::Temporal }
    } else {
        let equal = first.label.action.eq_ignore_ascii_case(&second.label.action);
        let similarity = if equal { 1.0 } else { cosine(&first.action, &second.action) };
        if similarity < limits.same_action {
            return None;
        }
        LabelPair { one, other, similarity, change: Change::Event }
    };
    (pair.similarity >= limits.similarity).then_some(pair)
}

fn cosine(a: &UnitVector, b: &UnitVector) -> f32 {
    a.values().iter().zip(b.values()).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A label with vectors in the plane, at an angle in degrees.
    fn embedded(text: &str, degrees: f32) -> EmbeddedLabel {
        let raw = [degrees.to_radians().cos(), degrees.to_radians().sin()];
        let unit = || UnitVector::from_raw(&raw).unwrap().0;
        EmbeddedLabel { label: Label::new(text), text: unit(), action: unit() }
    }

    #[track_caller]
    fn check(labels: &[(&str, f32)], limits: PairLimits, expected: &[(usize, usize, Change)]) {
        let labels: Vec<_> = labels.iter().map(|(text, degrees)| embedded(text, *degrees)).collect();
        let got: Vec<_> =
            label_pairs(&labels, limits).iter().map(|it| (it.one, it.other, it.change)).collect();
        assert_eq!(got, expected);
    }

    const LIMITS: PairLimits = PairLimits { neighbours: 1, similarity: 0.5, same_action: 0.99 };

    #[test]
    fn only_near_labels_of_one_event_make_a_temporal_pair() {
        let labels = [("(FX) a", 0.0), ("(FX) b", 10.0), ("(FX) c", 50.0), ("(FX) d", 170.0)];
        check(&labels, LIMITS, &[(0, 1, Change::Temporal), (1, 2, Change::Temporal)]);
        let two = PairLimits { neighbours: 2, ..LIMITS };
        check(&labels, two, &[(0, 1, Change::Temporal), (0, 2, Change::Temporal), (1, 2, Change::Temporal)]);
    }

    #[test]
    fn another_event_needs_the_same_action() {
        let labels = [("(FX) salto", 0.0), ("(BB) Salto", 90.0), ("(BB) leap", 40.0)];
        check(&labels, LIMITS, &[(0, 1, Change::Event), (1, 2, Change::Temporal)]);
    }
}
