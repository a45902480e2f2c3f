//! The `reprise` binary: parse, start the logs, call a command.

use reprise::cli::{Cli, run};

fn main() -> std::process::ExitCode {
    reprise::telemetry::start_logs();
    run(Cli::of_command_line())
}
