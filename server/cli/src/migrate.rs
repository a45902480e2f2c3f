//! `reprise migrate`: migrates the database to the newest schema.

use std::sync::Arc;

use clap::Args;
use serde_json::json;

use reprise_research::terminal::say;
use reprise_server::catalog::{self, Catalog};
use reprise_server::config::default_data_dir;

/// The database to open.
#[derive(Debug, Clone, Args)]
pub(crate) struct DatabaseArgs {
    /// sqlite:PATH or postgres://… [default: the embedded SQLite in the data folder]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: Option<String>,
    /// Folder of the embedded database
    #[arg(long, env = "REPRISE_DATA_DIR", default_value_os_t = default_data_dir())]
    pub(crate) data_dir: std::path::PathBuf,
}

impl DatabaseArgs {
    /// The database's URL.
    pub(crate) fn url(&self) -> String {
        self.database_url.clone().unwrap_or_else(|| catalog::embedded_url(&self.data_dir))
    }

    /// Opens the database. Makes it, and the data folder, if they do not exist.
    pub(crate) async fn open(&self) -> anyhow::Result<Arc<Catalog>> {
        std::fs::create_dir_all(&self.data_dir)?;
        Ok(catalog::open(&self.url()).await?)
    }
}

/// Arguments of `reprise migrate`, and of commands on the index.
#[derive(Debug, Clone, Args)]
pub(crate) struct MigrateArgs {
    /// The database
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Opens the database, which migrates it.
pub(crate) async fn run(args: MigrateArgs) -> anyhow::Result<()> {
    let catalog = args.database.open().await?;
    if args.json {
        say(json!({"database": catalog.kind()}))?;
    } else {
        say(format!("the {} schema is up to date", catalog.kind()))?;
    }
    catalog.close().await;
    Ok(())
}
