//! Tesseract: which one is installed, what languages it has, and its answer about pictures.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::ffmpeg::{Program, tesseract_path};
use super::limits::Limits;
use super::run::Run;
use super::running::{Finished, Running};
use crate::Cause;

/// The most bytes of an answer. A page of a thousand words takes 60 kB.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
/// Longest run: a batch of large pictures full of noise takes some seconds.
const LONGEST_RUN: Duration = Duration::from_secs(300);
/// Largest address space, in bytes: the program and its libraries take 0.3 GB, a large language 0.2 GB.
const MEMORY_BYTES: u64 = 2 << 30;
/// How the lines begin that it writes about pages that it could read.
const CHATTER: [&str; 4] = ["Page ", "Estimating resolution", "Empty page", "Detected "];
/// More languages than anybody reads at once.
const MOST_LANGUAGES: usize = 8;

/// The Tesseract that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledTesseract {
    /// Where it was found.
    pub path: PathBuf,
    /// Its version as it prints it, such as `5.3.0`.
    pub version: String,
    /// The folder of its languages.
    pub data: PathBuf,
    /// The languages in it, such as `eng`, in order.
    pub languages: Vec<String>,
}

/// Why text cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TesseractError {
    /// It is not installed, or can't be run.
    #[error("tesseract can't be run: {0}; install tesseract-ocr, or name it with REPRISE_TESSERACT")]
    Missing(Cause),
    /// A language is unknown to it.
    #[error("tesseract has no language {wanted:?}; installed are {installed}")]
    NoLanguage {
        /// The language that was asked for.
        wanted: String,
        /// Those that are installed.
        installed: String,
    },
    /// It was stopped, or broke down.
    #[error("tesseract failed: {0}")]
    Failed(Cause),
    /// The list of languages can't be read.
    #[error("languages are up to 8 names such as `eng`, joined with `+`")]
    NotAList,
}

/// The Tesseract that is installed. Blocks until it has listed its languages.
///
/// # Errors
/// [`TesseractError::Missing`] if there is none.
pub fn installed_tesseract() -> Result<InstalledTesseract, TesseractError> {
    let path = tesseract_path();
    let version = said(&path, "--version")?;
    let version = version.lines().next().and_then(|line| line.strip_prefix("tesseract "));
    let version = version.ok_or_else(|| TesseractError::Missing("it is no tesseract".into()))?;
    let version = version.trim_start_matches('v').trim().to_owned();
    let list = said(&path, "--list-langs")?;
    let data =
        data_folder(&list).ok_or_else(|| TesseractError::Missing("its languages are not found".into()))?;
    let mut languages: Vec<String> = list
        .lines()
        .skip(1)
        .map(str::trim)
        .filter(|it| is_name(it) && *it != "osd")
        .map(str::to_owned)
        .collect();
    languages.sort();
    Ok(InstalledTesseract { path, version, data, languages })
}

fn said(path: &Path, argument: &str) -> Result<String, TesseractError> {
    let output = Command::new(path).arg(argument).stdin(Stdio::null()).output();
    let output = output.map_err(|error| TesseractError::Missing(error.into()))?;
    // Version 3 prints to standard error.
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    if !output.status.success() {
        return Err(TesseractError::Missing(output.status.to_string().into()));
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// The folder that the list of languages names. Version 4 does not name it.
fn data_folder(list: &str) -> Option<PathBuf> {
    const USUAL: [&str; 6] = [
        "/usr/share/tesseract-ocr/5/tessdata",
        "/usr/share/tesseract-ocr/4.00/tessdata",
        "/usr/share/tessdata",
        "/usr/share/tesseract/tessdata",
        "/usr/local/share/tessdata",
        "/opt/homebrew/share/tessdata",
    ];
    let named = list.lines().next().and_then(|line| line.split('"').nth(1)).map(PathBuf::from);
    let of_variable = env::var_os("TESSDATA_PREFIX").map(PathBuf::from);
    let usual = USUAL.iter().map(PathBuf::from);
    named.into_iter().chain(of_variable).chain(usual).find(|folder| folder.is_dir())
}

/// Whether this is the name of a language: it becomes part of a path.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    name.len() <= 64 && name.split('/').count() <= 2 && name.split('/').all(is_part)
}

impl InstalledTesseract {
    /// A reader of these languages, such as `eng+deu`.
    ///
    /// # Errors
    /// [`TesseractError`] if the list is none, or names a language that is not installed.
    pub fn reading(self, languages: &str) -> Result<Tesseract, TesseractError> {
        let names: Vec<&str> = languages.split('+').map(str::trim).collect();
        if names.len() > MOST_LANGUAGES || !names.iter().all(|name| is_name(name)) {
            return Err(TesseractError::NotAList);
        }
        if let Some(wanted) = names.iter().find(|name| !self.languages.iter().any(|it| it == *name)) {
            let installed = match self.languages.is_empty() {
                true => "none".into(),
                false => self.languages.join(", "),
            };
            return Err(TesseractError::NoLanguage { wanted: (*wanted).to_owned(), installed });
        }
        let languages = names.join("+");
        Ok(Tesseract { installed: self, languages })
    }
}

/// Reads text with the installed Tesseract in chosen languages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tesseract {
    installed: InstalledTesseract,
    languages: String,
}

