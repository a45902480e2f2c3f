//! A stand-in for a service that writes down speech, and films whose "speech" it understands: each sentence is a tone, and
//! the tone's pitch says which one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::film::{ffmpeg, run_once};

/// Samples per second of what services get.
const RATE: f64 = 16_000.0;
/// Pitch of the first sentence in Hz, and the distance to the next.
const FIRST_PITCH: f64 = 400.0;
const PITCH_STEP: f64 = 60.0;
/// Samples of a frame in which sound is loud or quiet: 20 ms.
const FRAME: usize = 320;
/// Loudness of speech, of 1.
const LOUD: f64 = 0.05;

/// A sentence of a film.
#[derive(Debug, Clone, Copy)]
pub struct Said {
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// Which of the stand-in's sentences it is.
    pub sentence: usize,
}

/// The sound of a film that says these sentences, as a source of libavfilter.
pub fn sound(said: &[Said]) -> String {
    let tone = |it: &Said| {
        let pitch = FIRST_PITCH + PITCH_STEP * it.sentence as f64;
        format!("0.4*sin(2*PI*{pitch}*t)*between(t\\,{}\\,{})", it.start, it.end)
    };
    let tones: Vec<String> = said.iter().map(tone).collect();
    format!("aevalsrc={}:s=16000", if tones.is_empty() { "0".to_owned() } else { tones.join("+") })
}

/// A film of one picture for `seconds`, with the sound of these sentences.
///
/// # Panics
/// If ffmpeg fails.
pub fn spoken_film(folder: &Path, name: &str, seconds: u32, said: &[Said]) -> PathBuf {
    let file = folder.join(name);
    let seconds = seconds.to_string();
    let mut ffmpeg = ffmpeg();
    ffmpeg.args(["-t", &seconds, "-f", "lavfi", "-i", "testsrc2=s=160x120:r=5"]);
    ffmpeg.args(["-t", &seconds, "-f", "lavfi", "-i", &sound(said)]);
    ffmpeg.args([
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-pix_fmt",
        "yuv420p",
        "-c:a",
        "aac",
        "-b:a",
        "64k",
    ]);
    ffmpeg.args(["-movflags", "+faststart"]).arg(&file);
    let ending = file.extension().unwrap_or_default();
    run_once(&format!("{ending:?} {seconds} {said:?}"), &mut ffmpeg, &file);
    file
}

/// A request that the stand-in got.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The `Authorization` header.
    pub authorization: String,
    /// The fields of the form, but for the file.
    pub fields: Vec<(String, String)>,
    /// Length of the sound, in seconds.
    pub seconds: f64,
}

