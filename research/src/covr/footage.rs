//! Annotated footage: a CSV of video, start, end and label, and the CSV files written from it.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::CovrError;
use reprise_encoders::Cause;

/// A labelled segment of a video; times in seconds from its first frame.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Stretch {
    /// The video's file or name.
    pub video: String,
    /// Start in seconds.
    pub start: f64,
    /// End in seconds.
    pub end: f64,
    /// The label.
    pub label: String,
}

impl Stretch {
    /// The segment's name in the files: the video with a media fragment (`video#t=12.5,14`).
    pub fn name(&self) -> String {
        format!("{}#t={},{}", self.video, self.start, self.end)
    }
}

/// One training triplet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as in TF-CoVR")]
pub struct TrainRow {
    pub query_video: String,
    pub target_video: String,
    pub label1: String,
    pub label2: String,
    pub modification: String,
}

/// One test query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestRow {
    /// The query clip.
    pub query_video: String,
    /// One relevant clip.
    pub target_video: String,
    /// The modification text.
    pub modification: String,
    /// All relevant clips in this part of the data set.
    pub target_videos: Vec<String>,
}

/// Reads a CSV with the columns video, start, end, label.
///
/// # Errors
/// The file cannot be read, a column is missing, or a row is invalid; the error names the row.
pub fn read_labels(path: &Path) -> Result<Vec<Stretch>, CovrError> {
    let wrong = |reason: Cause| CovrError::Labels { path: path.to_owned(), reason };
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_path(path)
        .map_err(|error| wrong(error.into()))?;
    let mut stretches = Vec::new();
    for (at, row) in reader.deserialize::<Stretch>().enumerate() {
        let row = row.map_err(|error| wrong(error.into()))?;
        let sensible = row.start >= 0.0 && row.end > row.start && row.end.is_finite();
        if !sensible || row.video.is_empty() || row.label.is_empty() {
            let Stretch { video, start, end, label } = row;
            let number = at + 2;
            return Err(wrong(
                format!("line {number}: {video:?} from {start} to {end} as {label:?} is no stretch").into(),
            ));
        }
        stretches.push(row);
    }
    if stretches.is_empty() {
        return Err(wrong("it has no rows".into()));
    }
    Ok(stretches)
}

/// Writes TF-CoVR's training columns.
///
/// # Errors
/// The file cannot be written.
pub fn write_train(path: &Path, rows: &[TrainRow]) -> Result<(), CovrError> {
    let header = ["query_video", "target_video", "label1", "label2", "modification"];
    let record = |it: &TrainRow| {
        [&it.query_video, &it.target_video, &it.label1, &it.label2, &it.modification].map(Clone::clone)
    };
    write(path, header, rows.iter().map(record))
}

/// Writes TF-CoVR's test columns.
///
/// # Errors
/// The file cannot be written.
pub fn write_test(path: &Path, rows: &[TestRow]) -> Result<(), CovrError> {
    let header = ["query_id", "query_video", "target_video", "modification", "target_videos_ids"];
    let record = |(at, it): (usize, &TestRow)| {
        let [query, target, text] = [&it.query_video, &it.target_video, &it.modification].map(Clone::clone);
        [at.to_string(), query, target, text, python_list(&it.target_videos)]
    };
    write(path, header, rows.iter().enumerate().map(record))
}

/// Writes rows under a header.
///
/// # Errors
/// The file cannot be written.
pub fn write<const N: usize>(
    path: &Path,
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Result<(), CovrError> {
    let wrong = |error: csv::Error| CovrError::Output { path: PathBuf::from(path), source: error.into() };
    let mut writer = csv::Writer::from_path(path).map_err(wrong)?;
    writer.write_record(header).map_err(wrong)?;
    for row in rows {
        writer.write_record(&row).map_err(wrong)?;
    }
    writer.flush().map_err(|source| CovrError::Output { path: path.to_owned(), source })
}

/// A list as a Python literal: readers of TF-CoVR's files evaluate it.
pub fn python_list(items: &[String]) -> String {
    let quoted = items.iter().map(|it| format!("'{}'", it.replace('\\', "\\\\").replace('\'', "\\'")));
    format!("[{}]", quoted.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(csv: &str, expected: Result<usize, &str>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("labels.csv");
        std::fs::write(&path, csv).unwrap();
        match (read_labels(&path), expected) {
            (Ok(rows), Ok(number)) => assert_eq!(rows.len(), number),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, expected) => panic!("{got:?}, not {expected:?}"),
        }
    }

    #[test]
    fn rows_that_make_no_sense_are_named() {
        check("video,start,end,label\na.mp4,0,1.5,\"(FX) leap, split\"\n", Ok(1));
        check("label,video,end,start\nx,a.mp4,2,1\n", Ok(1));
        check("video,start,end,label\na.mp4,2,1,x\n", Err("line 2"));
        check("video,start,end,label\na.mp4,0,NaN,x\n", Err("line 2"));
        check("video,start,label\na.mp4,0,x\n", Err("end"));
        check("video,start,end,label\n", Err("no rows"));
        check("", Err("no rows"));
    }

    #[test]
    fn lists_are_quoted_for_python() {
        assert_eq!(python_list(&["a.mp4".into(), "it's.mp4".into()]), r"['a.mp4', 'it\'s.mp4']");
        assert_eq!(python_list(&[]), "[]");
    }
}
