//! LoVR's own layout of files:
//!
//! ```text
//! all_clip.jsonl    {"path": "VID/VID-Scene-001.mp4", "cap": "..."}, one per caption; a clip's id is its file's name
//!                   without .mp4
//! all_video.jsonl   {"vid": "VID", "cap": "..."}
//! clips/            the clips, under their path or their file's name
//! ```
//!
//! The tables may lie in `caption_data/`, the clips in `video_data/long_video_clip/`, as published. A clip belongs to
//! the video with its folder's name, otherwise to the video whose id begins the clip's id.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// One line of all_clip.jsonl.
#[derive(Debug, Deserialize)]
struct ClipLine {
    path: String,
    cap: String,
}

/// One line of all_video.jsonl.
#[derive(Debug, Deserialize)]
struct VideoLine {
    vid: String,
    cap: String,
}

/// Texts and the ids of their clips or videos.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Captions {
    pub(super) ids: Vec<String>,
    pub(super) texts: Vec<String>,
}

/// A clip and its full video.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Clip {
    pub(super) id: String,
    pub(super) file: PathBuf,
    /// Index of its video; `None` if the video has no caption.
    pub(super) video: Option<usize>,
}

/// The benchmark.
#[derive(Debug)]
pub(super) struct Dataset {
    pub(super) clip_captions: Captions,
    pub(super) video_captions: Captions,
    /// Clips without duplicates, ordered by video, then by name.
    pub(super) clips: Vec<Clip>,
    /// Ids of the full videos, without duplicates.
    pub(super) videos: Vec<String>,
}

/// The captions of clips and of full videos.
///
/// # Errors
/// Unreadable tables.
pub(super) fn captions(folder: &Path) -> anyhow::Result<(Captions, Captions, Vec<String>)> {
    let clips: Vec<ClipLine> = lines(&table(folder, "all_clip.jsonl")?)?;
    let videos: Vec<VideoLine> = lines(&table(folder, "all_video.jsonl")?)?;
    let paths: Vec<String> = clips.iter().map(|line| line.path.clone()).collect();
    let of_clips = Captions {
        ids: paths.iter().map(|path| id(path).to_owned()).collect(),
        texts: clips.into_iter().map(|line| line.cap).collect(),
    };
    let (ids, texts) = videos.into_iter().map(|line| (line.vid, line.cap)).unzip();
    Ok((of_clips, Captions { ids, texts }, paths))
}

/// Reads the folder.
///
/// # Errors
/// Unreadable tables, or missing clips or videos.
pub(super) fn read(folder: &Path) -> anyhow::Result<Dataset> {
    let (clip_captions, video_captions, paths) = captions(folder)?;
    let mut videos: Vec<String> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for id in &video_captions.ids {
        if !numbers.contains_key(&id[..]) {
            numbers.insert(id, videos.len());
            videos.push(id.clone());
        }
    }
    let mut clips: HashMap<&str, Clip> = HashMap::new();
    for path in &paths {
        let clip = id(path);
        if !clips.contains_key(clip) {
            let video = video_of(path, &numbers);
            clips.insert(clip, Clip { id: clip.to_owned(), file: clip_file(folder, path)?, video });
        }
    }
    let mut clips: Vec<Clip> = clips.into_values().collect();
    clips.sort_by(|a, b| (a.video, &a.id).cmp(&(b.video, &b.id)));
    for (number, id) in videos.iter().enumerate() {
        ensure!(clips.iter().any(|clip| clip.video == Some(number)), "the video {id} has no clip");
    }
    Ok(Dataset { clip_captions, video_captions, clips, videos })
}

fn table(folder: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let places = [folder.join(name), folder.join("caption_data").join(name)];
    let found = places.into_iter().find(|path| path.is_file());
    found.with_context(|| format!("{} has no {name}", folder.display()))
}

fn lines<T: DeserializeOwned>(path: &Path) -> anyhow::Result<Vec<T>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let lines = lines.map(|(number, line)| {
        serde_json::from_str(line).with_context(|| format!("{}, line {}", path.display(), number + 1))
    });
    let lines = lines.collect::<anyhow::Result<Vec<T>>>()?;
    ensure!(!lines.is_empty(), "{} has no lines", path.display());
    Ok(lines)
}

/// The file's name without `.mp4`.
fn id(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".mp4").unwrap_or(name)
}

fn video_of(path: &str, numbers: &HashMap<&str, usize>) -> Option<usize> {
    let parent = path.rsplit('/').nth(1).and_then(|folder| numbers.get(folder));
    let begins = |video: &&str| {
        let rest = id(path).strip_prefix(*video);
        rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_ascii_alphanumeric()))
    };
    let longest = || numbers.keys().filter(|video| begins(video)).max_by_key(|video| video.len());
    parent.or_else(|| numbers.get(longest()?)).copied()
}

fn clip_file(folder: &Path, path: &str) -> anyhow::Result<PathBuf> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let published = folder.join("video_data/long_video_clip");
    let places = [
        folder.join(path),
        folder.join("clips").join(path),
        folder.join("clips").join(name),
        published.join(path),
    ];
    match places.into_iter().find(|file| file.is_file()) {
        Some(file) => Ok(file),
        None => bail!("{} has no clip {path}", folder.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, videos: &[&str], expected: Option<usize>) {
        assert_eq!(video_of(path, &videos.iter().copied().zip(0..).collect()), expected, "{path}");
    }

    #[test]
    fn a_clip_is_of_the_video_that_its_folder_or_its_name_tells() {
        check("ab/ab-Scene-001.mp4", &["x", "ab"], Some(1));
        check("ab/x-Scene-001.mp4", &["x", "ab"], Some(1));
        check("clips/ab-Scene-001.mp4", &["x", "ab"], Some(1));
        check("a-b-Scene-001.mp4", &["a", "a-b"], Some(1));
        check("abc-Scene-001.mp4", &["ab"], None);
    }

    #[test]
    fn a_folder_is_read_in_both_layouts() {
        for (tables, clips) in [("", "clips"), ("caption_data", "video_data/long_video_clip/v1")] {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            std::fs::create_dir_all(at(tables)).unwrap();
            std::fs::create_dir_all(at(clips)).unwrap();
            for name in ["v1-002.mp4", "v1-001.mp4"] {
                std::fs::write(at(clips).join(name), "").unwrap();
            }
            let lines = ["v1/v1-002.mp4", "v1/v1-001.mp4", "v1/v1-002.mp4"]
                .map(|path| format!("{{\"path\": \"{path}\", \"cap\": \"of {path}\"}}\n"));
            std::fs::write(at(tables).join("all_clip.jsonl"), lines.concat()).unwrap();
            std::fs::write(at(tables).join("all_video.jsonl"), "{\"vid\": \"v1\", \"cap\": \"all\"}\n")
                .unwrap();
            let read = read(folder.path()).unwrap();
            let ids: Vec<_> = read.clips.iter().map(|clip| (&clip.id[..], clip.video)).collect();
            assert_eq!(ids, [("v1-001", Some(0)), ("v1-002", Some(0))]);
            assert_eq!(read.clip_captions.ids, ["v1-002", "v1-001", "v1-002"]);
            assert_eq!(read.videos, ["v1"]);
            std::fs::remove_file(&read.clips[0].file).unwrap();
            assert!(super::read(folder.path()).unwrap_err().to_string().contains("v1-001.mp4"));
        }
    }
}
