//! `reprise openapi`: prints the API contract.

use reprise_research::terminal::say;
use reprise_server::http;

/// Prints the OpenAPI file of the server's routes.
pub(crate) fn run() -> anyhow::Result<()> {
    say(format!("{:#}", http::openapi()))?;
    Ok(())
}
