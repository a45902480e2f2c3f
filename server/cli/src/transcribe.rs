//! `reprise transcribe`: transcribes the speech of files, without a server.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use reprise_encoders::ModelName;
use reprise_encoders::speech::{
    ActivityOptions, FinishedWindow, Listener, Outcome, ResumePoint, Silero, SpeechDetector, Summary,
    Transcription, detector,
};
use reprise_encoders::transcriber::{SpokenSegment, TranscribeOptions, Transcriber, TranscriberDescription};
use reprise_encoders::video::{self, Limits, VideoError};
use reprise_research::compute::ComputeArgs;
use reprise_research::terminal::{clock, say};
use reprise_server::config::windows_at_once;
use reprise_server::subtitles::{Line, write_srt, write_vtt};
use reprise_server::transcription::lines_of;
use serde::Serialize;

/// Arguments of `reprise transcribe`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("format").args(["json", "srt", "vtt"])))]
pub(crate) struct TranscribeArgs {
    /// Videos or sound
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A folder with Whisper, or a hub id org/name or org/name@revision, e.g. openai/whisper-base
    #[arg(long, value_name = "MODEL", env = "REPRISE_TRANSCRIBE")]
    transcribe: ModelName,
    #[command(flatten)]
    compute: ComputeArgs,
    /// Code of the spoken language, e.g. de [default: detected again and again]
    #[arg(long, value_name = "CODE")]
    language: Option<String>,
    /// Names and words that occur; they are spelled so
    #[arg(long, value_name = "TEXT")]
    hint: Option<String>,
    /// Writes each half minute without the text before it: a mistake does not go on
    #[arg(long)]
    without_text_before: bool,
    /// Windows of half a minute that are written side by side. With more than one they do not read the text before them:
    /// faster, but names are spelled less steadily
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = windows_at_once)]
    windows: usize,
    /// Hears silence too
    #[arg(long)]
    with_silence: bool,
    /// Silero's voice activity detector (silero_vad.jit): what it takes for silence, music or noise is not transcribed.
    /// Without it only what is quiet is skipped
    #[arg(long, env = "REPRISE_VAD", value_name = "FILE", conflicts_with = "with_silence")]
    vad: Option<PathBuf>,
    /// Prints one JSON object a file, with the times of words if the model knows them
    #[arg(long)]
    json: bool,
    /// Prints SubRip
    #[arg(long)]
    srt: bool,
    /// Prints WebVTT
    #[arg(long)]
    vtt: bool,
    /// Writes FILE.json, FILE.srt or FILE.vtt into this folder instead of printing
    #[arg(long, value_name = "FOLDER", requires = "format")]
    to: Option<PathBuf>,
}

/// What was said in a file. Times are milliseconds since its first picture, or since its start if it has none.
#[derive(Debug, Serialize)]
struct Transcript<'a> {
    file: &'a Path,
    model: &'a TranscriberDescription,
    /// Whether the file has sound.
    has_audio: bool,
    /// The language of most segments.
    language: Option<String>,
    /// End of the sound.
    end_ms: i64,
    /// What is damaged in the sound.
    warning: Option<String>,
    segments: Vec<SpokenSegment>,
    /// The segments, cut as the service cuts them.
    #[serde(skip)]
    lines: Vec<Line>,
}

/// Prints or writes the transcript of each file. Stops at the first file that can't be read.
pub(crate) async fn run(args: TranscribeArgs) -> anyhow::Result<()> {
    tokio::task::spawn_blocking(move || args.run()).await?
}

impl TranscribeArgs {
    fn run(&self) -> anyhow::Result<()> {
        let is_one = self.files.len() == 1;
        if (self.srt || self.vtt) && self.to.is_none() && !is_one {
            bail!("several files make several subtitle files: give --to FOLDER");
        }
        // Loading takes long, so missing files are found before it.
        for file in &self.files {
            std::fs::metadata(file).with_context(|| file.display().to_string())?;
        }
        let mut model = self.compute.load_transcriber(&self.transcribe)?;
        model.check(&self.options())?;
        let silero = self.vad.as_deref().map(open_silero).transpose()?;
        for file in &self.files {
            let detector = (!self.with_silence).then(|| detector(silero.as_ref()));
            let transcript = self.transcript(file, model.as_mut(), detector);
            let transcript = transcript.with_context(|| file.display().to_string())?;
            self.print(&transcript)?;
        }
        Ok(())
    }

