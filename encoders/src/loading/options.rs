//! How and from where a model is loaded.

use std::path::PathBuf;
use std::time::Duration;

use crate::device::{DeviceChoice, Precision};

/// How and from where a model is loaded.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Encoders to make for each device; they share its copy of the weights. 0 counts as 1.
    pub replicas: usize,
    /// Where they run; one that can't be used is left out with a warning, and where none is left they run on the CPU.
    pub devices: Vec<DeviceChoice>,
    /// The hub's address; `None`: `HF_ENDPOINT`, or the public hub.
    pub endpoint: Option<String>,
    /// Where downloads are kept; `None`: under `HF_HOME`, or the user's cache folder.
    pub cache: Option<PathBuf>,
    /// The hub's access token; `None`: `HF_TOKEN`, or the token that the hub's own client stored.
    pub token: Option<String>,
    /// Frames per second of video that a model of single pictures looks at, 0.01 to 240; `None`: 2. Another
    /// rate makes another space.
    pub frames_per_second: Option<f64>,
    /// In which numbers the layers inside towers multiply; another makes another space.
    pub precision: Precision,
    /// Whether only what is downloaded already may be used; `None`: `HF_HUB_OFFLINE`.
    pub offline: Option<bool>,
    /// How long the hub may be silent before it is asked again, and in the end given up; `None`:
    /// `HF_HUB_DOWNLOAD_TIMEOUT` (seconds), or 10 s.
    pub patience: Option<Duration>,
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
            precision: Precision::F32,
            offline: None,
            patience: None,
        }
    }
}
