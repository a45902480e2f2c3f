//! One transcription: windows on a thread of their own, each stored when it is finished, then the track.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reprise_encoders::speech::{
    ActivityOptions, FinishedWindow, Listener, Outcome, ResumePoint, Summary, Transcription,
};
use reprise_encoders::transcriber::TranscribeOptions;
use tokio::sync::mpsc;

use super::error::{LONGEST_TEXT, TranscriptionError};
use super::lines::lines_of;
use crate::app::App;
use crate::catalog::{
    CueKind, Job, Lease, Line, MediaFacts, Subtitles, Track, Transcript, TranscriptWindow, Video, VideoState,
    WindowsOf,
};
use crate::ingest::{self, JobProgress, Stop};
use crate::speech::{self, Speech};
use crate::storage::StoredFile;
use crate::subtitles::{MAX_CUES, language};

/// Finished windows that wait to be stored.
const WAITING: usize = 4;
/// Longest time that a model gives way to searches, each time that it asks.
const GIVES_WAY: Duration = Duration::from_millis(500);
/// How often it looks whether searches still wait.
const LOOK: Duration = Duration::from_millis(5);

/// A job that transcribes.
pub struct Work<'a> {
    /// The service.
    pub app: &'a Arc<App>,
    /// The video.
    pub video: &'a Video,
    /// The job.
    pub job: &'a Job,
    /// Its lease.
    pub lease: &'a Lease,
    /// Its progress.
    pub progress: &'a Arc<JobProgress>,
}

/// Enqueues the transcription of a video whose ingest is about to succeed, if this server transcribes new videos and there is
/// sound. The job waits for the ingest. Repeating this changes nothing.
///
/// # Errors
/// The catalog failed.
pub async fn after_ingest(app: &App, video: &Video, facts: &MediaFacts) -> Result<(), TranscriptionError> {
    let has_audio = facts.probe.get("has_audio").and_then(serde_json::Value::as_bool).unwrap_or(false);
    if app.speech.is_some() && has_audio && video.state != VideoState::Ready {
        app.catalog.transcribe_new(video.id).await?;
    }
    Ok(())
}

/// Transcribes the video of a leased job to its end. Goes on after the last window that was stored.
///
/// # Errors
/// See [`TranscriptionError`].
pub async fn run(work: Work<'_>) -> Result<(), TranscriptionError> {
    let app = work.app;
    let speech = app.speech.clone().ok_or(TranscriptionError::NoTranscriber)?;
    if work.video.state != VideoState::Ready {
        return Err(TranscriptionError::NotReady);
    }
    let asked = work.job.asked_language();
    let transcript = match asked.filter(|language| !speech.knows(language)) {
        Some(language) => {
            let model = &speech.description().model;
            nothing(format!("{model} does not know the language `{language}`: nothing was transcribed"))
        }
        None => hear(&work, &speech, asked).await?,
    };
    work.progress.stage("finish");
    app.catalog.finish_transcription(work.lease, &transcript).await?;
    ingest::enqueue_passages(app, work.video.id).await;
    Ok(())
}

fn nothing(note: impl Into<String>) -> Transcript {
    Transcript { subtitles: None, note: Some(note.into()) }
}

async fn hear(
    work: &Work<'_>,
    speech: &Arc<Speech>,
    asked: Option<&str>,
) -> Result<Transcript, TranscriptionError> {
    let progress = work.progress;
    let gone = |_| TranscriptionError::FileGone(work.video.file.clone());
    let file = work.app.storage.local(&StoredFile::of(&work.video.file)).await.map_err(gone)?;
    progress.expect(work.video.facts.as_ref().map_or(0, |facts| facts.duration_ms), 0.0);
    progress.stage("listen");
    let model = speech.description().id.clone();
    let mut windows = work.app.catalog.transcript_windows(work.job.id, &model).await?;
    let resume = match windows.last() {
        Some(last) => serde_json::from_value(last.state.clone())?,
        None => ResumePoint::default(),
    };
    let (finished, mut receive) = mpsc::channel(WAITING);
    // A service hears one piece after the other.
    let windows_at_once = if speech.is_local() { work.app.config.speech.transcribe_windows } else { 1 };
    let ears = Ears {
        app: Arc::clone(work.app),
        speech: Arc::clone(speech),
        progress: Arc::clone(progress),
        path: file.path().to_owned(),
        options: options(asked, windows_at_once),
        windows_at_once,
    };
    let listening = tokio::task::spawn_blocking(move || ears.listen(resume, finished));
    let stored = store(work, &model, &mut receive, &mut windows).await;
    // The listener ends at its next window then. The file must stay where it is until that.
    drop(receive);
    let outcome = listening.await?;
    drop(file);
    stored?;
    match outcome? {
        Outcome::NoAudio => Ok(nothing("the video has no sound")),
        Outcome::Cancelled => Err(TranscriptionError::Stopped(progress.stopped().unwrap_or(Stop::Lost))),
        Outcome::Done(summary) => Ok(transcript(speech, asked, windows, &summary)),
    }
}

