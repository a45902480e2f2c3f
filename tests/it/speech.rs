//! Sound of real files, window by window, with a transcriber that writes down the tones it hears.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use reprise_encoders::EncodeError;
use reprise_encoders::speech::{
    ActivityOptions, Energy, FinishedWindow, Listener, Outcome, ResumePoint, Silero, SpeechDetector, Summary,
    TranscribeError, Transcription,
};
use reprise_encoders::transcriber::{
    Heard, OnStep, SAMPLE_RATE, SpeechWindow, SpokenSegment, TranscribeOptions, Transcriber,
    TranscriberDescription, TranscriberState,
};
use reprise_encoders::video::{Limits, VideoError};
use reprise_tests::film::{ffmpeg, run};
use tempfile::TempDir;

/// Samples of a piece in which the stand-in looks for a tone: 100 ms.
const PIECE: usize = SAMPLE_RATE / 10;

/// Writes a segment for each tone, its frequency as text. Leaves a tone that the end of a window cuts to the next window.
struct Tones {
    description: TranscriberDescription,
    windows_at_once: usize,
    /// Lengths of the windows that it heard, in seconds.
    lengths: Vec<f64>,
}

impl Tones {
    fn new(windows_at_once: usize) -> Tones {
        let description = TranscriberDescription {
            model: "tones".into(),
            family: "stand-in".into(),
            id: "tones".into(),
            precision: String::new(),
            is_multilingual: true,
            languages: vec!["en".into(), "de".into()],
            has_word_times: false,
        };
        Tones { description, windows_at_once, lengths: Vec::new() }
    }

    fn hear(&self, window: &SpeechWindow<'_>) -> Heard {
        let mut segments: Vec<SpokenSegment> = Vec::new();
        for (at, piece) in window.samples.chunks(PIECE).enumerate() {
            let Some(tone) = tone(piece) else { continue };
            let start_ms = at as i64 * 100;
            match segments.last_mut().filter(|last| last.end_ms == start_ms && last.text == tone) {
                Some(last) => last.end_ms += 100,
                None => segments.push(segment(start_ms, tone)),
            }
        }
        let length = window.samples.len();
        let cut = segments.last().filter(|it| window.goes_on && it.end_ms * 16 + 1600 >= length as i64);
        let used = cut.map_or(length, |it| (it.start_ms * 16) as usize);
        if used > 0 && used < length {
            segments.pop();
        }
        let count = window.state.tokens.first().copied().unwrap_or(0) + 1;
        let state = TranscriberState { tokens: vec![count], ..TranscriberState::default() };
        Heard { segments, used: if used == 0 { length } else { used }, state }
    }
}

/// The frequency of a loud piece, to 20 Hz.
fn tone(piece: &[f32]) -> Option<String> {
    let loudest = piece.iter().fold(0.0_f32, |most, sample| most.max(sample.abs()));
    let crossings = piece.windows(2).filter(|pair| (pair[0] < 0.0) != (pair[1] < 0.0)).count();
    let frequency = crossings as f64 / 2.0 / (piece.len() as f64 / SAMPLE_RATE as f64);
    (loudest > 0.02 && piece.len() > PIECE / 2).then(|| format!("{}", (frequency / 20.0).round() * 20.0))
}

fn segment(start_ms: i64, text: String) -> SpokenSegment {
    SpokenSegment {
        start_ms,
        end_ms: start_ms + 100,
        text,
        words: Vec::new(),
        language: Some("en".into()),
        avg_logprob: -0.1,
        no_speech: 0.0,
        compression_ratio: 1.0,
        temperature: 0.0,
    }
}

impl Transcriber for Tones {
    fn description(&self) -> &TranscriberDescription {
        &self.description
    }

    fn longest_window(&self) -> usize {
        30 * SAMPLE_RATE
    }

    fn windows_at_once(&self) -> usize {
        self.windows_at_once
    }

