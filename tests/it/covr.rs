//! Triplets from labelled footage through the command line: TF-CoVR's columns, real label sets, and a stand-in for the
//! language model.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use reprise_tests::server::binary;
use reprise_tests::test_data;

/// `reprise covr triplets` on a CSV of `labels`, each shown in every one of `videos` videos.
fn triplets(folder: &Path, labels: &[&str], videos: usize, more: &[&str]) -> Output {
    let mut csv = "video,start,end,label\n".to_owned();
    for video in 0..videos {
        for (at, label) in labels.iter().enumerate() {
            csv += &format!("v{video:02}.mp4,{at}.25,{at}.75,\"{}\"\n", label.replace('"', "\"\""));
        }
    }
    let file = folder.join("labels.csv");
    fs::write(&file, csv).unwrap();
    let mut command = Command::new(binary());
    command.env_remove("REPRISE_MODEL").env_remove("REPRISE_ENDPOINT_KEY");
    command.args(["covr", "triplets", "--labels"]).arg(&file).arg("--out").arg(folder.join("out"));
    command.args(["--validation", "0.2", "--test", "0.2"]).args(more).output().unwrap()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join("out").join(name)).unwrap()
}

/// The videos named in a file.
fn videos(text: &str) -> BTreeSet<String> {
    text.match_indices(".mp4#t=").map(|(at, _)| text[at - 3..at].to_owned()).collect()
}

#[track_caller]
fn check(folder: &Path, output: &Output, name: &str, header: &str) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = read(folder, name);
    assert_eq!(text.lines().next(), Some(header), "{name}");
    assert!(text.lines().count() > 1, "{name} has no rows");
}

#[test]
fn a_real_label_set_becomes_the_columns_of_the_paper_with_videos_apart() {
    let Some(map) = test_data("text/labels/gym_label_map.txt") else { return };
    let map = fs::read_to_string(map).unwrap();
    // One label occurs twice in the map.
    let labels: BTreeSet<&str> = map.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    let labels: Vec<&str> = labels.into_iter().collect();
    assert!(labels.len() > 90, "{}", labels.len());
    let folder = tempfile::tempdir().unwrap();
    let output = triplets(folder.path(), &labels, 10, &["--per-pair", "3"]);
    let test_header = "query_id,query_video,target_video,modification,target_videos_ids";
    check(folder.path(), &output, "train.csv", "query_video,target_video,label1,label2,modification");
    check(folder.path(), &output, "val.csv", test_header);
    check(folder.path(), &output, "test.csv", test_header);
    check(folder.path(), &output, "pairs.csv", "label1,label2,change,similarity");
    let files = ["train.csv", "val.csv", "test.csv"].map(|it| videos(&read(folder.path(), it)));
    assert_eq!(files.each_ref().map(BTreeSet::len), [6, 2, 2]);
    assert!(
        files[0].is_disjoint(&files[1]) && files[0].is_disjoint(&files[2]) && files[1].is_disjoint(&files[2])
    );
    // Two test videos show each label once: two relevant answers.
    let answers = read(folder.path(), "test.csv");
    assert!(answers.lines().skip(1).all(|it| it.matches("'v").count() == 2), "{answers}");
}

const LABELS: [&str; 4] =
    ["(FX) salto forward tucked", "(FX) salto forward piked", "(BB) salto forward tucked", "(BB) wolf jump"];

#[test]
fn changes_of_event_need_the_same_action() {
    let folder = tempfile::tempdir().unwrap();
    let output = triplets(folder.path(), &LABELS, 5, &["--same-action", "1"]);
    check(folder.path(), &output, "pairs.csv", "label1,label2,change,similarity");
    let pairs = read(folder.path(), "pairs.csv");
    let event: Vec<&str> = pairs.lines().filter(|it| it.contains(",event,")).collect();
    assert_eq!(event, ["(BB) salto forward tucked,(FX) salto forward tucked,event,1.0000"]);
    assert!(read(folder.path(), "train.csv").contains("on balance beam"));
}

#[test]
fn every_clip_of_every_label_of_the_target_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let labels = ["(BB) cat leap", "(BB) switch leap", "(BB) switch leap (leap forward with leg change)"];
    let output = triplets(folder.path(), &labels, 10, &["--neighbours", "1"]);
    check(folder.path(), &output, "train.csv", "query_video,target_video,label1,label2,modification");
    let answers = read(folder.path(), "test.csv");
    let to_leap: Vec<&str> = answers.lines().filter(|it| it.contains("switch leap")).collect();
    assert_eq!(to_leap.len(), 1, "{answers}");
    assert_eq!(to_leap[0].matches("'v").count(), 4, "{answers}");
}

