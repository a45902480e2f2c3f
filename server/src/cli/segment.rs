//! `reprise segment`: where a video would be cut, without a server.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use reprise_encoders::video::segment::{
    ClipRange, ContentSettings, MinSceneLen, Segmenter, SegmenterSettings,
};
use reprise_encoders::video::{self, Event, Limits, Request};
use serde_json::json;

use super::{clock, say};

/// Arguments of `reprise segment`.
#[derive(Debug, Args)]
pub(super) struct SegmentArgs {
    /// The video
    file: PathBuf,
    /// How shot boundaries are found
    #[arg(long, value_enum, default_value = "content")]
    detector: Detector,
    /// A cut where the score reaches this
    #[arg(long, default_value_t = 27.0)]
    threshold: f64,
    /// Shortest scene: frames (15f) or seconds (0.6s)
    #[arg(long, default_value = "15f")]
    min_scene_len: SceneLength,
    /// Longest clip, in seconds
    #[arg(long, default_value_t = 30.0)]
    max_clip: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Detector {
    /// Change of hue, saturation and value between frames
    Content,
}

/// `15f` or `0.6s`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SceneLength(MinSceneLen);

impl FromStr for SceneLength {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "use frames (15f) or seconds (0.6s)".to_owned();
        let length = match (text.strip_suffix('f'), text.strip_suffix('s')) {
            (Some(frames), _) => MinSceneLen::Frames(frames.parse().map_err(|_| wrong())?),
            (_, Some(seconds)) => {
                let seconds: f64 = seconds.parse().map_err(|_| wrong())?;
                if !(0.0..=3600.0).contains(&seconds) {
                    return Err(wrong());
                }
                MinSceneLen::Millis((seconds * 1000.0) as i64)
            }
            _ => return Err(wrong()),
        };
        Ok(SceneLength(length))
    }
}

/// Prints cuts and clips.
pub(super) async fn run(args: SegmentArgs) -> anyhow::Result<()> {
    let as_json = args.json;
    let report = tokio::task::spawn_blocking(move || segment(&args)).await??;
    if as_json {
        let clip =
            |it: &ClipRange| json!({"start": it.start_ms as f64 / 1000.0, "end": it.end_ms as f64 / 1000.0});
        say(json!({
            "fps": report.frame_rate,
            "frames": report.frames,
            "duration": report.duration_ms as f64 / 1000.0,
            "cuts": report.cuts,
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
    /// Frame numbers.
    cuts: Vec<u64>,
    clips: Vec<ClipRange>,
    warnings: Vec<String>,
}

fn segment(args: &SegmentArgs) -> anyhow::Result<Report> {
    let limits = Limits::default();
    let probe = video::probe(&args.file, &limits)?;
    let request = Request { detect_width: Some(256), outputs: Vec::new() };
    let Detector::Content = args.detector;
    let mut segmenter = Segmenter::new(SegmenterSettings {
        content: ContentSettings { threshold: args.threshold, min_scene_len: args.min_scene_len.0 },
        max_clip_ms: (args.max_clip * 1000.0) as i64,
    });
    let mut decoder = video::decode(&args.file, &probe, request, &limits)?;
    let mut clips = Vec::new();
    for event in &mut decoder {
        if let Event::Detect(frame) = event? {
            clips.extend(segmenter.push(&frame));
        }
    }
    let summary = decoder.summary();
    clips.extend(segmenter.finish(summary.duration_ms));
    Ok(Report {
        frame_rate: probe.frame_rate,
        frames: summary.frames,
        duration_ms: summary.duration_ms,
        cuts: segmenter.cuts().iter().map(|cut| cut.0).collect(),
        clips,
        warnings: summary.warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<MinSceneLen>) {
        assert_eq!(text.parse().ok(), expected.map(SceneLength), "{text}");
    }

    #[test]
    fn scene_lengths_are_frames_or_seconds() {
        check("15f", Some(MinSceneLen::Frames(15)));
        check("0.6s", Some(MinSceneLen::Millis(600)));
        check("15", None);
        check("-1s", None);
        check("NaNs", None);
    }
}
