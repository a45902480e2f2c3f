//! `reprise migrate`: migrates the database to the newest schema.

use clap::Args;
use serde_json::json;

use reprise_research::terminal::say;
use reprise_server::catalog;
use reprise_server::config::default_data_dir;

/// The database to open.
#[derive(Debug, Clone, Args)]
pub(crate) struct MigrateArgs {
    /// sqlite:PATH or postgres://… [default: the embedded SQLite in the data folder]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// Folder of the embedded database
    #[arg(long, env = "REPRISE_DATA_DIR", default_value_os_t = default_data_dir())]
    pub(crate) data_dir: std::path::PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Opens the database, which migrates it.
pub(crate) async fn run(args: MigrateArgs) -> anyhow::Result<()> {
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
