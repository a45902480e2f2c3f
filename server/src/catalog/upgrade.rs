//! Rewrites rows of older versions, once, where SQL alone is not enough.
//!
//! Each step runs in one transaction with a row of `upgrades` that records it. Readers of these rows then handle only
//! the current form.

use reprise_encoders::video::segment::{
    AdaptiveSettings, ContentSettings, DetectorSettings, FilterMode, MinSceneLen, Preset, Segmentation,
    ThresholdSettings, Weights,
};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::database::{Database, Tx, values};
use super::error::CatalogError;
use super::tables::listed;
use super::tables::stored::{parse_json, to_json};

/// Longest clip if none is stored: the default of the first release.
const MAX_CLIP_SECONDS: f64 = 30.0;

/// Runs the steps that have not run on this database, and fills columns that an older version did not have.
pub(super) async fn run(database: &Database) -> Result<(), CatalogError> {
    rewrite_segmentations(database).await?;
    listed::index_missing(database).await
}

async fn rewrite_segmentations(database: &Database) -> Result<(), CatalogError> {
    let mut tx = database.begin().await?;
    // A second process that upgrades waits here for the end of this transaction.
    let sql = "INSERT INTO upgrades (name) VALUES ('segmentations') ON CONFLICT (name) DO NOTHING";
    if tx.execute(sql, values![]).await? == 0 {
        return Ok(());
    }
    rewrite_videos(&mut tx).await?;
    rewrite_jobs(&mut tx).await?;
    tx.commit().await
}

async fn rewrite_videos(tx: &mut Tx) -> Result<(), CatalogError> {
    for row in tx.rows("SELECT id, segmentation FROM videos", values![]).await? {
        let (id, text): (Uuid, String) = (row.get("id")?, row.get("segmentation")?);
        let stored: Stored = parse_json(&text)?;
        let sql = "UPDATE videos SET segmentation = $2 WHERE id = $1";
        tx.execute(sql, values![id, to_json(&stored.segmentation())?]).await?;
    }
    Ok(())
}

