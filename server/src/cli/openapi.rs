//! `reprise openapi`: the contract as a file.

use super::say;
use crate::http;

/// Prints the OpenAPI file that the routes make.
pub(super) fn run() -> anyhow::Result<()> {
    say(http::openapi().to_pretty_json()?)?;
    Ok(())
}
