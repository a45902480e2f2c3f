//! Starts children from a thread that lives as long as the process.

use std::ffi::OsStr;
use std::io;
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use crate::{SUBCOMMAND, system};

/// Starts children that die with this process, however it dies, in every mode of a launcher (on Linux; elsewhere they
/// live on).
///
/// It has a thread of its own, because the kernel kills a child when the *thread* that spawned it ends. The threads of
/// a pool come and go.
#[derive(Debug)]
pub struct Spawner {
    orders: Sender<Order>,
}

struct Order {
    command: Command,
    answer: Sender<io::Result<Child>>,
}

impl Spawner {
    /// The one of this process. Its thread starts at the first call and never ends.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Spawner> = LazyLock::new(Spawner::start);
        &SHARED
    }

    fn start() -> Self {
        let (orders, received) = mpsc::channel();
        // Where no thread can start, `received` is dropped with the closure, and `spawn` says that nobody listens.
        let _ = thread::Builder::new().name("reprise-spawner".into()).spawn(|| serve(received));
        Self { orders }
    }

    /// Spawns a command. As with [`Command::spawn`], the caller must wait for the child.
    ///
    /// # Errors
    /// The command could not be started, or this system has no thread left for the spawner.
    pub fn spawn(&self, command: Command) -> io::Result<Child> {
        let (answer, child) = mpsc::channel();
        let nobody =
            || io::Error::other("cannot start programs: the thread that does so could not be started");
        self.orders.send(Order { command, answer }).map_err(|_| nobody())?;
        child.recv().map_err(|_| nobody())?
    }

    /// Spawns a command with an empty standard input, and waits for its end and its output in the calling thread.
    ///
    /// # Errors
    /// As [`Self::spawn`], or its output could not be read.
    pub fn run(&self, mut command: Command) -> io::Result<Output> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.spawn(command)?.wait_with_output()
    }
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.command.fmt(f)
    }
}

fn serve(orders: Receiver<Order>) {
    for Order { mut command, answer } in orders {
        let child = tie(&mut command).and_then(|()| command.spawn());
        if let Err(mpsc::SendError(Ok(mut orphan))) = answer.send(child) {
            // Who asked is gone; a child that nobody waits for would stay as a zombie.
            let _ = orphan.kill().and_then(|()| orphan.wait().map(|_| ()));
        }
    }
}

/// Makes the child die with this process. A sandboxed one sees to it itself: what runs between `fork` and `exec` makes
/// the standard library copy the page tables of the whole process first, which takes long in a large one.
fn tie(command: &mut Command) -> io::Result<()> {
    let is_sandboxed = command.get_args().next() == Some(OsStr::new(SUBCOMMAND));
    if is_sandboxed { Ok(()) } else { system::die_with_parent(command) }
}
