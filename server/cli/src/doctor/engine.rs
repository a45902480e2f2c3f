//! The check of the vector engine.

use std::time::Duration;

use reprise_encoders::with_causes;
use reprise_server::catalog::{self, DatabaseFacts, ExtensionFacts};
use reprise_server::config::EngineArgs;
use reprise_server::vectors::{EngineKind, HAS_MILVUS, is_recent_pgvector};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::check::Check;

const NAME: &str = "index engine";
/// Longest wait for a connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// `catalog`: facts about the catalog's database, where pgvector is if no URL names another one.
pub(super) async fn check(engine: &EngineArgs, catalog_url: &str, catalog: Option<&DatabaseFacts>) -> Check {
    match (engine.index_engine, engine.index_url.as_deref()) {
        (EngineKind::Builtin | EngineKind::HnswRs, Some(_)) => {
            let advice = "leave --index-url out, or choose --index-engine pgvector or milvus";
            Check::problem(NAME, format!("{} has no address", engine.index_engine.name()), advice)
        }
        (EngineKind::Builtin, None) => Check::ok(NAME, "builtin, in the data folder"),
        (EngineKind::HnswRs, None) => Check::ok(NAME, "hnsw_rs, in memory; built anew at each start"),
        (EngineKind::Pgvector, url) => pgvector(url, catalog_url, catalog).await,
        (EngineKind::Milvus, url) => milvus(url).await,
    }
}

async fn pgvector(url: Option<&str>, catalog_url: &str, catalog: Option<&DatabaseFacts>) -> Check {
    let advice = "name a Postgres with --index-url postgres://… or with --database-url";
    let facts = match url {
        Some(url) => catalog::facts(url).await,
        None if catalog_url.starts_with("sqlite:") => {
            return Check::problem(NAME, "pgvector needs a Postgres", advice);
        }
        None => Ok(catalog.cloned()),
    };
    match facts {
        Err(error) => Check::problem(NAME, format!("pgvector: {}", with_causes(&error)), advice),
        Ok(None) => Check::problem(NAME, "pgvector: its Postgres does not answer", advice),
        Ok(Some(facts)) => of_extension(facts.pgvector.as_ref()),
    }
}

fn of_extension(extension: Option<&ExtensionFacts>) -> Check {
    let Some(ExtensionFacts { available, created }) = extension else {
        let advice = "install it on the database's machine: https://github.com/pgvector/pgvector";
        return Check::problem(NAME, "this Postgres lacks the extension pgvector", advice);
    };
    let version = created.as_ref().unwrap_or(available);
    if !is_recent_pgvector(version) {
        let advice = "install a newer one and run ALTER EXTENSION vector UPDATE";
        return Check::problem(NAME, format!("pgvector {version} is older than 0.8.0"), advice);
    }
    match created {
        Some(_) => Check::ok(NAME, format!("pgvector {version}")),
        None => Check::ok(NAME, format!("pgvector {version}; the first start makes the extension")),
    }
}

async fn milvus(url: Option<&str>) -> Check {
    let advice = "start Milvus, or mend --index-url: http://HOST:19530";
    if !HAS_MILVUS {
        let advice = "build it with --features milvus";
        return Check::problem(NAME, "this reprise was built without Milvus", advice);
    }
    let address = url.and_then(|url| reqwest::Url::parse(url).ok());
    let Some(host) = address.as_ref().and_then(|url| url.host_str()) else {
        return Check::problem(NAME, "milvus needs an address", advice);
    };
    let port = address.as_ref().and_then(|url| url.port()).unwrap_or(19530);
    match timeout(PATIENCE, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => Check::ok(NAME, format!("milvus answers at {host}:{port}")),
        Ok(Err(error)) => Check::problem(NAME, format!("milvus at {host}:{port}: {error}"), advice),
        Err(_) => Check::problem(NAME, format!("milvus at {host}:{port} does not answer"), advice),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[track_caller]
    fn check(available: Option<&str>, created: Option<&str>, expected: State) {
        let facts = available.map(|available| ExtensionFacts {
            available: available.to_owned(),
            created: created.map(str::to_owned),
        });
        assert_eq!(of_extension(facts.as_ref()).state, expected, "{facts:?}");
    }

    #[test]
    fn pgvector_must_be_there_and_recent() {
        check(None, None, State::Problem);
        check(Some("0.8.1"), None, State::Ok);
        check(Some("0.8.1"), Some("0.8.0"), State::Ok);
        check(Some("0.8.1"), Some("0.7.4"), State::Problem);
        check(Some("0.5.0"), None, State::Problem);
    }
}
