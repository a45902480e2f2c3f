//! A folder with an input, a secret beside it and places for outputs, and programs that run there.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::Duration;

use reprise_sandbox::{Launcher, Limits, Mode, Policy, Spawner, support};
use tempfile::TempDir;

pub(crate) const PROBE: &str = env!("CARGO_BIN_EXE_reprise-sandbox-probe");

/// Whether the tests can judge anything here. Says so where they can't.
pub(crate) fn has_sandbox() -> bool {
    let complete = support().is_complete();
    if !complete {
        println!("skipped: {}", support());
    }
    complete
}

pub(crate) fn launcher(mode: Mode) -> Launcher {
    Launcher::new(PROBE, mode)
}

/// What `work` gives before a deadline.
pub(crate) fn soon<Value: Send + 'static>(work: impl FnOnce() -> Value + Send + 'static) -> Value {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(Duration::from_secs(60)).expect("it takes too long")
}

/// One test's own folder.
pub(crate) struct Scene {
    folder: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(scene.path("folder")).unwrap();
        fs::write(scene.path("input"), "given").unwrap();
        fs::write(scene.path("secret"), "hidden").unwrap();
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path as an argument.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().into()
    }

    /// What lies in the scene's folder.
    pub(crate) fn names(&self) -> Vec<OsString> {
        fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    /// `input` may be read, `output` and `folder` written.
    pub(crate) fn policy(&self) -> Policy {
        Policy {
            read: vec![self.path("input")],
            write: vec![self.path("output")],
            folders: vec![self.path("folder")],
            limits: Limits::default(),
        }
    }

    /// Runs a program under a policy, in the folder.
    pub(crate) fn run<Word: AsRef<OsStr>>(&self, mode: Mode, program: &str, words: &[Word]) -> Output {
        self.run_under(mode, &self.policy(), program, words)
    }

    pub(crate) fn run_under<Word: AsRef<OsStr>>(
        &self,
        mode: Mode,
        policy: &Policy,
        program: &str,
        words: &[Word],
    ) -> Output {
        let mut command = launcher(mode).command(Path::new(program), policy).unwrap();
        command.args(words).current_dir(self.folder.path());
        Spawner::shared().run(command).unwrap()
    }

    /// What the probe says that an action came to.
    pub(crate) fn act(&self, mode: Mode, action: &str) -> String {
        let words: Vec<&str> = action.split_whitespace().collect();
        said(&self.run(mode, PROBE, &words))
    }
}

pub(crate) fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&text).trim().into()
}

/// Whether ffmpeg is installed. Says so where it isn't.
pub(crate) fn has_ffmpeg() -> bool {
    static HAS: LazyLock<bool> = LazyLock::new(|| ["ffmpeg", "ffprobe"].into_iter().all(is_installed));
    if !*HAS {
        println!("skipped: ffmpeg is not installed");
    }
    *HAS
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("-version").output().is_ok_and(|output| output.status.success())
}

/// Makes a file by ffmpeg outside the sandbox, from words in which `@` stands for the scene's folder.
pub(crate) fn make(scene: &Scene, line: &str) {
    let output = scene.run(Mode::Off, "ffmpeg", &ffmpeg_words(scene, line));
    assert!(output.status.success(), "{line}: {}", said(&output));
}

/// The words of a line for ffmpeg. `@` stands for the scene's folder, `''` for an empty word.
pub(crate) fn ffmpeg_words(scene: &Scene, line: &str) -> Vec<String> {
    let folder = scene.folder.path().to_str().unwrap();
    let start = ["-hide_banner", "-nostdin", "-loglevel", "error", "-bitexact", "-y"].map(String::from);
    start
        .into_iter()
        .chain(line.split_whitespace().map(|word| word.replace('@', folder).replace("''", "")))
        .collect()
}
