//! Lists of videos: filtered, in an order, a page at a time.

use super::database::{Sql, Value, values};
use super::error::CatalogError;
use super::tables::videos::{from_row, video_columns};
use super::types::*;
use super::view::View;

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
        let from = listed_from(list);
        let mut values = values![];
        let mut wanted = conditions(list, &mut values);
        if let Some(place) = after {
            wanted.push_str(&behind(list.order, place, &mut values)?);
        }
        values.push(limit.into());
        let (columns, terms, limit) = (video_columns!(), terms(list.order), values.len());
        // The page is chosen first: the columns count clips and join tags, which is too much for videos that are not shown.
        let page = format!("SELECT v.* FROM {from} v WHERE TRUE{wanted} ORDER BY {terms} LIMIT ${limit}");
        let sql = format!("SELECT {columns} FROM ({page}) v ORDER BY {terms}");
        let rows = self.rows(Sql::Built(sql), values).await?;
        rows.iter().map(from_row).collect()
    }

    /// The number of videos in a list. Reads all of them.
    pub async fn number_of_videos(&self, list: &VideoList) -> Result<u64, CatalogError> {
        let mut values = values![];
        let (from, wanted) = (listed_from(list), conditions(list, &mut values));
        let sql = format!("SELECT count(*) AS listed FROM {from} v WHERE TRUE{wanted}");
        let row = self.row(Sql::Built(sql), values).await?;
        let listed: i64 = row.map_or(Ok(0), |row| row.get("listed"))?;
        Ok(u64::try_from(listed).unwrap_or_default())
    }
}

/// The view that a list reads.
fn listed_from(list: &VideoList) -> &'static str {
    if list.trashed { "trashed_videos" } else { "visible_videos" }
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
