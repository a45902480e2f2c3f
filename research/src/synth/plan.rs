//! The plan of a seed: clips, triplets and texts. Renders no pixels.

use super::classes::{Attribute, Class, Pair, classes, pairs};
use super::draw::{Draw, Purpose};
use super::motion::{Element, Performance};
use super::scene::Look;
use super::wording::{self, Wording};

/// A split of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    /// For training.
    Train,
    /// For evaluation; shares no stream of draws with training, whatever the seeds.
    Test,
}

impl Split {
    /// The name in `plan.json`.
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Test => "test",
        }
    }

    /// Its number in the streams of draws.
    pub fn stream(self) -> u64 {
        match self {
            Split::Train => 1,
            Split::Test => 2,
        }
    }

    fn wording(self) -> Wording {
        match self {
            Split::Train => Wording::Training,
            Split::Test => Wording::HeldOut,
        }
    }
}

/// The size of a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The seed of all draws.
    pub seed: u64,
    /// The split.
    pub split: Split,
    /// Side of the pictures in pixels; even.
    pub size: u32,
    /// Number of clips.
    pub clips: usize,
    /// Number of labels that the clips show, drawn by the seed.
    pub labels: usize,
    /// Number of triplets; a test split has a third of each kind.
    pub triplets: usize,
    /// Descriptions per class.
    pub descriptions: usize,
    /// Number of long videos.
    pub broadcasts: usize,
    /// Routines per long video.
    pub routines: usize,
}

/// Default number of clips per class in a training split.
const TRAIN_CLIPS: usize = 60;
/// Default number of clips per class in a test split.
const TEST_CLIPS: usize = 4;

impl Settings {
    /// The default settings of a split.
    pub fn new(seed: u64, split: Split) -> Settings {
        let number = classes().len();
        match split {
            Split::Train => Settings {
                seed,
                split,
                size: 96,
                clips: TRAIN_CLIPS * number,
                labels: number,
                triplets: 120_000,
                descriptions: 60,
                broadcasts: 0,
                routines: 40,
            },
            Split::Test => Settings {
                seed,
                split,
                size: 192,
                clips: TEST_CLIPS * number,
                labels: number,
                triplets: 1800,
                descriptions: 3,
                broadcasts: 2,
                routines: 40,
            },
        }
    }

    /// The stream of `purpose` for item `index`.
    pub fn draw(&self, purpose: Purpose, index: u64) -> Draw {
        Draw::new(self.seed, self.split.stream(), purpose, index)
    }
}

/// The kind of a triplet's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// One attribute changes, between two labels that are paired in training too.
    SeenPairs,
    /// One attribute changes, between two labels that are never paired in training.
    HeldOutPairs,
    /// Two attributes change; in a test split between labels that are never paired in training.
    TwoAttribute,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 3] = [Kind::SeenPairs, Kind::HeldOutPairs, Kind::TwoAttribute];

    /// The name in `triplets.jsonl`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::SeenPairs => "seen_pairs",
            Kind::HeldOutPairs => "held_out_pairs",
            Kind::TwoAttribute => "two_attribute",
        }
    }

    fn holds(self, pair: &Pair, split: Split) -> bool {
        match (self, pair.changes.len()) {
            (Kind::SeenPairs, 1) => !pair.held_out,
            (Kind::HeldOutPairs, 1) => pair.held_out,
            (Kind::TwoAttribute, 2) => pair.held_out == (split == Split::Test),
            _ => false,
        }
    }
}

/// A query, a text, a target; clips by index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Triplet {
    pub kind: Kind,
    pub query: usize,
    pub target: usize,
    pub changes: Vec<Attribute>,
    pub modification: String,
}

/// The plan of a split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Class number of each clip.
    pub clips: Vec<usize>,
    /// All triplets, in order.
    pub triplets: Vec<Triplet>,
    /// Class number and text.
    pub descriptions: Vec<(usize, String)>,
}

impl Plan {
    /// The plan of these settings; the same on every machine.
    pub fn new(settings: &Settings) -> Plan {
        let clips = clips(settings);
        let triplets = triplets(settings, &clips);
        let descriptions = descriptions(settings);
        Plan { clips, triplets, descriptions }
    }

    /// Indices of the clips that show `class`.
    pub fn clips_of(&self, class: usize) -> Vec<usize> {
        clips_of(&self.clips, class)
    }
}

fn clips_of(clips: &[usize], class: usize) -> Vec<usize> {
    clips.iter().enumerate().filter(|(_, it)| **it == class).map(|(at, _)| at).collect()
}

/// The classes of all clips: every shown class equally often, in random order.
fn clips(settings: &Settings) -> Vec<usize> {
    let mut draw = settings.draw(Purpose::Plan, 0);
    let number = classes().len();
    let mut order: Vec<usize> = (0..number).collect();
    draw.shuffle(&mut order);
    order.truncate(settings.labels.max(1));
    let mut clips: Vec<usize> = (0..settings.clips).map(|at| order[at % order.len()]).collect();
    draw.shuffle(&mut clips);
    clips
}

