//! The inputs of `reprise embed`: videos from a table or a folder, texts from a file.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use super::millis;
use crate::ingest::walk;
use reprise_research::encode::LONGEST_MS;
use reprise_research::encode::file_of;

/// A row of the list: a video, or a part of it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub(crate) struct Named {
    /// Path relative to the list's folder; the ending `.mp4` is optional.
    pub(crate) video: String,
    /// Start in seconds; absent for the start of the video.
    pub(crate) start: Option<f64>,
    /// End in seconds; absent for the end of the video.
    pub(crate) end: Option<f64>,
    /// Path of the video file.
    #[serde(skip)]
    pub(crate) file: PathBuf,
    /// Start and end of the part in milliseconds.
    #[serde(skip)]
    pub(crate) span_ms: (i64, i64),
}

/// The rows of a CSV with the column video, and start and end if wanted, or the videos in a folder ordered by name.
///
/// # Errors
/// The list can't be read or is empty, a file is missing, or a part ends before it begins.
pub(crate) fn videos(list: &Path) -> anyhow::Result<Vec<Named>> {
    let mut rows = if list.is_dir() { of_folder(list)? } else { of_table(list)? };
    ensure!(!rows.is_empty(), "{} names no video", list.display());
    let folder = if list.is_dir() { list } else { list.parent().unwrap_or(Path::new("")) };
    for (number, row) in rows.iter_mut().enumerate() {
        let place = || format!("{}, row {}", list.display(), number + 1);
        row.file = file_of(folder, &row.video).with_context(place)?;
        row.span_ms =
            (millis(row.start, 0).with_context(place)?, millis(row.end, LONGEST_MS).with_context(place)?);
        ensure!(row.span_ms.0 < row.span_ms.1, "{}: the end must be after the start", place());
    }
    Ok(rows)
}

fn of_table(list: &Path) -> anyhow::Result<Vec<Named>> {
    let mut reader = csv::Reader::from_path(list).with_context(|| list.display().to_string())?;
    let rows: Result<Vec<Named>, _> = reader.deserialize().collect();
    rows.with_context(|| list.display().to_string())
}

/// Files with the ending of a video. Decoding shows whether they are videos.
fn of_folder(folder: &Path) -> anyhow::Result<Vec<Named>> {
    let mut files = Vec::new();
    walk(folder, &mut files)?;
    files.sort();
    let is_video = |file: &PathBuf| mime_guess::from_path(file).iter().any(|it| it.type_() == "video");
    let named = |file: PathBuf| -> anyhow::Result<Named> {
        let video = file.strip_prefix(folder)?.to_str().context("its name is not UTF-8");
        let video = video.with_context(|| file.display().to_string())?.to_owned();
        Ok(Named { video, start: None, end: None, file, span_ms: (0, LONGEST_MS) })
    };
    files.into_iter().filter(is_video).map(named).collect()
}

/// The lines of a file, or the column `text`, otherwise `modification`, of a `.csv`.
///
/// # Errors
/// The file can't be read, lacks both columns, or contains an empty text.
pub(crate) fn texts(path: &Path) -> anyhow::Result<Vec<String>> {
    let texts = match path.extension().is_some_and(|extension| extension == "csv") {
        true => column(path)?,
        false => {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            text.lines().map(str::to_owned).collect()
        }
    };
    ensure!(!texts.is_empty(), "{} has no text", path.display());
    match texts.iter().position(|text| text.trim().is_empty()) {
        Some(empty) => bail!("{}: text {} is empty", path.display(), empty + 1),
        None => Ok(texts),
    }
}

fn column(path: &Path) -> anyhow::Result<Vec<String>> {
    let mut reader = csv::Reader::from_path(path).with_context(|| path.display().to_string())?;
    let headers = reader.headers().with_context(|| path.display().to_string())?.clone();
    let find = |name: &str| headers.iter().position(|header| header == name);
    let column = find("text").or_else(|| find("modification"));
    let column = column.with_context(|| format!("{} has no column text or modification", path.display()))?;
    let value = |row: csv::Result<csv::StringRecord>| -> anyhow::Result<String> {
        Ok(row?.get(column).unwrap_or_default().to_owned())
    };
    reader.records().map(|row| value(row).with_context(|| path.display().to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("clips")).unwrap();
        for name in ["clips/b.mp4", "clips/a.mp4", "c.mkv", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[track_caller]
    fn check(table: &str, expected: Result<&[(&str, i64, i64)], &str>) {
        let folder = folder(&[("list.csv", table)]);
        match (videos(&folder.path().join("list.csv")), expected) {
            (Ok(rows), Ok(expected)) => {
                let rows: Vec<_> =
                    rows.iter().map(|row| (&row.video[..], row.span_ms.0, row.span_ms.1)).collect();
                assert_eq!(rows, expected);
            }
            (Err(error), Err(part)) => assert!(format!("{error:#}").contains(part), "{error:#}"),
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn a_table_names_videos_or_stretches_of_them() {
        let all = LONGEST_MS;
        check("video\nclips/b.mp4\nclips/a\n", Ok(&[("clips/b.mp4", 0, all), ("clips/a", 0, all)]));
        let table = "label,video,start,end\nx,clips/a.mp4,0.5,1.25\ny,c.mkv,2,\n";
        check(table, Ok(&[("clips/a.mp4", 500, 1250), ("c.mkv", 2000, all)]));
        check("video,start,end\nclips/a.mp4,2,1\n", Err("row 1: the end must be after the start"));
        check("video,start,end\nclips/a.mp4,-2,1\n", Err("row 1"));
        check("video\nclips/d.mp4\n", Err("no video clips/d.mp4"));
        check("file\nclips/a.mp4\n", Err("video"));
        check("video\n", Err("names no video"));
    }

    #[test]
    fn a_folder_is_its_videos_by_name() {
        let folder = folder(&[]);
        let names: Vec<_> = videos(folder.path()).unwrap().into_iter().map(|row| row.video).collect();
        assert_eq!(names, ["c.mkv", "clips/a.mp4", "clips/b.mp4"]);
    }

    #[track_caller]
    fn check_texts(name: &str, content: &str, expected: Result<&[&str], &str>) {
        let folder = folder(&[(name, content)]);
        match (texts(&folder.path().join(name)), expected) {
            (Ok(texts), Ok(expected)) => assert_eq!(texts, expected),
            (Err(error), Err(part)) => assert!(format!("{error:#}").contains(part), "{error:#}"),
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn texts_are_lines_or_a_column() {
        check_texts("a.txt", "one\ntwo, three\n", Ok(&["one", "two, three"]));
        check_texts("a.csv", "id,modification\n1,\"show, again\"\n2,x\n", Ok(&["show, again", "x"]));
        check_texts("a.csv", "modification,text\na,b\n", Ok(&["b"]));
        check_texts("a.csv", "id\n1\n", Err("no column"));
        check_texts("a.txt", "one\n\ntwo\n", Err("text 2 is empty"));
        check_texts("a.txt", "", Err("no text"));
    }
}
