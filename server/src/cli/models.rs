//! `reprise models`: what can be loaded.

use clap::Args;
use serde_json::json;

use super::say;

/// Arguments of `reprise models`.
#[derive(Debug, Args)]
pub(super) struct ModelsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the families and the built-in models.
pub(super) fn run(args: &ModelsArgs) -> anyhow::Result<()> {
    let known = reprise_encoders::models::known();
    if args.json {
        say(json!({"items": known}))?;
        return Ok(());
    }
    for model in known {
        say(format!("{:<14} {:<14} {}", model.name, model.modality, model.note))?;
    }
    Ok(())
}
