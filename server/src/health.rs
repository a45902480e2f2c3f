//! The state of each part of a running server, in words for operators and load balancers.

use std::sync::atomic::Ordering;

use crate::app::App;
use crate::catalog::CatalogError;
use crate::models::LoadedSpace;

/// Fewer free bytes than this are called low.
const LOW_DISK_BYTES: u64 = 1 << 30;
/// With fewer free bytes nothing but a few rows can be written.
pub(crate) const FULL_DISK_BYTES: u64 = 1 << 20;
/// Abandoned workers of one model after which the server is not ready: what made two of them stuck will go on.
const MOST_ABANDONED: usize = 2;

/// The state of one part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartState {
    /// The part and its state, in one line.
    pub line: String,
    /// Why the server should get no requests because of it.
    pub fault: Option<String>,
}

impl PartState {
    fn good(line: String) -> PartState {
        PartState { line, fault: None }
    }
}

/// The state of every part. The engine comes first; it never makes the server unready, because only searches need it.
///
/// # Errors
/// The catalog can't be read.
pub async fn states(app: &App) -> Result<Vec<PartState>, CatalogError> {
    let mut states = Vec::new();
    if !app.ready.load(Ordering::Acquire) {
        let fault = "the service is starting or stopping";
        states.push(PartState { line: fault.to_owned(), fault: Some(fault.to_owned()) });
    }
    let catalog = catalog(app).await;
    // The engine's lag can't be read from a catalog that is away.
    if catalog.fault.is_none() {
        states.push(PartState::good(engine(app).await?));
    }
    states.push(catalog);
    states.extend(app.spaces.all().iter().map(|space| model(space)));
    states.push(PartState::good(disk(app)));
    Ok(states)
}

async fn catalog(app: &App) -> PartState {
    let kind = app.catalog.kind();
    let Some(trouble) = app.catalog.write_trouble().await else {
        return PartState::good(format!("catalog {kind}: takes writes"));
    };
    tracing::warn!(trouble, "not ready: the database takes no writes");
    // The reason may hold addresses and paths, and anybody may ask.
    let fault = "the database takes no writes; the server's log says why".to_owned();
    PartState { line: format!("catalog {kind}: takes no writes"), fault: Some(fault) }
}

async fn engine(app: &App) -> Result<String, CatalogError> {
    let state = app.vectors.state().await?;
    let engine = state.kind.name();
    let behind = state.behind();
    if let Some(trouble) = state.trouble {
        tracing::warn!(engine, behind, trouble, "the vector engine is in trouble");
        // The reason may hold addresses, and the backlog tells what others store; anybody may ask.
        let what = if behind.is_some() { "in trouble" } else { "away" };
        return Ok(format!("engine {engine}: {what}; the server's log says why"));
    }
    Ok(match behind {
        Some(0) => format!("engine {engine}: up to date"),
        Some(_) => format!("engine {engine}: catching up"),
        None => format!("engine {engine}: away"),
    })
}

fn model(space: &LoadedSpace) -> PartState {
    of_model(&space.space.name, space.pool.alive(), space.pool.abandoned())
}

fn of_model(name: &str, is_alive: bool, abandoned: usize) -> PartState {
    let fault = match abandoned {
        _ if !is_alive => Some(format!("the model {name} has no worker left; restart the server")),
        MOST_ABANDONED.. => Some(format!(
            "{abandoned} workers of the model {name} got stuck; look at its device and restart the server"
        )),
        _ => None,
    };
    let line = match abandoned {
        _ if !is_alive => format!("model {name}: no worker"),
        0 => format!("model {name}: works"),
        _ => format!("model {name}: works; workers that got stuck and were replaced: {abandoned}"),
    };
    PartState { line, fault }
}

fn disk(app: &App) -> String {
    match app.storage.free_bytes() {
        Ok(free) => of_disk(free),
        Err(error) => format!("disk: unknown: {error}"),
    }
}

fn of_disk(free: u64) -> String {
    let gigabytes = free as f64 / 1e9;
    let state = match free {
        _ if free < FULL_DISK_BYTES => "full",
        _ if free < LOW_DISK_BYTES => "low",
        _ => "enough",
    };
    format!("disk: {state}: {gigabytes:.1} GB free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(is_alive: bool, abandoned: usize, expected: Option<&str>) {
        assert_eq!(of_model("tiny", is_alive, abandoned).fault.as_deref(), expected);
    }

    #[test]
    fn a_model_that_got_stuck_twice_is_a_fault() {
        check(true, 0, None);
        check(true, 1, None);
        let stuck = "2 workers of the model tiny got stuck; look at its device and restart the server";
        check(true, 2, Some(stuck));
        check(false, 2, Some("the model tiny has no worker left; restart the server"));
        let line = "model tiny: works; workers that got stuck and were replaced: 1";
        assert_eq!(of_model("tiny", true, 1).line, line);
    }

    #[test]
    fn a_disk_with_less_than_a_gigabyte_is_low() {
        assert_eq!(of_disk(5_000_000_000), "disk: enough: 5.0 GB free");
        assert_eq!(of_disk(300_000_000), "disk: low: 0.3 GB free");
        assert_eq!(of_disk(4096), "disk: full: 0.0 GB free");
    }
}
