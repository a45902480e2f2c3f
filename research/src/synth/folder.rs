//! The files of a benchmark folder beside its pictures: plan, labels, ground truth, triplets, descriptions, broadcasts.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::broadcast::{Broadcast, RangeKind};
use super::classes::{Class, classes};
use super::motion::FRAMES_PER_SECOND;
use super::plan::{self, Plan, Settings, Split};
use super::shot::Shot;
use super::{GENERATOR, SynthError, truth};

/// A benchmark folder being written.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
}

/// Marks a complete folder.
pub(super) const PLAN_FILE: &str = "plan.json";
/// Its name until the folder is complete.
const UNFINISHED: &str = "plan.unfinished.json";

impl Folder {
    /// Prepares `root`: creates it, or removes the files of an earlier run.
    ///
    /// # Errors
    /// It holds files of another origin, or cannot be written.
    pub(super) fn prepare(root: &Path, settings: &Settings) -> Result<Folder, SynthError> {
        fs::create_dir_all(root).map_err(at(root))?;
        let ours = root.join(PLAN_FILE).exists() || root.join(UNFINISHED).exists();
        let holds_something = fs::read_dir(root).map_err(at(root))?.next().is_some();
        if holds_something && !ours {
            return Err(SynthError::NotOurs(root.to_owned()));
        }
        let folder = Folder { root: root.to_owned() };
        folder.write_json(UNFINISHED, &plan_json(settings, None))?;
        let plan = root.join(PLAN_FILE);
        if plan.exists() {
            fs::remove_file(&plan).map_err(at(&plan))?;
        }
        for name in ["clips", "broadcasts"] {
            let path = root.join(name);
            if path.exists() {
                fs::remove_dir_all(&path).map_err(at(&path))?;
            }
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        Ok(folder)
    }

    /// The folder of the clips.
    pub(super) fn clips(&self) -> PathBuf {
        self.root.join("clips")
    }

    /// A file of the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes everything except pictures and `plan.json`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn write_tables(
        &self,
        settings: &Settings,
        plan: &Plan,
        shots: &dyn Fn(usize) -> Shot,
        broadcasts: &[Broadcast],
    ) -> Result<(), SynthError> {
        self.labels(plan, shots, broadcasts)?;
        self.truth(settings, plan, shots)?;
        self.triplets(settings, plan)?;
        self.descriptions(plan)?;
        self.broadcasts(broadcasts)
    }

