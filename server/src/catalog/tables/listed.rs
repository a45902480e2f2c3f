//! The columns of `videos` that lists are read by; they follow from the rest of the row.

use uuid::Uuid;

use crate::catalog::database::{Database, Row, Tx, values};
use crate::catalog::error::CatalogError;
use crate::catalog::types::video_list::{look_up, title_key};

/// Rows per transaction, when the columns of an older database are filled.
const ROWS_PER_FILL: u32 = 500;

/// Writes the columns of a video that lists are read by. Called after each change of its title, folder or tags.
pub(in crate::catalog) async fn index(tx: &mut Tx, id: Uuid) -> Result<(), CatalogError> {
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
pub(in crate::catalog) async fn index_missing(database: &Database) -> Result<(), CatalogError> {
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
pub(in crate::catalog) async fn index_some(tx: &mut Tx) -> Result<usize, CatalogError> {
    let sql = "SELECT id FROM videos WHERE title_key IS NULL ORDER BY id LIMIT $1";
    let rows = tx.rows(sql, values![ROWS_PER_FILL]).await?;
    let ids: Vec<Uuid> = rows.iter().map(|row: &Row| row.get("id")).collect::<Result<_, _>>()?;
    for id in &ids {
        index(tx, *id).await?;
    }
    Ok(ids.len())
}
