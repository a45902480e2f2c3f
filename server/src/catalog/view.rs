//! Reads for one caller: every read that can reveal a video uses a [`View`].

use super::database::{Database, Row, Sql, Value};
use super::error::CatalogError;
use super::store::Catalog;
use crate::terms::KeySet;

/// The videos that a caller may see. Every search and every read through a [`View`] takes one.
///
/// It has no default on purpose: each reader must choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visibility {
    /// All videos except deleted ones.
    All,
}

/// The catalog for one caller. Hides invisible videos with their spans, cues and jobs.
#[derive(Clone, Copy)]
pub struct View<'a> {
    database: &'a Database,
    visibility: &'a Visibility,
}

/// The name for the table of videos in a view's statements; always used with an alias.
const VISIBLE_VIDEOS: &str = "visible_videos";

impl Catalog {
    /// A view of the catalog for a caller with this visibility.
    pub fn view<'a>(&'a self, visibility: &'a Visibility) -> View<'a> {
        View { database: &self.database, visibility }
    }
}

impl View<'_> {
    /// All rows of a statement over `visible_videos`.
    pub(super) async fn rows(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, CatalogError> {
        self.database.rows(self.restricted(sql.into()), values).await
    }

    /// The first row of a statement over `visible_videos`.
    pub(super) async fn row(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, CatalogError> {
        self.database.row(self.restricted(sql.into()), values).await
    }

    /// The keys in the first column of a statement over `visible_videos`.
    pub(super) async fn keys(&self, sql: impl Into<Sql>, values: Vec<Value>) -> Result<KeySet, CatalogError> {
        self.database.keys(self.restricted(sql.into()), values).await
    }

    /// The videos that the caller may see.
    pub(super) fn visibility(&self) -> &Visibility {
        self.visibility
    }

    /// The database, for rows that belong to results of this view.
    pub(super) fn database(&self) -> &Database {
        self.database
    }

    /// Replaces [`VISIBLE_VIDEOS`] in the statement by a select of the visible videos.
    fn restricted(&self, sql: Sql) -> Sql {
        let text = sql.of(self.database);
        debug_assert!(text.contains(VISIBLE_VIDEOS), "a view's statement reads every video: {text}");
        let videos = match self.visibility {
            Visibility::All => "(SELECT * FROM videos WHERE deleted_at_ms IS NULL)",
        };
        Sql::Built(text.replace(VISIBLE_VIDEOS, videos))
    }
}
