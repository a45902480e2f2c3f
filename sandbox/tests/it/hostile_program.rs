//! What a program tries that the input took over completely.

use std::fs;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{self, Command};

use reprise_sandbox::{Mode, Spawner};

use crate::scene::{PROBE, Scene, has_sandbox, launcher, said};

const PERMISSION: &str = "refused 13";
const OPERATION: &str = "refused 1";

/// The action works without the sandbox, or the test judges nothing, and is `expected` inside. `@` stands for the
/// scene's folder.
fn check(action: &str, expected: &str) {
    if !has_sandbox() {
        return;
    }
    let scene = Scene::new();
    let action = action.replace('@', scene.path("").to_str().unwrap().trim_end_matches('/'));
    fs::write(scene.path("output"), "").unwrap();
    assert_eq!(scene.act(Mode::Required, &action), expected, "inside: {action}");
    assert_eq!(scene.act(Mode::Off, &action), "done", "outside: {action}");
}

#[test]
fn does_what_the_policy_allows() {
    check("read @/input", "done");
    check("write @/output", "done");
    check("read @/output", "done");
    check("list @/folder", "done");
    check("write @/folder/new", "done");
    check("use-threads 20", "done");
}

#[test]
fn reads_no_other_file() {
    check("read @/secret", PERMISSION);
    check("read /etc/passwd", PERMISSION);
    check("read /proc/self/environ", PERMISSION);
    check("read /proc/1/status", PERMISSION);
    check("list @", PERMISSION);
    check("list /", PERMISSION);
    check("list /usr/lib", PERMISSION);
}

#[test]
fn changes_no_other_file() {
    check("append @/input", PERMISSION);
    check("write @/input", PERMISSION);
    check("append @/secret", PERMISSION);
    check("write @/output2", PERMISSION);
    check("make-folder @/folder2", PERMISSION);
    check("remove @/output", PERMISSION);
    check("remove @/input", PERMISSION);
    check("rename @/output @/output2", PERMISSION);
    check("rename @/input @/folder/input", PERMISSION);
    check("lock-away @/secret", OPERATION);
}

#[test]
fn leaves_no_link_behind() {
    check("link /etc/passwd @/folder/link", OPERATION);
    check("hard-link @/secret @/folder/link", OPERATION);
}

#[test]
fn uses_no_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    check(&format!("connect-tcp {}", listener.local_addr().unwrap()), OPERATION);
    check("open-udp", OPERATION);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _socket = UnixListener::bind(&socket).unwrap();
    check(&format!("connect-unix {}", socket.display()), OPERATION);
    check(&format!("open-abstract reprise-sandbox-{}", process::id()), OPERATION);
}

#[test]
fn touches_no_other_process() {
    check("run /bin/true", OPERATION);
    check(&format!("signal {}", process::id()), OPERATION);
    check("set-limit", OPERATION);
    check("own-signals", "refused 38");
    check("outlive-parent", "refused 38");
}

#[test]
fn becomes_no_other_program() {
    if !has_sandbox() {
        return;
    }
    let scene = Scene::new();
    fs::copy("/bin/true", scene.path("folder/true")).unwrap();
    for program in ["/bin/true", "/bin/sh", &scene.text("folder/true")] {
        assert_eq!(scene.act(Mode::Required, &format!("become {program}")), PERMISSION, "{program}");
    }
    assert_eq!(scene.act(Mode::Off, "become /bin/true"), "", "outside it ends as `true` does");
}

#[test]
fn makes_no_dangerous_call() {
    if !has_sandbox() {
        return;
    }
    let scene = Scene::new();
    for call in [
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_mount,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_bpf,
        libc::SYS_perf_event_open,
        libc::SYS_keyctl,
        libc::SYS_io_uring_setup,
        libc::SYS_userfaultfd,
        libc::SYS_init_module,
        libc::SYS_pidfd_open,
        libc::SYS_seccomp,
    ] {
        assert_eq!(scene.act(Mode::Required, &format!("call {call}")), OPERATION, "call {call}");
    }
    for call in [libc::SYS_clone3, libc::SYS_memfd_create, libc::SYS_truncate, libc::SYS_execveat, 100_000] {
        assert_eq!(scene.act(Mode::Required, &format!("call {call}")), "refused 38", "call {call}");
    }
}

#[test]
fn inherits_no_descriptor() {
    if !has_sandbox() {
        return;
    }
    let scene = Scene::new();
    for (mode, expected) in [(Mode::Required, "refused 2"), (Mode::Off, "done")] {
        let line = launcher(mode).command_line(Path::new(PROBE), &scene.policy()).unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec 7< \"$0\"; exec \"$@\""]).arg(scene.path("secret"));
        command.arg(line.executable).args(line.arguments).args(["descriptor", "7"]);
        assert_eq!(said(&Spawner::shared().run(command).unwrap()), expected, "{mode}");
    }
}

#[test]
fn sees_no_variable_of_the_service() {
    if !has_sandbox() {
        return;
    }
    let scene = Scene::new();
    for (mode, expected) in [(Mode::Required, "refused 2"), (Mode::Off, "done")] {
        let mut command = launcher(mode).command(Path::new(PROBE), &scene.policy()).unwrap();
        command.args(["environment", "REPRISE_SECRET"]).env("REPRISE_SECRET", "key");
        assert_eq!(said(&Spawner::shared().run(command).unwrap()), expected, "{mode}");
    }
}
