//! Which exports a caller sees.

use uuid::Uuid;

use crate::catalog::database::{Sql, Tx, values};
use crate::catalog::error::CatalogError;
use crate::catalog::visibility::Visibility;

/// The condition on `exports e` under which a caller sees it.
pub(in crate::catalog) fn is_seen(visibility: &Visibility) -> &'static str {
    match visibility {
        Visibility::All => "TRUE",
        Visibility::Matching(_) => {
            "NOT EXISTS (SELECT 1 FROM export_videos m WHERE m.export = e.id \
             AND NOT EXISTS (SELECT 1 FROM visible_videos v WHERE v.id = m.video))"
        }
    }
}

/// Whether the transaction's caller sees an export. Expired ones are seen by nobody.
pub(in crate::catalog) async fn sees(tx: &mut Tx, id: Uuid) -> Result<bool, CatalogError> {
    let now = tx.now_ms().await?;
    let seen = is_seen(tx.visibility());
    let sql = format!(
        "SELECT e.id FROM exports e \
         WHERE e.id = $1 AND (e.expires_at_ms IS NULL OR e.expires_at_ms > $2) AND {seen}"
    );
    let (sql, values) = (Sql::Built(sql), values![id, now]);
    let row = if tx.visibility().is_limited() {
        tx.visible_row(sql, values).await?
    } else {
        tx.row(sql, values).await?
    };
    Ok(row.is_some())
}
