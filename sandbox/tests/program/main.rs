//! The program of the tests: it enters the sandbox, and it plays the hostile program inside.
//!
//! `reprise-sandbox-probe ACTION ARGUMENT…` tries something and prints `done` or `refused` and the system's number of
//! the error.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, thread};

use reprise_sandbox::{Launcher, Mode, Policy, SUBCOMMAND, Spawner, enter};

fn main() {
    let mut args = env::args_os().skip(1).peekable();
    if args.next_if(|first| first == SUBCOMMAND).is_some() {
        enter(args);
    }
    let words: Vec<String> = args.filter_map(|word| word.into_string().ok()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let line = match act(&words) {
        Ok(()) => "done".into(),
        Err(error) => format!("refused {}", error.raw_os_error().unwrap_or_default()),
    };
    let _ = writeln!(io::stdout(), "{line}");
}

fn act(words: &[&str]) -> io::Result<()> {
    match words {
        ["read", file] => fs::read(file).map(|_| ()),
        ["append", file] => OpenOptions::new().append(true).open(file)?.write_all(b"x"),
        ["write", file] => fs::write(file, "written"),
        ["write-bytes", file, count] => fs::write(file, vec![0; number(count)?]),
        ["remove", file] => fs::remove_file(file),
        ["rename", from, to] => fs::rename(from, to),
        ["list", folder] => fs::read_dir(folder).map(|_| ()),
        ["make-folder", folder] => fs::create_dir(folder),
        ["lock-away", file] => fs::set_permissions(file, fs::metadata(file)?.permissions()),
        ["run", program] => Command::new(program).stdout(Stdio::null()).status().map(|_| ()),
        ["connect-tcp", address] => TcpStream::connect(address).map(|_| ()),
        ["open-udp"] => UdpSocket::bind("127.0.0.1:0").map(|_| ()),
        ["allocate", bytes] => allocate(number(bytes)?),
        ["use-threads", count] => use_threads(number(count)?),
        ["spin"] => loop {
            std::hint::spin_loop();
        },
        ["echo"] => echo(),
        ["await-end"] => await_end(),
        ["keep-child", mode] => keep_child(mode),
        ["launch", mode] => launch(mode),
        ["environment", name] => env::var_os(name).map(|_| ()).ok_or_else(|| io::Error::from_raw_os_error(2)),
        _ => linux::act(words),
    }
}

fn number(text: &str) -> io::Result<usize> {
    text.parse().map_err(io::Error::other)
}

fn allocate(bytes: usize) -> io::Result<()> {
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(io::Error::other)
}

fn use_threads(count: usize) -> io::Result<()> {
    let threads: Vec<_> =
        (0..count).map(|_| thread::Builder::new().spawn(|| ())).collect::<Result<_, _>>()?;
    threads.into_iter().for_each(|thread| drop(thread.join()));
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")?;
    io::stdout().flush()
}

/// Answers each line by the same line.
fn echo() -> io::Result<()> {
    io::stdin().lines().try_for_each(|line| say(&line?))
}

fn await_end() -> io::Result<()> {
    say("ready")?;
    io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
}

/// A service that is about to be killed, while its child runs.
fn keep_child(mode: &str) -> io::Result<()> {
    let launcher = Launcher::of_this_program(mode.parse().unwrap_or(Mode::Required))?;
    let this = env::current_exe()?;
    let mut command = launcher.command(&this, &Policy::default()).map_err(io::Error::other)?;
    command.arg("await-end");
    Spawner::shared().spawn(command)?.wait().map(|_| ())
}

/// Says what a launcher would execute.
fn launch(mode: &str) -> io::Result<()> {
    let launcher = Launcher::new("/service", mode.parse().map_err(io::Error::other)?);
    match launcher.command_line(Path::new("program"), &Policy::default()) {
        Ok(line) => say(&line.executable.display().to_string()),
        Err(error) => say(&error.to_string()),
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    pub(super) fn act(_words: &[&str]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::Unsupported.into())
    }
}

#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
mod linux {
    use std::fs;
    use std::io;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::process::{
        Pid, Resource, Signal, getrlimit, kill_process, set_parent_process_death_signal, setrlimit,
    };

    pub(super) fn act(words: &[&str]) -> io::Result<()> {
        match words {
            ["become", program] => Err(Command::new(program).exec()),
            ["link", target, link] => symlink(target, link),
            ["hard-link", target, link] => fs::hard_link(target, link),
            ["connect-unix", socket] => UnixStream::connect(socket).map(|_| ()),
            ["open-abstract", name] => {
                UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?).map(|_| ())
            }
            ["signal", process] => {
                let process = Pid::from_raw(super::number(process)? as i32);
                Ok(kill_process(process.ok_or(io::ErrorKind::InvalidInput)?, Signal::CONT)?)
            }
            // Of the standard output, which could then signal that process.
            ["own-signals"] => file_control(libc::F_SETOWN),
            ["outlive-parent"] => Ok(set_parent_process_death_signal(None)?),
            ["set-limit"] => Ok(setrlimit(Resource::Core, getrlimit(Resource::Core))?),
            // A link of /proc can be read without opening anything, so only a closed descriptor is missing.
            ["descriptor", number] => fs::read_link(format!("/proc/self/fd/{number}")).map(|_| ()),
            ["call", number] => call(super::number(number)?),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn file_control(request: libc::c_int) -> io::Result<()> {
        // SAFETY: the request takes a number.
        let result = unsafe { libc::fcntl(1, request, 1) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// A system call without arguments.
    fn call(number: usize) -> io::Result<()> {
        // SAFETY: the calls of the tests read no memory through null pointers, they fail.
        let result = unsafe { libc::syscall(number as libc::c_long, 0, 0, 0, 0, 0, 0) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}
