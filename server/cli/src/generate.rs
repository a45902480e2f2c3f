//! `reprise generate`: asks a model that writes texts about a video or picture, without a server.

use std::cell::Cell;
use std::io::Write;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use reprise_encoders::generator::{Conversation, Message, Part, Role, Sampling};
use reprise_encoders::sample::even::{FrameCount, indices};
use reprise_encoders::video::{self, Limits};
use reprise_encoders::{FrameSize, ModelName, on_cores};
use reprise_research::compute::ComputeArgs;
use reprise_research::encode::LONGEST_MS;
use reprise_research::terminal::say;

/// Arguments of `reprise generate`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("pixels").args(["video", "image"])))]
pub(crate) struct GenerateArgs {
    /// A folder with Qwen2-VL, Qwen2.5-VL or Qwen3-VL, or a hub id org/name or org/name@revision
    #[arg(long, env = "REPRISE_GENERATOR")]
    model: ModelName,
    #[command(flatten)]
    compute: ComputeArgs,
    /// A video file
    #[arg(long)]
    video: Option<PathBuf>,
    /// A picture file
    #[arg(long)]
    image: Option<PathBuf>,
    /// What to write
    #[arg(long)]
    prompt: String,
    /// The system message [default: the chat template's]
    #[arg(long)]
    system: Option<String>,
    /// Start of the stretch, in seconds
    #[arg(long, requires = "video")]
    start: Option<f64>,
    /// End of the stretch, in seconds
    #[arg(long, requires = "video")]
    end: Option<f64>,
    /// Frames per second of video, at least 4 frames and at most 64
    #[arg(long, requires = "video", default_value_t = 2.0, conflicts_with = "frames")]
    fps: f64,
    /// Number of frames instead, 1 to 64, rounded to an even one; a shorter video gives what it has
    #[arg(long, requires = "video", value_parser = clap::value_parser!(u8).range(1..=MOST_FRAMES as i64))]
    frames: Option<u8>,
    /// Short side of the frames in pixels; the model's own bounds hold too
    #[arg(long, default_value_t = 448, value_parser = clap::value_parser!(u32).range(16..=4096))]
    side: u32,
    /// Most new tokens
    #[arg(long, default_value_t = Sampling::default().max_tokens)]
    max_tokens: usize,
    /// 0 takes the likeliest token always [default: that of the model's generation_config.json, else 0]
    #[arg(long)]
    temperature: Option<f32>,
    /// Keeps this many of the likeliest tokens, 0 all [default: that of the model's generation_config.json, else 0]
    #[arg(long)]
    top_k: Option<usize>,
    /// Keeps the likeliest tokens that together have this probability [default: that of the model's
    /// generation_config.json, else 1]
    #[arg(long)]
    top_p: Option<f32>,
    /// Over 1 makes tokens less likely that were there before [default: that of the model's generation_config.json,
    /// else 1]
    #[arg(long)]
    repetition_penalty: Option<f32>,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print JSON when the text is complete, instead of the text as it grows
    #[arg(long)]
    json: bool,
}

/// Most frames of a video.
const MOST_FRAMES: usize = 64;

/// Prints the text as it grows, or JSON at the end.
pub(crate) async fn run(args: GenerateArgs) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(move || on_cores("generate", || generate(&args))).await?
}

fn generate(args: &GenerateArgs) -> anyhow::Result<()> {
    // Loading takes minutes, so bad arguments and videos are refused before it.
    args.sampling(Sampling::default()).check()?;
    let messages = args.messages()?;
    let mut model = args.compute.load_generator(&args.model)?;
    let conversation = Conversation { messages, sampling: args.sampling(model.sampling()) };
    let failed = Cell::new(None);
    let mut on_text = |_: usize, text: &str| match args.json {
        true => ControlFlow::Continue(()),
        false => match write(text) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed.set(Some(error));
                ControlFlow::Break(())
            }
        },
    };
    let generated = model.generate(&[conversation], &mut on_text)?;
    if let Some(error) = failed.take() {
        return Err(error.into());
    }
    match args.json {
        true => say(serde_json::to_string(generated.first().context("the model gave no text")?)?)?,
        false => say("")?,
    }
    Ok(())
}

