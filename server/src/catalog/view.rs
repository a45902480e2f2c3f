//! Reads and changes for one caller: every call that can reveal or change a video uses a [`View`].

use uuid::Uuid;

use super::database::{Database, Row, Sql, Tx, Value, values};
use super::error::CatalogError;
use super::store::Catalog;
use super::visibility::Visibility;
use crate::terms::KeySet;

/// The catalog for one caller. Hides invisible videos with their spans, cues and jobs, and refuses to change them.
#[derive(Clone, Copy)]
pub struct View<'a> {
    database: &'a Database,
    visibility: &'a Visibility,
    /// The caller's API key, for what belongs to a key and not to a video.
    key: Option<Uuid>,
}

/// The names for the table of videos in a view's statements, always used with an alias, and their conditions on `videos f`.
const VIEWS: [(&str, &str); 2] = [
    ("visible_videos", "f.deleted_at_ms IS NULL"),
    ("trashed_videos", "f.deleted_at_ms IS NOT NULL AND NOT f.purging"),
];

impl Catalog {
    /// A view of the catalog for a caller with this visibility.
    pub fn view<'a>(&'a self, visibility: &'a Visibility) -> View<'a> {
        View { database: &self.database, visibility, key: None }
    }
}

impl<'a> View<'a> {
    /// The same view, for the holder of an API key.
    pub fn of_key(self, key: Option<Uuid>) -> View<'a> {
        View { key, ..self }
    }
}

impl View<'_> {
    /// The caller's API key.
    pub(super) fn key(&self) -> Option<Uuid> {
        self.key
    }

    /// All rows of a statement over `visible_videos`.
    pub(super) async fn rows(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, CatalogError> {
        let (sql, values) = restricted(self.visibility, &sql.into().of(self.database.is_postgres()), values);
        self.database.rows(sql, values).await
    }

    /// The first row of a statement over `visible_videos`.
    pub(super) async fn row(
        &self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, CatalogError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// The keys in the first column of a statement over `visible_videos`.
    pub(super) async fn keys(&self, sql: impl Into<Sql>, values: Vec<Value>) -> Result<KeySet, CatalogError> {
        let (sql, values) = restricted(self.visibility, &sql.into().of(self.database.is_postgres()), values);
        self.database.keys(sql, values).await
    }

    /// A transaction that changes visible videos only.
    pub(super) async fn begin(&self) -> Result<Tx, CatalogError> {
        Ok(self.database.begin().await?.within(self.visibility.clone()).of_key(self.key))
    }

    /// The videos that the caller may see.
    pub fn visibility(&self) -> &Visibility {
        self.visibility
    }

    /// The database, for rows that belong to results of this view.
    pub(super) fn database(&self) -> &Database {
        self.database
    }
}

/// Replaces the names of [`VIEWS`] in a statement by selects of the videos that the caller may see, whose values follow the
/// statement's own.
fn restricted(visibility: &Visibility, text: &str, mut values: Vec<Value>) -> (Sql, Vec<Value>) {
    let mut text = text.to_owned();
    let mut is_restricted = false;
    for (name, state) in VIEWS.into_iter().filter(|(name, _)| text.contains(name)).collect::<Vec<_>>() {
        let videos = match visibility {
            Visibility::All => format!("(SELECT f.* FROM videos f WHERE {state})"),
            Visibility::Matching(filter) => {
                let (condition, more) = filter.condition(values.len());
                values.extend(more);
                format!("(SELECT f.* FROM videos f WHERE {state} AND {condition})")
            }
        };
        text = text.replace(name, &videos);
        is_restricted = true;
    }
    debug_assert!(is_restricted, "a view's statement reads every video: {text}");
    (Sql::Built(text), values)
}

impl Tx {
    /// The first row of a statement over `visible_videos`.
    pub(super) async fn visible_row(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Option<Row>, CatalogError> {
        let (sql, values) = restricted(self.visibility(), &sql.into().of(self.is_postgres()), values);
        self.row(sql, values).await
    }

    /// All rows of a statement over `visible_videos`.
    pub(super) async fn visible_rows(
        &mut self,
        sql: impl Into<Sql>,
        values: Vec<Value>,
    ) -> Result<Vec<Row>, CatalogError> {
        let (sql, values) = restricted(self.visibility(), &sql.into().of(self.is_postgres()), values);
        self.rows(sql, values).await
    }

    /// The first row of a statement over `visible_videos`, for a caller with this visibility.
    pub(super) async fn row_seen_by(
        &mut self,
        visibility: &Visibility,
        sql: Sql,
        values: Vec<Value>,
    ) -> Result<Option<Row>, CatalogError> {
        let (sql, values) = restricted(visibility, &sql.of(self.is_postgres()), values);
        self.row(sql, values).await
    }

    /// Whether this transaction may see and change the video.
    pub(super) async fn sees(&mut self, video: Uuid) -> Result<bool, CatalogError> {
        if !self.visibility().is_limited() {
            return Ok(true);
        }
        let sql = "SELECT v.id FROM visible_videos v WHERE v.id = $1";
        Ok(self.visible_row(sql, values![video]).await?.is_some())
    }

    /// Checks that the caller still sees a video after a change.
    ///
    /// # Errors
    /// [`CatalogError::Outside`].
    pub(super) async fn must_see(&mut self, video: Uuid) -> Result<(), CatalogError> {
        if self.sees(video).await? { Ok(()) } else { Err(CatalogError::Outside) }
    }
}