    /// Marks the folder as complete.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn finish(&self, settings: &Settings, plan: &Plan) -> Result<(), SynthError> {
        self.write_json(UNFINISHED, &plan_json(settings, Some(plan)))?;
        let done = self.path(PLAN_FILE);
        fs::rename(self.path(UNFINISHED), &done).map_err(at(&done))
    }

    fn write_json(&self, name: &str, value: &Value) -> Result<(), SynthError> {
        let path = self.path(name);
        fs::write(&path, format!("{value:#}\n")).map_err(at(&path))
    }

    fn table(&self, name: &str, header: &[&str]) -> Result<Table, SynthError> {
        let path = self.path(name);
        let file = BufWriter::new(File::create(&path).map_err(at(&path))?);
        let mut table = Table { path, writer: csv::Writer::from_writer(file) };
        table.row(header)?;
        Ok(table)
    }

    fn lines(&self, name: &str) -> Result<Lines, SynthError> {
        let path = self.path(name);
        let writer = BufWriter::new(File::create(&path).map_err(at(&path))?);
        Ok(Lines { path, writer })
    }

    fn labels(
        &self,
        plan: &Plan,
        shots: &dyn Fn(usize) -> Shot,
        broadcasts: &[Broadcast],
    ) -> Result<(), SynthError> {
        let mut table = self.table("labels.csv", &["video", "start", "end", "label"])?;
        for (at, class) in plan.clips.iter().enumerate() {
            let end = shots(at).seconds().to_string();
            table.row(&[&clip_name(at), "0", &end, &classes()[*class].label()])?;
        }
        for (at, broadcast) in broadcasts.iter().enumerate() {
            for range in &broadcast.ranges {
                for element in &range.elements {
                    // Annotators put a boundary at a cut.
                    let (start, end) = match range.kind {
                        RangeKind::UncutRoutine => (element.start, element.end),
                        _ => (range.start, range.end),
                    };
                    let (start, end) = (seconds(start).to_string(), seconds(end).to_string());
                    table.row(&[&broadcast_name(at), &start, &end, &classes()[element.class].label()])?;
                }
            }
        }
        table.finish()
    }

    fn truth(
        &self,
        settings: &Settings,
        plan: &Plan,
        shots: &dyn Fn(usize) -> Shot,
    ) -> Result<(), SynthError> {
        let mut lines = self.lines("truth.jsonl")?;
        for (at, class) in plan.clips.iter().enumerate() {
            let (performance, _) = plan::nuisance(settings, at as u64);
            let mirrored = performance.mirrored;
            let frames: Vec<Vec<f64>> = truth::rows(&shots(at), settings.size)
                .iter()
                .map(|row| row.iter().map(|it| (it * 1000.0).round() / 1000.0 + 0.0).collect())
                .collect();
            lines.row(&json!({
                "video": clip_name(at), "class": class, "mirrored": mirrored, "frames": frames,
            }))?;
        }
        lines.finish()
    }

    fn triplets(&self, settings: &Settings, plan: &Plan) -> Result<(), SynthError> {
        let header: &[&str] = match settings.split {
            Split::Train => &["query_video", "target_video", "label1", "label2", "modification"],
            Split::Test => &["query_id", "query_video", "target_video", "modification", "target_videos_ids"],
        };
        let mut table = self.table("triplets.csv", header)?;
        let mut lines = self.lines("triplets.jsonl")?;
        let labels: Vec<String> = classes().iter().map(Class::label).collect();
        let mut by_class = vec![Vec::new(); labels.len()];
        plan.clips.iter().enumerate().for_each(|(at, class)| by_class[*class].push(at));
        for (at, triplet) in plan.triplets.iter().enumerate() {
            let [query, target] = [triplet.query, triplet.target];
            let [label1, label2] = [query, target].map(|it| labels[plan.clips[it]].as_str());
            let modification = triplet.modification.as_str();
            match settings.split {
                Split::Train => {
                    table.row(&[&clip_name(query), &clip_name(target), label1, label2, modification])?;
                }
                Split::Test => {
                    let all: Vec<String> = by_class[plan.clips[target]]
                        .iter()
                        .map(|it| format!("'{}'", clip_name(*it)))
                        .collect();
                    let all = format!("[{}]", all.join(", "));
                    let id = at.to_string();
                    table.row(&[&id, &clip_name(query), &clip_name(target), modification, &all])?;
                }
            }
            let attributes: Vec<_> = triplet.changes.iter().map(|it| it.name()).collect();
            lines.row(&json!({
                "query_id": at, "kind": triplet.kind.name(),
                "label1": label1, "label2": label2, "attributes": attributes,
            }))?;
        }
        table.finish()?;
        lines.finish()
    }

    fn descriptions(&self, plan: &Plan) -> Result<(), SynthError> {
        let mut table = self.table("descriptions.csv", &["label", "text"])?;
        for (class, text) in &plan.descriptions {
            table.row(&[&classes()[*class].label(), text])?;
        }
        table.finish()
    }

    fn broadcasts(&self, broadcasts: &[Broadcast]) -> Result<(), SynthError> {
        let mut lines = self.lines("broadcasts.jsonl")?;
        for (at, broadcast) in broadcasts.iter().enumerate() {
            for (number, range) in broadcast.ranges.iter().enumerate() {
                let elements = range.elements.iter().map(|it| {
                    json!({
                        "start": seconds(it.start), "end": seconds(it.end),
                        "class": it.class, "label": classes()[it.class].label(),
                    })
                });
                let label = match range.kind {
                    RangeKind::UncutRoutine => None,
                    _ => range.elements.first().map(|it| classes()[it.class].label()),
                };
                lines.row(&json!({
                    "video": broadcast_name(at), "range": number,
                    "start": seconds(range.start), "end": seconds(range.end),
                    "kind": range.kind.name(), "label": label,
                    "elements": elements.collect::<Vec<_>>(), "replays": range.replays,
                }))?;
            }
        }
        lines.finish()
    }
}

/// The name of clip `at` in all files.
pub(super) fn clip_name(at: usize) -> String {
    format!("clips/{at:06}.mp4")
}

/// The name of broadcast `at` (from 0) in all files.
pub(super) fn broadcast_name(at: usize) -> String {
    format!("broadcasts/{:02}.mp4", at + 1)
}

fn seconds(frame: usize) -> f64 {
    frame as f64 / FRAMES_PER_SECOND
}

fn plan_json(settings: &Settings, plan: Option<&Plan>) -> Value {
    let class = |it: &Class| {
        json!({
            "label": it.label(), "event": it.event.name(), "direction": it.direction.name(),
            "somersaults": it.somersaults.count(), "twists": it.twists.count(), "position": it.position.name(),
        })
    };
    json!({
        "generator": GENERATOR,
        "seed": settings.seed,
        "split": settings.split.name(),
        "size": settings.size,
        "frames_per_second": FRAMES_PER_SECOND,
        "clips": plan.map_or(settings.clips, |it| it.clips.len()),
        "labels": settings.labels,
        "triplets": plan.map_or(settings.triplets, |it| it.triplets.len()),
        "broadcasts": settings.broadcasts,
        "routines": settings.routines,
        "truth_columns": truth::COLUMNS,
        "classes": classes().iter().map(class).collect::<Vec<_>>(),
    })
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> SynthError {
    let path = path.to_owned();
    move |source| SynthError::Io { path, source }
}

struct Table {
    path: PathBuf,
    writer: csv::Writer<BufWriter<File>>,
}

impl Table {
    fn row(&mut self, fields: &[&str]) -> Result<(), SynthError> {
        let written = self.writer.write_record(fields);
        written.map_err(|error| SynthError::Io { path: self.path.clone(), source: error.into() })
    }

    fn finish(mut self) -> Result<(), SynthError> {
        self.writer.flush().map_err(at(&self.path))
    }
}

struct Lines {
    path: PathBuf,
    writer: BufWriter<File>,
}

impl Lines {
    fn row(&mut self, value: &Value) -> Result<(), SynthError> {
        writeln!(self.writer, "{value}").map_err(at(&self.path))
    }

    fn finish(mut self) -> Result<(), SynthError> {
        self.writer.flush().map_err(at(&self.path))
    }
}
