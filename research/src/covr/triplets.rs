//! Turns pairs of labels into triplets of clips, split by source video.

use std::collections::{BTreeMap, BTreeSet};

use super::footage::{Stretch, TestRow, TrainRow};
use super::grammar::Parts;
use super::label::Label;
use super::modification::Difference;
use super::pairs::LabelPair;
use crate::synth::draw::{Draw, Purpose};

/// The three parts of a data set. Each video is in one part only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// For training.
    Train,
    /// For choosing a checkpoint.
    Validation,
    /// For the final evaluation.
    Test,
}

/// Seed and shares of the split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shares {
    /// Seed of the split and the draws.
    pub seed: u64,
    /// Share of the videos for validation.
    pub validation: f64,
    /// Share of the videos for the test.
    pub test: f64,
}

/// A query label and a change, with all target labels and texts.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderedPair {
    /// Index of the query's label.
    pub query: usize,
    /// Indices of all target labels, at least one, ascending.
    pub targets: Vec<usize>,
    /// Modification texts, at least one; each triplet draws one.
    pub texts: Vec<String>,
}

/// A query label and a change, without texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Index of the query's label.
    pub query: usize,
    /// Indices of all labels whose parts equal the target's, ascending.
    pub targets: Vec<usize>,
    /// The change from query to target.
    pub difference: Difference,
}

/// Every pair in both orders. Target labels with equal parts form one change. All of them are its targets, even if a
/// limit left out their pair.
pub fn ordered(labels: &[Label], pairs: &[LabelPair]) -> Vec<Asked> {
    let mut alike: BTreeMap<&Parts, Vec<usize>> = BTreeMap::new();
    for (at, label) in labels.iter().enumerate() {
        alike.entry(&label.parts).or_default().push(at);
    }
    let mut seen = BTreeSet::new();
    let both = pairs.iter().flat_map(|it| [[it.one, it.other], [it.other, it.one]]);
    let new = both.filter(|[query, target]| seen.insert((*query, &labels[*target].parts)));
    let asked = |[query, target]: [usize; 2]| Asked {
        query,
        targets: alike.get(&labels[target].parts).cloned().unwrap_or_default(),
        difference: Difference::between(&labels[query], &labels[target]),
    };
    new.map(asked).collect()
}

/// Joins the targets of pairs with equal query parts and the same text, because the text cannot distinguish them.
/// Pairs with several texts stay as they are.
pub fn with_shared_texts(labels: &[Label], pairs: Vec<OrderedPair>) -> Vec<OrderedPair> {
    let text = |it: &OrderedPair| match it.texts.as_slice() {
        [one] => Some(one.trim_end_matches('.').to_lowercase()),
        _ => None,
    };
    let mut reached: BTreeMap<(&Parts, String), BTreeSet<usize>> = BTreeMap::new();
    for pair in &pairs {
        if let Some(text) = text(pair) {
            reached.entry((&labels[pair.query].parts, text)).or_default().extend(&pair.targets);
        }
    }
    let mut seen = BTreeSet::new();
    let mut joined = Vec::new();
    for pair in pairs {
        let Some(text) = text(&pair) else {
            joined.push(pair);
            continue;
        };
        if seen.insert((pair.query, text.clone())) {
            let targets = reached.get(&(&labels[pair.query].parts, text));
            let targets = targets.map_or_else(|| pair.targets.clone(), |it| it.iter().copied().collect());
            joined.push(OrderedPair { targets, ..pair });
        }
    }
    joined
}

/// Assigns each video to a part. Training gets at least one video. A share above 0 gets at least one, if there are
/// enough.
pub fn parts(footage: &[Stretch], shares: &Shares) -> BTreeMap<String, Part> {
    let mut videos: Vec<String> = footage.iter().map(|it| it.video.clone()).collect();
    videos.sort();
    videos.dedup();
    let mut draw = Draw::new(shares.seed, 0, Purpose::Plan, 0);
    draw.shuffle(&mut videos);
    let number = videos.len();
    let share = |of: f64| if of > 0.0 { ((number as f64 * of).round() as usize).max(1) } else { 0 };
    let test = share(shares.test).min(number.saturating_sub(1));
    let validation = share(shares.validation).min(number.saturating_sub(1 + test));
    let part = |at: usize| match at {
        at if at < test => Part::Test,
        at if at < test + validation => Part::Validation,
        _ => Part::Train,
    };
    videos.into_iter().enumerate().map(|(at, video)| (video, part(at))).collect()
}