impl Tesseract {
    /// Finds it and its languages, such as `eng+deu`. Blocks for a moment.
    ///
    /// # Errors
    /// As [`installed_tesseract`] and [`InstalledTesseract::reading`].
    pub fn find(languages: &str) -> Result<Tesseract, TesseractError> {
        installed_tesseract()?.reading(languages)
    }

    /// What reads, such as `tesseract 5.3.0 eng`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("tesseract {} {}", self.installed.version, self.languages)
    }

    /// The languages, such as `eng+deu`.
    #[must_use]
    pub fn languages(&self) -> &str {
        &self.languages
    }

    /// Tesseract's answer about the pages of a TIFF file, as tab-separated values. Text is looked for anywhere on a
    /// page. Blocks.
    ///
    /// # Errors
    /// [`TesseractError`] if it can't be run, breaks down or takes too long.
    pub(crate) fn table(&self, pages: Vec<u8>) -> Result<Vec<u8>, TesseractError> {
        let limits = Limits {
            wall_clock: LONGEST_RUN,
            // It writes only when a page is done.
            stall: LONGEST_RUN,
            memory_bytes: MEMORY_BYTES,
            ..Limits::default()
        };
        let mut running =
            Running::start(self.run(), &limits).map_err(|error| TesseractError::Missing(error.into()))?;
        let stdin = running.take_stdin();
        let feeding = thread::spawn(move || {
            // If Tesseract breaks off, its exit gives the reason.
            let _ = stdin.map(|mut stdin| stdin.write_all(&pages));
        });
        let (answer, finished) = running.output(MAX_ANSWER_BYTES);
        let _ = feeding.join();
        match why_failed(&finished) {
            Some(why) => Err(TesseractError::Failed(why.into())),
            None if answer.len() as u64 >= MAX_ANSWER_BYTES => {
                Err(TesseractError::Failed("it answered with more text than pictures hold".into()))
            }
            None => Ok(answer),
        }
    }

    fn run(&self) -> Run {
        let mut run = Run::of(Program::Tesseract);
        run.option("--tessdata-dir", &self.installed.data);
        run.args(["-l", &self.languages, "--psm", "11", "--oem", "1"]);
        run.args(["-c", "tessedit_create_tsv=1", "stdin", "stdout"]);
        run.takes_stdin();
        // Some languages load their vertical form too.
        let names = self.languages.split('+').flat_map(|name| [name.to_owned(), format!("{name}_vert")]);
        let files = names.map(|name| self.installed.data.join(format!("{name}.traineddata")));
        files.filter(|file| file.is_file()).for_each(|file| run.may_read(&file));
        run
    }
}

fn why_failed(finished: &Finished) -> Option<String> {
    if finished.killed.is_some() {
        return Some(format!("it took longer than {} s", LONGEST_RUN.as_secs()));
    }
    if finished.status.is_some_and(|status| status.success()) {
        return None;
    }
    let is_reason = |line: &&String| !CHATTER.iter().any(|start| line.starts_with(start));
    let said = finished.log.errors.iter().rfind(is_reason).cloned();
    Some(said.unwrap_or_else(|| match finished.status {
        Some(status) => format!("{status}; {} MiB of memory were allowed", MEMORY_BYTES >> 20),
        None => "its end is unknown".into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed() -> InstalledTesseract {
        InstalledTesseract {
            path: "tesseract".into(),
            version: "5.3.0".into(),
            data: "/data".into(),
            languages: vec!["deu".into(), "eng".into()],
        }
    }

    #[test]
    fn languages_are_checked() {
        let missing = |wanted: &str| {
            Err(TesseractError::NoLanguage { wanted: wanted.into(), installed: "deu, eng".into() })
        };
        for (languages, expected) in [
            ("eng", Ok("tesseract 5.3.0 eng")),
            ("eng + deu", Ok("tesseract 5.3.0 eng+deu")),
            ("fra", missing("fra")),
            ("eng+fra", missing("fra")),
            ("", Err(TesseractError::NotAList)),
            ("../eng", Err(TesseractError::NotAList)),
            ("eng+", Err(TesseractError::NotAList)),
            ("eng+eng+eng+eng+eng+eng+eng+eng+eng", Err(TesseractError::NotAList)),
        ] {
            let found = installed().reading(languages).map(|it| it.name());
            assert_eq!(found, expected.map(str::to_owned), "{languages}");
        }
    }

    #[test]
    fn the_folder_of_languages_is_read_from_the_list() {
        let here = env::temp_dir();
        let list = format!("List of available languages in \"{}\" (2):\neng\nosd\n", here.display());
        assert_eq!(data_folder(&list), Some(here));
    }
}
