//! `reprise embed`: computes one vector of a text or video, or many vectors, without a server.

mod cache;
mod list;
mod many;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use reprise_encoders::text::Overflow;
use reprise_encoders::video::{self, Limits};
use reprise_encoders::{Clip, DEFAULT_MODEL, Embedder, Encoder, Input, ModelName};
use reprise_research::compute::{ComputeArgs, FrameArgs};
use reprise_research::encode::LONGEST_MS;
use reprise_research::terminal::say;
use reprise_server::config::MAX_WINDOWS;
use reprise_server::search::{EmbeddedWindow, Embedding, QueryInfo, text_vectors};
use reprise_server::terms::{SearchKind, UnitVector};

use many::TextList;

/// Arguments of `reprise embed`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").args(["text", "video", "videos", "texts"]).required(true)))]
#[command(group(ArgGroup::new("many").args(["videos", "texts"])))]
pub(crate) struct EmbedArgs {
    /// builtin:sports, builtin:tiny, a folder or .pt file, or a hub id org/name or org/name@revision
    #[arg(long, env = "REPRISE_MODEL", default_value = DEFAULT_MODEL)]
    model: ModelName,
    #[command(flatten)]
    compute: ComputeArgs,
    #[command(flatten)]
    frames: FrameArgs,
    /// A text
    #[arg(long)]
    text: Option<String>,
    /// Encode the texts as passages to be found instead of queries; some sentence encoders distinguish them
    #[arg(long, conflicts_with_all = ["video", "videos"])]
    passages: bool,
    /// A video file
    #[arg(long)]
    video: Option<PathBuf>,
    /// Start of the stretch, in seconds
    #[arg(long, requires = "video")]
    start: Option<f64>,
    /// End of the stretch, in seconds
    #[arg(long, requires = "video")]
    end: Option<f64>,
    /// A CSV with the column video, and start and end if wanted, videos named from its folder; or a folder of videos
    #[arg(long, value_name = "LIST", requires = "out")]
    videos: Option<PathBuf>,
    /// A file with one text per line; or a CSV with a column `text` or `modification`
    #[arg(long, value_name = "FILE", requires = "out")]
    texts: Option<PathBuf>,
    /// Normalise the texts as TF-CoVR's data set does, for models of every family: counts in words, lower case, at most
    /// 30 words. Its compat training and evaluation need it; without it texts stay as they are
    #[arg(long, requires = "texts")]
    normalise: bool,
    /// File for the raw vectors of --videos or --texts, one row each: .npy or .safetensors; the videos' names go to
    /// .names.csv beside it
    #[arg(long, value_name = "FILE", requires = "many")]
    out: Option<PathBuf>,
    /// Folder that keeps vectors between runs [default: the user's cache folder]
    #[arg(long, value_name = "FOLDER", requires = "many")]
    cache: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints one vector as values or as the JSON of `POST /v1/embeddings`. Writes many vectors to a file and prints a
/// summary.
pub(crate) async fn run(args: EmbedArgs) -> anyhow::Result<()> {
    let as_json = args.json;
    if let Some(out) = args.out.clone() {
        return tokio::task::spawn_blocking(move || embed_many(&args, &out)).await?;
    }
    let embedding = tokio::task::spawn_blocking(move || embed(&args)).await??;
    if as_json {
        say(serde_json::to_string(&embedding)?)?;
        return Ok(());
    }
    say(embedding.vector.iter().map(f32::to_string).collect::<Vec<_>>().join(" "))?;
    Ok(())
}

fn embed(args: &EmbedArgs) -> anyhow::Result<Embedding> {
    let (start_ms, end_ms) = (millis(args.start, 0)?, millis(args.end, LONGEST_MS)?);
    if end_ms <= start_ms {
        bail!("the end must be after the start");
    }
    let mut loaded = args.compute.load_with(&args.model, &args.frames)?;
    match (&args.text, &args.video) {
        (Some(text), _) => embed_text(&mut loaded, text, args.passages),
        (None, Some(file)) => embed_video(&mut loaded, file, start_ms..end_ms),
        (None, None) => bail!("give --text, --video, --texts or --videos"),
    }
}

fn embed_many(args: &EmbedArgs, out: &Path) -> anyhow::Result<()> {
    let mut loaded = args.compute.load_with(&args.model, &args.frames)?;
    let folder = match &args.cache {
        Some(folder) => folder.clone(),
        None => dirs::cache_dir().context("there is no cache folder: give --cache")?.join("reprise/vectors"),
    };
    let mut many = many::Many::open(&mut loaded, &folder, args.json)?;
    let report = match (&args.videos, &args.texts) {
        (Some(list), _) => many.videos(list, out)?,
        (None, Some(file)) => {
            let list = TextList { file, are_passages: args.passages, normalise: args.normalise };
            many.texts(&list, out)?
        }
        (None, None) => bail!("give --videos or --texts"),
    };
    match args.json {
        true => say(serde_json::to_string(&report)?)?,
        false => say(report)?,
    }
    Ok(())
}

fn millis(seconds: Option<f64>, default: i64) -> anyhow::Result<i64> {
    match seconds {
        None => Ok(default),
        Some(seconds) if (0.0..=1e7).contains(&seconds) => Ok((seconds * 1000.0).round() as i64),
        Some(_) => bail!("a time is a number of seconds from 0 to 10000000"),
    }
}

fn embed_text(loaded: &mut Embedder, text: &str, is_passage: bool) -> anyhow::Result<Embedding> {
    if text.trim().is_empty() {
        bail!("the text is empty");
    }
    let tokenizer = loaded.tokenizer.clone().context("this model takes no text")?;
    let windows = match is_passage {
        true => tokenizer.passages(text, Overflow::Window, MAX_WINDOWS)?,
        false => tokenizer.windows(text, Overflow::Window, MAX_WINDOWS)?,
    };
    let inputs: Vec<Input> = windows.windows.iter().map(|it| Input::Text(it.tokens.clone())).collect();
    let (units, vector, norm) = text_vectors(&encoder(loaded)?.encode(&inputs)?)?;
    let vectors = windows.windows.iter().zip(units).map(|(window, unit)| EmbeddedWindow {
        start_token: window.start_token,
        end_token: window.end_token,
        values: unit.values().to_vec(),
    });
    Ok(Embedding {
        space: loaded.space.name.clone(),
        vectors: vectors.collect(),
        vector: vector.values().to_vec(),
        norm,
        query_info: QueryInfo::of_text(SearchKind::Text, &windows),
    })
}

fn embed_video(loaded: &mut Embedder, file: &Path, span: std::ops::Range<i64>) -> anyhow::Result<Embedding> {
    let limits = Limits::default();
    let probe = video::probe(file, &limits)?;
    let (sampler, scaling) = (loaded.space.sampler, loaded.space.scaling);
    let frames = video::frames_of_span(
        video::VideoFile { path: file, probe: &probe, in_order: true, limits: &limits },
        span,
        &sampler,
        scaling,
    )?;
    let query_info = QueryInfo::of_clip(frames.len());
    let raw = encoder(loaded)?.encode(&[Input::Frames(Clip { frames })])?;
    let raw = raw.first().context("the encoder gave no vector")?;
    let (unit, norm) = UnitVector::from_raw(raw).context("the vector is zero or not finite")?;
    let vector = unit.values().to_vec();
    let vectors = vec![EmbeddedWindow { start_token: 0, end_token: 0, values: vector.clone() }];
    Ok(Embedding { space: loaded.space.name.clone(), vectors, vector, norm, query_info })
}

fn encoder(loaded: &mut Embedder) -> anyhow::Result<&mut Box<dyn Encoder>> {
    loaded.encoders.first_mut().context("the model has no encoder")
}
