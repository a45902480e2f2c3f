//! `reprise eval care`: retrieval with spatial and temporal captions by CaReBench's protocol (arXiv 2501.00513), from
//! its files or from precomputed vectors.
//!
//! Layout of the folder: `general.json` (or `metadata.json`), `spatial.json` and `temporal.json`, directly or in
//! `json/`, each a list of `{"video": "NAME.mp4", "caption": "..."}`. Or `metadata.json` alone, with `spatial_caption`
//! and `temporal_caption` in its items. The videos lie in the folder or in `videos/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::rows::Rows;
use anyhow::{Context, ensure};
use clap::{ArgGroup, Args};
use reprise_encoders::video::sample::Sampler;
use reprise_encoders::{Clip, DEFAULT_MODEL, Embedder, Input, ModelName};
use reprise_index::eval::ReBias;
use serde::{Deserialize, Serialize};

use super::matching::{Reading, Recall, Side, by_place};
use super::print;
use crate::compute::{ComputeArgs, FrameArgs, FrameSizeArgs};
use crate::encode::{self, LongTexts, Stretch, file_of};
use crate::terminal::bar;

/// The cutoffs K of the paper's tables.
const RECALL_AT: [usize; 3] = [1, 5, 10];
/// Frames per clip.
const FRAMES: usize = 32;
/// Decoded clips in memory at a time.
const CLIPS_AT_ONCE: usize = 16;
/// Kinds of captions.
const KINDS: [&str; 3] = ["general", "spatial", "temporal"];

