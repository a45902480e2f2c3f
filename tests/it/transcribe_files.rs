//! `reprise transcribe` and `reprise eval speech` from the outside, with a small seeded Whisper.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use reprise_tests::film::{ffmpeg, run};
use reprise_tests::server::binary;
use serde_json::Value;

fn reprise(arguments: &[&str]) -> Output {
    Command::new(binary()).env("REPRISE_TRANSCRIBE", "").args(arguments).output().unwrap()
}

/// The output of `reprise transcribe` with the small model, which must succeed.
#[track_caller]
fn prints(arguments: &[&str]) -> String {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data/whisper");
    let arguments = [&["transcribe", "--transcribe", model.to_str().unwrap()], arguments].concat();
    let output = reprise(&arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The error output of a command that must fail.
#[track_caller]
fn complains(arguments: &[&str], expected: &str) {
    let output = reprise(arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains(expected), "{arguments:?}: {text}");
}

/// A film with 12 s of noise between two silences.
fn noisy(folder: &Path, name: &str) -> PathBuf {
    let file = folder.join(name);
    let sound = "aevalsrc=exprs='0.3*(random(1)-0.5)*gte(t,3)*lt(t,15)':s=16000:d=25";
    let mut ffmpeg = ffmpeg();
    ffmpeg.args(["-f", "lavfi", "-i", "testsrc=size=64x64:rate=5:duration=25", "-f", "lavfi", "-i", sound]);
    run(ffmpeg.args(["-c:a", "aac"]).arg(&file));
    file
}

#[test]
fn a_film_is_written_down_in_every_form_and_twice_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = noisy(folder.path(), "noisy.mp4");
    let path = file.to_str().unwrap();
    let text = prints(&[path, "--json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["has_audio"], &json["model"]["family"]), (&true.into(), &"whisper".into()));
    assert!((24_900..25_200).contains(&json["end_ms"].as_i64().unwrap()), "{json}");
    let segments = json["segments"].as_array().unwrap();
    assert!(!segments.is_empty());
    for segment in segments {
        let times = ["start_ms", "end_ms"].map(|name| segment[name].as_i64().unwrap());
        assert!(times[0] >= 2_000 && times[0] <= times[1] && times[1] <= 24_000, "{segment}");
        assert!(!segment["words"].as_array().unwrap().is_empty());
    }
    assert_eq!(prints(&[path, "--json"]), text);
    assert_eq!(prints(&[path]).lines().count(), segments.len());
    assert_eq!(prints(&[path, "--srt", "--windows", "8"]), prints(&[path, "--srt", "--windows", "2"]));
    assert!(prints(&[path, "--vtt", "--language", "de"]).starts_with("WEBVTT\n\n00:00:"));
    let srt = folder.path().join("noisy.srt");
    std::fs::write(&srt, prints(&[path, "--srt"])).unwrap();
    let srt = srt.to_str().unwrap();
    let same = reprise(&["eval", "speech", "--reference", srt, "--track", srt, "--json"]);
    let same: Value = serde_json::from_slice(&same.stdout).unwrap();
    assert_eq!((&same["rate"], &same["substituted"]), (&0.0.into(), &0.into()));
}

#[test]
fn a_voice_activity_detector_says_what_is_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let file = noisy(folder.path(), "noisy.mp4");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data");
    let [silero, other] = ["silero", "whisper"].map(|it| data.join(it).join("model.safetensors"));
    let path = file.to_str().unwrap();
    let by = |more: &[&str]| prints(&[&[path, "--json"], more].concat());
    let marked = by(&["--vad", silero.to_str().unwrap()]);
    assert!(marked != by(&[]) && marked != by(&["--with-silence"]), "{marked}");
    let model = data.join("whisper");
    let arguments =
        ["transcribe", path, "--transcribe", model.to_str().unwrap(), "--vad", other.to_str().unwrap()];
    complains(&arguments, "no tensor stft_conv.weight");
}

#[test]
fn english_is_compared_by_what_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, format!("1\n00:00:01,000 --> 00:00:03,000\n{text}\n")).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let said = file("said.srt", "Mr. Grey scored twenty-one point five, didn't he?");
    let heard = file("heard.srt", "mister gray scored 21.5 did not he");
    let arguments = ["eval", "speech", "--reference", &said, "--track", &heard, "--json"];
    for (more, expected) in [(&[][..], 0.8), (&["--english"], 0.0)] {
        let errors: Value = serde_json::from_slice(&reprise(&[&arguments, more].concat()).stdout).unwrap();
        assert!((errors["rate"].as_f64().unwrap() - expected).abs() < 1e-9, "{more:?}: {errors}");
    }
}

#[test]
fn several_files_go_into_a_folder_and_a_silent_one_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let one = noisy(folder.path(), "one.mp4");
    let silent = folder.path().join("silent.mp4");
    run(ffmpeg().args(["-f", "lavfi", "-i", "testsrc=size=64x64:duration=1"]).arg(&silent));
    let (one, silent, to) =
        (one.to_str().unwrap(), silent.to_str().unwrap(), folder.path().to_str().unwrap());
    prints(&[one, silent, "--srt", "--to", to]);
    let written = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(written("one.mp4.srt").starts_with("1\n00:00:"));
    assert_eq!(written("silent.mp4.srt"), "");
    let json: Value = serde_json::from_str(&prints(&[silent, "--json"])).unwrap();
    assert_eq!((&json["has_audio"], json["segments"].as_array().unwrap().len()), (&false.into(), 0));
}

#[test]
fn what_can_not_be_written_down_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "no sound").unwrap();
    let text = text.to_str().unwrap();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data/whisper");
    let model = model.to_str().unwrap();
    complains(&["transcribe", text, "--transcribe", model], "its sound can't be read");
    complains(&["transcribe", "/no/such/file", "--transcribe", model], "/no/such/file");
    complains(&["transcribe", text, text, "--srt", "--transcribe", model], "--to FOLDER");
    complains(&["transcribe", text, "--transcribe", "builtin:tiny"], "write down no speech");
    complains(&["transcribe", text, "--transcribe", model, "--windows", "0"], "from 1 to 64");
    let language = ["transcribe", text, "--language", "tlh", "--transcribe", model];
    complains(&language, "does not know the language");
    complains(&["embed", "--model", model, "--text", "a dive"], "reprise transcribe");
    complains(&["eval", "speech", "--reference", text, "--track", text], "line ");
}
