//! One file, written down window by window. A job and a command line use the same loop.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::activity::{Activity, ActivityOptions, FRAME, SpeechDetector};
use super::ahead::{Ahead, Span, frame_start};
use super::error::TranscribeError;
use crate::EncodeError;
use crate::transcriber::{
    Heard, SAMPLE_RATE, SAMPLES_PER_MS, SpeechWindow, SpokenSegment, TranscribeOptions, Transcriber,
    TranscriberState,
};
use crate::video::Limits;
use crate::video::audio::{AudioReader, AudioStream, audio_stream};

/// Least sound that a window uses: a transcriber that uses less would never come to the end.
const LEAST_USED: usize = 320;
/// Most windows that are written at once; each holds two megabytes of sound.
const MOST_AT_ONCE: usize = 64;
/// Sound before the resume point that the detector hears again, in samples: 20 s.
const WARM_UP: i64 = 20 * SAMPLE_RATE as i64;

/// Where a transcription goes on. It serialises.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumePoint {
    /// The first sample that is not done, counted from zero of the container's clock; `None` for the start.
    pub at: Option<i64>,
    /// What the last window left for the next.
    pub state: TranscriberState,
    /// Segments so far, by the code of their language.
    #[serde(default)]
    pub languages: BTreeMap<String, usize>,
    /// Start of the last segment; the next ones do not begin before it.
    #[serde(default)]
    pub last_ms: Option<i64>,
}

impl ResumePoint {
    /// The language of most segments; of several, the first by its code.
    pub fn language(&self) -> Option<&str> {
        let most = self.languages.values().max()?;
        self.languages.iter().find(|(_, count)| *count == most).map(|(language, _)| &language[..])
    }
}

/// A window that is done, or a stretch without speech.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedWindow {
    /// What was said, on the container's clock, in order of time. Empty where nobody speaks.
    pub segments: Vec<SpokenSegment>,
    /// Where to go on after it. Keep it together with the segments.
    pub resume: ResumePoint,
    /// Milliseconds of sound that are done, from the start of the audio stream.
    pub done_ms: i64,
    /// Milliseconds of sound by the container; an estimate, and not always known.
    pub duration_ms: Option<i64>,
}

/// Hears how a transcription goes.
pub trait Listener {
    /// Gets each window in order. A break cancels the transcription after it.
    fn finished(&mut self, window: FinishedWindow) -> ControlFlow<()>;

    /// Called a few times a second. A break cancels the transcription, and the window at hand is lost.
    fn goes_on(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// How a transcription ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The file has no sound. Nothing is wrong with it.
    NoAudio,
    /// All was heard; there may be no speech in it.
    Done(Summary),
    /// The listener cancelled it.
    Cancelled,
}

/// What a finished transcription was about.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The stream that was heard.
    pub stream: AudioStream,
    /// End of the sound on the container's clock, in milliseconds.
    pub end_ms: i64,
    /// The language of most segments, those before the resume point included.
    pub language: Option<String>,
    /// Says what is damaged in the sound, if anything is.
    pub warning: Option<String>,
}

/// The transcription of one file.
pub struct Transcription<'a> {
    /// The file; a video or sound alone.
    pub path: &'a Path,
    /// Language, word times, conditioning.
    pub options: &'a TranscribeOptions,
    /// Most windows that are written side by side, at least one. It is one where windows read the text before them.
    pub windows_at_once: usize,
    /// Finds speech, so that silence is skipped; `None` hears everything.
    pub detector: Option<Box<dyn SpeechDetector>>,
    /// When sound counts as speech.
    pub activity: ActivityOptions,
    /// Limits of ffmpeg.
    pub limits: &'a Limits,
}

