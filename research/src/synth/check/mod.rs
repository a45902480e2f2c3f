//! `reprise synth check`: tests whether anything but the motion reveals the label.
//!
//! Small probes get too little information to answer: one frame, frames in random order, the trajectory, the
//! duration. They learn from clips of other seeds and answer the composed queries of a folder. The text maps
//! the class probabilities of the query clip to target classes. These rank the gallery. A probe above its limit
//! reveals a leak.

mod features;
mod network;
mod ranking;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::draw::{Draw, Purpose};
use super::plan::Settings;
use super::shot::Shot;
use super::{Plan, Split, classes::classes, clip_shot, truth};
use features::{KnownClip, Probe, examples, sampled_frames};
use network::{SetNetwork, Training};
use ranking::{Query, average_precision};

/// Why a check failed.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Not a folder of the generator, or incomplete; the caller's fault.
    #[error("{}: {reason}; name a folder that `reprise synth` has finished", path.display())]
    Folder {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// A training split has no queries to answer; the caller's fault.
    #[error("{} is a training split; name a test split", .0.display())]
    NotTest(PathBuf),
    /// A fault of this program: a probe and its examples don't fit together.
    #[error("a probe can't be trained or asked")]
    Probe(#[from] candle_core::Error),
}

/// One line of the table; figures in percent.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The probe: its information besides the text.
    pub probe: &'static str,
    /// mAP@50 with query and gallery classified by the probe.
    pub map: f64,
    /// mAP@50 with known gallery labels: the probe classifies only the query.
    pub known_gallery: f64,
    /// Upper limit of `map`, or of `known_gallery` for the duration.
    pub limit: Option<f64>,
    /// Whether the figure is below the limit.
    pub passes: bool,
}

/// Amount of training.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Clips per class.
    pub clips: usize,
    /// Passes over the clips (epochs).
    pub epochs: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Effort { clips: 120, epochs: 14 }
    }
}

/// Limits of mAP@50 in percent.
const SINGLE_FRAME: f64 = 15.0;
const SHUFFLED_FRAMES: f64 = 45.0;
const TRAJECTORY: f64 = 30.0;
/// Percentage points that the duration may add to the text alone.
const DURATION: f64 = 2.0;

/// Runs all probes on the seen pairs of the test split in `root`.
///
/// # Errors
/// If the folder is not a complete test split of this generator, or a probe fails.
pub fn check(root: &Path, effort: Effort, hear: &dyn Fn(&str)) -> Result<Vec<Line>, CheckError> {
    let folder = read_folder(root)?;
    hear("learning from other clips");
    let training = training_clips(folder.seed, effort.clips);
    let unseen = training_clips(folder.seed.wrapping_add(1), effort.clips.div_ceil(8));
    let number = classes().len();
    let truth: Vec<usize> = folder.clips.iter().map(|it| it.class).collect();
    let known: Vec<Vec<f32>> = truth.iter().map(|it| certain(*it, number)).collect();
    // Equal probabilities for all classes. Random ties, because a fixed order of classes would favour some.
    let mut ties = Draw::new(folder.seed, 0, Purpose::Probe, 100);
    let mut blindly = || (0..number).map(|_| 1.0 + 1e-3 * ties.unit() as f32).collect::<Vec<f32>>();
    let blind: Vec<Vec<f32>> = known.iter().map(|_| blindly()).collect();
    let map = |shown: &[Vec<f32>], gallery: &[Vec<f32>]| {
        let of = |query: &Query| average_precision(query, &shown[query.clip], gallery, &truth);
        100.0 * folder.queries.iter().map(of).sum::<f64>() / folder.queries.len().max(1) as f64
    };
    let text_alone = map(&blind, &known);
    let mut lines = vec![Line {
        probe: "text alone",
        map: map(&blind, &blind),
        known_gallery: text_alone,
        limit: None,
        passes: true,
    }];
    for probe in Probe::ALL {
        hear(probe.name());
        let mut draw = Draw::new(folder.seed, 0, Purpose::Probe, probe as u64);
        let settings = Training { epochs: effort.epochs, batch: 64, hidden: 96 };
        let seen = examples(probe, &training, &mut draw);
        let network = SetNetwork::learn(&seen, number, settings, &mut draw)?;
        let trust = network.trust(&examples(probe, &unseen, &mut draw))?;
        let mut shown = network.probabilities(&examples(probe, &folder.clips, &mut draw))?;
        for (row, tie) in shown.iter_mut().zip(&blind) {
            row.iter_mut().zip(tie).for_each(|(it, tie)| *it = it.powf(trust) * tie);
            let sum: f32 = row.iter().sum();
            row.iter_mut().for_each(|it| *it /= sum);
        }
        let (map, known_gallery) = (map(&shown, &shown), map(&shown, &known));
        let (judged, limit) = match probe {
            Probe::SingleFrame => (map, SINGLE_FRAME),
            Probe::ShuffledFrames => (map, SHUFFLED_FRAMES),
            Probe::Trajectory => (map, TRAJECTORY),
            Probe::Duration => (known_gallery, text_alone + DURATION),
        };
        lines.push(Line {
            probe: probe.name(),
            map,
            known_gallery,
            limit: Some(limit),
            passes: judged <= limit,
        });
    }
    Ok(lines)
}

