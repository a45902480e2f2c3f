//! Lists of videos: filtered, in an order, a page at a time; and the columns that they are read by.

use uuid::Uuid;

use super::database::{Database, Row, Sql, Tx, Value, values};
use super::error::CatalogError;
use super::tables::videos::{from_row, video_columns};
use super::types::video_list::{look_up, title_key};
use super::types::*;
use super::view::View;

/// Rows per transaction, when the columns of an older database are filled.
const ROWS_PER_FILL: u32 = 500;

impl View<'_> {
    /// The videos of a list in its order, after `after`.
    ///
    /// # Errors
    /// [`CatalogError::Invalid`] for a place of another order, and if the database fails.
    pub async fn videos_of(
        &self,
        list: &VideoList,
        after: Option<&VideoPlace>,
        limit: u32,
    ) -> Result<Vec<Video>, CatalogError> {
        let from = if list.trashed { "trashed_videos" } else { "visible_videos" };
        let mut values = values![];
        let mut sql = format!("SELECT {} FROM {from} v WHERE TRUE", video_columns!());
        sql.push_str(&conditions(list, &mut values));
        if let Some(place) = after {
            sql.push_str(&behind(list.order, place, &mut values)?);
        }
        values.push(limit.into());
        sql.push_str(&format!(" ORDER BY {} LIMIT ${}", terms(list.order), values.len()));
        let rows = self.rows(Sql::Built(sql), values).await?;
        rows.iter().map(from_row).collect()
    }
}

/// What a list asks of a video `v`.
fn conditions(list: &VideoList, values: &mut Vec<Value>) -> String {
    let mut sql = String::new();
    let mut add = |before: &str, value: Value, after: &str, values: &mut Vec<Value>| {
        values.push(value);
        sql.push_str(&format!(" AND {before} ${}{after}", values.len()));
    };
    for tag in list.tags.iter() {
        let has = "EXISTS (SELECT 1 AS one FROM video_tags g WHERE g.video = v.id AND g.key =";
        add(has, tag.key().to_vec().into(), ")", values);
    }
    for word in &list.words {
        add("v.look_up LIKE", word.pattern().into(), r" ESCAPE '\'", values);
    }
    if let Some(state) = list.state {
        add("v.state =", state.name().into(), "", values);
    }
    if let Some(since) = list.added_since_ms {
        add("v.created_at_ms >=", since.into(), "", values);
    }
    if let Some(folder) = &list.folder {
        sql.push_str(&within(folder, list.only_itself, values));
    }
    match list.warned {
        Some(true) => sql.push_str(&format!(" AND ({WARNED})")),
        Some(false) => sql.push_str(&format!(" AND NOT ({WARNED})")),
        None => {}
    }
    sql
}

/// A video `v` that has warnings, of its file or of its subtitles.
const WARNED: &str = "v.warnings <> '[]' OR EXISTS \
                      (SELECT 1 AS one FROM tracks t WHERE t.video = v.id AND t.warnings <> '')";

/// What an order compares before the id.
fn compared(order: VideoOrder) -> &'static str {
    match order {
        VideoOrder::Oldest | VideoOrder::Newest => "",
        VideoOrder::Title => "v.title_key",
        VideoOrder::Longest => "coalesce(v.duration_ms, -1)",
        VideoOrder::Largest => "v.bytes",
    }
}

/// The terms of `ORDER BY`.
fn terms(order: VideoOrder) -> String {
    match order {
        VideoOrder::Oldest => "v.id".to_owned(),
        VideoOrder::Newest => "v.id DESC".to_owned(),
        VideoOrder::Title => format!("{}, v.id", compared(order)),
        VideoOrder::Longest | VideoOrder::Largest => format!("{} DESC, v.id", compared(order)),
    }
}

/// The condition that a video `v` comes after a place.
fn behind(order: VideoOrder, place: &VideoPlace, values: &mut Vec<Value>) -> Result<String, CatalogError> {
    if !order.compares(&place.key) {
        return Err(CatalogError::Invalid("the place belongs to another order".into()));
    }
    let key: Value = match &place.key {
        PlaceKey::Nothing => {
            values.push(place.id.into());
            let than = if order == VideoOrder::Newest { "<" } else { ">" };
            return Ok(format!(" AND v.id {than} ${}", values.len()));
        }
        PlaceKey::Title(key) => key.clone().into(),
        PlaceKey::Number(number) => (*number).into(),
    };
    values.extend([key, place.id.into()]);
    let (compared, than) = (compared(order), if order == VideoOrder::Title { ">" } else { "<" });
    let (key, id) = (values.len() - 1, values.len());
    Ok(format!(" AND ({compared} {than} ${key} OR ({compared} = ${key} AND v.id > ${id}))"))
}

/// The condition that a video `v` is in a folder, or below it too.
fn within(folder: &Folder, only_itself: bool, values: &mut Vec<Value>) -> String {
    values.push(folder.key().to_vec().into());
    let first = values.len();
    if only_itself {
        return format!(" AND v.folder_key = ${first}");
    }
    values.push(folder.end().into());
    format!(" AND v.folder_key >= ${first} AND v.folder_key < ${}", first + 1)
}

/// Writes the columns of a video that lists are read by. Called after each change of its title, folder or tags.
pub(super) async fn index(tx: &mut Tx, id: Uuid) -> Result<(), CatalogError> {
    let sql = "SELECT v.title, v.file_name, v.folder, \
               (SELECT string_agg(g.tag, ',' ORDER BY g.key) FROM video_tags g WHERE g.video = v.id) AS tags \
               FROM videos v WHERE v.id = $1";
    let Some(row) = tx.row(sql, values![id]).await? else { return Ok(()) };
    let text = |name: &str| row.get::<Option<String>>(name).map(Option::unwrap_or_default);
    let (title, file_name, folder, tags) =
        (text("title")?, text("file_name")?, text("folder")?, text("tags")?);
    let found = look_up([title.as_str(), &file_name, &folder, &tags]);
    let sql = "UPDATE videos SET title_key = $2, look_up = $3 WHERE id = $1";
    tx.execute(sql, values![id, title_key(&title), found]).await?;
    Ok(())
}

/// Writes the columns of the videos that have none: those of an older database, or of a backup.
pub(super) async fn index_missing(database: &Database) -> Result<(), CatalogError> {
    loop {
        let mut tx = database.begin().await?;
        let filled = index_some(&mut tx).await?;
        tx.commit().await?;
        if filled < ROWS_PER_FILL as usize {
            return Ok(());
        }
    }
}

/// Writes the columns of some videos that have none. Returns their number.
pub(super) async fn index_some(tx: &mut Tx) -> Result<usize, CatalogError> {
    let sql = "SELECT id FROM videos WHERE title_key IS NULL ORDER BY id LIMIT $1";
    let rows = tx.rows(sql, values![ROWS_PER_FILL]).await?;
    let ids: Vec<Uuid> = rows.iter().map(|row: &Row| row.get("id")).collect::<Result<_, _>>()?;
    for id in &ids {
        index(tx, *id).await?;
    }
    Ok(ids.len())
}
