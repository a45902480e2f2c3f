//! Runs ffmpeg and ffprobe: no network, no playlists, limits on time and memory. Dropping a run kills its process.

use crate::Cause;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ffmpeg_sidecar::child::FfmpegChild;
use ffmpeg_sidecar::command::FfmpegCommand;
use ffmpeg_sidecar::event::{FfmpegEvent, LogLevel};
use ffmpeg_sidecar::log_parser::FfmpegLogParser;

use super::limits::Limits;
use super::watchdog::{Killed, Watch, Watchdog, Watched};

/// Why a video could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VideoError {
    /// The file is not video (text, empty, audio only, damaged beyond use); the caller's fault.
    #[error("not a video that can be decoded: {0}")]
    NotVideo(String),
    /// The span holds no frame; the caller's fault.
    #[error("no frame between {start_ms} and {end_ms} ms; the video ends at {duration_ms} ms")]
    EmptySpan {
        /// Requested start, in milliseconds.
        start_ms: i64,
        /// Requested end, in milliseconds.
        end_ms: i64,
        /// End of the video, in milliseconds.
        duration_ms: i64,
    },
    /// Time, memory or picture size exceeds the limit.
    #[error("over the limit: {0}")]
    OverLimit(String),
    /// ffmpeg is missing or does not start; a fault of the installation.
    #[error("ffmpeg could not be run: {0}")]
    Ffmpeg(#[source] Cause),
}

/// Demuxers that read one self-contained media file. Playlists and formats that name other files (hls, dash, concat,
/// image sequences) are absent on purpose. Audio formats are present only for a better error message.
const FORMATS: &str = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,live_flv,asf,asf_o,ogg,gif,apng,\
h261,h263,h264,hevc,vvc,av1,obu,ivf,m4v,mjpeg,mxf,mxg,nut,rm,dv,wtv,vc1,dirac,cavsvideo,yuv4mpegpipe,\
mp3,wav,flac,aac,ac3,eac3,aiff,amr,w64,ape,wv";

/// Largest number of error lines kept of one run; later ones are only counted.
const KEPT_LINES: usize = 20;
/// Largest number of bytes of the log that are parsed; the rest is discarded.
const PARSED_LOG_BYTES: u64 = 1 << 20;

/// Arguments that open `path` and no other file.
pub(super) fn input(path: &Path, limits: &Limits) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        ["-protocol_whitelist", "file,pipe", "-format_whitelist", FORMATS, "-max_pixels"]
            .map(Into::into)
            .to_vec();
    args.push(limits.max_pixels.to_string().into());
    args.push("-i".into());
    args.push(file_url(path));
    args
}

/// The prefix `file:` keeps ffmpeg from reading a name as an option, protocol or image sequence.
pub(super) fn file_url(path: &Path) -> OsString {
    let mut url = OsString::from("file:");
    url.push(path);
    url
}

/// An ffmpeg command that reads no terminal and prints only errors.
pub(super) fn ffmpeg() -> FfmpegCommand {
    let mut command = FfmpegCommand::new_with_path(ffmpeg_path());
    command.args(["-hide_banner", "-nostdin", "-nostats", "-loglevel", "level+error"]);
    tame(command.as_inner_mut());
    command
}