fn certain(class: usize, number: usize) -> Vec<f32> {
    (0..number).map(|it| if it == class { 1.0 } else { 0.0 }).collect()
}

struct Checked {
    seed: u64,
    clips: Vec<KnownClip>,
    queries: Vec<Query>,
}

#[derive(Deserialize)]
struct PlanFile {
    generator: u32,
    seed: u64,
    split: String,
}

#[derive(Deserialize)]
struct TruthLine {
    class: usize,
    frames: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
struct TripletLine {
    kind: String,
    label1: String,
    label2: String,
}

#[derive(Deserialize)]
struct TripletRow {
    query_video: String,
}

fn read_folder(root: &Path) -> Result<Checked, CheckError> {
    let path = root.join("plan.json");
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&path, error))?;
    let plan: PlanFile = serde_json::from_str(&text).map_err(|error| wrong(&path, error))?;
    if plan.generator != super::GENERATOR {
        return Err(wrong(&path, format!("made by version {} of the generator", plan.generator)));
    }
    if plan.split != Split::Test.name() {
        return Err(CheckError::NotTest(root.to_owned()));
    }
    let clips: Vec<KnownClip> =
        lines::<TruthLine>(&root.join("truth.jsonl"))?.into_iter().filter_map(known_clip).collect();
    let queries = read_queries(root, clips.len())?;
    Ok(Checked { seed: plan.seed, clips, queries })
}

fn known_clip(line: TruthLine) -> Option<KnownClip> {
    let frames = line.frames.len();
    let row = |at: usize| truth::Row::try_from(line.frames.get(at)?.as_slice()).ok();
    let sampled: Option<Vec<_>> = sampled_frames(frames).into_iter().map(row).collect();
    (line.class < classes().len()).then_some(KnownClip { frames, sampled: sampled?, class: line.class })
}

fn read_queries(root: &Path, clips: usize) -> Result<Vec<Query>, CheckError> {
    let number = |label: &str| classes().iter().position(|it| it.label() == label);
    let details = lines::<TripletLine>(&root.join("triplets.jsonl"))?;
    let path = root.join("triplets.csv");
    let mut reader = csv::Reader::from_path(&path).map_err(|error| wrong(&path, error))?;
    let mut queries = Vec::new();
    for (row, detail) in reader.deserialize::<TripletRow>().zip(details) {
        let row = row.map_err(|error| wrong(&path, error))?;
        if detail.kind != "seen_pairs" {
            continue;
        }
        let name = row.query_video.trim_start_matches("clips/").trim_end_matches(".mp4");
        let clip = name.parse().ok().filter(|it| *it < clips);
        match (clip, number(&detail.label1), number(&detail.label2)) {
            (Some(clip), Some(query_class), Some(target_class)) => {
                queries.push(Query { clip, query_class, target_class });
            }
            _ => return Err(wrong(&path, format!("{} is not a known clip or label", row.query_video))),
        }
    }
    if queries.is_empty() {
        return Err(wrong(&path, "it has no queries on seen pairs"));
    }
    Ok(queries)
}

fn lines<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<Vec<T>, CheckError> {
    let file = File::open(path).map_err(|error| wrong(path, error))?;
    let read = |line: std::io::Result<String>| {
        serde_json::from_str(&line.map_err(|error| wrong(path, error))?).map_err(|error| wrong(path, error))
    };
    BufReader::new(file).lines().map(read).collect()
}

fn wrong(path: &Path, reason: impl std::fmt::Display) -> CheckError {
    CheckError::Folder { path: path.to_owned(), reason: reason.to_string() }
}

/// Clips of a training split from their ground truth alone; renders nothing.
fn training_clips(seed: u64, of_each: usize) -> Vec<KnownClip> {
    let settings = Settings {
        clips: of_each * classes().len(),
        triplets: 0,
        descriptions: 0,
        ..Settings::new(seed.wrapping_add(1), Split::Train)
    };
    let plan = Plan::new(&settings);
    let of_clip = |at: usize| {
        let shot: Shot = clip_shot(&settings, &plan, at);
        let rows = sampled_frames(shot.frames).into_iter();
        let sampled = rows.filter_map(|frame| truth::row(&shot, frame, settings.size)).collect();
        KnownClip { frames: shot.frames, sampled, class: plan.clips[at] }
    };
    (0..plan.clips.len()).map(of_clip).collect()
}
