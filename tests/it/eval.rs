//! `reprise eval` from the outside: known figures on rendered films.

use std::path::Path;
use std::process::{Command, Output};

use reprise_research::synth::{Settings, Split, generate};
use reprise_tests::film::{Store, film};
use reprise_tests::server::binary;
use serde_json::{Value, json};

fn eval(arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    for name in ["REPRISE_MODEL", "REPRISE_API_KEY", "DATABASE_URL", "REPRISE_DATA_DIR"] {
        command.env_remove(name);
    }
    command.arg("eval").args(arguments).output().unwrap()
}

/// The output of a command that must succeed.
#[track_caller]
fn prints(arguments: &[&str]) -> String {
    let output = eval(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn complains(arguments: &[&str], expected: &str) {
    let output = eval(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
}

/// The parity models have composition heads but are untrained.
fn model(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data");
    folder.join(name).to_str().unwrap().to_owned()
}

/// Four clips: three of them are relevant for the first query, one for the second.
fn clips() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, scene) in [("a", "testsrc2"), ("b", "color=c=red"), ("c", "smptebars"), ("d", "rgbtestsrc")] {
        film(folder.path(), name, &[scene], Store::Web);
    }
    let triplets = "query_id,query_video,target_video,modification,target_videos_ids\n\
        0,a.mp4,b.mp4,show with 2.5 turns,\"['b.mp4', 'c.mp4', 'd.mp4']\"\n\
        1,b.mp4,a.mp4,show it,['a.mp4']\n";
    let kinds = "{\"kind\": \"seen_pairs\"}\n{\"kind\": \"held_out_pairs\"}\n";
    let labels =
        "video,start,end,label\na.mp4,0,2,first\nb.mp4,0,2,other\nc.mp4,0,2,other\nd.mp4,0,2,other\n";
    for (name, text) in [
        ("triplets.csv", triplets),
        ("triplets.jsonl", kinds),
        ("labels.csv", labels),
        ("descriptions.csv", "label,text\nother,anything but the first\n"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// The query kinds of each method in the report.
fn kinds(answer: &Value) -> Value {
    let kinds = |figures: &Value| figures.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    answer
        .as_object()
        .unwrap()
        .iter()
        .map(|(method, figures)| (method.clone(), json!(kinds(figures))))
        .collect()
}

#[test]
fn methods_are_judged_where_their_model_is_there_and_absent_elsewhere() {
    let folder = clips();
    let data = folder.path().to_str().unwrap();
    let composed = json!(["held_out_pairs", "seen_pairs"]);
    let run = |model: &str, more: &[&str]| -> Value {
        let arguments = [&["covr", "--data", data, "--json", "--model", model][..], more].concat();
        serde_json::from_str(&prints(&arguments)).unwrap()
    };
    let alone = run(&model("covr/qformer"), &[]);
    assert_eq!(kinds(&alone), json!({"two_stage": composed, "video_only": composed}));
    for method in ["two_stage", "video_only"] {
        let seen = &alone[method]["seen_pairs"];
        assert_eq!(seen["queries"], 1);
        assert_eq!(seen["recall"]["1"], 100.0, "every clip but the masked query is right");
        for cutoff in ["5", "10", "25", "50"] {
            assert_eq!(seen["map"][cutoff], 100.0);
        }
        let other = alone[method]["held_out_pairs"]["map"]["50"].as_f64().unwrap();
        assert!((33.3..=100.0).contains(&other), "three clips can be answered: {other}");
    }

    let baselines = tempfile::tempdir().unwrap();
    for (name, target) in [("stage2_only", "covr/bert"), ("order_blind", "legacy")] {
        std::os::unix::fs::symlink(model(target), baselines.path().join(name)).unwrap();
    }
    let all = run(&model("covr/qformer"), &["--baselines", baselines.path().to_str().unwrap()]);
    let expected = json!({"stage2_only": composed, "two_stage": composed, "video_only": composed});
    assert_eq!(kinds(&all), expected, "a model that can't compose is no baseline");
    assert_eq!(all["two_stage"], alone["two_stage"]);

    let untrained = run("builtin:tiny", &[]);
    let with_texts = json!(["held_out_pairs", "seen_pairs", "text_to_video"]);
    let expected = json!({"average": with_texts, "text_only": composed, "video_only": composed});
    assert_eq!(kinds(&untrained), expected, "without a head nothing is called two_stage");

    // This model's queries use frames of the clips instead of their vectors.
    let looking = run(&model("blip-covr"), &[]);
    let expected = json!({"average": composed, "text_only": composed, "two_stage": with_texts,
        "video_only": composed});
    assert_eq!(kinds(&looking), expected);
    assert_eq!(looking["two_stage"]["seen_pairs"]["recall"]["1"], 100.0);
}

#[test]
fn the_built_in_model_answers_about_clips_that_it_never_saw() {
    let folder = tempfile::tempdir().unwrap();
    let usual = Settings::new(9, Split::Test);
    let few = Settings { size: 96, clips: 96, labels: 24, triplets: 180, broadcasts: 0, ..usual };
    generate(folder.path(), &few, &|_, _| ()).unwrap();
    let data = folder.path().to_str().unwrap();
    let answer: Value = serde_json::from_str(&prints(&["covr", "--data", data, "--json"])).unwrap();
    let figure = |method: &str, kind: &str| answer[method][kind]["map"]["50"].as_f64();
    // The lowest figures over the whole benchmark, far above those of a clip or a text alone.
    for (kind, least) in [("seen_pairs", 85.0), ("held_out_pairs", 78.0), ("two_attribute", 72.0)] {
        let composed = figure("two_stage", kind).unwrap_or_else(|| panic!("no {kind}: {answer}"));
        assert!(composed >= least, "{kind}: {composed}");
        for half in ["text_only", "video_only"] {
            assert!(figure(half, kind).unwrap() < composed, "{kind}: {answer}");
        }
    }
    assert!(answer["two_stage"]["text_to_video"]["recall"]["1"].as_f64().unwrap() >= 85.0, "{answer}");
}

#[test]
fn the_table_names_its_protocol_and_the_picture_is_a_png() {
    let folder = clips();
    let (data, picture) = (folder.path().to_str().unwrap(), folder.path().join("figure.png"));
    let model = model("covr/bert");
    let arguments = ["covr", "--data", data, "--model", &model, "--mode", "compat"];
    let table = prints(&[&arguments[..], &["--figure", picture.to_str().unwrap()]].concat());
    assert!(table.starts_with("4 clips, protocol compat; gallery: "), "{table}");
    let lines = |search: &str| table.lines().filter(|line| line.contains(search)).count();
    assert_eq!((lines(" exact "), lines(" index ")), (4, 4), "{table}");
    assert!(std::fs::read(picture).unwrap().starts_with(b"\x89PNG"));
    complains(&[&arguments[..], &["--space", "bert-000000"]].concat(), "has the space bert-");
    complains(&["covr", "--data", "/no/such/folder"], "triplets.csv");
}

#[test]
fn ranges_of_broadcasts_are_found_through_a_server() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("broadcasts")).unwrap();
    film(&folder.path().join("broadcasts"), "01", &["testsrc2", "color=c=red", "smptebars"], Store::Web);
    let range = |start: f64, label: &str| {
        let end = start + 2.0;
        let element = json!({"start": start, "end": end, "class": 0, "label": label});
        json!({"video": "broadcasts/01.mp4", "start": start, "end": end, "kind": "routine", "elements": [element]})
    };
    let ranges = [range(0.0, "a"), range(2.0, "b"), range(4.0, "c")];
    let lines: String = ranges.iter().map(|range| format!("{range}\n")).collect();
    std::fs::write(folder.path().join("broadcasts.jsonl"), lines).unwrap();
    let triplets = "query_id,modification\n0,show b\n1,show a\n2,show what is not there\n";
    std::fs::write(folder.path().join("triplets.csv"), triplets).unwrap();
    let pairs = [("a", "b"), ("c", "a"), ("a", "z")];
    let lines: String =
        pairs.iter().map(|(from, to)| format!("{}\n", json!({"label1": from, "label2": to}))).collect();
    std::fs::write(folder.path().join("triplets.jsonl"), lines).unwrap();
    let home = folder.path().join("home");
    let arguments = ["broadcast", "--data", folder.path().to_str().unwrap(), "--json"];
    let arguments =
        [&arguments[..], &["--data-dir", home.to_str().unwrap(), "--model", "builtin:tiny"]].concat();
    let answer: Value = serde_json::from_str(&prints(&arguments)).unwrap();
    let figures = &answer["composed"]["cut_routines"];
    assert_eq!(figures["queries"], 2, "{answer}");
    assert_eq!(figures["recall"]["5"], 100.0, "two clips are left beside the query: {answer}");
    assert!(answer["composed"].get("uncut_routines").is_none());
}
