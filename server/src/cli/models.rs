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
        say(format!("{} ({}): {}", model.name, model.family, model.modality))?;
        for (what, words) in [
            ("dimension", model.dimension),
            ("text tokens", model.text_tokens),
            ("licence", model.licence),
            ("source", model.source),
            ("verified", model.verified),
            ("note", model.note),
        ] {
            say(format!("    {what:<12} {words}"))?;
        }
    }
    Ok(())
}