impl Transcription<'_> {
    /// Writes down the file from `resume` on. Blocks for as long as that takes; holds some minutes of sound.
    ///
    /// # Errors
    /// [`TranscribeError`]. What the listener got until then stays right, and its last resume point can be used again.
    pub fn run(
        mut self,
        transcriber: &mut dyn Transcriber,
        resume: ResumePoint,
        listener: &mut dyn Listener,
    ) -> Result<Outcome, TranscribeError> {
        transcriber.check(self.options)?;
        let Some(stream) = audio_stream(self.path, self.limits)? else { return Ok(Outcome::NoAudio) };
        let start = stream.start_ms.saturating_mul(SAMPLES_PER_MS);
        let from = resume.at.unwrap_or(start).max(start);
        let longest = transcriber.longest_window().max(SAMPLE_RATE);
        let at_once = match self.options.with_text_before {
            true => 1,
            false => self.windows_at_once.min(transcriber.windows_at_once()).clamp(1, MOST_AT_ONCE),
        };
        let resume = match resume.at {
            Some(_) => resume,
            None => ResumePoint { state: self.options.first_state(), ..resume },
        };
        let pad = self.activity.pad_frames.saturating_mul(FRAME);
        let ahead = self.ahead(&stream, Span { first: start, last: from })?;
        let mut work = Work {
            ahead,
            transcriber,
            options: self.options,
            listener,
            resume,
            stream,
            longest,
            read_ahead: (longest * at_once).saturating_add(pad).saturating_add(FRAME),
            at_once,
        };
        if work.all()?.is_break() {
            return Ok(Outcome::Cancelled);
        }
        work.end()
    }

    /// Opens the sound at the end of `before`, the sound that is done. The detector hears the last of it again.
    fn ahead(&mut self, stream: &AudioStream, before: Span) -> Result<Ahead, TranscribeError> {
        let activity = self.detector.take().map(|detector| Activity::new(detector, self.activity));
        let warm_up = if activity.is_some() { WARM_UP } else { 0 };
        let opened = frame_start((before.last - warm_up).max(before.first));
        let reader = AudioReader::open(self.path, stream, opened, &self.limits.for_slow_reader())?;
        let mut ahead = Ahead::new(reader, activity);
        ahead.warm_up(before.last)?;
        Ok(ahead)
    }
}

/// A transcription at work.
struct Work<'a> {
    ahead: Ahead,
    transcriber: &'a mut dyn Transcriber,
    options: &'a TranscribeOptions,
    listener: &'a mut dyn Listener,
    resume: ResumePoint,
    stream: AudioStream,
    longest: usize,
    /// Samples that are read before windows are chosen.
    read_ahead: usize,
    at_once: usize,
}

/// What a window gave, and the place after it.
struct Written {
    segments: Vec<SpokenSegment>,
    state: TranscriberState,
    done: i64,
}