    fn options(&self) -> TranscribeOptions {
        TranscribeOptions {
            language: self.language.clone(),
            // They cut long segments into lines.
            word_times: !self.is_plain(),
            with_text_before: !self.without_text_before && self.windows == 1,
            prompt: self.hint.clone(),
        }
    }

    fn transcript<'a>(
        &self,
        file: &'a Path,
        model: &'a mut dyn Transcriber,
        detector: Option<Box<dyn SpeechDetector>>,
    ) -> anyhow::Result<Transcript<'a>> {
        let limits = Limits::default();
        let options = self.options();
        let transcription = Transcription {
            path: file,
            options: &options,
            windows_at_once: self.windows,
            detector,
            activity: ActivityOptions::default(),
            limits: &limits,
        };
        let mut heard =
            Heard { shift_ms: shift(file, &limits)?, prints: self.is_plain(), ..Heard::default() };
        let outcome = transcription.run(model, ResumePoint::default(), &mut heard)?;
        if let Some(error) = heard.failed {
            return Err(error.into());
        }
        let (has_audio, summary) = match outcome {
            Outcome::Done(summary) => (true, Some(summary)),
            Outcome::NoAudio | Outcome::Cancelled => (false, None),
        };
        let said = |of: fn(&Summary) -> Option<String>| summary.as_ref().and_then(of);
        Ok(Transcript {
            file,
            model: model.description(),
            has_audio,
            language: said(|it| it.language.clone()),
            end_ms: summary.as_ref().map_or(0, |it| it.end_ms.saturating_sub(heard.shift_ms)),
            warning: said(|it| it.warning.clone()),
            segments: heard.segments,
            lines: heard.lines,
        })
    }

    fn is_plain(&self) -> bool {
        !self.json && !self.srt && !self.vtt
    }

    fn print(&self, transcript: &Transcript<'_>) -> anyhow::Result<()> {
        if !transcript.has_audio {
            tracing::warn!(file = %transcript.file.display(), "the file has no sound");
        }
        if let Some(warning) = &transcript.warning {
            tracing::warn!(file = %transcript.file.display(), "{warning}");
        }
        let (ending, text) = match (self.json, self.srt, self.vtt) {
            (true, _, _) => ("json", format!("{}\n", serde_json::to_string(transcript)?)),
            (_, true, _) => ("srt", write_srt(&transcript.lines, 0)),
            (_, _, true) => ("vtt", write_vtt(&transcript.lines, 0)),
            _ => return Ok(()),
        };
        let Some(folder) = &self.to else { return Ok(say(text.trim_end())?) };
        let name = transcript.file.file_name().context("it has no file name")?;
        let file = folder.join(name).with_added_extension(ending);
        std::fs::write(&file, text).with_context(|| file.display().to_string())
    }
}

fn open_silero(file: &Path) -> anyhow::Result<Silero> {
    Silero::open(file).with_context(|| format!("--vad {}", file.display()))
}

/// Where the file's own clock starts on the container's.
fn shift(file: &Path, limits: &Limits) -> anyhow::Result<i64> {
    match video::probe(file, limits) {
        Ok(probe) => Ok(probe.media_offset_ms),
        // Sound alone.
        Err(VideoError::NotVideo(_)) => {
            Ok(video::audio::audio_stream(file, limits)?.map_or(0, |stream| stream.start_ms))
        }
        Err(error) => Err(error.into()),
    }
}

/// Collects segments, and prints them as they come.
#[derive(Default)]
struct Heard {
    segments: Vec<SpokenSegment>,
    lines: Vec<Line>,
    shift_ms: i64,
    prints: bool,
    failed: Option<std::io::Error>,
}

impl Listener for Heard {
    fn finished(&mut self, window: FinishedWindow) -> ControlFlow<()> {
        let first = self.segments.len();
        self.segments.extend(window.segments.into_iter().map(|it| it.later(-self.shift_ms)));
        self.lines.extend(lines_of(&self.segments[first..]));
        if self.prints {
            for segment in &self.segments[first..] {
                let (start, end) = (clock_of(segment.start_ms), clock_of(segment.end_ms));
                if let Err(error) = say(format_args!("{start} - {end}  {}", segment.text)) {
                    self.failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn clock_of(ms: i64) -> String {
    clock(ms as f64 / 1000.0)
}
