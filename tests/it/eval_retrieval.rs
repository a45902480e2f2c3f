//! `reprise eval lovr` and `reprise eval care` from the outside: on rendered clips that the built-in model
//! distinguishes, and on vectors with known results.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use reprise_research::rows::Rows;
use reprise_research::synth::{Settings, Split, generate};
use reprise_tests::server::binary;
use serde_json::{Value, json};

const CLIPS: usize = 12;

fn eval(arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.env_remove("REPRISE_MODEL").arg("eval").args(arguments).output().unwrap()
}

/// The output of a command that must succeed.
#[track_caller]
fn prints(arguments: &[&str]) -> String {
    let output = eval(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn prints_json(arguments: &[&str]) -> Value {
    serde_json::from_str(&prints(&[arguments, &["--json"]].concat())).unwrap()
}

#[track_caller]
fn complains(arguments: &[&str], expected: &str) {
    let output = eval(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
}

/// Rendered clips, each with a text that describes only it. Two full videos alternate.
struct Bed {
    folder: tempfile::TempDir,
    clips: Vec<(String, String)>,
}

impl Bed {
    fn new() -> Bed {
        let folder = tempfile::tempdir().unwrap();
        let usual = Settings::new(9, Split::Test);
        let few = Settings { size: 96, clips: CLIPS, labels: CLIPS, triplets: 30, broadcasts: 0, ..usual };
        generate(folder.path(), &few, &|_, _| ()).unwrap();
        let rows = |name: &str| -> Vec<Vec<String>> {
            let mut reader = csv::Reader::from_path(folder.path().join(name)).unwrap();
            reader.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect()
        };
        let texts: BTreeMap<String, String> =
            rows("descriptions.csv").into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
        let mut clips: Vec<(String, String)> = Vec::new();
        for row in rows("labels.csv") {
            let text = &texts[&row[3]];
            if clips.iter().all(|(_, known)| known != text) {
                clips.push((row[0].clone(), text.clone()));
            }
        }
        assert!(clips.len() > CLIPS / 2, "{}", clips.len());
        Bed { folder, clips }
    }

    fn path(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Writes LoVR's layout; one video has a caption longer than any model's limit.
    fn lovr(&self) {
        let (mut clip_lines, mut videos) = (String::new(), BTreeMap::<&str, Vec<&str>>::new());
        for (at, (file, text)) in self.clips.iter().enumerate() {
            let vid = ["even", "odd"][at % 2];
            let path = format!("{vid}/{vid}-Scene-{at:03}.mp4");
            std::fs::create_dir_all(self.folder.path().join("clips").join(vid)).unwrap();
            let target = self.folder.path().join("clips").join(&path);
            std::fs::copy(self.folder.path().join(file), target).unwrap();
            clip_lines += &format!("{}\n", json!({"path": path, "cap": text}));
            videos.entry(vid).or_default().push(text);
        }
        let lines =
            videos.iter().map(|(vid, texts)| format!("{}\n", json!({"vid": vid, "cap": texts.join(". ")})));
        self.write("all_clip.jsonl", &clip_lines);
        self.write("all_video.jsonl", &lines.collect::<String>());
    }
}

fn figure(row: &Value, direction: &str, cutoff: &str) -> f64 {
    row["recall"][direction][cutoff].as_f64().unwrap_or_else(|| panic!("no {direction}@{cutoff}: {row}"))
}

#[test]
fn lovr_judges_four_directions_at_several_strides() {
    let bed = Bed::new();
    bed.lovr();
    let arguments = ["lovr", "--data", bed.path(), "--frames-stride", "1,10"];
    let report = prints_json(&arguments);
    assert_eq!((&report["mode"], &report["videos"]), (&json!("clean"), &json!(2)));
    assert_eq!(report["clips"], bed.clips.len());
    let rows = report["rows"].as_array().unwrap();
    let kinds: Vec<_> = rows
        .iter()
        .map(|row| (row["frames_stride"].as_u64().unwrap(), row["text"].as_str().unwrap()))
        .collect();
    let readings = ["windows", "mean", "truncate"];
    assert_eq!(kinds, [1, 10].map(|stride| readings.map(|reading| (stride, reading))).concat());
    for row in rows {
        for direction in ["text_to_video", "video_to_text"] {
            assert_eq!(figure(row, direction, "5"), 100.0, "there are two: {row}");
        }
        for direction in ["text_to_clip", "clip_to_text"] {
            let by_cutoff = ["1", "5", "10", "20"].map(|cutoff| figure(row, direction, cutoff));
            assert!(by_cutoff.is_sorted() && by_cutoff[3] > 80.0, "{by_cutoff:?}");
        }
        let seconds = &row["seconds"];
        assert!(seconds["videos_with_io"].as_f64().unwrap() > seconds["videos_without_io"].as_f64().unwrap());
    }
    assert_eq!(rows[0]["recall"]["text_to_clip"], rows[2]["recall"]["text_to_clip"], "these texts fit");
    // The model is trained on every frame; every tenth frame leaves little of two seconds.
    assert!(figure(&rows[0], "text_to_clip", "1") >= 80.0, "{}", rows[0]);
    assert!(figure(&rows[3], "text_to_clip", "1") < figure(&rows[0], "text_to_clip", "1"), "{}", rows[3]);
    let table = prints(&["lovr", "--data", bed.path(), "--mode", "compat"]);
    assert!(table.contains("mode compat") && table.contains("10      truncate  video_to_text"), "{table}");
    std::fs::remove_file(bed.folder.path().join("all_video.jsonl")).unwrap();
    complains(&arguments, "all_video.jsonl");
}

#[test]
fn care_judges_three_kinds_of_captions() {
    let bed = Bed::new();
    let list = |text: &dyn Fn(usize, &str) -> String| {
        let item = |(at, (file, caption)): (usize, &(String, String))| json!({"video": file, "caption": text(at, caption)});
        Value::from(bed.clips.iter().enumerate().map(item).collect::<Vec<_>>()).to_string()
    };
    bed.write("general.json", &list(&|_, caption| caption.to_owned()));
    bed.write("temporal.json", &list(&|_, caption| caption.to_owned()));
    // Half of the captions are empty.
    bed.write(
        "spatial.json",
        &list(&|at, caption| if at % 2 == 0 { caption.to_owned() } else { "a hall".to_owned() }),
    );
    let report = prints_json(&["care", "--data", bed.path()]);
    assert_eq!(report["videos"], bed.clips.len());
    for row in report["rows"].as_array().unwrap() {
        let recall = |kind: &str| row["recall"][kind]["text_to_video"]["1"].as_f64().unwrap();
        assert!(recall("general") >= 80.0, "{row}");
        assert_eq!(row["recall"]["general"], row["recall"]["temporal"]);
        assert!(recall("spatial") < recall("temporal"), "{row}");
        let mean = |kind: &str| -> f64 {
            let directions = row["recall"][kind].as_object().unwrap().values();
            let six: Vec<f64> = directions
                .flat_map(|it| it.as_object().unwrap().values())
                .filter_map(Value::as_f64)
                .collect();
            six.iter().sum::<f64>() / six.len() as f64
        };
        let expected = 100.0 * (1.0 - mean("spatial") / mean("temporal")).abs();
        assert!((row["rebias"]["paper_table"].as_f64().unwrap() - expected).abs() < 1e-9, "{row}");
    }
    assert!(prints(&["care", "--data", bed.path()]).contains("ReBias"));
}

fn save(folder: &Path, name: &str, rows: &[[f32; 2]]) {
    Rows::new(rows.concat(), 2).unwrap().write(&folder.join(name)).unwrap();
}

/// The first and the third text find their own rows. The second finds the first one's.
const TEXTS: [[f32; 2]; 3] = [[2.0, 0.0], [0.9, 0.1], [0.0, 0.1]];
const VIDEOS: [[f32; 2]; 3] = [[1.0, 0.0], [1.0, 1.0], [-0.1, 5.0]];

#[test]
fn vectors_from_elsewhere_are_judged_by_place_or_by_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    for (name, rows) in [
        ("clips.npy", &VIDEOS[..]),
        ("clip_texts.npy", &TEXTS),
        ("videos.npy", &VIDEOS[..2]),
        ("video_texts.npy", &TEXTS[..2]),
        ("general.npy", &TEXTS),
        ("spatial.npy", &TEXTS),
        ("temporal.npy", &VIDEOS),
    ] {
        save(path, name, rows);
    }
    let folder_name = path.to_str().unwrap();
    let report = prints_json(&["lovr", "--vectors", folder_name]);
    let third = 100.0 / 3.0;
    let row = &report["rows"][0];
    assert!((figure(row, "text_to_clip", "1") - 2.0 * third).abs() < 1e-9, "{row}");
    assert_eq!(figure(row, "text_to_clip", "5"), 100.0);
    assert_eq!(figure(row, "text_to_video", "1"), 50.0);
    assert_eq!(
        (&report["mode"], &row["text"], &row["frames_stride"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );

    // Rows with the same id are relevant for each other.
    let lines = ["a", "a", "c"].map(|id| format!("{{\"path\": \"v/{id}.mp4\", \"cap\": \"\"}}\n")).concat();
    std::fs::write(path.join("all_clip.jsonl"), lines).unwrap();
    std::fs::write(path.join("all_video.jsonl"), "{\"vid\": \"v\", \"cap\": \"\"}\n".repeat(2)).unwrap();
    let report = prints_json(&["lovr", "--vectors", folder_name]);
    for direction in ["text_to_clip", "text_to_video"] {
        assert_eq!(figure(&report["rows"][0], direction, "1"), 100.0);
    }

    save(path, "videos.npy", &VIDEOS);
    let report = prints_json(&["care", "--vectors", folder_name]);
    let row = &report["rows"][0];
    assert_eq!(row["recall"]["temporal"]["text_to_video"]["1"], 100.0);
    assert!((row["recall"]["general"]["text_to_video"]["1"].as_f64().unwrap() - 2.0 * third).abs() < 1e-9);
    // R@1 is two thirds in one direction and 100 in the other, the four others are 100: a mean of 94.44 against 100.
    let (table, formula) = (&row["rebias"]["paper_table"], &row["rebias"]["paper_formula"]);
    let found = row["recall"]["spatial"]["video_to_text"]["1"].as_f64().unwrap();
    let mean = (2.0 * third + found + 400.0) / 6.0;
    assert!((table.as_f64().unwrap() - (100.0 - mean)).abs() < 1e-9, "{row}");
    assert!((formula.as_f64().unwrap() - 100.0 * (100.0 / mean - 1.0)).abs() < 1e-9, "{row}");

    save(path, "clip_texts.npy", &TEXTS[..2]);
    complains(&["lovr", "--vectors", folder_name], "2 vectors for 3 ids");
    complains(&["care", "--vectors", "/no/such/folder"], "videos.npy");
    complains(&["care"], "--data");
}