/// Stores the windows as they come, behind those that are stored already.
async fn store(
    work: &Work<'_>,
    model: &str,
    finished: &mut mpsc::Receiver<FinishedWindow>,
    windows: &mut Vec<TranscriptWindow>,
) -> Result<(), TranscriptionError> {
    let bytes = |window: &TranscriptWindow| window.lines.iter().map(|line| line.text.len()).sum::<usize>();
    let mut lines: usize = windows.iter().map(|window| window.lines.len()).sum();
    let mut text: usize = windows.iter().map(bytes).sum();
    while let Some(window) = finished.recv().await {
        let window = kept(window)?;
        lines += window.lines.len();
        text += bytes(&window);
        if lines > MAX_CUES || text > LONGEST_TEXT {
            return Err(TranscriptionError::TooLong);
        }
        let of = WindowsOf { model, place: windows.len() };
        work.app.catalog.keep_transcript_window(work.lease, of, &window).await?;
        work.progress.reached(window.until_ms);
        work.progress.kept();
        windows.push(window);
    }
    Ok(())
}

/// How a job writes down speech. `language`: a BCP 47 tag.
fn options(language: Option<&str>, windows_at_once: usize) -> TranscribeOptions {
    TranscribeOptions {
        language: language.map(|tag| speech::code_of(tag).to_owned()),
        // Times of words cut long segments into lines.
        word_times: true,
        with_text_before: windows_at_once == 1,
        ..TranscribeOptions::default()
    }
}

/// The stored form of a window.
fn kept(window: FinishedWindow) -> Result<TranscriptWindow, TranscriptionError> {
    let lines = lines_of(&window.segments);
    let state = serde_json::to_value(&window.resume)?;
    Ok(TranscriptWindow { until_ms: window.done_ms, lines, state })
}

/// The track of all windows, or why there is none.
fn transcript(
    speech: &Speech,
    asked: Option<&str>,
    windows: Vec<TranscriptWindow>,
    summary: &Summary,
) -> Transcript {
    let lines: Vec<Line> = windows.into_iter().flat_map(|window| window.lines).collect();
    let warning = summary.warning.clone();
    if lines.is_empty() {
        let quiet = "nobody speaks in the video".to_owned();
        return nothing(warning.map_or(quiet.clone(), |warning| format!("{quiet}; {warning}")));
    }
    let heard = summary.language.as_deref().and_then(language::tag);
    let language = asked.map(str::to_owned).or(heard).unwrap_or_else(|| language::UNDETERMINED.to_owned());
    let provenance = speech.description().model.clone();
    let track = Track { kind: CueKind::Speech, language, provenance, is_machine: true };
    Transcript { subtitles: Some(Subtitles { track, lines, warnings: Vec::new() }), note: warning }
}

/// The blocking half of a transcription.
struct Ears {
    app: Arc<App>,
    speech: Arc<Speech>,
    progress: Arc<JobProgress>,
    path: PathBuf,
    options: TranscribeOptions,
    windows_at_once: usize,
}

impl Ears {
    fn listen(
        self,
        resume: ResumePoint,
        finished: mpsc::Sender<FinishedWindow>,
    ) -> Result<Outcome, TranscriptionError> {
        let limits = self.app.config.decode_limits();
        let mut listener = Sending { ears: &self, finished };
        let outcome = self.speech.with(|transcriber| {
            let transcription = Transcription {
                path: &self.path,
                options: &self.options,
                windows_at_once: self.windows_at_once,
                detector: Some(self.speech.detector()),
                activity: ActivityOptions::default(),
                limits: &limits,
            };
            transcription.run(transcriber, resume, &mut listener)
        });
        Ok(outcome?)
    }

    /// Waits while searches wait for a model: a transcription may take hours, a search must not.
    fn give_way(&self) {
        if !self.speech.is_local() {
            return;
        }
        let since = Instant::now();
        let is_asked = || self.app.spaces.all().iter().any(|space| space.pool.waiting().0 > 0);
        while since.elapsed() < GIVES_WAY && is_asked() {
            std::thread::sleep(LOOK);
        }
    }
}

/// Sends finished windows to the half that stores them.
struct Sending<'a> {
    ears: &'a Ears,
    finished: mpsc::Sender<FinishedWindow>,
}

impl Listener for Sending<'_> {
    fn finished(&mut self, window: FinishedWindow) -> ControlFlow<()> {
        match self.finished.blocking_send(window) {
            Ok(()) => self.goes_on(),
            // A window could not be stored.
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn goes_on(&mut self) -> ControlFlow<()> {
        if self.ears.progress.stopped().is_some() || self.finished.is_closed() {
            return ControlFlow::Break(());
        }
        self.ears.give_way();
        ControlFlow::Continue(())
    }
}
