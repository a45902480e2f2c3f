//! Training data: clips with classes, classes with attributes, and the renderer's exact labels of each frame.

use std::f32::consts::TAU;

use super::TrainError;
use super::footage::Footage;

/// The classes, each with a value of every attribute.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classes {
    /// Labels; the index is the class number.
    pub labels: Vec<String>,
    /// Attributes, e.g. event and body position. The first one is the place: only clips with the same value of
    /// it serve as padding for each other.
    pub attributes: Vec<Attribute>,
}

/// One attribute of all classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Number of values.
    pub values: usize,
    /// Value of each class, below `values`.
    pub of_class: Vec<usize>,
    /// Whether a single frame can show it.
    pub visible: Visible,
}

/// Visibility of an attribute in a single frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visible {
    /// Visible in every frame.
    Always,
    /// Visible while the athlete is in the air.
    Airborne,
    /// Not visible in any single frame.
    Never,
}

impl Classes {
    /// Number of attributes in which two classes differ; 0 without attributes.
    pub fn distance(&self, one: usize, other: usize) -> usize {
        self.attributes.iter().filter(|it| it.of_class.get(one) != it.of_class.get(other)).count()
    }

    /// Cosine similarity of all pairs of labels, 0 to 1: `[classes, classes]`, flat. Rare words weigh more.
    /// TF-CoVR takes the similarity of CLIP texts instead.
    pub fn similarities(&self) -> Vec<f32> {
        let words: Vec<Vec<String>> = self.labels.iter().map(|label| words(label)).collect();
        let mut known: Vec<&String> = words.iter().flatten().collect();
        known.sort();
        known.dedup();
        let weight = |word: &String| {
            let labels = words.iter().filter(|it| it.contains(word)).count().max(1);
            (words.len() as f32 / labels as f32).ln()
        };
        let weights: Vec<f32> = known.iter().map(|word| weight(word)).collect();
        let vector = |label: &Vec<String>| {
            let value = |(word, weight): (&&String, &f32)| if label.contains(word) { *weight } else { 0.0 };
            let values: Vec<f32> = known.iter().zip(&weights).map(value).collect();
            let norm = values.iter().map(|it| it * it).sum::<f32>().sqrt().max(1e-6);
            values.into_iter().map(|it| it / norm).collect::<Vec<f32>>()
        };
        let vectors: Vec<Vec<f32>> = words.iter().map(vector).collect();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        vectors.iter().flat_map(|a| vectors.iter().map(|b| dot(a, b))).collect()
    }
}

/// Splits a label into lower-case words and numbers; a number keeps its decimal point.
fn words(label: &str) -> Vec<String> {
    let lower = label.to_lowercase().replace(". ", " ");
    let cut = lower.split(|letter: char| !letter.is_alphanumeric() && letter != '.');
    let mut words: Vec<String> = Vec::new();
    for part in cut {
        // `soms.pike` is two words, `2.5` one.
        let digits = part.starts_with(|letter: char| letter.is_ascii_digit());
        let pieces: Vec<&str> = if digits { vec![part] } else { part.split('.').collect() };
        words.extend(pieces.into_iter().filter(|it| !it.is_empty()).map(str::to_owned));
    }
    words
}

/// The renderer's labels of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FrameTruth {
    /// Signed angle of the body in the picture, in radians.
    pub somersault: f32,
    /// Cumulative twist of the body, in radians.
    pub twist: f32,
    /// Whether the athlete is in the air.
    pub airborne: bool,
    /// Facing of the chest in the picture: up, right, towards the camera. A unit vector.
    pub facing: [f32; 3],
    /// Angles of hip, knee and shoulder in radians; 0 for standing with the arms down.
    pub joints: [f32; 3],
}

/// Clips to train on.
#[derive(Debug, Clone, Default)]
pub struct TrainingClips {
    /// The classes.
    pub classes: Classes,
    /// The video file and frame count of each clip.
    pub footage: Vec<Footage>,
    /// Class number of each clip.
    pub class: Vec<usize>,
    /// Labels of each frame of each clip.
    pub truth: Vec<Vec<FrameTruth>>,
}