/// The params of an ingest that cuts a video again hold only a segmentation.
async fn rewrite_jobs(tx: &mut Tx) -> Result<(), CatalogError> {
    let sql = "SELECT id, params FROM jobs WHERE kind = 'ingest' AND params IS NOT NULL";
    for row in tx.rows(sql, values![]).await? {
        let (id, text): (Uuid, String) = (row.get("id")?, row.get("params")?);
        let stored: StoredParams = parse_json(&text)?;
        let params = json!({ "segmentation": stored.segmentation.segmentation() });
        tx.execute("UPDATE jobs SET params = $2 WHERE id = $1", values![id, to_json(&params)?]).await?;
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
struct StoredParams {
    segmentation: Stored,
}

/// A segmentation in the form of any earlier version; parameters unknown to that version are missing.
#[derive(Debug, Deserialize)]
struct Stored {
    policy: String,
    #[serde(default)]
    params: Params,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Params {
    preset: Option<Preset>,
    detector: Detector,
    threshold: Option<f64>,
    weights: Option<Weights>,
    filter: FilterMode,
    window_width: Option<usize>,
    min_content_value: Option<f64>,
    fade_bias: f64,
    add_final_scene: bool,
    min_scene_frames: Option<u64>,
    min_scene_seconds: Option<f64>,
    slide_area_percent: f64,
    gradual: bool,
    pause_seconds: f64,
    every_seconds: Option<f64>,
    min_clip_seconds: f64,
    max_clip_seconds: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Detector {
    #[default]
    Content,
    Adaptive,
    Threshold,
}

impl Stored {
    /// The equivalent current segmentation. A missing parameter gets the value of the first release.
    fn segmentation(&self) -> Segmentation {
        let params = self.params;
        let Params { slide_area_percent, gradual, pause_seconds, min_clip_seconds, preset, .. } = params;
        let max_clip_seconds = params.max_clip_seconds.unwrap_or(MAX_CLIP_SECONDS);
        let detector = params.detector();
        match self.policy.as_str() {
            "hybrid" => Segmentation::Hybrid {
                detector,
                slide_area_percent,
                gradual,
                min_clip_seconds,
                max_clip_seconds,
            },
            "subtitle" => Segmentation::Subtitle { pause_seconds, min_clip_seconds, max_clip_seconds },
            "fixed" => {
                Segmentation::Fixed { every_seconds: params.every_seconds.unwrap_or(max_clip_seconds) }
            }
            "given" => Segmentation::Given {},
            _ => Segmentation::Content { preset, detector, max_clip_seconds },
        }
    }
}

impl Params {
    fn detector(self) -> DetectorSettings {
        let frames = self.min_scene_frames.map_or(MinSceneLen::DEFAULT, MinSceneLen::Frames);
        let min_scene_len = self.min_scene_seconds.map_or(frames, MinSceneLen::Seconds);
        let weights = self.weights.unwrap_or_default();
        match self.detector {
            Detector::Content => {
                let threshold = self.threshold.unwrap_or(ContentSettings::default().threshold);
                let filter = self.filter;
                DetectorSettings::Content(ContentSettings { threshold, weights, min_scene_len, filter })
            }
            Detector::Adaptive => {
                let unset = AdaptiveSettings::default();
                DetectorSettings::Adaptive(AdaptiveSettings {
                    threshold: self.threshold.unwrap_or(unset.threshold),
                    window_width: self.window_width.unwrap_or(unset.window_width),
                    min_content_value: self.min_content_value.unwrap_or(unset.min_content_value),
                    weights,
                    min_scene_len,
                })
            }
            Detector::Threshold => DetectorSettings::Threshold(ThresholdSettings {
                threshold: self.threshold.unwrap_or(ThresholdSettings::default().threshold),
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
    use serde_json::Value;

    #[track_caller]
    fn check(stored: Value, expected: Segmentation) {
        let read: Stored = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(read.segmentation(), expected, "{stored}");
    }

    fn content(settings: ContentSettings, max_clip_seconds: f64) -> Segmentation {
        let detector = DetectorSettings::Content(settings);
        Segmentation::Content { preset: None, detector, max_clip_seconds }
    }

    #[test]
    fn a_segmentation_of_the_first_release_means_what_it_meant() {
        let unset = ContentSettings::default();
        check(json!({"policy": "content", "params": {}}), content(unset, 30.0));
        check(json!({"policy": "given", "params": {}}), Segmentation::Given {});
        let settings = ContentSettings { threshold: 40.0, min_scene_len: MinSceneLen::Frames(7), ..unset };
        check(
            json!({"policy": "content",
                "params": {"threshold": 40, "max_clip_seconds": 12.5, "min_scene_frames": 7}}),
            content(settings, 12.5),
        );
        let settings = ContentSettings { threshold: 34.0, min_scene_len: MinSceneLen::Seconds(5.0), ..unset };
        check(
            json!({"policy": "content",
                "params": {"threshold": 34.0, "max_clip_seconds": 60.0, "min_scene_seconds": 5.0}}),
            content(settings, 60.0),
        );
    }

    #[test]
    fn a_segmentation_without_slides_and_shortest_clip_has_none() {
        let detector = DetectorSettings::Threshold(ThresholdSettings {
            threshold: 20.0,
            fade_bias: -1.0,
            add_final_scene: true,
            min_scene_len: MinSceneLen::DEFAULT,
        });
        check(
            json!({"policy": "hybrid", "params": {"detector": "threshold", "threshold": 20, "fade_bias": -1,
                "add_final_scene": true, "min_scene_frames": 15}}),
            Segmentation::Hybrid {
                detector,
                slide_area_percent: 0.0,
                gradual: false,
                min_clip_seconds: 0.0,
                max_clip_seconds: 30.0,
            },
        );
    }

    #[test]
    fn what_is_stored_whole_stays_as_it_is() {
        for stored in [
            Segmentation::hybrid(20.0),
            Segmentation::content(20.0),
            Segmentation::subtitle(20.0),
            Segmentation::Fixed { every_seconds: 2.5 },
            Segmentation::Given {},
            Segmentation::Content {
                preset: Some(Preset::Lovr),
                detector: DetectorSettings::Content(Preset::Lovr.detector()),
                max_clip_seconds: 20.0,
            },
        ] {
            check(json!(stored), stored);
        }
    }
}