    fn transcribe(
        &mut self,
        windows: &[SpeechWindow<'_>],
        _: &TranscribeOptions,
        on_step: &mut OnStep<'_>,
    ) -> Result<Option<Vec<Heard>>, EncodeError> {
        if on_step().is_break() {
            return Ok(None);
        }
        self.lengths.extend(windows.iter().map(|it| it.samples.len() as f64 / SAMPLE_RATE as f64));
        Ok(Some(windows.iter().map(|window| self.hear(window)).collect()))
    }
}

/// Keeps all windows, and cancels after some of them or at some question.
#[derive(Default)]
struct Kept {
    windows: Vec<FinishedWindow>,
    cancel_after: Option<usize>,
    cancel_at_question: Option<usize>,
    questions: usize,
}

impl Listener for Kept {
    fn finished(&mut self, window: FinishedWindow) -> ControlFlow<()> {
        self.windows.push(window);
        match self.cancel_after {
            Some(count) if self.windows.len() >= count => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn goes_on(&mut self) -> ControlFlow<()> {
        self.questions += 1;
        match self.cancel_at_question {
            Some(count) if self.questions >= count => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Makes what finds speech; `None` hears everything.
type Finds = fn() -> Option<Box<dyn SpeechDetector>>;

fn by_loudness() -> Option<Box<dyn SpeechDetector>> {
    Some(Box::<Energy>::default())
}

fn by_silero() -> Option<Box<dyn SpeechDetector>> {
    let weights = Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data/silero/model.safetensors");
    Some(Box::new(Silero::open(&weights).unwrap()))
}

/// How a file is heard.
struct Run<'a> {
    path: &'a Path,
    detector: Finds,
    windows_at_once: usize,
    resume: ResumePoint,
    kept: Kept,
}

impl Run<'_> {
    fn of(path: &Path) -> Run<'_> {
        Run {
            path,
            detector: by_loudness,
            windows_at_once: 1,
            resume: ResumePoint::default(),
            kept: Kept::default(),
        }
    }

    fn go(self) -> (Result<Outcome, TranscribeError>, Vec<FinishedWindow>, Vec<f64>) {
        let mut tones = Tones::new(self.windows_at_once);
        let with_text_before = self.windows_at_once == 1;
        let transcription = Transcription {
            path: self.path,
            options: &TranscribeOptions { with_text_before, ..TranscribeOptions::default() },
            windows_at_once: self.windows_at_once,
            detector: (self.detector)(),
            activity: ActivityOptions::default(),
            limits: &Limits::default(),
        };
        let mut kept = self.kept;
        let outcome = transcription.run(&mut tones, self.resume, &mut kept);
        (outcome, kept.windows, tones.lengths)
    }
}

/// Renders tones of (start in seconds, length in seconds, frequency in Hz), then silence up to `seconds`.
struct Sound<'a> {
    tones: &'a [(f64, f64, u32)],
    seconds: f64,
    /// Samples per second.
    rate: u32,
    /// ffmpeg's name of the channels, and the one with the tones.
    channels: (&'a str, usize, usize),
    arguments: &'a [&'a str],
}

impl Sound<'_> {
    fn render(&self, name: &str) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let tones: Vec<String> = self
            .tones
            .iter()
            .map(|(start, length, frequency)| {
                format!("0.4*sin(2*PI*{frequency}*t)*gte(t,{start})*lt(t,{})", start + length)
            })
            .collect();
        let (layout, count, loud) = self.channels;
        let channel = |at| if at == loud { tones.join("+") } else { "0".into() };
        let all = (0..count).map(channel).collect::<Vec<String>>().join("|");
        let source = format!("aevalsrc=exprs='{all}':c={layout}:s={}:d={}", self.rate, self.seconds);
        run(ffmpeg().args(["-f", "lavfi", "-i", &source]).args(self.arguments).arg(&path));
        (folder, path)
    }
}

const TONES: &[(f64, f64, u32)] = &[(1.0, 2.0, 440), (5.0, 1.5, 880)];
const HEARD: &[(f64, &str)] = &[(1.0, "440"), (5.0, "880")];

/// Two tones in 8 s.
const SOUND: Sound<'static> =
    Sound { tones: TONES, seconds: 8.0, rate: 16_000, channels: ("mono", 1, 0), arguments: &[] };

