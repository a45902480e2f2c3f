//! Children die with the process that asked for them, and with nothing else.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use reprise_sandbox::{Mode, Policy, Spawner};

use crate::scene::{PROBE, has_sandbox, launcher, soon};

fn piped(mode: Mode, action: &str) -> Command {
    let mut command = launcher(mode).command(Path::new(PROBE), &Policy::default()).unwrap();
    command.arg(action).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn first_line(child: &mut Child) -> (String, BufReader<std::process::ChildStdout>) {
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    soon(move || {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        (line.trim().into(), reader)
    })
}

/// The service is killed while its child waits for an input that this test keeps open. The child holds the output too,
/// which ends when both are gone.
fn check_dies_with_service(mode: Mode) {
    let mut service = Command::new(PROBE);
    service.args(["keep-child", &mode.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut service = service.spawn().unwrap();
    let input = service.stdin.take();
    let (line, mut output) = first_line(&mut service);
    assert_eq!(line, "ready", "{mode}");
    service.kill().unwrap();
    service.wait().unwrap();
    let rest = soon(move || {
        let mut rest = String::new();
        output.read_to_string(&mut rest).map(|_| rest).unwrap()
    });
    assert_eq!(rest, "", "{mode}");
    drop(input);
}

#[test]
fn a_child_dies_with_the_service() {
    if has_sandbox() {
        check_dies_with_service(Mode::Required);
    }
}

#[test]
fn a_child_without_sandbox_dies_with_the_service() {
    check_dies_with_service(Mode::Off);
}

fn check_outlives_thread(mode: Mode) {
    let mut child =
        thread::spawn(move || Spawner::shared().spawn(piped(mode, "echo")).unwrap()).join().unwrap();
    for _ in 0..3 {
        writeln!(child.stdin.as_mut().unwrap(), "alive").unwrap();
        let (line, reader) = first_line(&mut child);
        assert_eq!(line, "alive", "{mode}");
        child.stdout = Some(reader.into_inner());
    }
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success(), "{mode}");
}

#[test]
fn a_child_outlives_the_thread_that_asked_for_it() {
    check_outlives_thread(Mode::WhereSupported);
    check_outlives_thread(Mode::Off);
}

/// Why there is a spawner.
#[test]
fn a_child_dies_with_the_thread_that_spawned_it() {
    if !has_sandbox() {
        return;
    }
    let mut child = thread::spawn(|| {
        let mut child = piped(Mode::Required, "await-end").spawn().unwrap();
        let (line, _) = first_line(&mut child);
        assert_eq!(line, "ready");
        child
    })
    .join()
    .unwrap();
    let input = child.stdin.take();
    let status = soon(move || child.wait().unwrap());
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    drop(input);
}

#[test]
fn a_child_of_a_process_that_ended_does_not_start() {
    if !has_sandbox() {
        return;
    }
    let output =
        Command::new(PROBE).args(["sandboxed", "--parent", "1", "--", PROBE, "echo"]).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("has ended"));
}
