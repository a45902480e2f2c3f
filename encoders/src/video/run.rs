//! Command lines of ffmpeg and ffprobe: their arguments, and the files that they may open.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::VideoError;
use super::ffmpeg::Program;
use super::limits::Limits;
use super::sandbox;

/// Demuxers that read one self-contained media file. Playlists and formats that name other files (hls, dash, concat,
/// image sequences) are absent on purpose. Audio formats are present only for a better error message.
const FORMATS: &str = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,flv,live_flv,asf,asf_o,ogg,gif,apng,\
h261,h263,h264,hevc,vvc,av1,obu,ivf,m4v,mjpeg,mxf,mxg,nut,rm,dv,wtv,vc1,dirac,cavsvideo,yuv4mpegpipe,\
mp3,wav,flac,aac,ac3,eac3,aiff,amr,w64,ape,wv";

/// One run of ffmpeg or ffprobe: its arguments, and the only files that the sandbox lets it open.
pub(super) struct Run {
    pub(super) program: Program,
    args: Vec<OsString>,
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    /// Whether its standard input is a pipe from this process.
    is_fed: bool,
}

impl Run {
    /// ffmpeg, which reads no terminal and prints only errors.
    pub(super) fn ffmpeg() -> Run {
        let mut run = Run::of(Program::Ffmpeg);
        run.args(["-hide_banner", "-nostdin", "-nostats", "-loglevel", "level+error"]);
        run
    }

    /// ffprobe, which prints only errors beside its answer.
    pub(super) fn ffprobe() -> Run {
        let mut run = Run::of(Program::Ffprobe);
        run.args(["-hide_banner", "-loglevel", "level+error"]);
        run
    }

    /// The program without arguments.
    pub(super) fn of(program: Program) -> Run {
        Run { program, args: Vec::new(), reads: Vec::new(), writes: Vec::new(), is_fed: false }
    }

    /// Adds arguments. Those that name files belong to [`Run::input`] and [`Run::output`].
    pub(super) fn args(&mut self, args: impl IntoIterator<Item = impl Into<OsString>>) {
        self.args.extend(args.into_iter().map(Into::into));
    }

    /// Adds `name value`.
    pub(super) fn option(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        self.args([name.as_ref(), value.as_ref()]);
    }

    /// Opens `path` and no other file.
    pub(super) fn input(&mut self, path: &Path, limits: &Limits) {
        self.args(["-protocol_whitelist", "file,pipe", "-format_whitelist", FORMATS]);
        self.option("-max_pixels", limits.max_pixels.to_string());
        self.option("-i", file_url(path));
        self.may_read(path);
    }

    /// Opens the still image `path` with ffmpeg's `demuxer`, and no other file.
    pub(super) fn image(&mut self, path: &Path, demuxer: &str, limits: &Limits) {
        self.args(["-protocol_whitelist", "file,pipe", "-format_whitelist", demuxer, "-f", demuxer]);
        self.option("-max_pixels", limits.max_pixels.to_string());
        self.option("-i", file_url(path));
        self.may_read(path);
    }

    /// Gives the program a pipe from this process as standard input.
    pub(super) fn takes_stdin(&mut self) {
        self.is_fed = true;
    }

    /// Lets the program read a file that an input names.
    pub(super) fn may_read(&mut self, path: &Path) {
        self.reads.push(path.to_owned());
    }

    /// Writes to `path`, and replaces what is there.
    pub(super) fn output(&mut self, path: &Path) {
        self.args([OsString::from("-y"), file_url(path)]);
        self.writes.push(path.to_owned());
    }

    /// The command, in the sandbox if this process has one.
    ///
    /// # Errors
    /// [`VideoError::Ffmpeg`] if the sandbox is required and missing, or the program is not there.
    pub(super) fn command(self, limits: &Limits) -> Result<Command, VideoError> {
        let policy = reprise_sandbox::Policy {
            read: self.reads,
            write: self.writes,
            folders: Vec::new(),
            limits: sandbox::limits(limits),
        };
        let mut command = sandbox::command(self.program, &self.program.path(), &policy)?;
        // Each arena of malloc reserves address space, which the memory limit counts. With one arena per core, a large
        // machine would exceed the limit on a small video.
        command.env("MALLOC_ARENA_MAX", "2").env_remove("FFREPORT");
        if self.program == Program::Tesseract {
            // Its threads cost more than they gain.
            command.env("OMP_THREAD_LIMIT", "1");
        }
        let stdin = if self.is_fed { Stdio::piped() } else { Stdio::null() };
        command.args(self.args).stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }
}

/// The prefix `file:` keeps ffmpeg from reading a name as an option, protocol or image sequence.
pub(super) fn file_url(path: &Path) -> OsString {
    let mut url = OsString::from("file:");
    url.push(path);
    url
}
