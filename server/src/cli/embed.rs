//! `reprise embed`: the vector of a text or video, without a server.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use reprise_encoders::text::Overflow;
use reprise_encoders::video::{self, Limits};
use reprise_encoders::{Clip, Encoder, Input, Loaded, ModelName};
use reprise_index::UnitVector;
use serde_json::{Value, json};

use super::say;

/// Arguments of `reprise embed`.
#[derive(Debug, Args)]
pub(super) struct EmbedArgs {
    /// builtin:tiny, a folder, or a hub id org/name[@revision]
    #[arg(long, env = "REPRISE_MODEL", default_value = "builtin:tiny")]
    model: ModelName,
    /// A text
    #[arg(long, required_unless_present = "video", conflicts_with = "video")]
    text: Option<String>,
    /// A video file
    #[arg(long)]
    video: Option<PathBuf>,
    /// Start of the stretch, in seconds
    #[arg(long, requires = "video")]
    start: Option<f64>,
    /// End of the stretch, in seconds
    #[arg(long, requires = "video")]
    end: Option<f64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the vector: values, or the JSON of `POST /v1/embeddings`.
pub(super) async fn run(args: EmbedArgs) -> anyhow::Result<()> {
    let as_json = args.json;
    let answer = tokio::task::spawn_blocking(move || embed(&args)).await??;
    if as_json {
        say(answer)?;
        return Ok(());
    }
    let values = answer["vector"].as_array().cloned().unwrap_or_default();
    say(values.iter().map(Value::to_string).collect::<Vec<_>>().join(" "))?;
    Ok(())
}

fn embed(args: &EmbedArgs) -> anyhow::Result<Value> {
    let mut loaded = reprise_encoders::load(&args.model, 1)?;
    let (start_ms, end_ms) = (millis(args.start, 0)?, millis(args.end, i64::MAX)?);
    match (&args.text, &args.video) {
        (Some(text), _) => embed_text(&mut loaded, text),
        (None, Some(file)) if start_ms < end_ms => embed_video(&mut loaded, file, start_ms..end_ms),
        (None, Some(_)) => bail!("the end must be after the start"),
        (None, None) => bail!("give --text or --video"),
    }
}

fn millis(seconds: Option<f64>, default: i64) -> anyhow::Result<i64> {
    match seconds {
        None => Ok(default),
        Some(seconds) if (0.0..=1e7).contains(&seconds) => Ok((seconds * 1000.0).round() as i64),
        Some(_) => bail!("a time is a number of seconds from 0"),
    }
}

fn embed_text(loaded: &mut Loaded, text: &str) -> anyhow::Result<Value> {
    let tokenizer = loaded.tokenizer.clone().context("this model takes no text")?;
    let windows = tokenizer.windows(text, Overflow::Window, 1024)?;
    let inputs: Vec<Input> = windows.windows.iter().map(|it| Input::Text(it.tokens.clone())).collect();
    let units = encode(loaded, &inputs)?;
    let values = windows.windows.iter().zip(&units);
    let vectors: Vec<Value> = values
        .map(|(window, (unit, _))| json!({"start_token": window.start_token, "end_token": window.end_token, "values": unit.values()}))
        .collect();
    let (vector, norm) = mean(&units)?;
    Ok(json!({
        "space": loaded.space.name,
        "vectors": vectors,
        "vector": vector.values(),
        "norm": norm,
        "query_info": {
            "kind": "text", "tokens_total": windows.tokens_total, "tokens_used": windows.tokens_used,
            "windows": windows.windows.len(), "truncated": windows.truncated, "frames": 0, "fusion": null,
            "weights": {"visual": 1.0},
        },
    }))
}

fn embed_video(loaded: &mut Loaded, file: &Path, span: std::ops::Range<i64>) -> anyhow::Result<Value> {
    let limits = Limits::default();
    let probe = video::probe(file, &limits)?;
    let (sampler, size) = (loaded.space.sampler, loaded.space.frame_size);
    let frames = video::frames_of_span(file, &probe, span, &sampler, size, true, &limits)?;
    let count = frames.len();
    let units = encode(loaded, &[Input::Frames(Clip { frames })])?;
    let (vector, norm) = units.first().context("the encoder gave no vector")?;
    Ok(json!({
        "space": loaded.space.name,
        "vectors": [{"start_token": 0, "end_token": 0, "values": vector.values()}],
        "vector": vector.values(),
        "norm": norm,
        "query_info": {
            "kind": "clip", "tokens_total": 0, "tokens_used": 0, "windows": 0, "truncated": false, "frames": count,
            "fusion": null, "weights": {"visual": 1.0},
        },
    }))
}

fn encode(loaded: &mut Loaded, inputs: &[Input]) -> anyhow::Result<Vec<(UnitVector, f32)>> {
    let encoder: &mut Box<dyn Encoder> = loaded.encoders.first_mut().context("the model has no encoder")?;
    let raw = encoder.encode(inputs)?;
    let unit = |raw: &Vec<f32>| UnitVector::from_raw(raw).context("the vector is zero or not finite");
    raw.iter().map(unit).collect()
}

fn mean(units: &[(UnitVector, f32)]) -> anyhow::Result<(UnitVector, f32)> {
    let [(first, _), rest @ ..] = units else { bail!("the encoder gave no vector") };
    if rest.is_empty() {
        return Ok(units[0].clone());
    }
    let mut sum = first.values().to_vec();
    rest.iter()
        .for_each(|(unit, _)| sum.iter_mut().zip(unit.values()).for_each(|(sum, value)| *sum += value));
    sum.iter_mut().for_each(|value| *value /= units.len() as f32);
    UnitVector::from_raw(&sum).context("the windows' vectors cancel out")
}
