//! `reprise doctor`: says what is missing or wrong on this machine, and what to do about it. Changes nothing.

mod check;
mod database;
mod engine;
mod folder;
mod machine;
mod programs;

use anyhow::bail;
use clap::Args;
use reprise_research::terminal::say;
use reprise_server::config::EngineArgs;
use serde_json::json;

use crate::migrate::MigrateArgs;
use check::{Check, State};

/// Arguments of `reprise doctor`: those of the server that is examined.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    at: MigrateArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Prints one line a check, or JSON; fails if one of them found a problem.
pub(crate) async fn run(args: DoctorArgs) -> anyhow::Result<()> {
    let DoctorArgs { at, engine } = args;
    let checks = checks(&at, &engine).await?;
    let problems = checks.iter().filter(|check| check.state == State::Problem).count();
    if at.json {
        say(json!({"checks": checks, "problems": problems}))?;
    } else {
        checks.iter().try_for_each(|check| say(check.line()))?;
    }
    match problems {
        0 => Ok(()),
        1 => bail!("there is a problem"),
        more => bail!("there are {more} problems"),
    }
}

/// What keeps a server from starting comes first.
async fn checks(at: &MigrateArgs, engine: &EngineArgs) -> anyhow::Result<Vec<Check>> {
    let url = at.database.url();
    let mut checks = tokio::task::spawn_blocking(programs::checks).await?;
    checks.extend(folder::checks(&at.database.data_dir, url.starts_with("sqlite:")));
    let (found, facts) = database::checks(&url).await;
    checks.extend(found);
    checks.push(engine::check(engine, &url, facts.as_ref()).await);
    checks.extend(tokio::task::spawn_blocking(machine::checks).await?);
    Ok(checks)
}
