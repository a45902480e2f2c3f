//! A running ffmpeg, ffprobe or tesseract: its output, its errors, and limits on its time and memory.

use crate::Cause;
use std::io::{self, Read};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ffmpeg_sidecar::event::{FfmpegEvent, LogLevel};
use ffmpeg_sidecar::log_parser::FfmpegLogParser;
use reprise_sandbox::Spawner;

use super::error::VideoError;
use super::ffmpeg::Program;
use super::limits::Limits;
use super::run::Run;
use super::watchdog::{Killed, Watch, Watchdog};

/// Largest number of error lines kept of one run; later ones are only counted.
const KEPT_LINES: usize = 20;
/// Largest number of bytes of the log that are parsed; the rest is discarded.
const PARSED_LOG_BYTES: u64 = 1 << 20;
/// How the line begins with which a sandbox says why it could not start the program.
const SANDBOX_SAYS: &str = "reprise sandbox: ";

/// A child process. Dropping this kills and reaps it, a watchdog kills it after the time limit, and a thread reads its
/// standard error.
pub(super) struct Running {
    process: Arc<Mutex<Child>>,
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
    /// Starts a program. It dies with this process, even if that is killed.
    ///
    /// # Errors
    /// [`VideoError::Ffmpeg`] if it can't be started.
    pub(super) fn start(run: Run, limits: &Limits) -> Result<Running, VideoError> {
        let program = run.program;
        let command = run.command(limits)?;
        let child = Spawner::shared().spawn(command).map_err(|error| not_started(program, error))?;
        Ok(Running::watch(child, program, limits))
    }

    fn watch(mut child: Child, program: Program, limits: &Limits) -> Running {
        limit_memory(&child, limits.memory_bytes);
        give_way(&child);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        if let Some(stdout) = &stdout {
            widen(stdout);
        }
        let process = Arc::new(Mutex::new(child));
        let log = Arc::new(Mutex::new(Log::default()));
        let watch = Arc::new(Watch::default());
        let log_reader = stderr.map(|stderr| {
            let log = Arc::clone(&log);
            thread::spawn(move || read_log(stderr, program, &log))
        });
        let watchdog = Watchdog::start(Arc::clone(&process), Arc::clone(&watch), limits);
        Running { process, stdout, log, log_reader, watch, watchdog: Some(watchdog) }
    }

    /// Takes the child's standard output; `None` after the first call.
    pub(super) fn take_stdout(&mut self) -> Option<Output> {
        let watch = Arc::clone(&self.watch);
        self.stdout.take().map(|stdout| Output { stdout, watch })
    }

    /// Takes the pipe to the child's standard input; `None` after the first call, and if it has none.
    pub(super) fn take_stdin(&mut self) -> Option<ChildStdin> {
        lock(&self.process).stdin.take()
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
            match lock(&self.process).try_wait() {
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
        lock(&self.process).id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        {
            let mut child = lock(&self.process);
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
        if let Some(line) = self.log.errors.first().filter(|line| line.starts_with(SANDBOX_SAYS)) {
            return Some(VideoError::Ffmpeg(line.clone().into()));
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
            Some(_) => self.named_limit(limits),
        }
    }

    /// The limit that an error line names. ffprobe ends without an error code after one.
    pub(super) fn named_limit(&self, limits: &Limits) -> Option<VideoError> {
        let mebibytes = limits.memory_bytes >> 20;
        self.log.errors.iter().find_map(|line| {
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
        })
    }
}

fn not_started(program: Program, error: io::Error) -> VideoError {
    match error.kind() {
        io::ErrorKind::NotFound => program.not_found(),
        _ => VideoError::Ffmpeg(Cause::in_context(program.name(), error)),
    }
}

fn read_log(mut stderr: ChildStderr, program: Program, log: &Mutex<Log>) {
    let mut parser = FfmpegLogParser::new((&mut stderr).take(PARSED_LOG_BYTES));
    loop {
        match parser.parse_next_event() {
            Ok(FfmpegEvent::LogEOF) => break,
            Ok(FfmpegEvent::Log(LogLevel::Error | LogLevel::Fatal, line)) => lock(log).push(&line),
            // Tesseract gives its lines no level.
            Ok(FfmpegEvent::Log(_, line))
                if line.starts_with(SANDBOX_SAYS) || program == Program::Tesseract =>
            {
                lock(log).push(&line);
            }
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

/// How much less processor time a decoder claims than the service: about a third, where both want a core.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// Lets searches go before decoding where they compete for a core. Best effort.
#[cfg(target_os = "linux")]
fn give_way(child: &Child) {
    use rustix::process::{Pid, setpriority_process};
    if let Some(pid) = Pid::from_raw(child.id() as i32) {
        let _ = setpriority_process(Some(pid), NICENESS);
    }
}

#[cfg(not(target_os = "linux"))]
fn give_way(_: &Child) {}

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::{Command, Stdio};

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

    fn endless() -> Running {
        let mut run = Run::ffmpeg();
        run.args(["-f", "lavfi", "-i", "testsrc=size=320x240", "-f", "rawvideo", "-"]);
        Running::start(run, &Limits::default()).unwrap()
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
        let mut run = Run::ffmpeg();
        run.args(["-f", "lavfi", "-i", "testsrc=size=320x240", "-f", "null", "-"]);
        let limits = Limits { wall_clock: Duration::from_millis(300), ..Limits::default() };
        let finished = Running::start(run, &limits).unwrap().finish();
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
        let (_, finished) = Running::watch(sleeper.spawn().unwrap(), Program::Ffmpeg, &limits).output(100);
        assert_eq!(finished.killed, Some(Killed::Stalled));
        assert!(
            matches!(finished.over_limit(&limits), Some(VideoError::OverLimit(why)) if why.contains("no progress"))
        );
    }

    #[test]
    fn a_missing_program_is_named_with_the_way_out() {
        let error = not_started(Program::Ffprobe, io::ErrorKind::NotFound.into());
        assert!(matches!(error, VideoError::Ffmpeg(why) if why.to_string().contains("REPRISE_FFPROBE")));
    }
}
