//! `reprise eval lovr`: long texts and long videos by LoVR's protocol (arXiv 2505.13928), from its files or from
//! precomputed vectors.

mod dataset;
mod sampling;
mod video;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::rows::Rows;
use anyhow::{Context, ensure};
use clap::{ArgGroup, Args, ValueEnum};
use reprise_encoders::{DEFAULT_MODEL, ModelName};
use serde::Serialize;

use super::matching::{Reading, Recall, Side, by_place};
use super::print;
use crate::compute::ComputeArgs;
use crate::encode;
use crate::terminal::bar;

/// The cutoffs K of the paper's tables and figure.
const RECALL_AT: [usize; 4] = [1, 5, 10, 20];

/// Arguments of `reprise eval lovr`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["data", "vectors"]).required(true)))]
pub struct LovrArgs {
    /// A folder with all_clip.jsonl, all_video.jsonl and clips, as LoVR publishes them
    #[arg(long)]
    data: Option<PathBuf>,
    /// A folder with clips.npy, videos.npy, clip_texts.npy and video_texts.npy, whose rows correspond; if
    /// all_clip.jsonl and all_video.jsonl are there, each row belongs to a line of theirs
    #[arg(long)]
    vectors: Option<PathBuf>,
    /// A built-in model, a folder or .pt file, or a hub id org/name[@revision]
    #[arg(long, env = "REPRISE_MODEL", default_value = DEFAULT_MODEL)]
    model: ModelName,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Colour channels as intended, or with red and blue swapped as in the released code
    #[arg(long, default_value = "clean", requires = "data")]
    mode: ModeArg,
    /// Stride of the encoded frames: every Nth; several strides are compared from one decode
    #[arg(long, value_delimiter = ',', default_value = "10", requires = "data", value_name = "FRAMES")]
    frames_stride: Vec<std::num::NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum ModeArg {
    Clean,
    Compat,
}

/// The printed result.
#[derive(Debug, Serialize)]
struct Report {
    mode: Option<ModeArg>,
    space: Option<String>,
    clips: usize,
    videos: usize,
    rows: Vec<Line>,
}

/// Recall at one stride for texts of one kind.
#[derive(Debug, Serialize)]
struct Line {
    frames_stride: Option<usize>,
    /// `None` for precomputed vectors.
    text: Option<Reading>,
    /// Recall in percent, by direction and cutoff.
    recall: BTreeMap<&'static str, Recall>,
    seconds: Seconds,
}

/// Seconds per step.
#[derive(Debug, Serialize)]
struct Seconds {
    /// Reading, decoding and encoding the videos; all strides share the decode.
    videos_with_io: Option<f64>,
    /// Encoding the videos alone.
    videos_without_io: Option<f64>,
    /// Encoding all windows of the texts.
    texts: Option<f64>,
    /// The searches in all four directions.
    search: f64,
}

/// Prints the table or JSON.
pub(super) fn run(args: &LovrArgs) -> anyhow::Result<()> {
    let report = match (&args.data, &args.vectors) {
        (Some(data), _) => of_files(args, data)?,
        (None, Some(vectors)) => of_vectors(vectors)?,
        (None, None) => anyhow::bail!("give --data or --vectors"),
    };
    print(args.json, &report, table)
}

fn of_files(args: &LovrArgs, data: &Path) -> anyhow::Result<Report> {
    let dataset = dataset::read(data)?;
    let mut model = args.compute.load(&args.model).with_context(|| args.model.to_string())?;
    let can = model.space.can;
    ensure!(can.text && can.frames, "{} does not take both texts and videos", model.space.name);
    let (clip_texts, video_texts) = (&dataset.clip_captions, &dataset.video_captions);
    let texts_bar = bar(args.json, clip_texts.texts.len() + video_texts.texts.len(), "texts")?;
    let began = Instant::now();
    let of_clips = encode::long_texts(&mut model, &clip_texts.texts, &|more| texts_bar.inc(more))?;
    let of_videos = encode::long_texts(&mut model, &video_texts.texts, &|more| texts_bar.inc(more))?;
    let texts_took = began.elapsed();
    texts_bar.finish_and_clear();
    let strides: Vec<usize> = args.frames_stride.iter().map(|stride| stride.get()).collect();
    let clips_bar = bar(args.json, dataset.clips.len(), "clips")?;
    let swapped = args.mode == ModeArg::Compat;
    let encoded = video::encode(&mut model, &dataset, &strides, swapped, &|more| clips_bar.inc(more))?;
    clips_bar.finish_and_clear();
    let clip_ids = || dataset.clips.iter().map(|clip| clip.id.clone()).collect();
    let mut rows = Vec::new();
    for strided in encoded.strided {
        let clips = Side::new(strided.clips, clip_ids())?;
        let videos = Side::new(strided.videos, dataset.videos.clone())?;
        for text in Reading::ALL {
            let clip_texts = Side::of_texts(&of_clips, text, clip_texts.ids.clone())?;
            let video_texts = Side::of_texts(&of_videos, text, video_texts.ids.clone())?;
            let (recall, search) = directions(&clips, &videos, &clip_texts, &video_texts)?;
            let seconds = Seconds {
                videos_with_io: Some((encoded.decoding + strided.encoding).as_secs_f64()),
                videos_without_io: Some(strided.encoding.as_secs_f64()),
                texts: Some(texts_took.as_secs_f64()),
                search: search.as_secs_f64(),
            };
            rows.push(Line { frames_stride: Some(strided.stride), text: Some(text), recall, seconds });
        }
    }
    let space = Some(model.space.name.clone());
    Ok(Report {
        mode: Some(args.mode),
        space,
        clips: dataset.clips.len(),
        videos: dataset.videos.len(),
        rows,
    })
}

fn of_vectors(folder: &Path) -> anyhow::Result<Report> {
    let read = |name: &str| Rows::read(&folder.join(name));
    let (clips, videos) = (read("clips.npy")?, read("videos.npy")?);
    let (clip_ids, video_ids) = match folder.join("all_clip.jsonl").exists() {
        true => {
            let (clips, videos, _) = dataset::captions(folder)?;
            (clips.ids, videos.ids)
        }
        false => (by_place(clips.len()), by_place(videos.len())),
    };
    let clip_texts = Side::new(read("clip_texts.npy")?, clip_ids.clone()).context("clip_texts.npy")?;
    let video_texts = Side::new(read("video_texts.npy")?, video_ids.clone()).context("video_texts.npy")?;
    let (clip_count, video_count) = (clips.len(), videos.len());
    let clips = Side::new(clips, clip_ids).context("clips.npy")?;
    let videos = Side::new(videos, video_ids).context("videos.npy")?;
    let (recall, search) = directions(&clips, &videos, &clip_texts, &video_texts)?;
    let search = search.as_secs_f64();
    let seconds = Seconds { videos_with_io: None, videos_without_io: None, texts: None, search };
    let rows = vec![Line { frames_stride: None, text: None, recall, seconds }];
    Ok(Report { mode: None, space: None, clips: clip_count, videos: video_count, rows })
}

/// Recall in the four directions, and the search time.
fn directions(
    clips: &Side,
    videos: &Side,
    clip_texts: &Side,
    video_texts: &Side,
) -> anyhow::Result<(BTreeMap<&'static str, Recall>, Duration)> {
    let began = Instant::now();
    let pairs = [
        ("text_to_clip", clip_texts, clips),
        ("clip_to_text", clips, clip_texts),
        ("text_to_video", video_texts, videos),
        ("video_to_text", videos, video_texts),
    ];
    let found = pairs.into_iter().map(|(name, from, to)| Ok((name, from.find_in(to, &RECALL_AT)?)));
    let found = found.collect::<anyhow::Result<_>>()?;
    Ok((found, began.elapsed()))
}

fn table(report: &Report) -> Vec<String> {
    let mode = report.mode.map_or("as given", |mode| match mode {
        ModeArg::Clean => "clean",
        ModeArg::Compat => "compat",
    });
    let space = report.space.as_deref().unwrap_or("as given");
    let (clips, videos) = (report.clips, report.videos);
    let mut lines = vec![format!("{clips} clips, {videos} full videos, mode {mode}, space {space}")];
    let head: String = RECALL_AT.iter().map(|k| format!("{:>8}", format!("R@{k}"))).collect();
    lines.push(format!("{:<7} {:<9} {:<14}{head}", "stride", "text", "direction"));
    for row in &report.rows {
        let stride = row.frames_stride.map_or("-".to_owned(), |stride| stride.to_string());
        let text = row.text.map_or("-", Reading::name);
        for (direction, recall) in &row.recall {
            let values: String = recall.values().map(|value| format!("{value:>8.2}")).collect();
            lines.push(format!("{stride:<7} {text:<9} {direction:<14}{values}"));
        }
    }
    for row in &report.rows {
        let Seconds { videos_with_io, videos_without_io, texts, search } = row.seconds;
        let stride = row.frames_stride.map_or("as given".to_owned(), |stride| format!("stride {stride}"));
        let shown = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |it| format!("{it:.2} s"));
        let (with, without, texts) = (shown(videos_with_io), shown(videos_without_io), shown(texts));
        let text = row.text.map_or("-", Reading::name);
        lines.push(format!(
            "{stride}, {text}: videos {with} with reading and decoding, {without} without; texts {texts}; \
             search {search:.2} s"
        ));
    }
    lines
}
