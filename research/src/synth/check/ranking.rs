//! Composed retrieval with class probabilities. The text changes the query clip's classes; the result is
//! compared with the classes of each gallery clip.

use std::collections::HashMap;

use crate::synth::classes::{Attribute, Class, classes};

/// A composed query. Its text counts as understood, so that only the clip is tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    /// Index of the query clip.
    pub clip: usize,
    /// Class of the query clip.
    pub query_class: usize,
    /// Class of the target.
    pub target_class: usize,
}

/// For each class, the class after the text's change, if one exists.
fn changed_classes(query: &Query) -> Vec<Option<usize>> {
    let classes = classes();
    let wanted = &classes[query.target_class];
    let changes = classes[query.query_class].differences(wanted);
    let number: HashMap<Class, usize> = classes.iter().enumerate().map(|(at, it)| (*it, at)).collect();
    let changed = |class: &Class| {
        let mut target = *class;
        for change in &changes {
            match change {
                Attribute::Event => target.event = wanted.event,
                Attribute::Direction => target.direction = wanted.direction,
                Attribute::Somersaults => target.somersaults = wanted.somersaults,
                Attribute::Twists => target.twists = wanted.twists,
                Attribute::Position => target.position = wanted.position,
            }
        }
        // Texts only state attributes that change.
        (class.differences(&target) == changes).then(|| number.get(&target).copied()).flatten()
    };
    classes.iter().map(changed).collect()
}

/// Average precision at 50, 0 to 1; the query clip is left out of the gallery.
///
/// `shown` holds the class probabilities of the query clip, `gallery` those of each gallery clip.
pub(super) fn average_precision(query: &Query, shown: &[f32], gallery: &[Vec<f32>], truth: &[usize]) -> f64 {
    let mut wanted = vec![0.0f32; shown.len()];
    for (probability, target) in shown.iter().zip(changed_classes(query)) {
        if let Some(target) = target {
            wanted[target] += probability;
        }
    }
    let score = |clip: &Vec<f32>| -> f32 { clip.iter().zip(&wanted).map(|(a, b)| a * b).sum() };
    let mut ranked: Vec<(usize, f32)> =
        gallery.iter().map(score).enumerate().filter(|(at, _)| *at != query.clip).collect();
    // Clips are in random order, so ties by index favour no class.
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let right = truth.iter().filter(|it| **it == query.target_class).count();
    let (mut hits, mut sum) = (0, 0.0);
    for (rank, (clip, _)) in ranked.iter().take(DEPTH).enumerate() {
        if truth[*clip] == query.target_class {
            hits += 1;
            sum += f64::from(hits) / (rank + 1) as f64;
        }
    }
    sum / right.clamp(1, DEPTH) as f64
}

/// The cutoff K.
const DEPTH: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::classes::pairs;

    fn certain(class: usize) -> Vec<f32> {
        (0..classes().len()).map(|it| if it == class { 1.0 } else { 0.0 }).collect()
    }

    #[track_caller]
    fn check(shown: &[f32], expected: f64) {
        let pair = &pairs()[100];
        let query = Query { clip: 0, query_class: pair.query, target_class: pair.target };
        let truth = [pair.query, pair.target, 5, pair.target];
        let gallery: Vec<Vec<f32>> = truth.iter().map(|it| certain(*it)).collect();
        let got = average_precision(&query, shown, &gallery, &truth);
        assert!((got - expected).abs() < 1e-9, "{got}");
    }

    #[test]
    fn who_knows_all_ranks_perfectly_and_who_knows_nothing_by_number() {
        check(&certain(pairs()[100].query), 1.0);
        check(&vec![0.0; classes().len()], (1.0 + 2.0 / 3.0) / 2.0);
    }

    #[test]
    fn a_query_is_changed_into_its_target() {
        for pair in pairs().iter().step_by(13) {
            let query = Query { clip: 0, query_class: pair.query, target_class: pair.target };
            assert_eq!(changed_classes(&query)[pair.query], Some(pair.target));
        }
    }
}