/// Arguments of `reprise eval care`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["data", "vectors"]).required(true)))]
pub struct CareArgs {
    /// A folder with general.json, spatial.json and temporal.json (lists of video and caption) and the videos
    #[arg(long)]
    data: Option<PathBuf>,
    /// A folder with videos.npy, general.npy, spatial.npy and temporal.npy, whose rows correspond
    #[arg(long)]
    vectors: Option<PathBuf>,
    /// A built-in model, a folder or .pt file, or a hub id org/name[@revision]
    #[arg(long, env = "REPRISE_MODEL", default_value = DEFAULT_MODEL)]
    model: ModelName,
    #[command(flatten)]
    compute: ComputeArgs,
    #[command(flatten)]
    size: FrameSizeArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The printed result.
#[derive(Debug, Serialize)]
struct Report {
    space: Option<String>,
    videos: usize,
    rows: Vec<Line>,
}

/// Metrics for texts of one kind.
#[derive(Debug, Serialize)]
struct Line {
    /// `None` for precomputed vectors.
    text: Option<Reading>,
    /// Recall in percent, by kind of caption, direction and cutoff.
    recall: BTreeMap<&'static str, BTreeMap<&'static str, Recall>>,
    /// Absent without spatial and temporal captions, or if a recall is 0.
    rebias: Option<ReBias>,
}

/// Prints the table or JSON.
pub(super) fn run(args: &CareArgs) -> anyhow::Result<()> {
    let report = match (&args.data, &args.vectors) {
        (Some(data), _) => of_files(args, data)?,
        (None, Some(vectors)) => of_vectors(vectors)?,
        (None, None) => anyhow::bail!("give --data or --vectors"),
    };
    print(args.json, &report, table)
}

/// Captions and the names of their videos.
#[derive(Debug, Default, PartialEq, Eq)]
struct Captions {
    videos: Vec<String>,
    texts: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Item {
    video: String,
    caption: String,
    spatial_caption: Option<String>,
    temporal_caption: Option<String>,
}

/// The captions of each existing kind, general ones first.
fn captions(folder: &Path) -> anyhow::Result<BTreeMap<&'static str, Captions>> {
    let mut all = BTreeMap::new();
    for kind in KINDS {
        let names: &[&str] = if kind == "general" { &["general.json", "metadata.json"] } else { &[kind] };
        let names = names
            .iter()
            .map(|name| if name.ends_with(".json") { (*name).to_owned() } else { format!("{name}.json") });
        let places: Vec<PathBuf> =
            names.flat_map(|name| [folder.join(&name), folder.join("json").join(&name)]).collect();
        let Some(path) = places.into_iter().find(|path| path.is_file()) else { continue };
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let items: Vec<Item> = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        for item in items {
            let parts = [("spatial", item.spatial_caption), ("temporal", item.temporal_caption)];
            let whole = [(kind, Some(item.caption))];
            for (kind, text) in whole.into_iter().chain(parts) {
                let Some(text) = text else { continue };
                let captions: &mut Captions = all.entry(kind).or_default();
                captions.videos.push(item.video.clone());
                captions.texts.push(text);
            }
        }
    }
    ensure!(!all.is_empty(), "{} has no general.json or metadata.json", folder.display());
    Ok(all)
}

/// Frame indices of a clip: the middles of equal parts, as in TF-CoVR. A shorter clip gives all its frames, and its
/// last frame again up to 32.
fn picked(times_ms: &[i64], start_ms: i64) -> Vec<usize> {
    let frames = times_ms.len();
    let mut picked = Sampler::Middles { frames: FRAMES.min(frames) }.pick(times_ms, start_ms);
    picked.resize(FRAMES, frames.saturating_sub(1));
    picked
}

fn of_files(args: &CareArgs, data: &Path) -> anyhow::Result<Report> {
    let captions = captions(data)?;
    let mut names: Vec<String> = captions.values().flat_map(|it| it.videos.iter().cloned()).collect();
    names.sort();
    names.dedup();
    let frames = FrameArgs { size: args.size, ..FrameArgs::default() };
    let mut model = args.compute.load_with(&args.model, &frames).with_context(|| args.model.to_string())?;
    let can = model.space.can;
    ensure!(can.text && can.frames, "{} does not take both texts and videos", model.space.name);
    let clips_bar = bar(args.json, names.len(), "clips")?;
    let videos = videos(&mut model, data, &names, &|more| clips_bar.inc(more))?;
    clips_bar.finish_and_clear();
    let texts_bar = bar(args.json, captions.values().map(|it| it.texts.len()).sum(), "texts")?;
    let mut texts: BTreeMap<&'static str, LongTexts> = BTreeMap::new();
    for (kind, captions) in &captions {
        texts.insert(kind, encode::long_texts(&mut model, &captions.texts, &|more| texts_bar.inc(more))?);
    }
    texts_bar.finish_and_clear();
    let gallery = Side::new(videos, names.clone())?;
    let line = |reading: Reading| -> anyhow::Result<Line> {
        let side = |(kind, texts): (&&'static str, &LongTexts)| {
            Ok((*kind, Side::of_texts(texts, reading, captions[kind].videos.clone())?))
        };
        let sides = texts.iter().map(side).collect::<anyhow::Result<_>>()?;
        Line::of(Some(reading), &gallery, &sides)
    };
    let rows = Reading::ALL.into_iter().map(line).collect::<anyhow::Result<_>>()?;
    Ok(Report { space: Some(model.space.name.clone()), videos: names.len(), rows })
}

fn videos(model: &mut Embedder, folder: &Path, names: &[String], done: &dyn Fn(u64)) -> anyhow::Result<Rows> {
    let file = |name: &String| file_of(&folder.join("videos"), name).or_else(|_| file_of(folder, name));
    let files = names.iter().map(file).collect::<Result<Vec<PathBuf>, _>>()?;
    let mut vectors = Vec::new();
    for files in files.chunks(CLIPS_AT_ONCE) {
        let stretches: Vec<Stretch> = files.iter().map(|file| Stretch::whole(file)).collect();
        let frames =
            encode::picked_frames(&stretches, model.space.scaling, &|_, times, start| picked(times, start))?;
        let inputs: Vec<Input> = frames.into_iter().map(|frames| Input::Frames(Clip { frames })).collect();
        vectors.extend(encode::inputs(model, &inputs)?.into_iter().flatten());
        done(files.len() as u64);
    }
    Ok(Rows::new(vectors, model.space.dim)?)
}

fn of_vectors(folder: &Path) -> anyhow::Result<Report> {
    let videos = Rows::read(&folder.join("videos.npy"))?;
    let (count, ids) = (videos.len(), by_place(videos.len()));
    let mut sides = BTreeMap::new();
    for kind in KINDS {
        let path = folder.join(format!("{kind}.npy"));
        if path.is_file() {
            let side = Side::new(Rows::read(&path)?, ids.clone());
            sides.insert(kind, side.with_context(|| path.display().to_string())?);
        }
    }
    ensure!(!sides.is_empty(), "{} has no general.npy, spatial.npy or temporal.npy", folder.display());
    let rows = vec![Line::of(None, &Side::new(videos, ids)?, &sides)?];
    Ok(Report { space: None, videos: count, rows })
}

impl Line {
    fn of(
        text: Option<Reading>,
        videos: &Side,
        texts: &BTreeMap<&'static str, Side>,
    ) -> anyhow::Result<Line> {
        let mut recall = BTreeMap::new();
        for (kind, texts) in texts {
            let to_video = texts.find_in(videos, &RECALL_AT)?;
            let to_text = videos.find_in(texts, &RECALL_AT)?;
            recall.insert(*kind, BTreeMap::from([("text_to_video", to_video), ("video_to_text", to_text)]));
        }
        let six = |kind: &str| -> Option<Vec<f64>> {
            Some(recall.get(kind)?.values().flat_map(|recall| recall.values().copied()).collect())
        };
        let rebias = six("spatial").zip(six("temporal")).and_then(|(it, other)| ReBias::of(&it, &other));
        Ok(Line { text, recall, rebias })
    }
}

fn table(report: &Report) -> Vec<String> {
    let (videos, space) = (report.videos, report.space.as_deref().unwrap_or("as given"));
    let mut lines = vec![format!("{videos} videos, space {space}")];
    let head: String = RECALL_AT.iter().map(|k| format!("{:>8}", format!("R@{k}"))).collect();
    lines.push(format!("{:<9} {:<9} {:<14}{head}", "text", "captions", "direction"));
    for row in &report.rows {
        let text = row.text.map_or("-", Reading::name);
        for (kind, directions) in &row.recall {
            for (direction, recall) in directions {
                let values: String = recall.values().map(|value| format!("{value:>8.2}")).collect();
                lines.push(format!("{text:<9} {kind:<9} {direction:<14}{values}"));
            }
        }
        if let Some(ReBias { paper_table, paper_formula }) = row.rebias {
            lines.push(format!(
                "{text:<9} ReBias {paper_table:.2} as in the paper's table, {paper_formula:.2} by its formula"
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(frames: usize, first: &[usize], last: usize) {
        let times: Vec<i64> = (0..frames as i64).map(|at| at * 40).collect();
        let picked = picked(&times, 0);
        assert_eq!((picked.len(), picked[FRAMES - 1]), (FRAMES, last));
        assert_eq!(picked[..first.len()], *first);
    }

    #[test]
    fn short_clips_end_with_their_last_frame_repeated() {
        check(5, &[0, 1, 2, 3, 4, 4, 4], 4);
        check(1, &[0, 0, 0], 0);
        check(32, &[0, 1, 2, 3], 31);
        check(320, &[4, 14, 24], 314);
    }

    #[track_caller]
    fn check_captions(files: &[(&str, &str)], expected: &[(&str, &[(&str, &str)])]) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("json")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let Ok(got) = captions(folder.path()) else { return assert!(expected.is_empty()) };
        let got: Vec<_> =
            got.iter().map(|(kind, it)| (*kind, it.videos.iter().zip(&it.texts).collect())).collect();
        let expected: Vec<(&str, Vec<_>)> = expected
            .iter()
            .map(|(kind, pairs)| {
                (*kind, pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
            })
            .collect();
        let expected: Vec<(&str, Vec<(&String, &String)>)> = expected
            .iter()
            .map(|(kind, pairs)| (*kind, pairs.iter().map(|(a, b)| (a, b)).collect()))
            .collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn captions_come_from_three_files_or_from_one() {
        let list = |text: &str| format!("[{{\"video\": \"a.mp4\", \"caption\": \"{text}\", \"other\": 1}}]");
        let (general, spatial, temporal) = (list("all"), list("seen"), list("moves"));
        let three =
            [("json/general.json", &general[..]), ("spatial.json", &spatial), ("temporal.json", &temporal)];
        let expected: [(&str, &[(&str, &str)]); 3] = [
            ("general", &[("a.mp4", "all")]),
            ("spatial", &[("a.mp4", "seen")]),
            ("temporal", &[("a.mp4", "moves")]),
        ];
        check_captions(&three, &expected);
        let one = "[{\"video\": \"a.mp4\", \"caption\": \"all\", \"spatial_caption\": \"seen\", \
            \"temporal_caption\": \"moves\"}]";
        check_captions(&[("metadata.json", one)], &expected);
        check_captions(&three[..1], &expected[..1]);
        check_captions(&[("other.json", one)], &[]);
        check_captions(&[("metadata.json", "{}")], &[]);
    }
}
