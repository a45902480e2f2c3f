//! Measures what the sandbox adds to the start of a program: `overhead [PROGRAM] [RUNS]`, by default ffprobe, 30 times.
//! It prints the medians in milliseconds.

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use reprise_sandbox::{Launcher, Mode, Policy, SUBCOMMAND, Spawner, enter};

const MODES: [Mode; 2] = [Mode::Off, Mode::Required];

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args_os().skip(1).peekable();
    if args.next_if(|first| first == SUBCOMMAND).is_some() {
        enter(args);
    }
    let program = args.next().unwrap_or_else(|| "ffprobe".into());
    let runs = args.next().and_then(|text| text.to_str()?.parse().ok()).unwrap_or(30);
    // In turn, so that other work on the machine slows both.
    let mut times = [const { Vec::new() }; MODES.len()];
    for _ in 0..runs {
        for (mode, times) in MODES.into_iter().zip(&mut times) {
            times.push(start(mode, Path::new(&program))?);
        }
    }
    for (mode, times) in MODES.into_iter().zip(&mut times) {
        times.sort();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        writeln!(io::stdout(), "{mode}: {:.1} ms", median.as_secs_f64() * 1000.0)?;
    }
    Ok(())
}

/// How long a program takes to say its version.
fn start(mode: Mode, program: &Path) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    let mut command = Launcher::of_this_program(mode)?.command(program, &Policy::default())?;
    command.arg("-version");
    Spawner::shared().run(command)?;
    Ok(start.elapsed())
}