fn write(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

impl GenerateArgs {
    /// What the arguments say, else what the model's folder says.
    fn sampling(&self, of_model: Sampling) -> Sampling {
        Sampling {
            max_tokens: self.max_tokens,
            temperature: self.temperature.unwrap_or(of_model.temperature),
            top_k: self.top_k.unwrap_or(of_model.top_k),
            top_p: self.top_p.unwrap_or(of_model.top_p),
            repetition_penalty: self.repetition_penalty.unwrap_or(of_model.repetition_penalty),
            seed: self.seed,
        }
    }

    fn messages(&self) -> anyhow::Result<Vec<Message>> {
        let mut parts = Vec::new();
        let limits = Limits::default();
        if let Some(path) = &self.image {
            let scaling = FrameSize::ShortEdge(self.side).into();
            parts.push(Part::Picture(video::decode_still(path, scaling, &limits)?));
        }
        if let Some(path) = &self.video {
            parts.push(self.video(path, &limits)?);
        }
        parts.push(Part::Text(self.prompt.clone()));
        let system = self
            .system
            .as_ref()
            .map(|text| Message { role: Role::System, parts: vec![Part::Text(text.clone())] });
        Ok(system.into_iter().chain([Message { role: Role::User, parts }]).collect())
    }

    fn video(&self, path: &std::path::Path, limits: &Limits) -> anyhow::Result<Part> {
        let span = self.span()?;
        if !(self.fps > 0.0 && self.fps <= 240.0) {
            bail!("--fps is a number over 0, at most 240");
        }
        let wanted = self.wanted();
        let probe = video::probe(path, limits)?;
        let file = video::VideoFile { path, probe: &probe, in_order: true, limits };
        let last = Mutex::new(Taken::default());
        let pick = |times_ms: &[i64], _: i64| {
            let (picked, taken) = wanted.of(times_ms);
            *last.lock().unwrap_or_else(PoisonError::into_inner) = taken;
            picked
        };
        let scaling = FrameSize::ShortEdge(self.side).into();
        let frames = video::picked_frames_of_span(file, span, &pick, scaling)?;
        if let Some(reduced) = last.into_inner().unwrap_or_else(PoisonError::into_inner).reduced() {
            writeln!(std::io::stderr(), "reprise: {reduced}")?;
        }
        let times: Vec<i64> = frames.iter().map(|frame| frame.time_ms).collect();
        Ok(Part::Video { per_second: rate(&times), frames })
    }

    fn wanted(&self) -> Wanted {
        match self.frames {
            Some(frames) => Wanted::Frames(usize::from(frames)),
            None => Wanted::PerSecond(self.fps),
        }
    }

    fn span(&self) -> anyhow::Result<Range<i64>> {
        let millis = |seconds: f64| match (0.0..=1e7).contains(&seconds) {
            true => Ok((seconds * 1000.0).round() as i64),
            false => bail!("a time is a number of seconds from 0 to 10000000"),
        };
        let start = self.start.map_or(Ok(0), millis)?;
        let end = self.end.map_or(Ok(LONGEST_MS), millis)?;
        match start < end {
            true => Ok(start..end),
            false => bail!("the end must be after the start"),
        }
    }
}

/// The frames that were asked for.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    Frames(usize),
    PerSecond(f64),
}

/// How many frames were taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Taken {
    taken: usize,
    /// Frames of the stretch.
    there: usize,
    /// Frames that would have been taken without a bound, from a video that has them.
    asked: usize,
}

impl Wanted {
    /// Indices of the frames to take of those at these times.
    fn of(self, times_ms: &[i64]) -> (Vec<usize>, Taken) {
        let (there, per_second) = (times_ms.len(), rate(times_ms));
        let at_rate = |rate, at_most| FrameCount::PerSecond { rate, at_most }.of(there, per_second);
        let (asked, count) = match self {
            Wanted::Frames(frames) => (frames, FrameCount::Exactly(frames.max(2)).of(there, per_second)),
            Wanted::PerSecond(rate) => {
                (at_rate(rate, usize::MAX).unwrap_or(there), at_rate(rate, MOST_FRAMES))
            }
        };
        // Too short a video gives what it has, in pairs; a single frame counts twice.
        let picked = match count.unwrap_or(there / 2 * 2) {
            0 => (0..there).collect(),
            count => indices(there, count),
        };
        let taken = picked.len();
        (picked, Taken { taken, there, asked })
    }
}

impl Taken {
    /// What to say if fewer frames were taken than asked for.
    fn reduced(self) -> Option<String> {
        let Taken { taken, there, asked } = self;
        let more = || format!("took {taken} of {there} frames, evenly, where {asked} were asked for");
        (taken < asked).then(more)
    }
}

/// Frames per second of frames at these times; 1 for a single frame.
fn rate(times_ms: &[i64]) -> f64 {
    let (first, last) = (times_ms.first().copied().unwrap_or(0), times_ms.last().copied().unwrap_or(0));
    match last > first {
        true => (times_ms.len() - 1) as f64 * 1000.0 / (last - first) as f64,
        false => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::{Wanted, rate};

    #[track_caller]
    fn check(wanted: Wanted, frames: i64, expected: &[usize], said: &str) {
        let times: Vec<i64> = (0..frames).map(|at| at * 40).collect();
        let (picked, taken) = wanted.of(&times);
        assert_eq!(picked, expected);
        assert_eq!(taken.reduced().unwrap_or_default(), said);
    }

    #[test]
    fn a_video_gives_the_frames_asked_for_or_says_how_many_it_has() {
        check(Wanted::Frames(4), 75, &[0, 25, 49, 74], "");
        check(Wanted::Frames(3), 75, &[0, 25, 49, 74], "");
        check(Wanted::Frames(1), 75, &[0, 74], "");
        let short = |taken, there, asked| {
            format!("took {taken} of {there} frames, evenly, where {asked} were asked for")
        };
        check(Wanted::Frames(64), 5, &[0, 1, 3, 4], &short(4, 5, 64));
        check(Wanted::Frames(3), 3, &[0, 2], &short(2, 3, 3));
        check(Wanted::Frames(64), 1, &[0], &short(1, 1, 64));
        check(Wanted::Frames(1), 1, &[0], "");
        check(Wanted::PerSecond(2.0), 1, &[0], "");
        check(Wanted::PerSecond(2.0), 75, &[0, 15, 30, 44, 59, 74], "");
        let (picked, taken) = Wanted::PerSecond(2.0).of(&(0..4000).map(|at| at * 40).collect::<Vec<_>>());
        assert_eq!((picked.len(), picked[0], picked[63]), (64, 0, 3999));
        let steps: Vec<usize> = picked.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|step| (63..=64).contains(step)), "{steps:?}");
        assert_eq!(taken.reduced(), Some(short(64, 4000, 320)));
    }

    #[test]
    fn frames_per_second_are_counted_between_frames() {
        assert_eq!(rate(&[0, 500, 1000]), 2.0);
        assert_eq!([rate(&[]), rate(&[7]), rate(&[7, 7])], [1.0; 3]);
    }
}
