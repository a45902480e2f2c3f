//! The segmentation flags of `reprise segment`.

use std::str::FromStr;

use anyhow::bail;
use clap::{Args, ValueEnum};
use reprise_encoders::video::segment::{
    self, AdaptiveSettings, ContentSettings, DetectorSettings, FilterMode, MinSceneLen, Segmentation,
    ThresholdSettings, Weights,
};

/// The policy and its parameters.
#[derive(Debug, Args)]
pub(crate) struct SettingsArgs {
    /// Where clips begin: at cuts, gradual transitions and slide changes (hybrid), at cuts (content), at regular times
    /// (fixed) [default: hybrid, with a preset content]
    #[arg(long, value_enum)]
    policy: Option<Policy>,
    /// Settings by name: lovr is threshold 34 and scenes of at least 5 s
    #[arg(long, value_enum)]
    preset: Option<Preset>,
    /// Method of finding cuts
    #[arg(long, value_enum, default_value = "content")]
    detector: Detector,
    /// Lowest score of a cut; for the detector threshold the brightness below which a picture is faded out [default:
    /// 27 for content, 3 for adaptive, 12 for threshold]
    #[arg(long)]
    threshold: Option<f64>,
    /// Weight of edges in the score; hue, saturation and value weigh 1 each
    #[arg(long, default_value_t = 0.0)]
    edges: f64,
    /// Treatment of cuts that follow each other too closely
    #[arg(long, value_enum, default_value = "merge")]
    filter: Filter,
    /// Position of the detector threshold's cut in a fade: -1 at its start, 1 at its end
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    fade_bias: f64,
    /// Let the detector threshold also cut at a final fade to black
    #[arg(long)]
    add_final_scene: bool,
    /// Shortest scene between cuts: frames (15f) or seconds (0.6s) [default: 15f]
    #[arg(long)]
    min_scene_len: Option<SceneLength>,
    /// Smallest part of the picture that a slide change must change, in per cent; 0 finds none
    #[arg(long, default_value_t = 1.0)]
    slide_area: f64,
    /// Neither cut in the middle of dissolves, fades and wipes, nor pass over flashes and whip pans
    #[arg(long)]
    no_gradual: bool,
    /// Shortest clip of hybrid, in seconds; at most a quarter of the longest [default: 0.5]
    #[arg(long)]
    min_clip: Option<f64>,
    /// Longest clip, in seconds; for fixed the length of every clip
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
    /// The same, relative to the surrounding frames
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
    /// The segmentation for these flags.
    ///
    /// # Errors
    /// A number is outside its range.
    pub(crate) fn segmentation(&self) -> anyhow::Result<Segmentation> {
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
        let unset = if self.preset.is_some() { Policy::Content } else { Policy::Hybrid };
        let max_clip_seconds = self.max_clip;
        Ok(match self.policy.unwrap_or(unset) {
            Policy::Fixed => Segmentation::Fixed { every_seconds: max_clip_seconds },
            Policy::Content => Segmentation::Content {
                preset: self.preset.map(|Preset::Lovr| segment::Preset::Lovr),
                detector: self.detector(),
                max_clip_seconds,
            },
            Policy::Hybrid => Segmentation::Hybrid {
                detector: self.detector(),
                slide_area_percent: self.slide_area,
                gradual: !self.no_gradual,
                min_clip_seconds: self.min_clip.unwrap_or((max_clip_seconds / 4.0).min(0.5)),
                max_clip_seconds,
            },
        })
    }

    fn detector(&self) -> DetectorSettings {
        let preset = self.preset.map(|Preset::Lovr| segment::Preset::Lovr.detector());
        let threshold = self.threshold.or(preset.map(|it| it.threshold));
        let min_scene_len = match (self.min_scene_len, preset) {
            (Some(SceneLength::Frames(frames)), _) => MinSceneLen::Frames(frames),
            (Some(SceneLength::Seconds(seconds)), _) => MinSceneLen::Seconds(seconds),
            (None, Some(preset)) => preset.min_scene_len,
            (None, None) => MinSceneLen::DEFAULT,
        };
        let weights = Weights { edges: self.edges, ..Weights::default() };
        match self.detector {
            Detector::Content => {
                let unset = ContentSettings::default();
                let filter = match self.filter {
                    Filter::Merge => FilterMode::Merge,
                    Filter::Suppress => FilterMode::Suppress,
                };
                let threshold = threshold.unwrap_or(unset.threshold);
                DetectorSettings::Content(ContentSettings { threshold, weights, min_scene_len, filter })
            }
            Detector::Adaptive => {
                let unset = AdaptiveSettings::default();
                let threshold = threshold.unwrap_or(unset.threshold);
                DetectorSettings::Adaptive(AdaptiveSettings { threshold, weights, min_scene_len, ..unset })
            }
            Detector::Threshold => DetectorSettings::Threshold(ThresholdSettings {
                threshold: threshold.unwrap_or(ThresholdSettings::default().threshold),
                fade_bias: self.fade_bias,
                add_final_scene: self.add_final_scene,
                min_scene_len,
            }),
        }
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