fn triplets(settings: &Settings, clips: &[usize]) -> Vec<Triplet> {
    let mut by_class = vec![Vec::new(); classes().len()];
    clips.iter().enumerate().for_each(|(at, class)| by_class[*class].push(at));
    let shown = |pair: &&Pair| !by_class[pair.query].is_empty() && !by_class[pair.target].is_empty();
    let candidates = |kind: Kind| -> Vec<&Pair> {
        pairs().iter().filter(|it| kind.holds(it, settings.split)).filter(shown).collect()
    };
    let [seen, held_out, two] = Kind::ALL.map(|kind| by_changes(candidates(kind)));
    let mut triplets = Vec::with_capacity(settings.triplets);
    for at in 0..settings.triplets {
        let mut draw = settings.draw(Purpose::Modification, at as u64);
        let (kind, groups) = match (settings.split, at % 5, at * 3 / settings.triplets) {
            (Split::Train, 0..=2, _) => (Kind::SeenPairs, &seen),
            (Split::Train, _, _) => (Kind::TwoAttribute, &two),
            (Split::Test, _, 0) => (Kind::SeenPairs, &seen),
            (Split::Test, _, 1) => (Kind::HeldOutPairs, &held_out),
            (Split::Test, _, _) => (Kind::TwoAttribute, &two),
        };
        let Some(pair) = draw.one_of(groups).and_then(|it| draw.one_of(it)) else { continue };
        let clip = |class: usize, draw: &mut Draw| draw.one_of(&by_class[class]).copied();
        let (Some(query), Some(target)) = (clip(pair.query, &mut draw), clip(pair.target, &mut draw)) else {
            continue;
        };
        let wanted = &classes()[pair.target];
        let modification = wording::modification(wanted, &pair.changes, settings.split.wording(), &mut draw);
        triplets.push(Triplet { kind, query, target, changes: pair.changes.clone(), modification });
    }
    triplets
}

/// Pairs grouped by their changes. A group is drawn first: most pairs change the event, so a draw among all pairs would
/// give mostly such texts.
fn by_changes(mut pairs: Vec<&Pair>) -> Vec<Vec<&Pair>> {
    pairs.sort_by(|a, b| a.changes.cmp(&b.changes));
    pairs.chunk_by(|a, b| a.changes == b.changes).map(<[&Pair]>::to_vec).collect()
}

fn descriptions(settings: &Settings) -> Vec<(usize, String)> {
    let of_class = |class: usize| {
        let mut draw = settings.draw(Purpose::Description, class as u64);
        let text = move |_| wording::description(&classes()[class], settings.split.wording(), &mut draw);
        (0..settings.descriptions).map(text).map(move |text| (class, text)).collect::<Vec<_>>()
    };
    (0..classes().len()).flat_map(of_class).collect()
}

/// Performance and look of clip `at`, independent of the class.
pub fn nuisance(settings: &Settings, at: u64) -> (Performance, Look) {
    let performance = Performance::draw(&mut settings.draw(Purpose::Performance, at));
    let look = Look::draw(&mut settings.draw(Purpose::Look, at));
    (performance, look)
}

/// Clip `at`, which shows `class`.
pub fn clip(settings: &Settings, at: u64, class: &Class) -> (Element, Look) {
    let (performance, look) = nuisance(settings, at);
    (Element::new(*class, performance), look)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn small(split: Split, seed: u64) -> Settings {
        Settings { clips: 2 * classes().len(), triplets: 600, ..Settings::new(seed, split) }
    }

    #[track_caller]
    fn check(settings: &Settings, kind: Kind, expected: usize) {
        let plan = Plan::new(settings);
        assert_eq!(plan.triplets.iter().filter(|it| it.kind == kind).count(), expected);
    }

    #[test]
    fn a_test_split_has_a_third_of_each_kind_and_training_no_held_out_pair() {
        for kind in Kind::ALL {
            check(&small(Split::Test, 1), kind, 200);
        }
        check(&small(Split::Train, 1), Kind::SeenPairs, 360);
        check(&small(Split::Train, 1), Kind::HeldOutPairs, 0);
        check(&small(Split::Train, 1), Kind::TwoAttribute, 240);
    }

    #[test]
    fn the_same_seed_makes_the_same_plan_and_another_seed_another() {
        let plan = Plan::new(&small(Split::Test, 3));
        assert_eq!(plan, Plan::new(&small(Split::Test, 3)));
        assert_ne!(plan, Plan::new(&small(Split::Test, 4)));
        assert_ne!(plan.clips, Plan::new(&small(Split::Train, 3)).clips);
    }

    #[test]
    fn training_never_pairs_labels_that_a_test_holds_out() {
        let pairs = |split, kinds: &[Kind]| -> BTreeSet<(usize, usize)> {
            let plan = Plan::new(&small(split, 9));
            let wanted = plan.triplets.iter().filter(|it| kinds.contains(&it.kind));
            wanted.map(|it| (plan.clips[it.query], plan.clips[it.target])).collect()
        };
        let trained = pairs(Split::Train, &Kind::ALL);
        let held_out = pairs(Split::Test, &[Kind::HeldOutPairs, Kind::TwoAttribute]);
        assert!(trained.is_disjoint(&held_out));
    }

    #[test]
    fn every_class_is_shown_equally_often() {
        let plan = Plan::new(&small(Split::Test, 2));
        assert!((0..classes().len()).all(|class| plan.clips_of(class).len() == 2));
    }

    #[test]
    fn a_plan_of_few_labels_shows_each_of_them_often() {
        let plan = Plan::new(&Settings { clips: 60, labels: 10, ..small(Split::Test, 2) });
        let shown: BTreeSet<usize> = plan.clips.iter().copied().collect();
        assert_eq!(shown.len(), 10);
        assert!(shown.iter().all(|class| plan.clips_of(*class).len() == 6));
    }

    #[test]
    fn a_plan_of_few_clips_has_triplets_of_shown_classes_only() {
        let plan = Plan::new(&Settings { clips: 30, ..small(Split::Test, 2) });
        assert!(plan.triplets.iter().all(|it| it.query < 30 && it.target < 30 && it.query != it.target));
    }
}