impl Work<'_> {
    fn all(&mut self) -> Result<ControlFlow<()>, TranscribeError> {
        loop {
            self.ahead.fill(self.read_ahead)?;
            if self.ahead.is_over() && self.ahead.first() >= self.ahead.end() {
                return Ok(ControlFlow::Continue(()));
            }
            if self.listener.goes_on().is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let step = match self.ahead.next_speech() {
                Some(at) if at > self.ahead.first() => {
                    // What is read after it must be as long as if it had begun here.
                    self.ahead.drop_before(at);
                    ControlFlow::Continue(())
                }
                Some(_) => self.write()?,
                None => self.skip(),
            };
            if step.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Writes the next windows down.
    fn write(&mut self) -> Result<ControlFlow<()>, TranscribeError> {
        let windows = self.windows();
        let Some(written) = self.written(&windows)? else { return Ok(ControlFlow::Break(())) };
        for window in written {
            if self.finish(window).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The next windows of what is read, at least one: one that the next continues, or several.
    fn windows(&self) -> Vec<Span> {
        let (mut windows, mut from) = (Vec::new(), self.ahead.first());
        while windows.len() < self.at_once {
            let window = self.ahead.window(from, self.longest, self.at_once > 1);
            let Some(window) = window.filter(|it| windows.is_empty() || !it.is_cut) else { break };
            from = window.span.last;
            windows.push(window.span);
        }
        windows
    }

    /// Writes windows down. Several windows take what their transcriber left of them until nothing is left.
    fn written(&mut self, windows: &[Span]) -> Result<Option<Vec<Written>>, TranscribeError> {
        let new = |span: &Span| Written {
            segments: Vec::new(),
            state: self.resume.state.clone(),
            done: span.first,
        };
        let mut written: Vec<Written> = windows.iter().map(new).collect();
        let mut open: Vec<usize> = (0..windows.len()).collect();
        while !open.is_empty() {
            let spans: Vec<Span> =
                open.iter().map(|at| Span { first: written[*at].done, last: windows[*at].last }).collect();
            let Some(heard) = self.hear(&spans)? else { return Ok(None) };
            for ((at, span), heard) in open.iter().zip(&spans).zip(heard) {
                let length = (span.last - span.first) as usize;
                let used = heard.used.max(LEAST_USED).min(length);
                let ms = span.first.div_euclid(SAMPLES_PER_MS);
                let one = &mut written[*at];
                one.segments.extend(heard.segments.into_iter().map(|segment| segment.later(ms)));
                one.state = heard.state;
                one.done = span.first + used as i64;
            }
            // A single window is continued by the next one.
            let is_open = |at: &usize| {
                let rest = Span { first: written[*at].done, last: windows[*at].last };
                self.at_once > 1 && rest.first < rest.last && self.ahead.has_speech(rest)
            };
            open.retain(is_open);
        }
        if self.at_once > 1 {
            written.iter_mut().zip(windows).for_each(|(one, span)| one.done = span.last);
        }
        Ok(Some(written))
    }

    fn hear(&mut self, spans: &[Span]) -> Result<Option<Vec<Heard>>, EncodeError> {
        let ahead = &self.ahead;
        let state = match self.options.with_text_before {
            true => self.resume.state.clone(),
            false => self.options.first_state(),
        };
        let window = |span: &Span| SpeechWindow {
            samples: ahead.samples(*span),
            state: &state,
            goes_on: span.last < ahead.end() || !ahead.is_over(),
        };
        let windows: Vec<SpeechWindow<'_>> = spans.iter().map(window).collect();
        let listener = &mut self.listener;
        self.transcriber.transcribe(&windows, self.options, &mut || listener.goes_on())
    }

    /// Drops sound in which nobody speaks, but for what comes before speech.
    fn skip(&mut self) -> ControlFlow<()> {
        let at = self.ahead.quiet_end();
        let state = self.resume.state.clone();
        self.finish(Written { segments: Vec::new(), state, done: at })
    }

    fn finish(&mut self, window: Written) -> ControlFlow<()> {
        let Written { mut segments, state, done } = window;
        for segment in &mut segments {
            segment.start_ms = segment.start_ms.max(self.resume.last_ms.unwrap_or(i64::MIN));
            segment.end_ms = segment.end_ms.max(segment.start_ms);
            self.resume.last_ms = Some(segment.start_ms);
            if let Some(language) = &segment.language {
                *self.resume.languages.entry(language.clone()).or_default() += 1;
            }
        }
        self.ahead.drop_before(done);
        self.resume.at = Some(done);
        self.resume.state = state;
        self.listener.finished(FinishedWindow {
            segments,
            resume: self.resume.clone(),
            done_ms: done.div_euclid(SAMPLES_PER_MS) - self.stream.start_ms,
            duration_ms: self.stream.duration_ms,
        })
    }

    fn end(self) -> Result<Outcome, TranscribeError> {
        let end_ms = self.ahead.first().div_euclid(SAMPLES_PER_MS);
        let warning = self.ahead.finish()?;
        let language = self.resume.language().map(str::to_owned);
        Ok(Outcome::Done(Summary { stream: self.stream, end_ms, language, warning }))
    }
}
