//! `reprise bench generate`: how fast a model that writes texts reads prompts and writes tokens on this machine.

use std::fmt::{self, Display, Formatter};
use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;
use reprise_encoders::generator::{Conversation, Generator, Message, Part, Role, Sampling};
use reprise_encoders::{FrameSize, ModelName};
use serde::Serialize;

use super::memory::bytes_per_second;
use super::meter::cpu_time;
use super::workload::noise;
use crate::compute::ComputeArgs;
use crate::terminal::say;

/// Time until the first token, in seconds, over which a warm-up makes no difference.
const LONG_SECONDS: f64 = 10.0;

/// Arguments of `reprise bench generate`.
#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    /// A folder with Qwen2-VL, Qwen2.5-VL or Qwen3-VL, or a hub id org/name[@revision]
    #[arg(long, env = "REPRISE_GENERATOR")]
    model: ModelName,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Words of the text prompts, about a token each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "16,512", value_parser = clap::value_parser!(u32).range(1..=32768))]
    words: Vec<u32>,
    /// Frames of the clip; 0 leaves it out
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(0..=64))]
    frames: u32,
    /// Sides of picture and frames in pixels
    #[arg(long, default_value_t = 448, value_parser = clap::value_parser!(u32).range(56..=1344))]
    side: u32,
    /// Tokens to write after the last text prompt
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=4096))]
    tokens: u32,
    /// Number of rounds; the one with the median time counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The measured figures.
#[derive(Debug, Serialize)]
struct Report {
    /// Threads of the model.
    threads: usize,
    load_seconds: f64,
    prompts: Vec<Prompt>,
    writing: Writing,
}

/// The time until the first token of an answer.
#[derive(Debug, Clone, Serialize)]
struct Prompt {
    /// `text`, `picture` or `clip`.
    what: &'static str,
    /// With those of pictures and of the chat template.
    tokens: usize,
    seconds: f64,
    /// `None` if the system reports no CPU time.
    cpu_seconds: Option<f64>,
}

/// The speed of further tokens.
#[derive(Debug, Clone, Serialize)]
struct Writing {
    tokens: usize,
    tokens_per_second: f64,
    /// Bytes per second that all threads together read from memory right afterwards: on a shared machine it changes from one
    /// minute to the next.
    memory_bytes_per_second: f64,
}

impl Writing {
    /// Bytes of memory that could be read while a token was written.
    fn bytes_a_token(&self) -> f64 {
        self.memory_bytes_per_second / self.tokens_per_second
    }
}

/// Runs the benchmark and prints the figures. Blocks.
pub(super) fn run(args: &GenerateArgs) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut model = args.compute.load_generator(&args.model)?;
    let load_seconds = began.elapsed().as_secs_f64();
    let (mut prompts, mut last) = (Vec::new(), None);
    for (what, parts) in args.workload() {
        let measured = args.measure(model.as_mut(), &parts)?;
        prompts.push(Prompt { what, ..measured.0 });
        last = Some(measured.1);
    }
    let report = Report {
        threads: reprise_encoders::threads(),
        load_seconds,
        prompts,
        writing: last.context("nothing was measured")?,
    };
    match args.json {
        true => say(serde_json::to_string(&report)?)?,
        false => say(report)?,
    }
    Ok(())
}

impl GenerateArgs {
    /// The prompts. A text comes last: what is written after it counts.
    fn workload(&self) -> Vec<(&'static str, Vec<Part>)> {
        let frame = |number: u32| noise(number as usize, FrameSize::ShortEdge(self.side));
        let mut prompts = vec![("picture", vec![Part::Picture(frame(0))])];
        if self.frames > 0 {
            let frames = (0..self.frames).map(frame).collect();
            prompts.push(("clip", vec![Part::Video { frames, per_second: 2.0 }]));
        }
        let text = |words: &u32| ("text", vec![Part::Text("a ".repeat(*words as usize))]);
        prompts.extend(self.words.iter().map(text));
        prompts
    }

    /// The medians over the runs, after one that is not counted: the prompt's by its time, the writing's by what memory allows.
    /// A first run that takes long needs no warm-up: it counts, alone.
    fn measure(&self, model: &mut dyn Generator, parts: &[Part]) -> anyhow::Result<(Prompt, Writing)> {
        let first = self.once(model, parts)?;
        if first.0.seconds > LONG_SECONDS {
            return Ok(first);
        }
        let runs = (0..self.runs).map(|_| self.once(model, parts));
        let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
        let (mut prompts, mut writings): (Vec<_>, Vec<_>) = runs.into_iter().unzip();
        prompts.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        writings.sort_by(|one, other| one.bytes_a_token().total_cmp(&other.bytes_a_token()));
        let middle = prompts.len() / 2;
        Ok((prompts.swap_remove(middle), writings.swap_remove(middle)))
    }

    fn once(&self, model: &mut dyn Generator, parts: &[Part]) -> anyhow::Result<(Prompt, Writing)> {
        let sampling = Sampling { max_tokens: self.tokens as usize, ..Sampling::default() };
        let messages = vec![Message { role: Role::User, parts: parts.to_vec() }];
        let conversation = Conversation { messages, sampling };
        let (began, cpu_before) = (Instant::now(), cpu_time());
        let (mut first, mut times) = (None, Vec::new());
        let mut on_text = |_: usize, _: &str| {
            first.get_or_insert_with(|| cpu_time().zip(cpu_before).map(|(now, before)| now - before));
            times.push(began.elapsed().as_secs_f64());
            ControlFlow::Continue(())
        };
        let generated = model.generate(&[conversation], &mut on_text)?;
        let generated = generated.first().context("the model gave no text")?;
        let (Some(start), Some(end), true) = (times.first(), times.last(), times.len() > 1) else {
            bail!("the model ended its text after {} tokens: no speed can be measured", generated.tokens);
        };
        let prompt = Prompt {
            what: "",
            tokens: generated.prompt_tokens,
            seconds: *start,
            cpu_seconds: first.flatten(),
        };
        let tokens = times.len() - 1;
        let tokens_per_second = tokens as f64 / (end - start);
        Ok((prompt, Writing { tokens, tokens_per_second, memory_bytes_per_second: bytes_per_second() }))
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Report { threads, load_seconds, prompts, writing } = self;
        writeln!(f, "loaded in {load_seconds:.1} s, threads: {threads}")?;
        for Prompt { what, tokens, seconds, .. } in prompts {
            let rate = *tokens as f64 / seconds;
            writeln!(f, "{what}, {tokens} tokens: {seconds:.2} s until the first token, {rate:.0} tokens/s")?;
        }
        let gigabytes = writing.memory_bytes_per_second / 1e9;
        let (rate, tokens) = (writing.tokens_per_second, writing.tokens);
        write!(f, "writing: {rate:.1} tokens/s over {tokens} tokens; memory is read at {gigabytes:.1} GB/s")
    }
}