impl Asked {
    /// The first field of this name.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

/// What the stand-in does wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Answers with this status and body.
    Status(u16, &'static str),
    /// Closes the connection without an answer.
    Close,
    /// Reads the request and never answers.
    Silent,
    /// Answers with this many bytes that never become an answer.
    Flood(usize),
    /// Answers 200 with this body.
    Body(&'static str),
}

#[derive(Default)]
struct State {
    sentences: Vec<&'static str>,
    language: &'static str,
    asked: Vec<Asked>,
    faults: Vec<Fault>,
    /// Answers that may still be given; `None`: all.
    left: Option<usize>,
}

/// A running stand-in. It serves until the test ends.
pub struct StandIn {
    /// Its address.
    pub url: String,
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl StandIn {
    /// Starts a stand-in that knows these sentences.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start(sentences: &[&'static str]) -> StandIn {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("a listener has an address");
        let state = State { sentences: sentences.to_vec(), language: "english", ..State::default() };
        let shared = Arc::new((Mutex::new(state), Condvar::new()));
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&serving);
                // A client that disconnects is no failure of the stand-in.
                std::thread::spawn(move || drop(answer(stream, &shared)));
            }
        });
        StandIn { url: format!("http://{address}/v1/audio/transcriptions"), shared }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.0)
    }

    /// The language that it says it heard.
    pub fn speaks(&self, language: &'static str) {
        self.state().language = language;
    }

    /// Does these wrong, one a request, before it works again.
    pub fn fails(&self, faults: &[Fault]) {
        self.state().faults.extend_from_slice(faults);
    }

    /// From now on answers `left` requests and keeps further ones waiting; `None` answers all.
    pub fn answers(&self, left: Option<usize>) {
        self.state().left = left;
        self.shared.1.notify_all();
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state().asked.clone()
    }

    /// Waits until it was asked so often.
    ///
    /// # Panics
    /// If it is not in time.
    pub fn until_asked(&self, times: usize) {
        let state = self.state();
        let waited =
            self.shared.1.wait_timeout_while(state, crate::server::PATIENCE, |it| it.asked.len() < times);
        let (state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!waited.timed_out(), "asked {} times", state.asked.len());
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(stream: TcpStream, shared: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut reader = BufReader::new(stream);
    let (mut length, mut authorization, mut boundary) = (0, String::new(), String::new());
    loop {
        let mut row = String::new();
        if reader.read_line(&mut row)? == 0 || row.trim().is_empty() {
            break;
        }
        let Some((name, value)) = row.split_once(':') else { continue };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "authorization" => value.clone_into(&mut authorization),
            "content-type" => boundary = value.split_once("boundary=").map_or("", |(_, it)| it).to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let form = Form::read(&body, boundary.trim_matches('"'));
    let samples = form.samples();
    let asked = Asked { authorization, seconds: samples.len() as f64 / RATE, fields: form.fields };
    let mut state = lock(&shared.0);
    state.asked.push(asked);
    shared.1.notify_all();
    let fault = if state.faults.is_empty() { None } else { Some(state.faults.remove(0)) };
    if fault.is_none() {
        while state.left == Some(0) {
            state = shared.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.left = state.left.map(|left| left - 1);
    }
    let heard = hear(&samples, &state).to_string();
    drop(state);
    let mut stream = reader.into_inner();
    match fault {
        None => reply(&mut stream, 200, heard.as_bytes()),
        Some(Fault::Status(status, body)) => reply(&mut stream, status, body.as_bytes()),
        Some(Fault::Body(body)) => reply(&mut stream, 200, body.as_bytes()),
        Some(Fault::Flood(bytes)) => reply(&mut stream, 200, &vec![b' '; bytes]),
        Some(Fault::Close) => Ok(()),
        Some(Fault::Silent) => {
            // Until the client has enough.
            stream.read_to_end(&mut Vec::new()).map(drop)
        }
    }
}

fn reply(stream: &mut TcpStream, status: u16, body: &[u8]) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nlocation: http://127.0.0.1:9/\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

/// A multipart form.
struct Form {
    fields: Vec<(String, String)>,
    file: Vec<u8>,
}

impl Form {
    fn read(body: &[u8], boundary: &str) -> Form {
        let mut form = Form { fields: Vec::new(), file: Vec::new() };
        let mark = format!("--{boundary}");
        for part in split(body, mark.as_bytes()) {
            let Some(at) = find(part, b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&part[..at]).into_owned();
            let content = part[at + 4..].strip_suffix(b"\r\n").unwrap_or(&part[at + 4..]);
            let name =
                head.split_once("name=\"").and_then(|(_, it)| it.split_once('"')).map_or("", |it| it.0);
            if head.contains("filename=") {
                form.file = content.to_vec();
            } else {
                form.fields.push((name.to_owned(), String::from_utf8_lossy(content).into_owned()));
            }
        }
        form
    }

    /// The samples of the WAV file, -1 to 1.
    fn samples(&self) -> Vec<f64> {
        let data = self.file.get(44..).unwrap_or_default();
        data.chunks_exact(2).map(|it| f64::from(i16::from_le_bytes([it[0], it[1]])) / 32_768.0).collect()
    }
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|it| it == mark)
}

fn split<'a>(mut bytes: &'a [u8], mark: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = find(bytes, mark) {
        parts.push(&bytes[..at]);
        bytes = &bytes[at + mark.len()..];
    }
    parts
}

/// What was said in these samples, as `verbose_json`.
fn hear(samples: &[f64], state: &State) -> Value {
    let is_loud =
        |frame: &[f64]| (frame.iter().map(|it| it * it).sum::<f64>() / frame.len() as f64).sqrt() > LOUD;
    let frames: Vec<bool> = samples.chunks(FRAME).map(is_loud).collect();
    let (mut segments, mut words, mut from) = (Vec::new(), Vec::new(), None);
    for (at, is_loud) in frames.iter().copied().chain([false]).enumerate() {
        match (is_loud, from) {
            (true, None) => from = Some(at),
            (false, Some(first)) => {
                from = None;
                let part = &samples[first * FRAME..(at * FRAME).min(samples.len())];
                let Some(text) = sentence(part, &state.sentences) else { continue };
                let (start, end) = ((first * FRAME) as f64 / RATE, (at * FRAME) as f64 / RATE);
                let count = text.split(' ').count() as f64;
                words.extend(text.split(' ').enumerate().map(|(place, word)| {
                    let time = |place: f64| start + (end - start) * place / count;
                    json!({"word": word, "start": time(place as f64), "end": time(place as f64 + 1.0)})
                }));
                segments.push(json!({"id": segments.len(), "start": start, "end": end, "text": format!(" {text}"),
                    "avg_logprob": -0.2, "no_speech_prob": 0.01, "compression_ratio": 1.1, "temperature": 0.0}));
            }
            _ => {}
        }
    }
    let duration = samples.len() as f64 / RATE;
    json!({"task": "transcribe", "language": state.language, "duration": duration, "text": "", "segments": segments,
        "words": words})
}

/// The sentence of this pitch; `None` for what is too short to tell.
fn sentence(samples: &[f64], known: &[&'static str]) -> Option<&'static str> {
    // The edges fade.
    let inner = samples.get(FRAME..samples.len().checked_sub(FRAME)?)?;
    if inner.len() < 5 * FRAME {
        return None;
    }
    let crossings = inner.windows(2).filter(|it| it[0] <= 0.0 && it[1] > 0.0).count() as f64;
    let pitch = crossings / (inner.len() as f64 / RATE);
    let place = ((pitch - FIRST_PITCH) / PITCH_STEP).round();
    if place < 0.0 { None } else { known.get(place as usize).copied() }
}
