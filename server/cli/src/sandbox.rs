//! The sandbox of ffmpeg: its flags, and the hidden subcommand that becomes ffmpeg.

use clap::Args;
use reprise_encoders::video::use_sandbox;
use reprise_sandbox::{Launcher, Mode, SUBCOMMAND, SandboxError, support};

/// Whether ffmpeg and ffprobe run in a sandbox.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct SandboxArgs {
    /// End with an error if this system has no sandbox for ffmpeg
    #[arg(long, env = "REPRISE_REQUIRE_SANDBOX", global = true)]
    require_sandbox: bool,
    /// Run ffmpeg without a sandbox, for a wrapper script in its place, say
    #[arg(long, env = "REPRISE_NO_SANDBOX", global = true)]
    no_sandbox: bool,
}

impl SandboxArgs {
    /// Chooses the sandbox of this process.
    ///
    /// # Errors
    /// A sandbox is required, and this system has none or it is switched off.
    pub(crate) fn start(&self) -> anyhow::Result<()> {
        let mode = match (self.require_sandbox, self.no_sandbox) {
            (true, true) => anyhow::bail!("--require-sandbox and --no-sandbox exclude each other"),
            (true, false) => Mode::Required,
            (false, true) => Mode::Off,
            (false, false) => Mode::WhereSupported,
        };
        if mode == Mode::Required && !support().is_complete() {
            return Err(SandboxError::Unsupported(support()).into());
        }
        use_sandbox(Launcher::of_this_program(mode)?);
        Ok(())
    }

    /// Logs whether ffmpeg runs in a sandbox.
    pub(crate) fn log(&self) {
        match support() {
            _ if self.no_sandbox => tracing::warn!("ffmpeg runs without a sandbox, as --no-sandbox asks"),
            support if support.is_complete() => tracing::info!(%support, "ffmpeg runs in a sandbox"),
            support => tracing::warn!("{support}"),
        }
    }
}

/// Becomes the program that the arguments name, if they begin with the hidden subcommand.
pub(crate) fn enter_if_asked() {
    let mut args = std::env::args_os().skip(1);
    if args.next().is_some_and(|first| first == SUBCOMMAND) {
        reprise_sandbox::enter(args);
    }
}
