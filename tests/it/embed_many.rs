//! `reprise embed`: each vector is computed once, in any order, and fit for training.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use reprise_research::rows::Rows;
use reprise_research::synth::{Settings, Split, generate};
use reprise_tests::server::binary;
use serde_json::Value;

const CLIPS: usize = 10;

fn reprise(arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.env_remove("REPRISE_MODEL").args(arguments).output().unwrap()
}

/// The output of a command that must succeed.
#[track_caller]
fn prints(arguments: &[&str]) -> String {
    let output = reprise(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn complains(arguments: &[&str], expected: &str) {
    let output = reprise(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
}

/// A folder with a rendered benchmark and the files written beside it.
struct Bed {
    folder: tempfile::TempDir,
}

impl Bed {
    fn new() -> Bed {
        let folder = tempfile::tempdir().unwrap();
        let usual = Settings::new(5, Split::Train);
        let few = Settings { size: 48, clips: CLIPS, labels: 6, triplets: 20, broadcasts: 0, ..usual };
        generate(folder.path(), &few, &|_, _| ()).unwrap();
        Bed { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn shown(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Runs `reprise embed WHAT LIST --out OUT --cache CACHE`; returns the numbers of rows, encoded rows and cached
    /// rows.
    #[track_caller]
    fn embed(&self, what: &str, list: &str, out: &str, cache: &str) -> [u64; 3] {
        let (list, out, cache) = (self.shown(list), self.shown(out), self.shown(cache));
        let printed = prints(&[
            "embed",
            "--model",
            "builtin:tiny",
            what,
            &list,
            "--out",
            &out,
            "--cache",
            &cache,
            "--json",
        ]);
        let report: Value = serde_json::from_str(&printed).unwrap();
        ["rows", "encoded", "from_cache"].map(|name| report[name].as_u64().unwrap())
    }

    /// The benchmark's labels, changed line by line, as another list.
    fn list(&self, name: &str, change: impl Fn(Vec<String>) -> Vec<String>) {
        let text = std::fs::read_to_string(self.path("labels.csv")).unwrap();
        let (header, rows) = text.split_once('\n').unwrap();
        let rows = change(rows.lines().map(str::to_owned).collect());
        std::fs::write(self.path(name), format!("{header}\n{}\n", rows.join("\n"))).unwrap();
    }
}

#[track_caller]
fn check(got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len());
    let off = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(off < 1e-5, "{off} off");
}

fn read(path: &Path) -> Rows {
    Rows::read(path).unwrap()
}

#[test]
fn nothing_is_encoded_twice_and_the_order_does_not_matter() {
    let bed = Bed::new();
    let all = CLIPS as u64;
    bed.list("some.csv", |rows| rows[..4].to_vec());
    bed.list("reversed.csv", |mut rows| {
        rows.reverse();
        rows
    });
    bed.list("twice.csv", |rows| [&rows[..3], &rows[..3]].concat());
    assert_eq!(bed.embed("--videos", "some.csv", "some.npy", "cache"), [4, 4, 0]);
    assert_eq!(bed.embed("--videos", "labels.csv", "all.npy", "cache"), [all, all - 4, 4]);
    assert_eq!(bed.embed("--videos", "reversed.csv", "reversed.safetensors", "other"), [all, all, 0]);
    assert_eq!(bed.embed("--videos", "twice.csv", "twice.npy", "cache"), [6, 0, 3]);
    let (forwards, backwards) = (read(&bed.path("all.npy")), read(&bed.path("reversed.safetensors")));
    for (row, same) in forwards.iter().zip(backwards.iter().collect::<Vec<_>>().into_iter().rev()) {
        check(row, same);
    }
    assert_eq!(read(&bed.path("twice.npy")).values()[..3 * 64], forwards.values()[..3 * 64]);

    // Changed entries are encoded again; moved ones are not.
    let table = std::fs::read_to_string(bed.path("all.names.csv")).unwrap();
    let names: Vec<&str> = table.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    std::fs::copy(bed.path(names[1]), bed.path(names[0])).unwrap();
    std::fs::rename(bed.path(names[1]), bed.path("clips/moved.mp4")).unwrap();
    let moved = format!("video,start,end\nclips/moved,,\n{}\n", table.lines().nth(1).unwrap());
    std::fs::write(bed.path("moved.csv"), moved).unwrap();
    let [rows, encoded, from_cache] = bed.embed("--videos", "moved.csv", "moved.npy", "cache");
    assert_eq!((rows, encoded + from_cache), (2, 2));
    assert_eq!(bed.embed("--videos", "moved.csv", "moved.npy", "cache"), [2, 0, 2]);
}

#[test]
fn a_row_is_the_raw_vector_of_the_single_command() {
    let bed = Bed::new();
    bed.list("one.csv", |rows| rows[..1].to_vec());
    bed.embed("--videos", "one.csv", "one.npy", "cache");
    let table = std::fs::read_to_string(bed.path("one.csv")).unwrap();
    let fields: Vec<&str> = table.lines().nth(1).unwrap().split(',').collect();
    let file = bed.shown(fields[0]);
    let span = ["--start", fields[1], "--end", fields[2]];
    let arguments = ["embed", "--model", "builtin:tiny", "--json", "--video", &file];
    let alone: Value = serde_json::from_str(&prints(&[&arguments[..], &span].concat())).unwrap();
    let (unit, norm): (Vec<f32>, f32) = (
        serde_json::from_value(alone["vector"].clone()).unwrap(),
        serde_json::from_value(alone["norm"].clone()).unwrap(),
    );
    let raw: Vec<f32> = unit.iter().map(|value| value * norm).collect();
    check(read(&bed.path("one.npy")).values(), &raw);

    let long = "somebody turns twice in the air ".repeat(40);
    std::fs::write(bed.path("texts.txt"), format!("a dive\n{long}\na dive\n")).unwrap();
    bed.embed("--texts", "texts.txt", "texts.npy", "cache");
    let rows = read(&bed.path("texts.npy"));
    for (text, row) in ["a dive", &long, "a dive"].into_iter().zip(rows.iter()) {
        let alone = prints(&["embed", "--model", "builtin:tiny", "--text", text]);
        let alone: Vec<f32> = alone.split_whitespace().map(|it| it.parse().unwrap()).collect();
        let norm = row.iter().map(|value| value * value).sum::<f32>().sqrt();
        check(&row.iter().map(|value| value / norm).collect::<Vec<_>>(), &alone);
    }
}

#[test]
fn a_combiner_is_trained_on_what_was_written() {
    let bed = Bed::new();
    bed.embed("--videos", "labels.csv", "videos.npy", "cache");
    let [texts, ..] = bed.embed("--texts", "triplets.csv", "texts.safetensors", "cache");
    let triplets = std::fs::read_to_string(bed.path("triplets.csv")).unwrap();
    assert_eq!(texts as usize, triplets.lines().count() - 1);
    let path = |name: &str| bed.shown(name);
    let (data, out) = (bed.folder.path().to_str().unwrap(), path("out"));
    let (vectors, names, texts) = (path("videos.npy"), path("videos.names.csv"), path("texts.safetensors"));
    let files = ["--vectors", &vectors, "--names", &names, "--texts", &texts];
    let small = ["--projection", "8", "--hidden", "8", "--steps", "3", "--batch", "8"];
    let arguments = [&["train", "stage2", "--data", data, "--out", &out][..], &files, &small].concat();
    assert!(prints(&arguments).contains("combiner.safetensors"));
    assert!(bed.path("out/combiner.safetensors").is_file());
}

#[test]
fn what_can_not_be_embedded_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("broken.mp4"), "no video").unwrap();
    std::fs::write(at("list.csv"), "video\nbroken.mp4\n").unwrap();
    let (list, out, cache) = (at("list.csv"), at("out.npy"), at("cache"));
    let arguments = ["embed", "--model", "builtin:tiny", "--out", &out, "--cache", &cache];
    complains(&[&arguments[..], &["--videos", &list]].concat(), "broken.mp4");
    complains(&[&arguments[..], &["--texts", &list, "--videos", &list]].concat(), "cannot be used with");
    complains(&["embed", "--videos", &list], "--out");
    assert!(!folder.path().join("out.npy").exists());
}
