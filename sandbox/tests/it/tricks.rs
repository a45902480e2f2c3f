//! The known tricks by which a file or a name makes ffmpeg reach other files and addresses.
//!
//! ffmpeg's own allow-lists are off, so that the sandbox alone is judged. Each trick must work without the sandbox, or
//! its row judges nothing. A build of ffmpeg that lacks a part skips the row and says so.

mod media;
mod neighbours;
mod table;

use std::fs;
use std::path::Path;

use reprise_sandbox::{Mode, Spawner};

use crate::scene::{Scene, ffmpeg_words, has_ffmpeg, has_sandbox, launcher, said, soon};
use neighbours::Neighbours;

/// What shows that a trick worked.
pub(crate) enum Proof {
    /// The secret stands in what ffmpeg printed.
    Secret,
    /// ffmpeg made a picture, for which it needed a file that it was not given.
    Picture,
    /// Someone at an address of this machine was called.
    Call,
    /// A file is there that was not there before, besides the output.
    Written,
}

pub(crate) struct Trick {
    pub(crate) name: &'static str,
    /// The hostile input.
    pub(crate) input: Input,
    /// The words for ffmpeg: `@` is the scene's folder, `TCP`, `UDP` and `RTP` are ports of this machine.
    pub(crate) line: &'static str,
    pub(crate) proof: Proof,
}

pub(crate) enum Input {
    /// With the same signs as a line.
    Text(&'static str),
    Made(fn(&Scene) -> Vec<u8>),
}

/// What this ffmpeg says where it lacks what the trick needs.
const LACKING: [&str; 6] = [
    "Unrecognized option",
    "Option not found",
    "Unknown input format",
    "Protocol not found",
    "No such filter",
    "Unknown encoder",
];

enum Outcome {
    Worked,
    Failed,
    Lacking(String),
}

fn perform(trick: &Trick, mode: Mode) -> Outcome {
    let scene = Scene::new();
    media::put_secrets(&scene);
    let neighbours = Neighbours::start(&scene);
    let input = match trick.input {
        Input::Text(text) => neighbours.fill(text).replace('@', scene.text("").trim_end_matches('/')).into(),
        Input::Made(make) => make(&scene),
    };
    fs::write(scene.path("input"), input).unwrap();
    let before = scene.names();
    let mut command = launcher(mode).command(Path::new("ffmpeg"), &scene.policy()).unwrap();
    command.args(ffmpeg_words(&scene, &neighbours.fill(trick.line))).current_dir(scene.path(""));
    command.env("FFREPORT", format!("file={}", scene.text("report")));
    let output = soon(|| Spawner::shared().run(command).unwrap());
    let calls = neighbours.calls();
    let did_start =
        !contains(&output.stderr, b"reprise sandbox:") && output.status.code().is_some_and(|code| code < 125);
    assert!(did_start, "{} ({mode}): ffmpeg did not start, or crashed: {}", trick.name, said(&output));
    let worked = match trick.proof {
        Proof::Secret => contains(&output.stdout, media::SECRET),
        Proof::Picture => !output.stdout.is_empty(),
        Proof::Call => calls > 0,
        Proof::Written => scene.names().iter().any(|name| name != "output" && !before.contains(name)),
    };
    let lacks = LACKING.iter().any(|text| contains(&output.stderr, text.as_bytes()));
    match (worked, lacks) {
        (true, _) => Outcome::Worked,
        (false, true) => Outcome::Lacking(said(&output)),
        (false, false) => {
            println!("{} ({mode}): {}", trick.name, said(&output));
            Outcome::Failed
        }
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Whether this ffmpeg could be judged by the trick.
fn check(trick: &Trick) -> bool {
    match perform(trick, Mode::Off) {
        Outcome::Lacking(reason) => {
            println!("skipped: {}: {reason}", trick.name);
            return false;
        }
        Outcome::Failed => panic!("{}: it does not work without the sandbox either", trick.name),
        Outcome::Worked => {}
    }
    assert!(!matches!(perform(trick, Mode::Required), Outcome::Worked), "{}: it works inside", trick.name);
    true
}

fn check_all(tricks: &[Trick]) {
    if !has_sandbox() || !has_ffmpeg() {
        return;
    }
    let judged = tricks.iter().filter(|trick| check(trick)).count();
    println!("{judged} of {} tricks judged", tricks.len());
    assert!(judged * 2 > tricks.len(), "this ffmpeg lacks most of what the tricks need");
}

#[test]
fn no_input_names_another_file() {
    check_all(&table::inputs());
}

#[test]
fn no_option_names_another_file() {
    check_all(&table::options());
}

#[test]
fn no_output_goes_elsewhere() {
    check_all(&table::outputs());
}

#[test]
fn no_address_is_called() {
    check_all(&table::addresses());
}
