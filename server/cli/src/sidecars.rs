//! Subtitle files beside videos: `NAME.srt` and `NAME.en.vtt` belong to `NAME.mp4`.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::outcome::Outcome;
use reprise_server::subtitles::{self, language};

/// State of a subtitle file that is attached to its video.
pub(crate) const ATTACHED: &str = "attached";

/// Matches subtitle files with videos.
#[derive(Debug, Default)]
pub(crate) struct Sidecars {
    beside: HashMap<PathBuf, Vec<PathBuf>>,
    owners: HashMap<PathBuf, PathBuf>,
}

impl Sidecars {
    /// The subtitle files of a video, in order of name.
    pub(crate) fn beside(&self, video: &Path) -> Vec<PathBuf> {
        self.beside.get(video).cloned().unwrap_or_default()
    }

    /// The first video that a subtitle file belongs to.
    pub(crate) fn owner_of(&self, subtitles: &Path) -> Option<PathBuf> {
        self.owners.get(subtitles).cloned()
    }
}

/// Whether a file has the name of a subtitle file.
pub(crate) fn is_one(file: &Path) -> bool {
    file.file_name().and_then(OsStr::to_str).is_some_and(language::is_subtitle_name)
}

/// Matches each subtitle file in the folders of `files` with the videos that it is named after.
pub(crate) fn of<'a>(files: impl Iterator<Item = &'a Path>) -> Sidecars {
    let mut by_stem: HashMap<(PathBuf, String), Vec<&Path>> = HashMap::new();
    let mut folders: Vec<PathBuf> = Vec::new();
    for file in files.filter(|file| !is_one(file)) {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let Some(stem) = file.file_stem().and_then(OsStr::to_str) else { continue };
        if !folders.contains(&folder) {
            folders.push(folder.clone());
        }
        by_stem.entry((folder, stem.to_owned())).or_default().push(file);
    }
    let mut sidecars = Sidecars::default();
    for folder in folders {
        for path in subtitle_files(&folder) {
            let Some(name) = path.file_name().and_then(OsStr::to_str) else { continue };
            // `week.1.srt` belongs to `week.1.mp4` rather than to `week.mp4`.
            let stems = [language::stem_of(name), language::of_file_name(name).0];
            let videos = stems.iter().find_map(|stem| by_stem.get(&(folder.clone(), (*stem).to_owned())));
            for video in videos.into_iter().flatten() {
                sidecars.beside.entry(video.to_path_buf()).or_default().push(path.clone());
                sidecars.owners.entry(path.clone()).or_insert_with(|| video.to_path_buf());
            }
        }
    }
    sidecars
}

fn subtitle_files(folder: &Path) -> Vec<PathBuf> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // A folder that can't be listed has none. The user named its files one by one; they report their own errors.
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_one(path)).collect();
    files.sort();
    files
}

/// Reason why a subtitle file can't be attached, if any.
pub(crate) fn unreadable(file: &Path) -> Option<String> {
    match std::fs::read(file) {
        Ok(bytes) => subtitles::parse(&bytes).err().map(|wrong| wrong.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

/// The result for a subtitle file of a folder.
pub(crate) async fn outcome(file: PathBuf, owner: Option<PathBuf>) -> Outcome {
    let Some(owner) = owner else {
        let reason = "there is no video beside these subtitles that they are named after";
        return Outcome::without_video(file, "skipped", reason.to_owned());
    };
    let looked = file.clone();
    let wrong = tokio::task::spawn_blocking(move || unreadable(&looked)).await;
    match wrong.unwrap_or_else(|panic| Some(panic.to_string())) {
        Some(wrong) => {
            Outcome::without_video(file, "skipped", format!("these subtitles can't be read: {wrong}"))
        }
        None => {
            let name = owner.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Outcome::without_video(file, ATTACHED, format!("sent with {name}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(files: &[&str], video: &str, expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = files.iter().map(|name| folder.path().join(name)).collect();
        paths.iter().for_each(|path| std::fs::write(path, "").unwrap());
        let sidecars = of(paths.iter().map(PathBuf::as_path));
        let found = sidecars.beside(&folder.path().join(video));
        let names: Vec<&str> = found.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, expected, "{video} among {files:?}");
        for path in &found {
            assert!(sidecars.owner_of(path).is_some());
        }
    }

    #[test]
    fn subtitles_go_with_the_video_that_they_are_named_after() {
        let files = ["a.mp4", "a.srt", "a.en.srt", "a.pt-BR.vtt", "b.srt", "ab.srt", "a.srt.txt"];
        check(&files, "a.mp4", &["a.en.srt", "a.pt-BR.vtt", "a.srt"]);
        check(&["🎬 data 🤗.mkv", "🎬 data 🤗.en.srt"], "🎬 data 🤗.mkv", &["🎬 data 🤗.en.srt"]);
        check(&["w.mp4", "w.no.mp4", "w.no.srt"], "w.no.mp4", &["w.no.srt"]);
        check(&["w.mp4", "w.no.mp4", "w.no.srt"], "w.mp4", &[]);
        check(&["a.mp4", "a.webm", "a.srt"], "a.webm", &["a.srt"]);
    }
}