/// An ffprobe command that prints only errors, with its output piped.
pub(super) fn ffprobe() -> Command {
    let mut command = Command::new(ffprobe_path());
    command.args(["-hide_banner", "-loglevel", "level+error"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    tame(&mut command);
    command
}

/// Limits malloc arenas: each reserves address space, which the memory limit counts. With one arena per core, a large
/// machine would exceed the limit on a small video.
fn tame(command: &mut Command) {
    command.env("MALLOC_ARENA_MAX", "2").env_remove("FFREPORT");
}

/// Whether ffmpeg runs. Blocks until it has printed its version.
pub fn can_decode() -> bool {
    let mut ask = Command::new(ffmpeg_path());
    ask.arg("-version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ask.status().is_ok_and(|status| status.success())
}

/// Path of ffmpeg: `REPRISE_FFMPEG`, else a file beside the binary, else `ffmpeg` in `PATH`.
pub fn ffmpeg_path() -> PathBuf {
    env::var_os("REPRISE_FFMPEG").map_or_else(ffmpeg_sidecar::paths::ffmpeg_path, PathBuf::from)
}

fn ffprobe_path() -> PathBuf {
    env::var_os("REPRISE_FFPROBE").map_or_else(ffmpeg_sidecar::ffprobe::ffprobe_path, PathBuf::from)
}

/// The option that keeps every frame with its own time: `-fps_mode` since ffmpeg 5.1, `-vsync` before.
pub(super) fn frame_rate_mode() -> &'static str {
    static MODE: OnceLock<&str> = OnceLock::new();
    MODE.get_or_init(|| {
        let output = Command::new(ffmpeg_path()).arg("-version").stdin(Stdio::null()).output();
        let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
        if knows_fps_mode(&text) { "-fps_mode" } else { "-vsync" }
    })
}

/// Builds without a release number (`N-109...-g...`) count as recent.
fn knows_fps_mode(version: &str) -> bool {
    let release = version.strip_prefix("ffmpeg version ").unwrap_or("").trim_start_matches('n');
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (5, 1),
        _ => true,
    }
}

/// A child process. Dropping this kills and reaps it, a watchdog kills it after the time limit, and a thread reads its
/// standard error.
pub(super) struct Running {
    process: Arc<Mutex<Process>>,
    stdout: Option<ChildStdout>,
    log: Arc<Mutex<Log>>,
    log_reader: Option<JoinHandle<()>>,
    watch: Arc<Watch>,
    watchdog: Option<Watchdog>,
}

/// Standard output of a child process.
pub(super) struct Output {
    stdout: ChildStdout,
    watch: Arc<Watch>,
}

impl Read for Output {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.watch.awaiting(|| self.stdout.read(buffer))
    }
}

enum Process {
    Ffmpeg(FfmpegChild),
    Ffprobe(Child),
}

impl Watched for Process {
    fn child(&mut self) -> &mut Child {
        match self {
            Process::Ffmpeg(child) => child.as_inner_mut(),
            Process::Ffprobe(child) => child,
        }
    }
}

/// The result of a finished run.
pub(super) struct Finished {
    pub(super) status: Option<ExitStatus>,
    pub(super) log: Log,
    pub(super) killed: Option<Killed>,
}

/// Error lines of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Log {
    /// The first few, shortened, without level and component.
    pub(super) errors: Vec<String>,
    /// Number of error lines.
    pub(super) count: u64,
}

impl Running {
    pub(super) fn ffmpeg(mut command: FfmpegCommand, limits: &Limits) -> Result<Running, VideoError> {
        let mut child = command.spawn().map_err(|e| not_started("ffmpeg", e))?;
        drop(child.take_stdin());
        let (stdout, stderr) = (child.take_stdout(), child.take_stderr());
        Ok(Running::watch(Process::Ffmpeg(child), stdout, stderr, limits))
    }

    pub(super) fn ffprobe(mut command: Command, limits: &Limits) -> Result<Running, VideoError> {
        let mut child = command.spawn().map_err(|e| not_started("ffprobe", e))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        Ok(Running::watch(Process::Ffprobe(child), stdout, stderr, limits))
    }

    fn watch(
        mut process: Process,
        stdout: Option<ChildStdout>,
        stderr: Option<ChildStderr>,
        limits: &Limits,
    ) -> Running {
        limit_memory(process.child(), limits.memory_bytes);
        if let Some(stdout) = &stdout {
            widen(stdout);
        }
        let process = Arc::new(Mutex::new(process));
        let log = Arc::new(Mutex::new(Log::default()));
        let watch = Arc::new(Watch::default());
        let log_reader = stderr.map(|stderr| {
            let log = Arc::clone(&log);
            thread::spawn(move || read_log(stderr, &log))
        });
        let watchdog = Watchdog::start(Arc::clone(&process), Arc::clone(&watch), limits);
        Running { process, stdout, log, log_reader, watch, watchdog: Some(watchdog) }
    }

    /// Takes the child's standard output; `None` after the first call.
    pub(super) fn take_stdout(&mut self) -> Option<Output> {
        let watch = Arc::clone(&self.watch);
        self.stdout.take().map(|stdout| Output { stdout, watch })
    }

    /// Closes standard output, unless taken, and waits for the child.
    pub(super) fn finish(mut self) -> Finished {
        drop(self.stdout.take());
        let status = self.watch.awaiting(|| self.wait());
        self.join();
        let log = std::mem::take(&mut *lock(&self.log));
        Finished { status, log, killed: self.watch.killed() }
    }

