//! Server settings. Each field is a flag, an environment variable and a help text.

mod retry_waits;
mod screen_text;
mod speech;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
pub use reprise_encoders::text::MAX_WINDOWS;
use reprise_encoders::{DEFAULT_MODEL, DeviceChoice, LoadOptions, ModelName, Precision};

use crate::catalog::UploadBounds;
use crate::https::Reach;
use crate::query_log::QueryLogMode;
use crate::terms::QueryKind;
use crate::vectors::builtin::{Codes, Settings};
use crate::vectors::{CheckSettings, EngineKind, EngineSettings};

pub use retry_waits::RetryWaits;
pub use screen_text::ScreenTextArgs;
pub use speech::{SpeechArgs, windows_at_once};

/// How a server runs.
#[derive(Debug, Clone, Args)]
pub struct Config {
    /// Address to listen on; one that is not loopback needs an API key
    #[arg(long, env = "REPRISE_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Folder for videos, pictures, the index snapshot and the embedded database
    #[arg(long, env = "REPRISE_DATA_DIR", default_value_os_t = default_data_dir())]
    pub data_dir: PathBuf,
    /// Model to load, as `[KINDS=]NAME`; KINDS from text, clip, composed, spoken; may be given several times.
    /// NAME is builtin:sports, builtin:tiny, a folder or .pt file, or a hub id `org/name[@revision]`
    #[arg(long = "model", env = "REPRISE_MODEL", value_delimiter = ';', default_value = DEFAULT_MODEL)]
    pub models: Vec<ModelChoice>,
    /// Database: sqlite:PATH or postgres://…; the embedded SQLite in the data folder if not given
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Key that clients must send as `Authorization: Bearer KEY`
    #[arg(long, env = "REPRISE_API_KEY", hide_env_values = true)]
    pub api_key: Option<String>,
    /// Days for which the audit log keeps changes and downloads; 0: no audit log
    #[arg(long, env = "REPRISE_AUDIT_DAYS", default_value_t = 90)]
    pub audit_days: u32,
    /// What the query log keeps of searches: full (texts, clips, filters), hashed (a keyed hash of each), off (no log)
    #[arg(long, env = "REPRISE_QUERY_LOG", value_enum, default_value_t, hide_possible_values = true)]
    pub query_log: QueryLogMode,
    /// Days for which the query log keeps searches and feedback
    #[arg(long, env = "REPRISE_QUERY_LOG_DAYS", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub query_log_days: u32,
    /// Days for which a deleted video stays in the trash, from which it can be restored; 0: it is purged at once
    #[arg(long, env = "REPRISE_TRASH_DAYS", default_value_t = 7, value_parser = clap::value_parser!(u32).range(..=36_500))]
    pub trash_days: u32,
    /// Days for which refused files are listed as failed jobs; 0: they are not listed
    #[arg(long, env = "REPRISE_REFUSAL_DAYS", default_value_t = 7, value_parser = clap::value_parser!(u32).range(..=36_500))]
    pub refusal_days: u32,
    /// Days for which evaluations are kept; those from feedback no longer than the query log keeps searches
    #[arg(long, env = "REPRISE_EVALUATION_DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub evaluation_days: u32,
    /// Listen beyond loopback without an API key
    #[arg(long, env = "REPRISE_INSECURE")]
    pub insecure: bool,
    /// Origin allowed to call the API from a browser (CORS); may be given several times
    #[arg(long = "cors-origin", env = "REPRISE_CORS_ORIGIN", value_delimiter = ';')]
    pub cors_origins: Vec<String>,
    /// Folder from which `{"path": …}` may take videos in place; may be given several times
    #[arg(long = "media-root", env = "REPRISE_MEDIA_ROOT", value_delimiter = ';')]
    pub media_roots: Vec<PathBuf>,
    /// Folder from which models may be added to the running server; may be given several times
    #[arg(long = "model-root", env = "REPRISE_MODEL_ROOT", value_delimiter = ';')]
    pub model_roots: Vec<PathBuf>,
    /// Load only the models named here: forget models that were added to a running server, and which kinds of query
    /// were moved to other models
    #[arg(long, env = "REPRISE_FORGET_ADDED")]
    pub forget_added: bool,
    /// Allow `{"url": …}`: the server fetches videos over https from public addresses
    #[arg(long, env = "REPRISE_ALLOW_URL")]
    pub allow_url: bool,
    /// Let webhooks lead to any address over http or https; else only to public ones over https
    #[arg(long, env = "REPRISE_ALLOW_PRIVATE_WEBHOOKS")]
    pub allow_private_webhooks: bool,
    /// Alerts (saved searches) that the library may have
    #[arg(long, env = "REPRISE_MAX_ALERTS", default_value_t = 100)]
    pub max_alerts: u32,
    /// Largest upload, in bytes
    #[arg(long, env = "REPRISE_MAX_UPLOAD_BYTES", default_value_t = 64 << 30)]
    pub max_upload_bytes: u64,
    /// Uploads that arrive at once: of videos, and as many again of query clips; more are answered 429
    #[arg(long, env = "REPRISE_MAX_UPLOADS", default_value_t = 32)]
    pub max_uploads: usize,
    /// Least rate of an upload over all of its time, in bytes per second; slower ones are answered 408
    #[arg(long, env = "REPRISE_MIN_UPLOAD_RATE", default_value_t = 4096)]
    pub min_upload_rate: u64,
    /// Resumable uploads that are not complete, in all; one API key may have a tenth of them
    #[arg(long, env = "REPRISE_UNFINISHED_UPLOADS", default_value_t = 1000)]
    pub unfinished_uploads: u32,
    /// Bytes of the whole files of resumable uploads that are not complete, in all; one API key may have half of them
    #[arg(long, env = "REPRISE_UNFINISHED_BYTES", default_value_t = 256 << 30)]
    pub unfinished_bytes: u64,
    /// Hours after its last byte for which a resumable upload can go on
    #[arg(long, env = "REPRISE_UNFINISHED_HOURS", default_value_t = 24.0, value_parser = hours)]
    pub unfinished_hours: f64,
    /// Connections at once; beyond them the one that was idle for longest is closed
    #[arg(long, env = "REPRISE_MAX_CONNECTIONS", default_value_t = 1024)]
    pub max_connections: usize,
    /// Seconds for the headers of a request to arrive, and for the next request of an open connection
    #[arg(long, env = "REPRISE_HEADER_SECONDS", default_value_t = 30.0, value_parser = positive_seconds)]
    pub header_seconds: f64,
    /// Seconds without a byte after which a connection is closed, unless the server works on its request
    #[arg(long, env = "REPRISE_IDLE_SECONDS", default_value_t = 60.0, value_parser = positive_seconds)]
    pub idle_seconds: f64,
    /// Most windows that a long query text is cut into
    #[arg(long, env = "REPRISE_MAX_WINDOWS", default_value_t = MAX_WINDOWS)]
    pub max_windows: usize,
    /// Longest clip of a segmentation, in seconds
    #[arg(long, env = "REPRISE_MAX_CLIP_SECONDS", default_value_t = 30.0, value_parser = positive_seconds)]
    pub max_clip_seconds: f64,
    /// Ingest jobs that run at once in this process; 0: this process only answers, and sends no webhooks
    #[arg(long, env = "REPRISE_RUNNERS", default_value_t = 2)]
    pub runners: usize,
    /// Seconds without a heartbeat after which another runner takes over a job
    #[arg(long, env = "REPRISE_LEASE_SECONDS", default_value_t = 30.0, value_parser = positive_seconds)]
    pub lease_seconds: f64,
    /// Waits before a failed job is tried again: before its second attempt, its third, and so on; the last one repeats.
    /// A job is tried five times
    #[arg(long, env = "REPRISE_RETRY_WAITS", default_value = "5s,30s,3m,15m", value_name = "WAITS")]
    pub retry_waits: RetryWaits,
    /// Devices for models, separated by `,`: auto (the first GPU if there is one, else the CPU), cpu, cuda or cuda:N.
    /// Each device has its own worker for each model; a device that can't be used is skipped with a warning; if none is
    /// left, the CPU is used
    #[arg(
        long = "device",
        env = "REPRISE_DEVICE",
        value_name = "DEVICE",
        value_delimiter = ',',
        default_value = "auto"
    )]
    pub devices: Vec<DeviceChoice>,
    /// Worker threads per model and device; 0: chosen for the machine
    #[arg(long, env = "REPRISE_REPLICAS", default_value_t = 0)]
    pub replicas: usize,
    /// Frames per second that models sample from video; another rate makes another embedding space [default: 2 for image
    /// models, 1 for models that read]
    #[arg(long, env = "REPRISE_FRAMES_PER_SECOND", value_parser = LoadOptions::parse_frame_rate)]
    pub frames_per_second: Option<f64>,
    /// Most frames of a clip for models that read, 1 to 64; another number makes another embedding space [default: 64; 32
    /// for CARE]
    #[arg(long, env = "REPRISE_FRAMES_PER_CLIP", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub frames_per_clip: Option<u8>,
    /// Largest area of a frame, in pixels, for models that read; another area makes another embedding space [default: that
    /// of the model's paper]
    #[arg(long, env = "REPRISE_MAX_PIXELS", value_parser = clap::value_parser!(u64).range(1024..=16_777_216))]
    pub max_pixels: Option<u64>,
    /// Values of a vector, for models trained for shorter ones (Qwen3-VL-Embedding); others keep theirs; another number
    /// makes another embedding space [default: all]
    #[arg(long, env = "REPRISE_DIM", value_parser = clap::value_parser!(u32).range(16..=65_536))]
    pub dim: Option<u32>,
    /// Number format of the models' arithmetic: f32; int8 on a CPU (most with AVX-512 VNNI), bf16 on one with AMX or
    /// AMD's AVX512-BF16, or on a GPU, and f16 on a GPU are faster and slightly less exact; another format makes another
    /// embedding space
    #[arg(long, env = "REPRISE_PRECISION", default_value = "f32")]
    pub precision: Precision,
    /// Requests that one model's pool admits at once; more are answered 429
    #[arg(long, env = "REPRISE_MAX_REQUESTS", default_value_t = 64)]
    pub max_requests: usize,
    /// Seconds after which a model's worker that does not finish its batch is given up and replaced; a tenth of a second
    /// is added for each token of the batch
    #[arg(long, env = "REPRISE_STUCK_SECONDS", default_value_t = 120.0, value_parser = positive_seconds)]
    pub stuck_seconds: f64,
    /// Query decodes that run at once
    #[arg(long, env = "REPRISE_QUERY_DECODES", default_value_t = 2)]
    pub query_decodes: usize,
    /// What writes down speech
    #[command(flatten)]
    pub speech: SpeechArgs,
    /// How text on screen is read
    #[command(flatten)]
    pub screen_text: ScreenTextArgs,
    /// Where vectors are searched
    #[command(flatten)]
    pub engine: EngineArgs,
    /// How the built-in index keeps vectors
    #[command(flatten)]
    pub index: IndexArgs,
    /// Recall at 10 of the index, against brute force, under which a warning is logged
    #[arg(long, env = "REPRISE_INDEX_RECALL_TARGET", default_value_t = 0.95, value_parser = share)]
    pub index_recall_target: f64,
    /// Seconds between checks of the index; without changes nothing is measured
    #[arg(long, env = "REPRISE_INDEX_CHECK_SECONDS", default_value_t = 300.0, value_parser = positive_seconds)]
    pub index_check_seconds: f64,
    /// Seconds after which a request that is neither upload nor media is answered 504
    #[arg(long, env = "REPRISE_TIMEOUT_SECONDS", default_value_t = 60.0, value_parser = positive_seconds)]
    pub timeout_seconds: f64,
    /// Seconds that running requests get at shutdown
    #[arg(long, env = "REPRISE_DRAIN_SECONDS", default_value_t = 10.0, value_parser = positive_seconds)]
    pub drain_seconds: f64,
    /// Wall-clock limit of one run of ffmpeg, in seconds
    #[arg(long, env = "REPRISE_DECODE_SECONDS", default_value_t = 14_400.0, value_parser = positive_seconds)]
    pub decode_seconds: f64,
    /// Longest making of a rendition for browsers, in minutes
    #[arg(long, env = "REPRISE_RENDER_MINUTES", default_value_t = 30.0, value_parser = minutes)]
    pub render_minutes: f64,
    /// Hours for which a made export can be fetched
    #[arg(long, env = "REPRISE_EXPORT_HOURS", default_value_t = 24.0, value_parser = hours)]
    pub export_hours: f64,
    /// Longest making of an export, in minutes
    #[arg(long, env = "REPRISE_EXPORT_MINUTES", default_value_t = 120.0, value_parser = minutes)]
    pub export_minutes: f64,
    /// Largest export, in bytes
    #[arg(long, env = "REPRISE_MAX_EXPORT_BYTES", default_value_t = 16 << 30)]
    pub max_export_bytes: u64,
    /// Exports that this process makes at once; each takes one of the runners; 0: it makes none
    #[arg(long, env = "REPRISE_EXPORTS_AT_ONCE", default_value_t = 1)]
    pub exports_at_once: usize,
    /// Longest video, in hours; longer ones are refused
    #[arg(long, env = "REPRISE_MAX_VIDEO_HOURS", default_value_t = 24.0, value_parser = hours)]
    pub max_video_hours: f64,
    /// Memory limit of one run of ffmpeg, in bytes
    #[arg(long, env = "REPRISE_DECODE_MEMORY", default_value_t = 4 << 30)]
    pub decode_memory: u64,
}

