//! Reads the folder that `reprise synth` writes.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::learn::composed::{Description, Modification, Texts};
use super::learn::embeddings::EmbeddedTriplet;
use super::learn::examples::{Attribute, Classes, FrameTruth, TrainingClips, Visible};
use super::learn::footage::Footage;
use anyhow::{Context, bail};
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

/// Clips with their classes and the exact labels of each frame.
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

/// Index in a row of `truth` of each value in [`Columns::NAMES`].
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

/// Reads `triplets.csv` and `descriptions.csv`.
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

#[derive(Deserialize)]
struct NameRow {
    video: String,
    start: Option<f64>,
    end: Option<f64>,
}

/// Maps the video names in triplets to rows of vectors. A stretch is named `video#t=start,end`, as in `reprise
/// covr triplets`. A video with only one row also has its bare name.
fn numbers(named: &[NameRow]) -> HashMap<String, usize> {
    let mut rows_of: HashMap<&str, usize> = HashMap::new();
    named.iter().for_each(|row| *rows_of.entry(&row.video).or_default() += 1);
    let mut numbers = HashMap::new();
    for (number, row) in named.iter().enumerate() {
        let stretch = row.start.zip(row.end).map(|(start, end)| format!("{}#t={start},{end}", row.video));
        let bare = (stretch.is_none() || rows_of[&row.video[..]] == 1).then(|| row.video.clone());
        numbers.extend(stretch.into_iter().chain(bare).map(|name| (name, number)));
    }
    numbers
}

#[derive(Deserialize)]
struct VideoRow {
    query_video: String,
    target_video: String,
    /// Absent in tables without labels: then each target video is its own label.
    label2: Option<String>,
}

/// Reads the triplets of a folder as row numbers. `videos` and `texts` are the numbers of vectors in the files.
pub(super) fn embedded(
    folder: &Path,
    names: &Path,
    videos: usize,
    texts: usize,
) -> anyhow::Result<Vec<EmbeddedTriplet>> {
    let named: Vec<NameRow> = rows(names, Ok)?;
    let triplets: Vec<VideoRow> = rows(&folder.join("triplets.csv"), Ok)?;
    if named.len() != videos || triplets.len() != texts {
        let (named, rows) = (named.len(), triplets.len());
        bail!("{videos} vectors of videos for {named} names, {texts} of texts for {rows} triplets");
    }
    let numbers = numbers(&named);
    let number = |video: &str| {
        numbers.get(video).copied().with_context(|| format!("{} does not name {video}", names.display()))
    };
    let mut labels: HashMap<&str, usize> = HashMap::new();
    let mut embedded = Vec::with_capacity(triplets.len());
    for (text, row) in triplets.iter().enumerate() {
        let next = labels.len();
        let label = *labels.entry(row.label2.as_deref().unwrap_or(&row.target_video)).or_insert(next);
        let (query, target) = (number(&row.query_video)?, number(&row.target_video)?);
        embedded.push(EmbeddedTriplet { query, target, text, label });
    }
    Ok(embedded)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &str, triplets: &str, expected: Result<&[[usize; 4]], &str>) {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("names.csv");
        std::fs::write(&list, names).unwrap();
        std::fs::write(folder.path().join("triplets.csv"), triplets).unwrap();
        let (videos, texts) = (names.lines().count() - 1, triplets.lines().count() - 1);
        match (embedded(folder.path(), &list, videos, texts), expected) {
            (Ok(got), Ok(expected)) => {
                let got = got.iter().map(|it| [it.query, it.target, it.text, it.label]);
                assert_eq!(got.collect::<Vec<_>>(), expected);
            }
            (Err(error), Err(part)) => assert!(format!("{error:#}").contains(part), "{error:#}"),
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn triplets_are_found_by_the_names_of_vectors() {
        let names = "video\nb.mp4\na.mp4\nc.mp4\n";
        let labelled = "query_video,target_video,label1,label2,modification\n\
            a.mp4,b.mp4,x,y,show y\nb.mp4,c.mp4,y,y,\"y, again\"\nc.mp4,a.mp4,y,x,show x\n";
        check(names, labelled, Ok(&[[1, 0, 0, 0], [0, 2, 1, 0], [2, 1, 2, 1]]));
        let plain = "query_video,target_video,modification\na.mp4,b.mp4,show\nb.mp4,c.mp4,again\n";
        check(names, plain, Ok(&[[1, 0, 0, 0], [0, 2, 1, 1]]));
        check(names, "query_video,target_video\na.mp4,d.mp4\n", Err("does not name d.mp4"));
    }

    #[test]
    fn stretches_are_found_by_their_times_and_a_lone_one_by_its_video() {
        let names = "video,start,end\na.mp4,0,1.5\na.mp4,2.0,3\nb.mp4,0,2\nc.mp4,,\n";
        let header = "query_video,target_video,modification\n";
        let rows = "\"a.mp4#t=2,3\",\"a.mp4#t=0,1.5\",x\nb.mp4,\"b.mp4#t=0,2\",y\nc.mp4,b.mp4,z\n";
        check(names, &format!("{header}{rows}"), Ok(&[[1, 0, 0, 0], [2, 2, 1, 1], [3, 2, 2, 2]]));
        check(names, &format!("{header}a.mp4,b.mp4,x\n"), Err("does not name a.mp4"));
    }

    #[test]
    fn attributes_are_numbered_by_what_occurs() {
        let class = |event: &str, twists| Class {
            label: format!("({event}) {twists}"),
            event: event.to_owned(),
            direction: "forward".to_owned(),
            somersaults: 1.0,
            twists,
            position: "tuck".to_owned(),
        };
        let classes = classes(&[class("Vault", 0.5), class("Beam", 0.5), class("Beam", 1.0)]);
        let of = |name: &str| &classes.attributes.iter().find(|it| it.name == name).unwrap().of_class;
        assert_eq!((of("event"), of("twists")), (&vec![1, 0, 0], &vec![0, 0, 1]));
        assert_eq!((classes.distance(0, 1), classes.distance(0, 2)), (1, 2));
    }

    #[test]
    fn a_row_is_read_by_the_names_of_columns() {
        let mut names: Vec<String> = Columns::NAMES.iter().rev().map(|it| (*it).to_owned()).collect();
        let row: Vec<f32> = (0..9).map(|it| it as f32).collect();
        let truth = Columns::of(&names).unwrap().read(&row).unwrap();
        assert!(truth.airborne && truth.somersault == 8.0 && truth.joints == [2.0, 1.0, 0.0]);
        assert!(Columns::of(&names).unwrap().read(&row[..8]).is_err());
        names.pop();
        assert!(Columns::of(&names).is_err());
    }
}
