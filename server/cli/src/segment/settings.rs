//! The options of `reprise segment` that say how a video is cut, as a stored segmentation would say it.

use std::str::FromStr;

use anyhow::bail;
use clap::{Args, ValueEnum};
use reprise_encoders::video::segment::SegmenterSettings;
use serde_json::{Value, json};

use reprise_server::catalog::Segmentation;
use reprise_server::ingest::segmenter_settings;

/// Which policy, and its parameters.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// Where clips begin: at cuts and slide changes (hybrid), at cuts (content), every so often (fixed) [default:
    /// hybrid, with a preset content]
    #[arg(long, value_enum)]
    policy: Option<Policy>,
    /// Settings by name: lovr is threshold 34 and scenes of at least 5 s
    #[arg(long, value_enum)]
    preset: Option<Preset>,
    /// How cuts are found
    #[arg(long, value_enum, default_value = "content")]
    detector: Detector,
    /// A cut where the score reaches this [default: 27 for content, 3 for adaptive, 12 for threshold, where it is the
    /// brightness below which the picture is faded out]
    #[arg(long)]
    threshold: Option<f64>,
    /// How much edges count in the score, where hue, saturation and value count 1 each
    #[arg(long, default_value_t = 0.0)]
    edges: f64,
    /// What becomes of cuts that follow each other too closely
    #[arg(long, value_enum, default_value = "merge")]
    filter: Filter,
    /// Where in a fade the detector threshold cuts: -1 at its start, 1 at its end
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    fade_bias: f64,
    /// Let the detector threshold cut at a last fade to black too
    #[arg(long)]
    add_final_scene: bool,
    /// Shortest scene between cuts: frames (15f) or seconds (0.6s) [default: 15f]
    #[arg(long)]
    min_scene_len: Option<SceneLength>,
    /// Least part of the picture that a slide change changes, in per cent; 0 looks for none
    #[arg(long, default_value_t = 1.0)]
    slide_area: f64,
    /// Shortest clip of hybrid, in seconds; at most a quarter of the longest [default: 0.5]
    #[arg(long)]
    min_clip: Option<f64>,
    /// Longest clip, in seconds; for fixed the length of all
    #[arg(long, default_value_t = 30.0)]
    max_clip: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum Policy {
    Hybrid,
    Content,
    Fixed,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Preset {
    Lovr,
}

#[derive(Debug, Clone, Copy, PartialEq, ValueEnum)]
enum Detector {
    /// Change of hue, saturation and value between frames
    Content,
    /// The same, where it stands out from its surroundings
    Adaptive,
    /// Fades to black
    Threshold,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Filter {
    Merge,
    Suppress,
}

/// `15f` or `0.6s`.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SceneLength {
    Frames(u64),
    Seconds(f64),
}

impl FromStr for SceneLength {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "use frames (15f) or seconds (0.6s)".to_owned();
        match (text.strip_suffix('f'), text.strip_suffix('s')) {
            (Some(frames), _) => frames.parse().map(SceneLength::Frames).map_err(|_| wrong()),
            (_, Some(seconds)) => {
                let seconds: f64 = seconds.parse().map_err(|_| wrong())?;
                if (0.0..=3600.0).contains(&seconds) {
                    Ok(SceneLength::Seconds(seconds))
                } else {
                    Err(wrong())
                }
            }
            _ => Err(wrong()),
        }
    }
}

impl SettingsArgs {
    /// The settings of the segmenter.
    ///
    /// # Errors
    /// A number outside its range.
    pub(crate) fn settings(&self) -> anyhow::Result<SegmenterSettings> {
        for (name, value, low, high) in [
            ("--threshold", self.threshold.unwrap_or(1.0), 0.0, 255.0),
            ("--edges", self.edges, 0.0, 100.0),
            ("--fade-bias", self.fade_bias, -1.0, 1.0),
            ("--slide-area", self.slide_area, 0.0, 100.0),
            ("--max-clip", self.max_clip, 0.001, 86_400.0),
            ("--min-clip", self.min_clip.unwrap_or(0.0), 0.0, self.max_clip / 4.0),
        ] {
            if !(low..=high).contains(&value) {
                bail!("{name} must be from {low} to {high}");
            }
        }
        Ok(segmenter_settings(&self.as_stored(), (self.max_clip * 1000.0) as i64))
    }

    fn as_stored(&self) -> Segmentation {
        let unset = if self.preset.is_some() { Policy::Content } else { Policy::Hybrid };
        let policy = match self.policy.unwrap_or(unset) {
            Policy::Hybrid => "hybrid",
            Policy::Content => "content",
            Policy::Fixed => "fixed",
        };
        Segmentation { policy: policy.to_owned(), params: self.params() }
    }

    fn params(&self) -> Value {
        let lovr = self.preset.is_some();
        let detector = match self.detector {
            Detector::Content => "content",
            Detector::Adaptive => "adaptive",
            Detector::Threshold => "threshold",
        };
        let filter = match self.filter {
            Filter::Merge => "merge",
            Filter::Suppress => "suppress",
        };
        let mut params = json!({
            "detector": detector,
            "weights": {"edges": self.edges},
            "filter": filter,
            "fade_bias": self.fade_bias,
            "add_final_scene": self.add_final_scene,
            "slide_area_percent": self.slide_area,
            "min_clip_seconds": self.min_clip.unwrap_or((self.max_clip / 4.0).min(0.5)),
            "max_clip_seconds": self.max_clip,
            "every_seconds": self.max_clip,
        });
        if let Some(threshold) = self.threshold.or(lovr.then_some(34.0)) {
            params["threshold"] = json!(threshold);
        }
        match self.min_scene_len.or(lovr.then_some(SceneLength::Seconds(5.0))) {
            Some(SceneLength::Frames(frames)) => params["min_scene_frames"] = json!(frames),
            Some(SceneLength::Seconds(seconds)) => params["min_scene_seconds"] = json!(seconds),
            None => {}
        }
        params
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<SceneLength>) {
        assert_eq!(text.parse().ok(), expected, "{text}");
    }

    #[test]
    fn scene_lengths_are_frames_or_seconds() {
        check("15f", Some(SceneLength::Frames(15)));
        check("0.6s", Some(SceneLength::Seconds(0.6)));
        check("15", None);
        check("-1s", None);
        check("NaNs", None);
    }
}
