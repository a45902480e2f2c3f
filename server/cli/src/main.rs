//! The `reprise` binary: parses the command line, starts the logs and runs one command. Each command has its own
//! file.

mod backup;
mod broadcast;
mod client;
mod demo;
mod doctor;
mod embed;
mod eval;
mod feedback;
mod generate;
mod index;
mod ingest;
mod keys;
mod migrate;
mod models;
mod openapi;
mod outcome;
mod read_text;
mod restore;
mod sandbox;
mod search;
mod segment;
mod serve;
mod sidecars;
mod speech;
mod step;
mod transcribe;
mod verify;

use std::ffi::OsStr;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use reprise_encoders::with_causes;
use reprise_research::{covr, speed, synth, train};
use reprise_server::telemetry;

/// Finds moments in video
#[derive(Debug, Parser)]
#[command(name = "reprise", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    sandbox: sandbox::SandboxArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server: REST API and web page
    Serve(Box<serve::ServeArgs>),
    /// Run a server with a few videos for a first look
    Demo(Box<demo::DemoArgs>),
    /// Add videos to a running server
    Ingest(ingest::IngestArgs),
    /// Search a running server
    Search(search::SearchArgs),
    /// Print where a video would be cut
    Segment(segment::SegmentArgs),
    /// Print the text on screen in a video
    ReadText(read_text::ReadTextArgs),
    /// Print the vector of a text or video, or write those of many
    Embed(embed::EmbedArgs),
    /// Ask a model that writes about a video or picture
    Generate(Box<generate::GenerateArgs>),
    /// Transcribe the speech of video or audio files
    Transcribe(Box<transcribe::TranscribeArgs>),
    /// List the models that can be loaded
    Models(models::ModelsArgs),
    /// Make data for composed retrieval from your own labelled footage
    Covr(covr::CovrArgs),
    /// Render the benchmark: clips with exact labels, triplets, broadcasts
    Synth(synth::SynthArgs),
    /// Train the sports model, or its baselines, on clips with labels
    Train(train::TrainArgs),
    /// Measure the quality of answers on a benchmark
    Eval(Box<eval::EvalArgs>),
    /// Measure the speed of a model on this machine
    Bench(speed::BenchArgs),
    /// Say what is missing or wrong on this machine, and what to do
    Doctor(doctor::DoctorArgs),
    /// Bring the database to the newest schema
    Migrate(migrate::MigrateArgs),
    /// Make, list and revoke API keys
    Keys(keys::KeysArgs),
    /// Export what was done with the hits of searches
    Feedback(feedback::FeedbackArgs),
    /// Write all rows and files into a folder; servers may be running
    Backup(backup::BackupArgs),
    /// Fill an empty database and data folder with a backup
    Restore(restore::RestoreArgs),
    /// Compare files, rows, vectors and index; servers may be running
    Verify(verify::VerifyArgs),
    /// Check, rebuild or measure the index
    Index(index::IndexArgs),
    /// Print the OpenAPI file
    Openapi,
}

fn main() -> ExitCode {
    sandbox::enter_if_asked();
    let cli = command_line();
    // A demo prints its own lines.
    let logs = if matches!(cli.command, Command::Demo(_)) { "warn" } else { "info,sqlx=warn" };
    run(cli, logs)
}

/// Parses command line and environment. Prints help or an error if needed, and then exits.
fn command_line() -> Cli {
    let matches = without_empty_variables(Cli::command()).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Treats an empty environment variable as unset: compose files and scripts leave settings out in this way.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    let command =
        command.mut_args(|arg| if arg.get_env().is_some_and(is_empty) { arg.env(None::<&str>) } else { arg });
    command.mut_subcommands(without_empty_variables)
}

/// Runs a command with this filter of its logs. Prints errors with their causes to stderr.
fn run(cli: Cli, logs: &str) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let otlp_endpoint = match &cli.command {
        Command::Serve(args) => args.traces.otlp_endpoint.clone(),
        Command::Demo(args) => args.traces.otlp_endpoint.clone(),
        _ => None,
    };
    let done = runtime.block_on(async {
        telemetry::start(logs, otlp_endpoint.as_deref())?;
        cli.sandbox.start()?;
        if matches!(cli.command, Command::Serve(_)) {
            cli.sandbox.log();
        }
        dispatch(cli.command).await
    });
    telemetry::traces::flush();
    // An abandoned decode must not delay the exit.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    let broken_pipe = |it: &std::io::Error| it.kind() == std::io::ErrorKind::BrokenPipe;
    if error.downcast_ref::<std::io::Error>().is_some_and(broken_pipe) {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(std::io::stderr(), "reprise: {}", with_causes(error.as_ref()));
    ExitCode::FAILURE
}

async fn dispatch(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Serve(args) => serve::run(*args).await,
        Command::Demo(args) => demo::run(*args).await,
        Command::Ingest(args) => ingest::run(args).await,
        Command::Search(args) => search::run(args).await,
        Command::Segment(args) => segment::run(args).await,
        Command::ReadText(args) => read_text::run(args).await,
        Command::Embed(args) => embed::run(args).await,
        Command::Generate(args) => generate::run(*args).await,
        Command::Transcribe(args) => transcribe::run(*args).await,
        Command::Models(args) => models::run(&args),
        Command::Covr(args) => covr::run(args).await,
        Command::Synth(args) => synth::run(args).await,
        Command::Train(args) => train::run(args).await,
        Command::Eval(args) => eval::run(*args).await,
        Command::Bench(args) => speed::run(args).await,
        Command::Doctor(args) => doctor::run(args).await,
        Command::Migrate(args) => migrate::run(args).await,
        Command::Keys(args) => keys::run(args).await,
        Command::Feedback(args) => feedback::run(args).await,
        Command::Backup(args) => backup::run(args).await,
        Command::Restore(args) => restore::run(args).await,
        Command::Verify(args) => verify::run(args).await,
        Command::Index(args) => index::run(args).await,
        Command::Openapi => openapi::run(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