    /// Reads all of standard output, at most `max_bytes`, and waits.
    pub(super) fn output(mut self, max_bytes: u64) -> (Vec<u8>, Finished) {
        let mut bytes = Vec::new();
        if let Some(stdout) = self.take_stdout() {
            // A killed child leaves a short answer; its log gives the reason.
            let _ = stdout.take(max_bytes).read_to_end(&mut bytes);
        }
        (bytes, self.finish())
    }

    /// Polls instead of blocking, so that the watchdog can lock the process to kill it.
    fn wait(&self) -> Option<ExitStatus> {
        let mut pause = Duration::from_micros(200);
        loop {
            match lock(&self.process).child().try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => thread::sleep(pause),
                Err(_) => return None,
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    fn join(&mut self) {
        drop(self.watchdog.take());
        if let Some(reader) = self.log_reader.take() {
            let _ = reader.join();
        }
    }

    #[cfg(test)]
    pub(super) fn pid(&self) -> u32 {
        lock(&self.process).child().id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        {
            let mut process = lock(&self.process);
            let child = process.child();
            if matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
        self.join();
    }
}

impl Finished {
    /// The limit that ended the run, if any. ffmpeg reports a lack of memory in several ways.
    pub(super) fn over_limit(&self, limits: &Limits) -> Option<VideoError> {
        let mebibytes = limits.memory_bytes >> 20;
        match self.killed {
            Some(Killed::TooLong) => {
                let seconds = limits.wall_clock.as_secs();
                return Some(VideoError::OverLimit(format!("reading it took longer than {seconds} s")));
            }
            Some(Killed::Stalled) => {
                let seconds = limits.stall.as_secs();
                return Some(VideoError::OverLimit(format!("reading it made no progress for {seconds} s")));
            }
            None => {}
        }
        match self.status.and_then(|status| status.code()) {
            Some(0) => None,
            // The loader's exit code: the program itself did not fit.
            Some(127) => {
                Some(VideoError::Ffmpeg(format!("it did not start within {mebibytes} MiB of memory").into()))
            }
            None => Some(VideoError::OverLimit(format!(
                "ffmpeg broke down; {mebibytes} MiB of memory were allowed"
            ))),
            Some(_) if self.log.count == 0 => Some(VideoError::Ffmpeg(
                format!("it ended without a reason; {mebibytes} MiB of memory were allowed").into(),
            )),
            Some(_) => self.log.errors.iter().find_map(|line| {
                let too_large =
                    line.split_once("Picture size ").filter(|(_, rest)| rest.contains("max pixel count"));
                if let Some((size, _)) = too_large.and_then(|(_, rest)| rest.split_once(' ')) {
                    let most = limits.max_pixels;
                    return Some(VideoError::OverLimit(format!(
                        "its pictures have {size} pixels, at most {most} are accepted"
                    )));
                }
                let no_memory = line.contains("allocate memory");
                no_memory.then(|| {
                    VideoError::OverLimit(format!("reading it took more than {mebibytes} MiB of memory"))
                })
            }),
        }
    }
}

fn not_started(program: &str, error: io::Error) -> VideoError {
    VideoError::Ffmpeg(match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{program} was not found; install ffmpeg, or name it with REPRISE_{}",
            program.to_uppercase()
        )
        .into(),
        _ => Cause::in_context(program, error),
    })
}

fn read_log(mut stderr: ChildStderr, log: &Mutex<Log>) {
    let mut parser = FfmpegLogParser::new((&mut stderr).take(PARSED_LOG_BYTES));
    loop {
        match parser.parse_next_event() {
            Ok(FfmpegEvent::LogEOF) => break,
            Ok(FfmpegEvent::Log(LogLevel::Error | LogLevel::Fatal, line)) => lock(log).push(&line),
            // Not an error line, or one that the parser takes for another event.
            Ok(_) | Err(_) => {}
        }
    }
    drop(parser);
    let _ = io::copy(&mut stderr, &mut io::sink());
}

impl Log {
    fn push(&mut self, line: &str) {
        self.count += 1;
        if self.errors.len() < KEPT_LINES {
            self.errors.push(message(line).chars().take(300).collect());
        }
    }
}

/// Removes the bracketed prefixes: `[h264 @ 0x55] [error] text` becomes `text`.
fn message(line: &str) -> &str {
    let mut rest = line.trim();
    while let Some((_, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
        rest = after.trim_start();
    }
    rest
}

#[cfg(target_os = "linux")]
fn limit_memory(child: &Child, bytes: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
    // Fails only if the child has ended; then no limit is needed.
    if let Some(pid) = Pid::from_raw(child.id() as i32) {
        let _ = prlimit(Some(pid), Resource::As, limit);
    }
}

#[cfg(not(target_os = "linux"))]
fn limit_memory(_: &Child, _: u64) {}

/// Enlarges the pipe, so that ffmpeg decodes on while the reader handles the last frames. Best effort.
#[cfg(target_os = "linux")]
fn widen(stdout: &ChildStdout) {
    let _ = rustix::pipe::fcntl_setpipe_size(stdout, 1 << 20);
}

#[cfg(not(target_os = "linux"))]
fn widen(_: &ChildStdout) {}

/// Ignores poisoning: no panic leaves the data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds `name value` to an argument list.
pub(super) fn option(args: &mut Vec<OsString>, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
    args.push(name.as_ref().to_owned());
    args.push(value.as_ref().to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_their_brackets() {
        for (line, expected) in [
            ("[h264 @ 0x55d] [error] Invalid NAL unit size", "Invalid NAL unit size"),
            ("[error] file:x.mp4: Invalid data", "file:x.mp4: Invalid data"),
            ("plain", "plain"),
            ("[unclosed", "[unclosed"),
        ] {
            assert_eq!(message(line), expected);
        }
    }

    #[test]
    fn fps_mode_is_used_from_5_1_on() {
        for (version, expected) in [
            ("ffmpeg version 5.1.9-0+deb12u1 Copyright", true),
            ("ffmpeg version 4.4.2-0ubuntu0.22.04.1 Copyright", false),
            ("ffmpeg version n7.1 Copyright", true),
            ("ffmpeg version 5.0 Copyright", false),
            ("ffmpeg version N-112233-gabcdef Copyright", true),
            ("ffmpeg version 8.0 Copyright", true),
        ] {
            assert_eq!(knows_fps_mode(version), expected, "{version}");
        }
    }

    fn endless() -> Running {
        let mut command = ffmpeg();
        command.args(["-f", "lavfi", "-i", "testsrc=size=320x240", "-f", "rawvideo", "-"]);
        Running::ffmpeg(command, &Limits::default()).unwrap()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_dropped_child_is_dead_and_reaped() {
        let mut running = endless();
        let mut byte = [0];
        running.take_stdout().unwrap().read_exact(&mut byte).unwrap();
        let folder = format!("/proc/{}", running.pid());
        assert!(Path::new(&folder).exists());
        drop(running);
        assert!(!Path::new(&folder).exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_can_not_take_more_memory_than_allowed() {
        let running = endless();
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.pid())).unwrap();
        let line = limits.lines().find(|line| line.starts_with("Max address space")).unwrap();
        assert_eq!(line.split_whitespace().nth(3), Some((4_u64 << 30).to_string().as_str()));
    }

    #[test]
    fn a_child_over_its_time_is_killed_and_the_limit_named() {
        let mut command = ffmpeg();
        command.args(["-f", "lavfi", "-i", "testsrc=size=320x240", "-f", "null", "-"]);
        let limits = Limits { wall_clock: Duration::from_millis(300), ..Limits::default() };
        let finished = Running::ffmpeg(command, &limits).unwrap().finish();
        assert_eq!(finished.killed, Some(Killed::TooLong));
        assert!(
            matches!(finished.over_limit(&limits), Some(VideoError::OverLimit(why)) if why.contains("longer than"))
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_child_that_stalls_is_killed_and_the_stall_named() {
        let mut sleeper = Command::new("sleep");
        sleeper.arg("1000").stdout(Stdio::piped()).stderr(Stdio::piped());
        let limits = Limits { stall: Duration::from_secs(1), ..Limits::default() };
        let (_, finished) = Running::ffprobe(sleeper, &limits).unwrap().output(100);
        assert_eq!(finished.killed, Some(Killed::Stalled));
        assert!(
            matches!(finished.over_limit(&limits), Some(VideoError::OverLimit(why)) if why.contains("no progress"))
        );
    }

    #[test]
    fn a_missing_program_is_named_with_the_way_out() {
        let error = Running::ffprobe(Command::new("/no/such/ffprobe"), &Limits::default()).err();
        assert!(
            matches!(error, Some(VideoError::Ffmpeg(why)) if why.to_string().contains("REPRISE_FFPROBE"))
        );
    }
}
