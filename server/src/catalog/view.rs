//! Reading as one caller may see the catalog: every read that can reveal a video goes through a [`View`].

use super::database::{Database, Row, Sql, Value};
use super::error::CatalogError;
use super::store::Catalog;
use crate::terms::KeySet;

/// Which videos a caller may see. Every read of the catalog takes one, and every search.
///
/// It has no default on purpose: whoever reads says for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visibility {
    /// All of them; deleted ones are seen by nobody.
    All,
}

/// The catalog as one caller may see it: other videos, their spans, cues and jobs are not there.
#[derive(Clone, Copy)]
pub struct View<'a> {
    database: &'a Database,
    visibility: &'a Visibility,
}

/// How the statements of a view name the table of videos; always with an alias.
const VISIBLE_VIDEOS: &str = "visible_videos";

impl Catalog {
    /// The catalog as a caller may see it who may see these videos.
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

    /// Which videos the caller may see.
    pub(super) fn visibility(&self) -> &Visibility {
        self.visibility
    }

    /// The database, for rows that belong to what was read through the view.
    pub(super) fn database(&self) -> &Database {
        self.database
    }

    /// The statement with the videos that the caller may see in the place of [`VISIBLE_VIDEOS`].
    fn restricted(&self, sql: Sql) -> Sql {
        let text = sql.of(self.database);
        debug_assert!(text.contains(VISIBLE_VIDEOS), "a view's statement reads every video: {text}");
        let videos = match self.visibility {
            Visibility::All => "(SELECT * FROM videos WHERE deleted_at_ms IS NULL)",
        };
        Sql::Built(text.replace(VISIBLE_VIDEOS, videos))
    }
}