/// The tones that are heard, by their starts in seconds; times may be 0.15 s off.
#[track_caller]
fn check(path: &Path, expected: &[(f64, &str)]) -> (Summary, Vec<f64>) {
    let (outcome, windows, lengths) = Run::of(path).go();
    let Ok(Outcome::Done(summary)) = outcome else { panic!("{outcome:?}") };
    let heard: Vec<&SpokenSegment> = windows.iter().flat_map(|window| &window.segments).collect();
    let clear: Vec<(f64, &str)> = heard
        .iter()
        .filter(|it| it.end_ms - it.start_ms > 100)
        .map(|it| (it.start_ms as f64 / 1000.0, it.text.as_str()))
        .collect();
    let is_right = clear.len() == expected.len()
        && clear.iter().zip(expected).all(|(it, other)| it.1 == other.1 && (it.0 - other.0).abs() < 0.15);
    assert!(is_right, "{}: {clear:?}, not {expected:?}", path.display());
    (summary, lengths)
}

#[test]
fn channels_rates_and_codecs_all_come_in() {
    for (name, rate, channels, arguments) in [
        ("plain.wav", 16_000, ("mono", 1, 0), &[][..]),
        ("phone.wav", 8_000, ("mono", 1, 0), &[]),
        ("stereo.m4a", 44_100, ("stereo", 2, 1), &["-c:a", "aac"]),
        ("surround.mka", 48_000, ("5.1", 6, 2), &["-c:a", "aac"]),
        ("surround.wav", 48_000, ("5.1", 6, 4), &["-c:a", "pcm_s24le"]),
        ("old.mp3", 22_050, ("mono", 1, 0), &[]),
        ("exact.flac", 96_000, ("stereo", 2, 0), &[]),
    ] {
        let (_folder, path) = Sound { rate, channels, arguments, ..SOUND }.render(name);
        let (summary, _) = check(&path, HEARD);
        assert_eq!((summary.language.as_deref(), summary.warning), (Some("en"), None), "{name}");
        assert!((7_900..8_200).contains(&summary.end_ms), "{name}: {}", summary.end_ms);
    }
}

#[test]
fn sound_lies_where_the_containers_clock_says() {
    let late = &["-output_ts_offset", "5", "-c:a", "aac"];
    let (_folder, path) = Sound { arguments: late, ..SOUND }.render("late.ts");
    // The muxer of transport streams adds 1.4 s.
    let start = check(&path, &[(7.4, "440"), (11.4, "880")]).0.stream.start_ms;
    assert!((6_300..6_500).contains(&start), "{start}");
}

#[test]
fn a_jump_of_the_clock_is_silence_that_nobody_transcribes() {
    let jump = &["-af", "asetpts=PTS+gte(T\\,4)*1200/TB", "-c:a", "pcm_s16le"];
    let (_folder, path) = Sound { arguments: jump, ..SOUND }.render("jump.mkv");
    let (summary, lengths) = check(&path, &[(1.0, "440"), (1205.0, "880")]);
    assert!((1_207_900..1_208_200).contains(&summary.end_ms), "{}", summary.end_ms);
    assert!(lengths.iter().sum::<f64>() < 10.0, "{lengths:?}");
}

#[test]
fn sound_that_goes_back_in_time_is_left_out_with_a_warning() {
    let back = &["-af", "asetpts=PTS-gte(T\\,7)*3/TB", "-c:a", "pcm_s16le", "-f", "nut"];
    let longer = Sound { seconds: 9.0, arguments: back, ..SOUND };
    let (_folder, path) = longer.render("back.nut");
    let (summary, _) = check(&path, HEARD);
    assert!(summary.end_ms <= 9_100, "{}", summary.end_ms);
}

#[test]
fn files_without_sound_are_told_from_files_that_are_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let silent = folder.path().join("silent.mkv");
    run(ffmpeg().args(["-f", "lavfi", "-i", "testsrc=size=64x64:duration=1"]).arg(&silent));
    assert!(matches!(Run::of(&silent).go().0, Ok(Outcome::NoAudio)));
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "no sound at all").unwrap();
    for path in [&text, &folder.path().join("missing.wav")] {
        let outcome = Run::of(path).go().0;
        let is_named = matches!(outcome, Err(TranscribeError::Video(VideoError::NotAudio(_))));
        assert!(is_named, "{outcome:?}");
    }
}

