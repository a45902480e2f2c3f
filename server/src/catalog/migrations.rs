//! The schema's migrations, embedded in the binary.
//!
//! `sqlx::migrate!` would embed them too. But its macro crate builds a database driver and SQLite's C code a second
//! time, for the compiler.

use include_dir::{Dir, include_dir};
use reprise_encoders::Cause;
use sqlx::SqlStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use super::error::CatalogError;

static SQLITE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../migrations/sqlite");
static POSTGRES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../migrations/postgres");

/// The migrations of SQLite.
pub(super) fn sqlite() -> Migrator {
    Migrator::with_migrations(SQLITE.files().filter_map(migration).collect())
}

/// The migrations of Postgres.
pub(super) fn postgres() -> Migrator {
    Migrator::with_migrations(POSTGRES.files().filter_map(migration).collect())
}

/// The version of the newest migration: the schema's version.
pub(super) fn newest() -> i64 {
    SQLITE.files().filter_map(migration).map(|migration| migration.version).max().unwrap_or_default()
}

/// The error of a database that could not be migrated; `opening` names the attempt.
pub(super) fn failed(opening: String, error: MigrateError) -> CatalogError {
    match error {
        MigrateError::VersionMissing(found) => unknown(found),
        error => CatalogError::Database(Cause::in_context(opening, error)),
    }
}

/// Refuses a migration that this binary does not have.
pub(super) fn unknown(found: i64) -> CatalogError {
    CatalogError::Schema(format!(
        "the database has migration {found}, and this reprise knows migrations up to {}: a newer reprise has used the \
         database; run that one, or restore a backup from before",
        newest()
    ))
}

/// The migration in a file with a name like `0001_catalog.sql`.
fn migration(file: &'static include_dir::File<'static>) -> Option<Migration> {
    let (version, description) = file.path().file_stem()?.to_str()?.split_once('_')?;
    let (version, description) = (version.parse().ok()?, description.replace('_', " "));
    let sql = SqlStr::from_static(file.contents_utf8()?);
    Some(Migration::new(version, description.into(), MigrationType::Simple, sql, false))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Databases store the version and checksum of each migration. Both must equal those of sqlx's own reader.
    async fn check(embedded: Migrator, folder: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations").join(folder);
        let expected = Migrator::new(path).await.unwrap();
        assert!(!embedded.migrations.is_empty());
        assert_eq!(embedded.migrations.len(), expected.migrations.len());
        for (got, expected) in embedded.iter().zip(expected.iter()) {
            assert_eq!(got.version, expected.version);
            assert_eq!(got.description, expected.description);
            assert_eq!(got.checksum, expected.checksum);
            assert_eq!(got.migration_type, expected.migration_type);
            assert_eq!(got.no_tx, expected.no_tx);
        }
    }

    #[tokio::test]
    async fn the_embedded_migrations_are_those_of_the_folders() {
        check(sqlite(), "sqlite").await;
        check(postgres(), "postgres").await;
    }
}
