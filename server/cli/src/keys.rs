//! `reprise keys`: makes, lists and revokes API keys, in the database itself.

use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use reprise_research::terminal::say;
use reprise_server::access::KeyToken;
use reprise_server::catalog::{
    ApiKey, Catalog, KeyLimits, NewApiKey, NewAuditEntry, Scope, VideoFilter, instant,
};
use serde_json::json;
use uuid::Uuid;

use crate::migrate::DatabaseArgs;

/// Arguments of `reprise keys`.
#[derive(Debug, Args)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    /// Make a key and print it, once; from then on every request needs a key
    Add(AddArgs),
    /// List the keys, revoked ones too
    List(ListArgs),
    /// Revoke a key; a running server refuses it within a second
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
struct AddArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// A name for people
    #[arg(long)]
    name: String,
    /// What the key may do: read, write, admin, separated by `,`; admin includes the others
    #[arg(long = "scope", value_delimiter = ',', required = true)]
    scopes: Vec<Scope>,
    /// Filter of the videos that the key reaches, such as {"field": "metadata.team", "eq": "a"}; all if not given
    #[arg(long, value_name = "FILTER")]
    only: Option<String>,
    /// Days until the key expires; it does not expire if not given
    #[arg(long, value_name = "DAYS")]
    expires_in_days: Option<u32>,
    /// Requests per minute, in each server process
    #[arg(long, value_name = "N")]
    requests_per_minute: Option<u32>,
    /// Searches at once, in each server process
    #[arg(long, value_name = "N")]
    searches_at_once: Option<u32>,
    /// Bytes of all videos that the key adds
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(i64).range(0..))]
    stored_bytes: Option<i64>,
    /// Seconds of all videos that the key adds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(0..))]
    stored_seconds: Option<i64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct RevokeArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// The key's id, as the list shows it
    id: Uuid,
}

/// Runs one of the subcommands.
pub(crate) async fn run(args: KeysArgs) -> anyhow::Result<()> {
    match args.command {
        KeysCommand::Add(args) => add(args).await,
        KeysCommand::List(args) => list(args).await,
        KeysCommand::Revoke(args) => revoke(args).await,
    }
}

async fn add(args: AddArgs) -> anyhow::Result<()> {
    let catalog = args.database.open().await?;
    let expires_at_ms =
        args.expires_in_days.map(|days| instant::now_ms() + i64::from(days) * 24 * 3600 * 1000);
    let new = NewApiKey {
        only: args.only.as_deref().map(filter).transpose()?,
        name: args.name,
        scopes: args.scopes,
        limits: KeyLimits {
            requests_per_minute: args.requests_per_minute,
            searches_at_once: args.searches_at_once,
            stored_bytes: args.stored_bytes,
            stored_seconds: args.stored_seconds,
        },
        expires_at_ms,
    };
    new.check()?;
    let token = KeyToken::random();
    let key = catalog.add_key(token.id(), token.hash(), new).await?;
    log(&catalog, Change { method: "POST", path: "/v1/keys".to_owned(), status: 201, command: "keys add" })
        .await?;
    match args.json {
        true => say(json!({"key": token.to_string(), "id": key.id, "name": key.name}))?,
        false => say(token)?,
    }
    catalog.close().await;
    Ok(())
}

fn filter(text: &str) -> anyhow::Result<Arc<VideoFilter>> {
    let source = serde_json::from_str(text).context("--only is not JSON")?;
    Ok(Arc::new(VideoFilter::parse(&source).context("--only can't be used")?))
}

async fn list(args: ListArgs) -> anyhow::Result<()> {
    let catalog = args.database.open().await?;
    for key in catalog.keys().await? {
        if args.json { say(described(&key))? } else { say(line(&key))? }
    }
    catalog.close().await;
    Ok(())
}

fn described(key: &ApiKey) -> serde_json::Value {
    json!({
        "id": key.id,
        "name": key.name,
        "scopes": key.scopes,
        "only": key.only.as_ref().map(|only| only.to_json()),
        "created_at": instant::format(key.created_at_ms),
        "expires_at": key.expires_at_ms.map(instant::format),
        "last_used_at": key.last_used_at_ms.map(instant::format),
        "revoked_at": key.revoked_at_ms.map(instant::format),
    })
}

/// A key on one line: its id, name, scopes, filter and state.
fn line(key: &ApiKey) -> String {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.name()).collect();
    let state = match (key.revoked_at_ms, key.expires_at_ms) {
        (Some(at), _) => format!("revoked {}", instant::format(at)),
        (None, Some(at)) => format!("expires {}", instant::format(at)),
        (None, None) => "valid".to_owned(),
    };
    let only = key.only.as_ref().map(|only| format!("  {}", only.to_json())).unwrap_or_default();
    format!("{}  {}  {}  {state}{only}", key.id, key.name, scopes.join(","))
}

async fn revoke(args: RevokeArgs) -> anyhow::Result<()> {
    let catalog = args.database.open().await?;
    let revoked = catalog.revoke_key(args.id).await?;
    let key = revoked.ok_or_else(|| anyhow!("there is no key {}", args.id))?;
    let path = format!("/v1/keys/{}", args.id);
    log(&catalog, Change { method: "DELETE", path, status: 200, command: "keys revoke" }).await?;
    catalog.close().await;
    say(line(&key))?;
    Ok(())
}

/// A change that this program made in the database itself, as the request that makes the same change.
struct Change {
    method: &'static str,
    path: String,
    status: u16,
    command: &'static str,
}

/// Adds the change to the audit log, where its command stands for the id of a request.
async fn log(catalog: &Catalog, change: Change) -> anyhow::Result<()> {
    let Change { method, path, status, command } = change;
    let (method, request_id) = (method.to_owned(), format!("reprise {command}"));
    let entry = NewAuditEntry { key: None, key_name: None, method, path, status, request_id };
    catalog.log_request(entry).await.context("the key was changed, but the audit log lacks it")
}