impl TrainingClips {
    /// # Errors
    /// [`TrainError::Data`] for clips without frames, or with a class or truth that does not fit.
    pub fn check(&self) -> Result<(), TrainError> {
        let count = self.footage.len();
        let wrong = |what: String| Err(TrainError::Data(what.into()));
        if count == 0 || self.class.len() != count || self.truth.len() != count {
            return wrong(format!(
                "{count} clips, {} classes, {} truths",
                self.class.len(),
                self.truth.len()
            ));
        }
        for (footage, (class, truth)) in self.footage.iter().zip(self.class.iter().zip(&self.truth)) {
            let path = footage.path.display();
            if *class >= self.classes.labels.len() {
                return wrong(format!("{path} is of class {class}, which is none"));
            }
            if footage.frames == 0 || truth.len() != footage.frames {
                return wrong(format!("{path} has {} frames and truth for {}", footage.frames, truth.len()));
            }
        }
        let fits = |it: &Attribute| {
            it.of_class.len() == self.classes.labels.len()
                && it.of_class.iter().all(|value| *value < it.values)
        };
        match self.classes.attributes.iter().find(|attribute| !fits(attribute)) {
            Some(attribute) => wrong(format!("attribute {} does not fit the classes", attribute.name)),
            None => Ok(()),
        }
    }

    /// Number of frames of each clip.
    pub fn frames(&self) -> Vec<usize> {
        self.footage.iter().map(|footage| footage.frames).collect()
    }

    /// Indices of the clips of each class.
    pub fn by_class(&self) -> Vec<Vec<usize>> {
        grouped(self.class.iter().copied(), self.classes.labels.len())
    }

    /// Value of the first attribute for a clip; 0 without attributes.
    pub(super) fn place(&self, clip: usize) -> usize {
        self.classes.attributes.first().map_or(0, |attribute| attribute.of_class[self.class[clip]])
    }

    /// Fingerprint of the data: counts and a checksum.
    pub fn name(&self) -> String {
        let frames: usize = self.frames().iter().sum();
        let sum: f64 = self.truth.iter().flatten().map(|it| f64::from(it.somersault)).sum();
        format!("{} clips {frames} frames {} classes {sum:.3}", self.class.len(), self.classes.labels.len())
    }

    /// Cumulative rotation of each frame of a clip, in turns: absolute, signed, twist.
    pub(super) fn turns(&self, clip: usize) -> Vec<[f32; 3]> {
        let (mut turned, mut twisted, mut last) = (0.0_f32, 0.0_f32, None::<FrameTruth>);
        let turns = self.truth[clip].iter().map(|truth| {
            if let Some(last) = last {
                turned += shortest(truth.somersault - last.somersault);
                twisted += shortest(truth.twist - last.twist);
            }
            last = Some(*truth);
            [turned.abs() / TAU, turned / TAU, twisted.abs() / TAU]
        });
        turns.collect()
    }
}

/// The equivalent angle from minus half a turn to half a turn, in radians.
fn shortest(angle: f32) -> f32 {
    angle - (angle / TAU).round() * TAU
}

/// Groups the indices of `values` by value, for values below `count`.
pub(super) fn grouped(values: impl Iterator<Item = usize>, count: usize) -> Vec<Vec<usize>> {
    let mut groups = vec![Vec::new(); count];
    for (at, value) in values.enumerate() {
        if let Some(group) = groups.get_mut(value) {
            group.push(at);
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(labels: &[&str]) -> Classes {
        Classes { labels: labels.iter().map(|it| (*it).to_owned()).collect(), attributes: Vec::new() }
    }

    #[test]
    fn labels_that_share_rare_words_are_alike() {
        let labels = [
            "(Platform) Back, 2.5 Soms.Pike",
            "(Platform) Back, 2.5 Soms.Tuck",
            "(Beam) salto piked",
            "(Beam) salto",
        ];
        let similar = classes(&labels).similarities();
        assert!((similar[0] - 1.0).abs() < 1e-5 && (similar[5] - 1.0).abs() < 1e-5);
        assert!(similar[1] > 0.3 && similar[1] < 0.99, "{}", similar[1]);
        assert!(similar[2] < 1e-6, "{}", similar[2]);
        assert_eq!(words(labels[0]), ["platform", "back", "2.5", "soms", "pike"]);
    }

    #[test]
    fn turns_add_up_whether_angles_are_wrapped_or_not() {
        let truth = |step: f32| {
            let frame = |at: usize| FrameTruth { somersault: -step * at as f32, ..FrameTruth::default() };
            (0..9).map(frame).collect::<Vec<_>>()
        };
        let wrapped =
            truth(1.0).into_iter().map(|it| FrameTruth { somersault: shortest(it.somersault), ..it });
        let clips = TrainingClips { truth: vec![truth(1.0), wrapped.collect()], ..TrainingClips::default() };
        for clip in 0..2 {
            let last = clips.turns(clip)[8];
            assert!((last[0] - 8.0 / TAU).abs() < 1e-4 && (last[1] + 8.0 / TAU).abs() < 1e-4, "{last:?}");
        }
    }
}