/// The vector engine and its address.
#[derive(Debug, Clone, Args)]
pub struct EngineArgs {
    /// Vector engine: builtin; hnsw_rs, which keeps its graph only in memory and builds it anew at each start; pgvector or
    /// milvus, which several servers share (docs/engines.md)
    #[arg(long, env = "REPRISE_INDEX_ENGINE", value_enum, default_value_t, hide_possible_values = true)]
    pub index_engine: EngineKind,
    /// Address of a shared vector engine: postgres://… for pgvector (default: the catalog's Postgres), http://HOST:19530
    /// for milvus
    #[arg(long, env = "REPRISE_INDEX_URL", value_name = "URL", hide_env_values = true)]
    pub index_url: Option<String>,
}

/// How the built-in index keeps vectors.
#[derive(Debug, Clone, Copy, Args)]
pub struct IndexArgs {
    /// Number format of vectors during the graph search: int4, int8, f16 or f32; the best are always compared exactly.
    /// Larger formats find slightly more and take more memory; used for segments that are sealed from now on
    #[arg(long, env = "REPRISE_INDEX_CODES", default_value = "int4")]
    pub index_codes: Codes,
    /// Memory for links and codes of the built-in index, in bytes (default: as much as they take). A segment that does not
    /// fit gets a smaller number format; where none fits, its file is mapped, and the first searches read the disk
    #[arg(long, env = "REPRISE_INDEX_MEMORY", value_name = "BYTES")]
    pub index_memory: Option<u64>,
}