/// The segments of one part, by label index.
pub struct PartClips<'a> {
    labels: &'a [Label],
    clips: BTreeMap<usize, Vec<&'a Stretch>>,
    draw: Draw,
}

impl<'a> PartClips<'a> {
    /// The segments of `footage` whose video belongs to `part`.
    pub fn new(
        footage: &'a [Stretch],
        labels: &'a [Label],
        parts: &BTreeMap<String, Part>,
        part: Part,
        seed: u64,
    ) -> PartClips<'a> {
        let number: BTreeMap<&str, usize> =
            labels.iter().enumerate().map(|(at, it)| (it.text.as_str(), at)).collect();
        let mut clips: BTreeMap<usize, Vec<&Stretch>> = BTreeMap::new();
        for stretch in footage.iter().filter(|it| parts.get(&it.video) == Some(&part)) {
            if let Some(label) = number.get(stretch.label.trim()) {
                clips.entry(*label).or_default().push(stretch);
            }
        }
        PartClips { labels, clips, draw: Draw::new(seed, 0, Purpose::Modification, part as u64) }
    }

    fn of(&self, label: usize) -> &[&'a Stretch] {
        self.clips.get(&label).map_or(&[], Vec::as_slice)
    }

    /// The clips of all targets, each with its label.
    fn of_targets(&self, pair: &OrderedPair) -> Vec<Clip<'a>> {
        let clips = pair
            .targets
            .iter()
            .flat_map(|label| self.of(*label).iter().map(|it| Clip { label: *label, stretch: it }));
        clips.collect()
    }

    /// Up to `per_pair` distinct triplets for every pair with query and target clips in this part.
    pub fn train_rows(&mut self, pairs: &[OrderedPair], per_pair: usize) -> Vec<TrainRow> {
        let mut rows = Vec::new();
        for pair in pairs {
            let (queries, targets) = (self.of(pair.query).to_vec(), self.of_targets(pair));
            let mut all: Vec<usize> = (0..queries.len() * targets.len()).collect();
            self.draw.shuffle(&mut all);
            for at in all.into_iter().take(per_pair) {
                let Some(text) = self.draw.one_of(&pair.texts) else { continue };
                let target = &targets[at % targets.len()];
                rows.push(TrainRow {
                    query_video: queries[at / targets.len()].name(),
                    target_video: target.stretch.name(),
                    label1: self.labels[pair.query].text.clone(),
                    label2: self.labels[target.label].text.clone(),
                    modification: text.clone(),
                });
            }
        }
        rows
    }

    /// One query for every pair with query and target clips in this part. Its relevant clips are the clips of all
    /// target labels.
    pub fn test_rows(&mut self, pairs: &[OrderedPair]) -> Vec<TestRow> {
        let mut rows = Vec::new();
        for pair in pairs {
            let target_videos: Vec<String> =
                self.of_targets(pair).iter().map(|it| it.stretch.name()).collect();
            let queries = self.of(pair.query).to_vec();
            let drawn = (
                self.draw.one_of(&queries).map(|it| it.name()),
                self.draw.one_of(&target_videos).cloned(),
                self.draw.one_of(&pair.texts).cloned(),
            );
            if let (Some(query_video), Some(target_video), Some(modification)) = drawn {
                rows.push(TestRow { query_video, target_video, modification, target_videos });
            }
        }
        rows
    }
}

/// A clip with the label of a target.
struct Clip<'a> {
    label: usize,
    stretch: &'a Stretch,
}

#[cfg(test)]
mod tests {
    use super::super::pairs::Change;
    use super::*;

    fn footage(videos: usize) -> Vec<Stretch> {
        let stretch = |at: usize| Stretch {
            video: format!("{:03}.mp4", at / 4),
            start: (at % 4) as f64,
            end: (at % 4 + 1) as f64,
            label: ["(FX) a", "(FX) b"][at % 2].to_owned(),
        };
        (0..videos * 4).map(stretch).collect()
    }

    fn shares(validation: f64, test: f64) -> Shares {
        Shares { seed: 3, validation, test }
    }

