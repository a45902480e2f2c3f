//! `reprise migrate`: brings the database to the newest schema, and ends.

use clap::Args;
use serde_json::json;

use super::say;
use crate::catalog;
use crate::config::default_data_dir;

/// Which database.
#[derive(Debug, Clone, Args)]
pub(super) struct MigrateArgs {
    /// sqlite:PATH or postgres://…; the embedded SQLite in the data folder if not given
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(super) database_url: Option<String>,
    /// Folder of the embedded database
    #[arg(long, env = "REPRISE_DATA_DIR", default_value_os_t = default_data_dir())]
    pub(super) data_dir: std::path::PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Opening migrates.
pub(super) async fn run(args: MigrateArgs) -> anyhow::Result<()> {
    std::fs::create_dir_all(&args.data_dir)?;
    let url = args.database_url.unwrap_or_else(|| catalog::embedded_url(&args.data_dir));
    let catalog = catalog::open(&url).await?;
    if args.json {
        say(json!({"database": catalog.kind()}))?;
    } else {
        say(format!("the {} schema is up to date", catalog.kind()))?;
    }
    catalog.close().await;
    Ok(())
}