impl IndexArgs {
    /// The settings of the built-in index.
    pub fn settings(self) -> Settings {
        Settings { codes: self.index_codes, memory: self.index_memory, ..Settings::default() }
    }
}

impl Config {
    /// How long a worker without a heartbeat keeps its job.
    pub fn lease(&self) -> Duration {
        Duration::from_secs_f64(self.lease_seconds)
    }

    /// Limits of one run of ffmpeg.
    pub fn decode_limits(&self) -> reprise_encoders::video::Limits {
        reprise_encoders::video::Limits {
            wall_clock: Duration::from_secs_f64(self.decode_seconds),
            longest: Duration::from_secs_f64(self.max_video_hours * 3600.0),
            memory_bytes: self.decode_memory,
            ..Default::default()
        }
    }

    /// Limits of one run of ffmpeg for a query: nobody waits for it longer than for an answer.
    pub fn query_decode_limits(&self) -> reprise_encoders::video::Limits {
        let limits = self.decode_limits();
        let wall_clock = limits.wall_clock.min(Duration::from_secs_f64(self.timeout_seconds));
        reprise_encoders::video::Limits { wall_clock, ..limits }
    }

    /// The addresses that webhooks may have.
    pub fn webhooks_reach(&self) -> Reach {
        if self.allow_private_webhooks { Reach::All } else { Reach::Public }
    }

