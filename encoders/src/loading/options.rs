//! Options for loading a model.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::progress::DownloadProgress;
use crate::device::{DeviceChoice, Precision};

/// Options for loading a model.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Encoders per device; they share the device's copy of the weights. 0 counts as 1.
    pub replicas: usize,
    /// Devices to run on. Unusable ones are skipped with a warning; if none is left, the model runs on the CPU.
    pub devices: Vec<DeviceChoice>,
    /// The hub's address; `None`: `HF_ENDPOINT`, or the public hub.
    pub endpoint: Option<String>,
    /// Folder for downloads; `None`: under `HF_HOME`, or the user's cache folder.
    pub cache: Option<PathBuf>,
    /// The hub's access token; `None`: `HF_TOKEN`, or the token that the hub's own client stored.
    pub token: Option<String>,
    /// Frames per second that is encoded, 0.01 to 240; `None`: 2 for picture models, 1 for models that read.
    /// Another rate gives another space.
    pub frames_per_second: Option<f64>,
    /// Most frames of a clip for models that read videos and pictures, 1 to 64; `None`: those of their papers. Another
    /// number gives another space.
    pub frames_per_clip: Option<usize>,
    /// Largest area of a frame in pixels for models that read, at least 1,024; `None`: that of their papers. Another area
    /// gives another space.
    pub max_pixels: Option<u64>,
    /// Values of a vector, for models that were trained for shorter ones (Matryoshka, arXiv 2205.13147); at most the model's
    /// own. `None`: all. Another number gives another space. Other models keep theirs.
    pub dim: Option<usize>,
    /// Precision of the layers inside towers; another precision gives another space.
    pub precision: Precision,
    /// Whether to load from the cache only; `None`: `HF_HUB_OFFLINE`.
    pub offline: Option<bool>,
    /// Longest silence of the hub before a retry; `None`: `HF_HUB_DOWNLOAD_TIMEOUT` (seconds), or 10 s.
    pub patience: Option<Duration>,
    /// Gets the progress of the download.
    pub progress: Option<Arc<DownloadProgress>>,
}

impl LoadOptions {
    /// Reads frames per second from a setting.
    ///
    /// # Errors
    /// What is wrong, for texts that are no number from 0.01 to 240.
    pub fn parse_frame_rate(text: &str) -> Result<f64, String> {
        match text.parse::<f64>() {
            Ok(rate) if (0.01..=240.0).contains(&rate) => Ok(rate),
            _ => Err("must be between 0.01 and 240 frames per second".to_owned()),
        }
    }
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            replicas: 1,
            devices: vec![DeviceChoice::Auto],
            endpoint: None,
            cache: None,
            token: None,
            frames_per_second: None,
            frames_per_clip: None,
            max_pixels: None,
            dim: None,
            precision: Precision::F32,
            offline: None,
            patience: None,
            progress: None,
        }
    }
}
