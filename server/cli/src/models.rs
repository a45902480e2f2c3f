//! `reprise models`: lists the models that can be loaded.

use clap::Args;
use reprise_encoders::usable_devices;
use serde_json::json;

use reprise_research::terminal::say;

/// Arguments of `reprise models`.
#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the model families, the built-in models and the usable devices.
pub(crate) fn run(args: &ModelsArgs) -> anyhow::Result<()> {
    let known = reprise_encoders::registry::known();
    if args.json {
        say(json!({"items": known, "devices": usable_devices()}))?;
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
        for published in model.published {
            let licence = published.licence.unwrap_or("unknown");
            let size = published
                .bytes
                .map_or("unknown".to_owned(), |bytes| format!("about {} MB", bytes / 1_000_000));
            say(format!(
                "    {:<12} {}: {}, licence {licence}, size {size}",
                "by name", published.model, published.purpose
            ))?;
        }
    }
    for device in usable_devices() {
        let precisions = device.precisions.iter().map(|it| it.name()).collect::<Vec<_>>().join(", ");
        say(format!("runs on {}, in {precisions}", device.name))?;
    }
    Ok(())
}
