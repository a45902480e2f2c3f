//! Devices and precisions that commands and the server accept, refuse and report. The requested GPUs do not exist, so
//! no GPU is needed.

use std::process::{Command, Output};

use reprise_tests::server::{Server, binary};
use serde_json::{Value, json};

fn reprise(arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    for (name, value) in
        [("REPRISE_DEVICE", ""), ("REPRISE_PRECISION", ""), ("REPRISE_MODEL", "builtin:tiny")]
    {
        command.env(name, value);
    }
    command.args(arguments).output().unwrap()
}

/// The JSON output of a command that must succeed, and whether it warned that its GPU is not used.
#[track_caller]
fn prints(arguments: &[&str]) -> (Value, bool) {
    let output = reprise(arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    (serde_json::from_slice(&output.stdout).unwrap(), is_warned(&said))
}

/// Whether the output warns about the missing GPU. No machine has a hundred GPUs.
fn is_warned(said: &str) -> bool {
    said.contains("models run on the CPU") && said.contains("cuda:99")
}

#[test]
fn a_gpu_that_is_not_there_is_warned_about_and_the_cpu_gives_the_vectors() {
    let embed = ["embed", "--text", "a somersault", "--json", "--device"];
    let (expected, warned) = prints(&[&embed[..], &["cpu"]].concat());
    assert!(!warned);
    assert_eq!(prints(&[&embed[..], &["cuda:99"]].concat()), (expected, true));

    let bench = ["bench", "encode", "--runs", "1", "--batch", "1", "--json"];
    let (report, warned) = prints(&[&bench[..], &["--device", "cuda:99", "--precision", "int8"]].concat());
    assert!(warned);
    assert_eq!((&report["device"], &report["precision"]), (&json!("cpu"), &json!("int8")));
    // The sports model supports only one precision.
    let sports = [&bench[..4], &["--clips", "1", "--json", "--device", "cpu"]].concat();
    let (report, _) = prints(&[&sports[..], &["--precision", "int8", "--model", "builtin:sports"]].concat());
    assert_eq!(report["precision"], "f32");
}

#[test]
fn what_can_run_where_is_listed() {
    let (models, _) = prints(&["models", "--json"]);
    let devices = models["devices"].as_array().unwrap();
    let cpu = json!({"name": "cpu", "precisions": ["f32", "int8", "bf16"]});
    assert_eq!(devices.last(), Some(&cpu), "{devices:?}");
}

#[track_caller]
fn refuses(arguments: &[&str], expected: &str) {
    let output = reprise(&[&["embed", "--text", "a"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains(expected), "{arguments:?}: {said}");
}

#[test]
fn other_devices_and_numbers_are_refused_with_those_that_exist() {
    refuses(&["--device", "gpu"], "give auto, cpu, cuda or cuda:N");
    refuses(&["--precision", "fp16"], "give f32, int8, bf16 or f16");
    let no_halves = "16-bit floats of IEEE 754 are multiplied on a GPU alone; give bf16, int8 or f32";
    refuses(&["--device", "cpu", "--precision", "f16"], no_halves);
    // Each precision is its own space, so none replaces another.
    refuses(&["--device", "cuda:99", "--precision", "f16"], no_halves);
}

#[tokio::test]
async fn a_server_tells_where_its_models_run() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &["--device", "cuda:99,cuda:98", "--precision", "int8"]);
    let (_, spaces) = server.get("/v1/spaces").await;
    let space = &spaces["items"][0];
    assert_eq!((&space["devices"], &space["precision"]), (&json!(["cpu"]), &json!("int8")), "{spaces}");
    let log = std::fs::read_to_string(folder.path().join("server.log")).unwrap();
    assert!(is_warned(&log) && log.contains("cuda:98"), "{log}");
}