    /// Longest run of ffmpeg for a rendition.
    pub fn render_limit(&self) -> Duration {
        Duration::from_secs_f64(self.render_minutes * 60.0).min(Duration::from_secs_f64(self.decode_seconds))
    }

    /// For how long a made export can be fetched.
    pub fn export_lasts(&self) -> Duration {
        Duration::from_secs_f64(self.export_hours * 3600.0)
    }

    /// How long a deleted video stays in the trash.
    pub fn trash_lasts(&self) -> Duration {
        Duration::from_secs(u64::from(self.trash_days) * 24 * 3600)
    }

    /// How long an evaluation is kept. One from feedback repeats queries of the log, and is kept no longer than they are.
    pub fn evaluation_lasts(&self, is_from_log: bool) -> Duration {
        let most = if is_from_log { self.query_log_days } else { u32::MAX };
        Duration::from_secs(u64::from(self.evaluation_days.min(most)) * 24 * 3600)
    }

    /// How long refused files are listed as failed jobs.
    pub fn refusals_last(&self) -> Duration {
        Duration::from_secs(u64::from(self.refusal_days) * 24 * 3600)
    }

    /// How much of unfinished uploads the server takes.
    pub fn upload_bounds(&self) -> UploadBounds {
        let (uploads, bytes) =
            (i64::from(self.unfinished_uploads), i64::try_from(self.unfinished_bytes).unwrap_or(i64::MAX));
        let lasts = Duration::from_secs_f64(self.unfinished_hours * 3600.0);
        UploadBounds { uploads, bytes, uploads_of_key: (uploads / 10).max(1), bytes_of_key: bytes / 2, lasts }
    }

