//! Settings for the hub: address, token, cache, silence limit. Options take precedence over the environment variables
//! of the hub's own clients.

use std::path::PathBuf;
use std::time::Duration;

use crate::loading::LoadOptions;

const ENDPOINT: &str = "https://huggingface.co";
/// The same as in the hub's own client.
const PATIENCE: Duration = Duration::from_secs(10);

/// How to reach the hub.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// The hub's address, without a slash at the end.
    pub(super) endpoint: String,
    /// Access token.
    pub(super) token: Option<String>,
    /// The folder of all downloaded models.
    pub(super) cache: PathBuf,
    /// Whether to use only the cache.
    pub(super) offline: bool,
    /// Longest silence of the hub. Pauses between attempts are fractions of it.
    pub(super) patience: Duration,
}

impl Settings {
    pub(super) fn new(options: &LoadOptions) -> Settings {
        let home = set("HF_HOME").map(PathBuf::from).unwrap_or_else(|| {
            let caches = set("XDG_CACHE_HOME").map(PathBuf::from);
            let caches = caches.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
            caches.unwrap_or_else(std::env::temp_dir).join("huggingface")
        });
        let cache = options.cache.clone().or_else(|| set("HF_HUB_CACHE").map(PathBuf::from));
        let endpoint = options.endpoint.clone().or_else(|| set("HF_ENDPOINT"));
        let stored = || {
            let path = set("HF_TOKEN_PATH").map_or_else(|| home.join("token"), PathBuf::from);
            std::fs::read_to_string(path).ok()
        };
        let token = options.token.clone().or_else(|| set("HF_TOKEN")).or_else(stored);
        let is_yes = |value: String| ["1", "on", "yes", "true"].contains(&value.to_lowercase().as_str());
        let seconds = || set("HF_HUB_DOWNLOAD_TIMEOUT")?.parse::<f64>().ok();
        let patience = || seconds().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Settings {
            endpoint: endpoint.as_deref().unwrap_or(ENDPOINT).trim_end_matches('/').to_owned(),
            token: token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()),
            cache: cache.unwrap_or_else(|| home.join("hub")),
            offline: options.offline.unwrap_or_else(|| set("HF_HUB_OFFLINE").is_some_and(is_yes)),
            patience: options.patience.or_else(patience).unwrap_or(PATIENCE).max(Duration::from_millis(1)),
        }
    }
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