    #[track_caller]
    fn check(videos: usize, (validation, test): (f64, f64), expected: [usize; 3]) {
        let parts = parts(&footage(videos), &shares(validation, test));
        let count = |part: Part| parts.values().filter(|it| **it == part).count();
        assert_eq!([Part::Train, Part::Validation, Part::Test].map(count), expected);
    }

    #[test]
    fn videos_are_shared_out_and_one_always_trains() {
        check(20, (0.1, 0.1), [16, 2, 2]);
        check(20, (0.0, 0.25), [15, 0, 5]);
        check(3, (0.1, 0.1), [1, 1, 1]);
        check(2, (0.1, 0.1), [1, 0, 1]);
        check(1, (0.5, 0.5), [1, 0, 0]);
    }

    #[test]
    fn no_clip_is_in_two_parts_and_all_answers_are_listed() {
        let footage = footage(30);
        let labels = ["(FX) a", "(FX) b"].map(|it| Label::new(it, &[]));
        let shares = shares(0.0, 0.3);
        let parts = parts(&footage, &shares);
        let pairs = [OrderedPair { query: 0, targets: vec![1], texts: vec!["with b".to_owned()] }];
        let clips = |part| PartClips::new(&footage, &labels, &parts, part, shares.seed);
        let train = clips(Part::Train).train_rows(&pairs, 5);
        let test = clips(Part::Test).test_rows(&pairs);
        assert_eq!((train.len(), test.len()), (5, 1));
        assert_eq!(test[0].target_videos.len(), 9 * 2);
        assert!(test[0].target_videos.contains(&test[0].target_video));
        let video = |name: &str| name.split('#').next().unwrap_or_default().to_owned();
        let trained: Vec<_> =
            train.iter().flat_map(|it| [video(&it.query_video), video(&it.target_video)]).collect();
        assert!(test[0].target_videos.iter().all(|it| !trained.contains(&video(it))));
    }

    #[test]
    fn training_never_repeats_a_triplet() {
        let footage = footage(1);
        let labels = ["(FX) a", "(FX) b"].map(|it| Label::new(it, &[]));
        let parts = parts(&footage, &shares(0.0, 0.0));
        let pairs = [OrderedPair { query: 0, targets: vec![1], texts: vec!["x".to_owned()] }];
        let mut rows = PartClips::new(&footage, &labels, &parts, Part::Train, 1).train_rows(&pairs, 100);
        assert_eq!(rows.len(), 4);
        rows.dedup();
        assert_eq!(rows.len(), 4);
    }

    #[test]
    fn labels_of_equal_parts_are_targets_together() {
        let grammars = super::super::grammar::built_in().unwrap();
        let texts =
            ["(BB) cat leap", "(BB) stag jump", "(BB) switch leap", "(BB) switch leap (leap forward)"];
        let labels = texts.map(|it| Label::new(it, &grammars));
        let pair = |one, other| LabelPair { one, other, similarity: 1.0, change: Change::Temporal };
        // The pair of 0 and 3 was left out by a limit.
        let asked = ordered(&labels, &[pair(0, 1), pair(0, 2), pair(1, 2), pair(1, 3)]);
        let got: Vec<_> = asked.iter().map(|it| (it.query, it.targets.clone())).collect();
        let both = vec![2, 3];
        assert_eq!(
            got,
            [
                (0, vec![1]),
                (1, vec![0]),
                (0, both.clone()),
                (2, vec![0]),
                (1, both),
                (2, vec![1]),
                (3, vec![1]),
            ]
        );
    }

    #[test]
    fn a_text_that_leads_to_two_labels_has_the_clips_of_both() {
        let labels = ["a", "b", "c"].map(|it| Label::new(it, &[]));
        let pair = |target, text: &str| OrderedPair {
            query: 0,
            targets: vec![target],
            texts: vec![text.to_owned()],
        };
        let joined = with_shared_texts(&labels, vec![pair(1, "Faster."), pair(2, "faster")]);
        assert_eq!(
            joined,
            [OrderedPair { query: 0, targets: vec![1, 2], texts: vec!["Faster.".to_owned()] }]
        );
        let apart = vec![pair(1, "faster"), pair(2, "slower")];
        assert_eq!(with_shared_texts(&labels, apart.clone()), apart);
    }
}