#[test]
fn divers_labels_are_split_and_a_grammar_of_ones_own_too() {
    let folder = tempfile::tempdir().unwrap();
    let labels = ["Back+15som+05Twis+FREE", "Back+15som+15Twis+FREE"];
    let output = triplets(folder.path(), &labels, 5, &[]);
    check(folder.path(), &output, "train.csv", "query_video,target_video,label1,label2,modification");
    assert!(read(folder.path(), "train.csv").contains("with half a twist"));
    let grammar = folder.path().join("grammar.json");
    let cups = r##"{"label": "# cups", "say": "with {cup}"}"##;
    let part = format!(r#"{{"name": "cups", "phrases": [{cups}]}}"#);
    fs::write(&grammar, format!(r#"{{"name": "kitchen", "element": "pour", "parts": [{part}]}}"#)).unwrap();
    let output =
        triplets(folder.path(), &["1 cups", "2 cups"], 5, &["--grammar", &grammar.to_string_lossy()]);
    check(folder.path(), &output, "train.csv", "query_video,target_video,label1,label2,modification");
    let train = read(folder.path(), "train.csv");
    assert!(train.contains("with one cup") && train.contains("with two cups"), "{train}");
}

/// Answers every request with its `answer` as a chat completion; returns the base address and the received requests.
fn stand_in(answer: fn(&str) -> String, requests: usize) -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let serve = move || {
        let mut asked = Vec::new();
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
                head += &line;
            }
            let mut content = vec![0; length];
            reader.read_exact(&mut content).unwrap();
            let content = String::from_utf8(content).unwrap();
            let message = serde_json::json!({"role": "assistant", "content": answer(&content)});
            let body = serde_json::json!({"choices": [{"message": message}]}).to_string();
            asked.push(head + &content);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        }
        asked
    };
    (address, thread::spawn(serve))
}

/// The change in the prompt of a request's JSON: the last one, after the examples.
fn changes(request: &str) -> &str {
    let last = request.rsplit("What changes: ").next().unwrap_or_default();
    last.split("\\nInstruction:").next().unwrap_or_default()
}

#[test]
fn a_language_model_writes_the_modifications() {
    let folder = tempfile::tempdir().unwrap();
    // Two labels of one event: one pair, in both directions.
    let (address, served) =
        stand_in(|asked| format!("\"have it {}\"\nbecause I was asked", changes(asked)), 2);
    let more = ["--endpoint", &address, "--endpoint-model", "writer", "--endpoint-key", "secret"];
    let output = triplets(folder.path(), &LABELS[..2], 5, &more);
    check(folder.path(), &output, "train.csv", "query_video,target_video,label1,label2,modification");
    let train = read(folder.path(), "train.csv");
    let written = |it: &str| it.ends_with("tucked,have it tucked") || it.ends_with("piked,have it piked");
    assert!(train.lines().skip(1).all(written), "{train}");
    for asked in served.join().unwrap() {
        assert!(asked.starts_with("POST /v1/chat/completions"), "{asked}");
        assert!(asked.to_lowercase().contains("authorization: bearer secret"), "{asked}");
        assert!(
            asked.contains(r#""model":"writer""#) && asked.contains("(FX) salto forward piked"),
            "{asked}"
        );
    }
}

#[test]
fn a_text_that_does_not_name_the_change_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    // Three attempts in each direction.
    let (address, served) = stand_in(|_| "do it the other way".to_owned(), 6);
    let more = ["--endpoint", &address, "--endpoint-model", "writer"];
    let output = triplets(folder.path(), &LABELS[..2], 5, &more);
    check(folder.path(), &output, "train.csv", "query_video,target_video,label1,label2,modification");
    let train = read(folder.path(), "train.csv");
    let ours = |it: &str| it.ends_with("tucked,show it tucked") || it.ends_with("piked,show it piked");
    assert!(train.lines().skip(1).all(ours), "{train}");
    assert_eq!(served.join().unwrap().len(), 6);
}

#[test]
fn an_endpoint_that_writes_nothing_is_named_and_no_file_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("http://{closed}/v1");
    let more = ["--endpoint", &address, "--endpoint-model", "writer"];
    let output = triplets(folder.path(), &LABELS[..2], 5, &more);
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the language model wrote no modification"), "{said}");
    assert!(!folder.path().join("out").exists());
}