#[test]
fn broken_packets_leave_a_hole_and_a_warning() {
    let (_folder, path) = Sound { arguments: &["-c:a", "aac"], ..SOUND }.render("broken.ts");
    let mut bytes = std::fs::read(&path).unwrap();
    let (from, to) = (bytes.len() * 45 / 100, bytes.len() * 55 / 100);
    bytes[from..to].iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 37 % 251) as u8);
    std::fs::write(&path, bytes).unwrap();
    let (outcome, windows, _) = Run::of(&path).go();
    let Ok(Outcome::Done(summary)) = outcome else { panic!("{outcome:?}") };
    assert!(summary.warning.is_some_and(|why| why.contains("damaged")));
    let tones: Vec<&str> = windows.iter().flat_map(|it| &it.segments).map(|it| it.text.as_str()).collect();
    assert!(tones.contains(&"440") && tones.contains(&"880"), "{tones:?}");
}

/// Tones with pauses of all lengths in five minutes.
const LONG: Sound<'static> = Sound {
    tones: &[
        (0.5, 3.0, 300),
        (20.0, 14.0, 400),
        (35.0, 4.0, 500),
        (40.0, 25.0, 600),
        (65.5, 25.0, 700),
        (120.0, 2.0, 800),
        (260.0, 3.0, 900),
        (264.0, 1.0, 300),
    ],
    seconds: 300.0,
    ..SOUND
};

#[test]
fn silence_is_skipped_and_what_follows_it_has_a_whole_window() {
    let (_folder, path) = LONG.render("long.wav");
    let expected: Vec<(f64, String)> = LONG.tones.iter().map(|it| (it.0, it.2.to_string())).collect();
    let expected: Vec<(f64, &str)> = expected.iter().map(|it| (it.0, it.1.as_str())).collect();
    let (summary, lengths) = check(&path, &expected);
    assert_eq!(summary.end_ms, 300_000);
    assert!(lengths.iter().sum::<f64>() < 150.0, "{lengths:?}");
    // The window of the second tone begins after silence, in the middle of what was read.
    assert!((lengths[1] - 30.0).abs() < 0.01, "{lengths:?}");
}

#[test]
fn an_hour_of_silence_is_done_with_nothing_found() {
    let silence = Sound { tones: &[(0.0, 0.0, 1)], seconds: 3600.0, rate: 8_000, ..SOUND };
    let (_folder, path) = silence.render("silence.wav");
    let (summary, lengths) = check(&path, &[]);
    assert_eq!((summary.end_ms, summary.language, lengths.len()), (3_600_000, None, 0));
}

#[test]
fn a_transcription_goes_on_where_it_stopped() {
    let (_folder, path) = LONG.render("long.wav");
    let cases: [(Finds, usize); 6] =
        [(by_loudness, 1), (by_loudness, 4), (|| None, 1), (|| None, 3), (by_silero, 1), (by_silero, 4)];
    for (detector, windows_at_once) in cases {
        let run = || Run { detector, windows_at_once, ..Run::of(&path) };
        let (outcome, whole, _) = run().go();
        let Ok(Outcome::Done(summary)) = outcome else { panic!("{outcome:?}") };
        for (at, window) in whole.iter().enumerate() {
            let resume = serde_json::to_string(&window.resume).unwrap();
            let resume = serde_json::from_str(&resume).unwrap();
            let (outcome, rest, _) = Run { resume, ..run() }.go();
            assert_eq!(rest, whole[at + 1..], "{windows_at_once} at once, after window {at}");
            assert!(matches!(outcome, Ok(Outcome::Done(it)) if it == summary), "after window {at}");
        }
    }
}

#[test]
fn a_listener_cancels_between_windows_and_between_steps() {
    let (_folder, path) = LONG.render("long.wav");
    let after = Kept { cancel_after: Some(2), ..Kept::default() };
    let (outcome, windows, _) = Run { kept: after, ..Run::of(&path) }.go();
    assert!(matches!(outcome, Ok(Outcome::Cancelled)));
    assert_eq!(windows.len(), 2);
    let at = Kept { cancel_at_question: Some(1), ..Kept::default() };
    let (outcome, windows, _) = Run { kept: at, ..Run::of(&path) }.go();
    assert!(matches!(outcome, Ok(Outcome::Cancelled)));
    assert!(windows.is_empty());
}

#[test]
fn a_language_that_the_model_lacks_is_refused_before_work_begins() {
    let options = TranscribeOptions { language: Some("tlh".into()), ..TranscribeOptions::default() };
    let refused = Tones::new(1).check(&options);
    let Err(EncodeError::BadInput(why)) = refused else { panic!("{refused:?}") };
    assert!(why.to_string().contains("tlh") && why.to_string().contains("en, de"), "{why}");
}
