//! `reprise segment`: prints where a video would be cut, without a server.

mod plot;
mod settings;
mod stats;

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use reprise_encoders::video::segment::{Blend, ClipRange, FrameScores, Meter, Segmenter};
use reprise_encoders::video::{self, Event, Limits, Request};
use serde_json::json;

use reprise_research::terminal::{clock, say};

/// Width of the measured frames, as in an ingest.
const DETECT_WIDTH: u32 = 256;

/// Arguments of `reprise segment`.
#[derive(Debug, Args)]
pub(crate) struct SegmentArgs {
    /// The video
    file: PathBuf,
    #[command(flatten)]
    settings: settings::SettingsArgs,
    /// Write the scores of every frame to this CSV file
    #[arg(long, value_name = "FILE.csv")]
    stats: Option<PathBuf>,
    /// Draw the score, the threshold and the cuts into this PNG file
    #[arg(long, value_name = "FILE.png")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints cuts and clips.
pub(crate) async fn run(args: SegmentArgs) -> anyhow::Result<()> {
    let as_json = args.json;
    let report = tokio::task::spawn_blocking(move || segment(&args)).await??;
    if as_json {
        let seconds = |ms: i64| ms as f64 / 1000.0;
        let transition = |it: &Blend| json!({"start": seconds(it.began_ms), "middle": seconds(it.middle_ms), "end": seconds(it.ended_ms)});
        let clip = |it: &ClipRange| json!({"start": seconds(it.start_ms), "end": seconds(it.end_ms)});
        say(json!({
            "fps": report.frame_rate,
            "frames": report.frames,
            "duration": seconds(report.duration_ms),
            "cuts": report.cuts,
            "transitions": report.transitions.iter().map(transition).collect::<Vec<_>>(),
            "slides": report.slides.iter().copied().map(seconds).collect::<Vec<_>>(),
            "clips": report.clips.iter().map(clip).collect::<Vec<_>>(),
            "warnings": report.warnings,
        }))?;
        return Ok(());
    }
    say(format!(
        "{} frames, {}, {} cuts",
        report.frames,
        clock(report.duration_ms as f64 / 1000.0),
        report.cuts.len()
    ))?;
    for clip in &report.clips {
        say(format!(
            "{:>12} - {}",
            clock(clip.start_ms as f64 / 1000.0),
            clock(clip.end_ms as f64 / 1000.0)
        ))?;
    }
    report.warnings.iter().try_for_each(|it| say(format!("warning: {it}")))?;
    Ok(())
}

struct Report {
    frame_rate: f64,
    frames: u64,
    duration_ms: i64,
    /// Frame numbers of the detector's cuts.
    cuts: Vec<u64>,
    /// Gradual transitions.
    transitions: Vec<Blend>,
    /// Times of slide changes, in milliseconds.
    slides: Vec<i64>,
    clips: Vec<ClipRange>,
    warnings: Vec<String>,
}

fn segment(args: &SegmentArgs) -> anyhow::Result<Report> {
    let segmentation = args.settings.segmentation()?;
    let limits = Limits::default();
    let probe = video::probe(&args.file, &limits)?;
    let request = Request { detect_width: Some(DETECT_WIDTH), outputs: Vec::new() };
    let mut meter = Meter::new(segmentation.needs_edges() || args.stats.is_some());
    let mut segmenter = Segmenter::new(segmentation);
    let mut decoder = video::decode(&args.file, &probe, request, &limits)?;
    let (mut clips, mut scores): (Vec<ClipRange>, Vec<FrameScores>) = (Vec::new(), Vec::new());
    let are_kept = args.stats.is_some() || args.plot.is_some();
    for event in &mut decoder {
        if let Event::Detect(frame) = event? {
            let of_frame = meter.measure(&frame);
            clips.extend(segmenter.push(&of_frame));
            scores.extend(are_kept.then_some(of_frame));
        }
    }
    let summary = decoder.summary();
    clips.extend(segmenter.finish(summary.duration_ms));
    let detector = segmentation.detector().unwrap_or_default();
    if let Some(path) = &args.stats {
        stats::write(path, &scores, &detector, segmenter.cuts())
            .with_context(|| path.display().to_string())?;
    }
    if let Some(path) = &args.plot {
        let plot = plot::Plot { scores: &scores, detector: &detector, clips: &clips, cuts: segmenter.cuts() };
        plot.write(path, summary.duration_ms)?;
    }
    Ok(Report {
        frame_rate: probe.frame_rate,
        frames: summary.frames,
        duration_ms: summary.duration_ms,
        cuts: segmenter.cuts().iter().map(|cut| cut.0).collect(),
        transitions: segmenter.transitions().to_vec(),
        slides: segmenter.slide_changes().to_vec(),
        clips,
        warnings: summary.warnings,
    })
}
