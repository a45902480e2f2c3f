//! `reprise openapi`: the contract as a file.

use reprise_research::terminal::say;
use reprise_server::http;

/// Prints the OpenAPI file that the routes make.
pub(crate) fn run() -> anyhow::Result<()> {
    say(http::openapi().to_pretty_json()?)?;
    Ok(())
}
