//! The folder that `reprise synth` writes, as values to train on.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, bail};
use reprise_encoders::train::composed::{Description, Modification, Texts};
use reprise_encoders::train::examples::{Attribute, Classes, FrameTruth, TrainingClips, Visible};
use reprise_encoders::train::footage::Footage;
use serde::Deserialize;

#[derive(Deserialize)]
struct Plan {
    split: String,
    truth_columns: Vec<String>,
    classes: Vec<Class>,
}

#[derive(Deserialize)]
struct Class {
    label: String,
    event: String,
    direction: String,
    somersaults: f64,
    twists: f64,
    position: String,
}

#[derive(Deserialize)]
struct Truth {
    video: String,
    class: usize,
    frames: Vec<Vec<f32>>,
}

/// Clips with their classes and what is true of each frame.
pub(super) fn clips(folder: &Path) -> anyhow::Result<TrainingClips> {
    let plan = plan(folder)?;
    let columns = Columns::of(&plan.truth_columns)?;
    let mut clips = TrainingClips { classes: classes(&plan.classes), ..TrainingClips::default() };
    let path = folder.join("truth.jsonl");
    let file = File::open(&path).with_context(|| path.display().to_string())?;
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.with_context(|| path.display().to_string())?;
        let truth: Truth = serde_json::from_str(&line)
            .with_context(|| format!("{}, line {}", path.display(), number + 1))?;
        let frames = truth.frames.iter().map(|row| columns.read(row)).collect::<anyhow::Result<Vec<_>>>();
        let frames = frames.with_context(|| format!("{}, line {}", path.display(), number + 1))?;
        clips.footage.push(Footage { path: folder.join(&truth.video), frames: frames.len() });
        clips.class.push(truth.class);
        clips.truth.push(frames);
    }
    clips.check()?;
    Ok(clips)
}

fn plan(folder: &Path) -> anyhow::Result<Plan> {
    let path = folder.join("plan.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{}: no folder of `reprise synth`, or not finished", path.display()))?;
    let plan: Plan = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    if plan.split != "train" {
        bail!("{} holds the {} split; train on `reprise synth --split train`", folder.display(), plan.split);
    }
    Ok(plan)
}

/// Where each value stands in a row.
struct Columns(Vec<usize>);

impl Columns {
    const NAMES: [&str; 9] = [
        "somersault",
        "twist",
        "airborne",
        "facing_vertical",
        "facing_horizontal",
        "facing_camera",
        "hip",
        "knee",
        "shoulder",
    ];

    fn of(names: &[String]) -> anyhow::Result<Self> {
        let place = |wanted: &&str| {
            let found = names.iter().position(|name| name == wanted);
            found.with_context(|| format!("plan.json names no truth column {wanted}"))
        };
        Ok(Columns(Columns::NAMES.iter().map(place).collect::<anyhow::Result<_>>()?))
    }

    fn read(&self, row: &[f32]) -> anyhow::Result<FrameTruth> {
        let values: Option<Vec<f32>> = self.0.iter().map(|at| row.get(*at).copied()).collect();
        match values.as_deref() {
            Some(&[somersault, twist, airborne, up, right, towards, hip, knee, shoulder]) => Ok(FrameTruth {
                somersault,
                twist,
                airborne: airborne > 0.5,
                facing: [up, right, towards],
                joints: [hip, knee, shoulder],
            }),
            _ => bail!("a row of {} values is too short", row.len()),
        }
    }
}

fn classes(classes: &[Class]) -> Classes {
    let attribute = |name: &str, visible, value: &dyn Fn(&Class) -> String| {
        let values: Vec<String> = classes.iter().map(value).collect();
        let mut known = values.clone();
        known.sort();
        known.dedup();
        let number = |value: &String| known.binary_search(value).unwrap_or(0);
        let of_class = values.iter().map(number).collect();
        Attribute { name: name.to_owned(), values: known.len(), of_class, visible }
    };
    Classes {
        labels: classes.iter().map(|class| class.label.clone()).collect(),
        attributes: vec![
            attribute("event", Visible::Always, &|it| it.event.clone()),
            attribute("direction", Visible::Never, &|it| it.direction.clone()),
            attribute("somersaults", Visible::Never, &|it| it.somersaults.to_string()),
            attribute("twists", Visible::Never, &|it| it.twists.to_string()),
            attribute("position", Visible::Airborne, &|it| it.position.clone()),
        ],
    }
}

#[derive(Deserialize)]
struct TripletRow {
    label1: String,
    label2: String,
    modification: String,
}

#[derive(Deserialize)]
struct DescriptionRow {
    label: String,
    text: String,
}

/// The modification texts and descriptions.
pub(super) fn texts(folder: &Path, classes: &Classes) -> anyhow::Result<Texts> {
    let numbers: HashMap<&str, usize> = classes.labels.iter().map(|label| &label[..]).zip(0..).collect();
    let number = |label: &str| {
        numbers.get(label).copied().with_context(|| format!("plan.json has no class {label:?}"))
    };
    let modification = |row: TripletRow| -> anyhow::Result<Modification> {
        Ok(Modification { from: number(&row.label1)?, to: number(&row.label2)?, text: row.modification })
    };
    let description = |row: DescriptionRow| -> anyhow::Result<Description> {
        Ok(Description { class: number(&row.label)?, text: row.text })
    };
    Ok(Texts {
        modifications: rows(&folder.join("triplets.csv"), modification)?,
        descriptions: rows(&folder.join("descriptions.csv"), description)?,
    })
}

fn rows<R: for<'de> Deserialize<'de>, T>(
    path: &Path,
    read: impl Fn(R) -> anyhow::Result<T>,
) -> anyhow::Result<Vec<T>> {
    let mut reader = csv::Reader::from_path(path).with_context(|| path.display().to_string())?;
    let rows = reader.deserialize::<R>().enumerate().map(|(number, row)| {
        let place = || format!("{}, row {}", path.display(), number + 2);
        read(row.with_context(place)?).with_context(place)
    });
    rows.collect()
}