    /// The vector engine's settings.
    pub fn index_engine(&self) -> EngineSettings {
        EngineSettings {
            kind: self.engine.index_engine,
            url: self.engine.index_url.clone(),
            catalog_url: self.catalog_url(),
            folder: self.data_dir.join("index"),
            builtin: self.index.settings(),
        }
    }

    /// Settings for checks of the index.
    pub fn index_checks(&self) -> CheckSettings {
        CheckSettings {
            every: Duration::from_secs_f64(self.index_check_seconds),
            recall_target: self.index_recall_target,
        }
    }

    /// Longest clip of a segmentation, in milliseconds.
    pub fn max_clip_ms(&self) -> i64 {
        (self.max_clip_seconds * 1000.0) as i64
    }

    /// URL of the catalog database.
    pub fn catalog_url(&self) -> String {
        self.database_url.clone().unwrap_or_else(|| crate::catalog::embedded_url(&self.data_dir))
    }

    /// Options for loading models.
    pub fn load_options(&self) -> LoadOptions {
        LoadOptions {
            replicas: self.replicas(),
            devices: self.devices.clone(),
            frames_per_second: self.frames_per_second,
            frames_per_clip: self.frames_per_clip.map(usize::from),
            max_pixels: self.max_pixels,
            dim: self.dim.map(|dim| dim as usize),
            precision: self.precision,
            ..Default::default()
        }
    }

    /// Worker threads per model and device.
    pub fn replicas(&self) -> usize {
        match self.replicas {
            // One encoder on all cores answers a query sooner than several encoders, and fills are hardly slower
            // (BENCHMARKS.md).
            0 => 1,
            chosen => chosen,
        }
    }
}

/// `[KINDS=]NAME`: a model and the kinds of query that it should answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// Empty: all kinds that it can answer and that name no other model.
    pub kinds: Vec<QueryKind>,
    /// The model.
    pub model: ModelName,
}

impl FromStr for ModelChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kinds, name) = match text.split_once('=') {
            Some((before, after)) => match parse_kinds(before) {
                Some(kinds) => (kinds, after),
                None if before.contains(['/', '.', ':']) => (Vec::new(), text),
                None => {
                    return Err(format!(
                        "`{before}` is no list of query kinds; use text, clip, composed, spoken"
                    ));
                }
            },
            None => (Vec::new(), text),
        };
        let model = name.parse().map_err(|error| format!("{error}"))?;
        Ok(ModelChoice { kinds, model })
    }
}

fn parse_kinds(text: &str) -> Option<Vec<QueryKind>> {
    let kind = |word: &str| QueryKind::ALL.into_iter().find(|kind| kind.name() == word.trim());
    text.split(',').map(kind).collect()
}

fn positive_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if seconds.is_finite() && (0.001..=1e7).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("must be between 0.001 and 10000000 seconds".to_owned())
    }
}

fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(minutes) if (0.01..=10_000.0).contains(&minutes) => Ok(minutes),
        _ => Err("must be between 0.01 and 10000 minutes".to_owned()),
    }
}

fn hours(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hours) if (0.001..=1000.0).contains(&hours) => Ok(hours),
        _ => Err("must be between 0.001 and 1000 hours".to_owned()),
    }
}

/// Parses a share from 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be between 0 and 1".to_owned()),
    }
}

/// The user's data directory for reprise.
pub fn default_data_dir() -> PathBuf {
    dirs::data_dir().unwrap_or_else(|| PathBuf::from(".")).join("reprise")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expected: Option<(&[QueryKind], &str)>) {
        let expected =
            expected.map(|(kinds, name)| ModelChoice { kinds: kinds.to_vec(), model: name.parse().unwrap() });
        assert_eq!(input.parse::<ModelChoice>().ok(), expected, "{input}");
    }

    #[test]
    fn the_model_that_answers_is_the_sports_model_unless_another_is_named() {
        check(DEFAULT_MODEL, Some((&[], "builtin:sports")));
    }

    #[test]
    fn model_choices_are_parsed() {
        check("builtin:tiny", Some((&[], "builtin:tiny")));
        check("text=builtin:tiny", Some((&[QueryKind::Text], "builtin:tiny")));
        check("clip,composed=org/name@v2", Some((&[QueryKind::Clip, QueryKind::Composed], "org/name@v2")));
        check("video=builtin:tiny", None);
        check("text=", None);
        check("", None);
    }
}
