//! The tables of a backup, their columns, and the JSON form of their values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::catalog::database::{Row, Value};
use crate::catalog::error::CatalogError;

/// A table of a backup.
#[derive(Debug)]
pub struct Table {
    /// Its name in the database.
    pub name: &'static str,
    pub(super) columns: &'static [Column],
    /// What follows `FROM`, with the table as `t`; $1 is the video of a table of [`OF_VIDEO`].
    pub(super) rows: &'static str,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    kind: Kind,
}

/// The kind of a column, and its JSON form: numbers, texts, Base64 for bytes, ids with hyphens, true and false.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Int,
    Real,
    Text,
    Bytes,
    Uuid,
    Bool,
}

macro_rules! columns {
    ($($name:ident $kind:ident),+ $(,)?) => { &[$(Column { name: stringify!($name), kind: Kind::$kind }),+] };
}

/// Tables of the library as a whole. A table comes after the tables that it refers to.
pub static LIBRARY: [Table; 18] = [
    Table { name: "library", columns: columns![one Int, id Uuid], rows: "library t" },
    Table { name: "secrets", columns: columns![name Text, value Bytes], rows: "secrets t ORDER BY t.name" },
    Table {
        name: "spaces",
        columns: columns![key Int, id Text, name Text, model Text, dim Int, created_at_ms Int, added Bool],
        rows: "spaces t ORDER BY t.key",
    },
    Table {
        name: "activations",
        columns: columns![kind Text, space Int, named Text],
        rows: "activations t ORDER BY t.kind",
    },
    Table { name: "paused_fills", columns: columns![space Int], rows: "paused_fills t ORDER BY t.space" },
    Table {
        name: "api_keys",
        columns: columns![
            id Uuid, name Text, hash Bytes, scopes Text, reach Text, requests_per_minute Int, searches_at_once Int,
            stored_bytes Int, stored_seconds Int, created_at_ms Int, expires_at_ms Int, last_used_at_ms Int,
            revoked_at_ms Int,
        ],
        rows: "api_keys t ORDER BY t.id",
    },
    Table {
        name: "audit",
        columns: columns![
            seq Int, at_ms Int, key Uuid, key_name Text, method Text, path Text, status Int, request_id Text,
        ],
        rows: "audit t ORDER BY t.seq",
    },
    // Exports and maps are left out: they can be made again. Refused files are left out: they expire.
    Table {
        name: "jobs",
        columns: JOBS,
        rows: "jobs t WHERE t.video IS NULL AND t.kind NOT IN ('export', 'map') \
               AND NOT EXISTS (SELECT 1 FROM refusals r WHERE r.id = t.id) ORDER BY t.id",
    },
    Table {
        name: "reels",
        columns: columns![id Uuid, name Text, version Int, created_at_ms Int, updated_at_ms Int, link_epoch Int],
        rows: "reels t ORDER BY t.id",
    },
    Table {
        name: "reel_ranges",
        columns: columns![reel Uuid, place Int, video Uuid, start_ms Int, end_ms Int, note Text],
        rows: "reel_ranges t ORDER BY t.reel, t.place",
    },
    Table {
        name: "searches",
        columns: columns![
            id Uuid, at_ms Int, key Uuid, key_name Text, kind Text, space Text, text Text, query_hash Text, clip Uuid,
            video Uuid, start_ms Int, end_ms Int, uploaded Bool, examples Text, filter Text, filtered Bool, hits Int,
            exhausted Bool, live Int, decode_ms Real, encode_ms Real, search_ms Real, catalog_ms Real, total_ms Real,
        ],
        rows: "searches t ORDER BY t.id",
    },
    Table {
        name: "search_hits",
        columns: columns![
            search Uuid, rank Int, span Uuid, video Uuid, level Text, start_ms Int, end_ms Int, inside Bool, score Real,
            visual_score Real, visual_rank Int, visual_z Real, spoken_score Real, spoken_rank Int, spoken_z Real,
            screen_score Real, screen_rank Int, screen_z Real, full_video_score Real, full_video_rank Int, full_video_z Real,
        ],
        rows: "search_hits t JOIN videos v ON v.id = t.video WHERE NOT v.purging \
               ORDER BY t.search, t.rank, t.span",
    },
    Table {
        name: "search_feedback",
        columns: columns![
            search Uuid, span Uuid, verdict Text, video Uuid, rank Int, at_ms Int, key Uuid, key_name Text,
        ],
        rows: "search_feedback t JOIN videos v ON v.id = t.video WHERE NOT v.purging \
               ORDER BY t.search, t.span, t.verdict",
    },
    // Their deliveries are left out: a restored library must not repeat old news.
    Table {
        name: "webhooks",
        columns: columns![
            id Uuid, owner Uuid, url Text, description Text, events Text, secret Bytes, old_secret Bytes,
            old_until_ms Int, disabled_at_ms Int, disabled_why Text, dropped Int, created_at_ms Int,
        ],
        rows: "webhooks t ORDER BY t.id",
    },
    Table {
        name: "alerts",
        columns: columns![
            id Uuid, owner Uuid, name Text, search Text, min_score Real, trouble Text, missed Int, created_at_ms Int,
        ],
        rows: "alerts t ORDER BY t.id",
    },
    Table {
        name: "alert_webhooks",
        columns: columns![alert Uuid, webhook Uuid],
        rows: "alert_webhooks t ORDER BY t.alert, t.webhook",
    },
    // One that was running goes on after a restore.
    Table {
        name: "evaluations",
        columns: columns![
            id Uuid, owner Uuid, name Text, settings Text, queries Int, report Text, expires_at_ms Int,
        ],
        rows: "evaluations t ORDER BY t.id",
    },
    Table {
        name: "evaluation_queries",
        columns: columns![evaluation Uuid, place Int, query Text, outcome Text],
        rows: "evaluation_queries t ORDER BY t.evaluation, t.place",
    },
];

/// Tables of one video. A table comes after the tables that it refers to.
pub static OF_VIDEO: [Table; 11] = [
    Table {
        name: "videos",
        columns: columns![
            id Uuid, number Int, content_hash Text, file Text, file_name Text, bytes Int, title Text, metadata Text,
            recorded_at Text, recorded_at_ms Int, created_at_ms Int, state Text, segmentation Text, facts Text,
            duration_ms Int, media_offset_ms Int, warnings Text, added_by Uuid, probed_ms Int, deleted_at_ms Int,
            restored_at_ms Int, folder Text, folder_key Bytes,
        ],
        rows: "videos t WHERE t.id = $1",
    },
    Table {
        name: "video_tags",
        columns: columns![video Uuid, key Bytes, tag Text],
        rows: "video_tags t WHERE t.video = $1 ORDER BY t.key",
    },
    Table {
        name: "tracks",
        columns: columns![key Int, video Uuid, kind Text, language Text, provenance Text, machine Bool, warnings Text],
        rows: "tracks t WHERE t.video = $1 ORDER BY t.key",
    },
    Table {
        name: "cues",
        columns: columns![
            key Int, id Uuid, track Int, place Int, start_ms Int, end_ms Int, text Text, words Text, box_left Real,
            box_top Real, box_width Real, box_height Real,
        ],
        rows: "cues t JOIN tracks r ON r.key = t.track WHERE r.video = $1 ORDER BY t.key",
    },
    Table {
        name: "spans",
        columns: columns![
            key Int, id Uuid, video Uuid, level Text, given Bool, start_ms Int, end_ms Int, metadata Text,
        ],
        rows: "spans t WHERE t.video = $1 ORDER BY t.key",
    },
    Table {
        name: "passages",
        columns: columns![span Int, track Int, text Text],
        rows: "passages t JOIN spans s ON s.key = t.span WHERE s.video = $1 ORDER BY t.span",
    },
    Table {
        name: "embeddings",
        columns: columns![space Int, span Int, unit Bytes, norm Real],
        rows: "embeddings t JOIN spans s ON s.key = t.span WHERE s.video = $1 ORDER BY t.space, t.span",
    },
    Table { name: "jobs", columns: JOBS, rows: "jobs t WHERE t.video = $1 ORDER BY t.id" },
    Table {
        name: "idempotency_keys",
        columns: columns![key Text, request_hash Text, video Uuid, job Uuid, duplicate Bool, created_at_ms Int],
        rows: "idempotency_keys t WHERE t.video = $1 ORDER BY t.key",
    },
    // Without the lease: a check that was running runs again.
    Table {
        name: "alert_checks",
        columns: columns![
            alert Uuid, video Uuid, attempts Int, not_before_ms Int, created_at_ms Int, updated_at_ms Int,
        ],
        rows: "alert_checks t WHERE t.video = $1 ORDER BY t.alert",
    },
    Table {
        name: "alert_matches",
        columns: columns![id Uuid, alert Uuid, video Uuid, space Text, hits Text, at_ms Int],
        rows: "alert_matches t WHERE t.video = $1 ORDER BY t.id",
    },
];

/// Without the lease: a running job is queued again. Windows of a running transcription are left out: it begins again.
const JOBS: &[Column] = columns![
    id Uuid, kind Text, video Uuid, params Text, state Text, stage Text, fraction Real, frames_done Int,
    frames_total Int, eta_s Real, attempts Int, attempts_most Int, deaths Int, progressed Bool, needs_ready Bool,
    not_before_ms Int, reason Text, note Text, created_at_ms Int, updated_at_ms Int,
];

impl Table {
    /// The names of its columns, in order.
    pub fn column_names(&self) -> Vec<&'static str> {
        self.columns.iter().map(|column| column.name).collect()
    }

    pub(super) fn select(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|column| format!("t.{}", column.name)).collect();
        format!("SELECT {} FROM {}", columns.join(", "), self.rows)
    }

    /// Identity columns of Postgres take given values only on demand.
    pub(super) fn insert(&self, is_postgres: bool) -> String {
        let overriding = if is_postgres { " OVERRIDING SYSTEM VALUE" } else { "" };
        format!("INSERT INTO {} ({}){overriding}", self.name, self.column_names().join(", "))
    }

    /// The JSON form of a row.
    pub(super) fn to_json(&self, row: &Row) -> Result<Vec<Json>, CatalogError> {
        self.columns.iter().map(|column| column.to_json(row)).collect()
    }

    /// The values of a row in its JSON form.
    pub(super) fn values(&self, row: Vec<Json>) -> Result<Vec<Value>, CatalogError> {
        if row.len() != self.columns.len() {
            let text = format!("a row of {} with {} values", self.name, row.len());
            return Err(CatalogError::Damaged(text.into()));
        }
        let value = |(column, json): (&Column, Json)| {
            column.value(json).ok_or_else(|| {
                CatalogError::Damaged(format!("{}.{} holds a wrong value", self.name, column.name).into())
            })
        };
        self.columns.iter().zip(row).map(value).collect()
    }

    /// Where a column stands in a row.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

impl Column {
    fn to_json(&self, row: &Row) -> Result<Json, CatalogError> {
        let name = self.name;
        // `library.one` is the only integer of 32 bits on Postgres, and always 1.
        Ok(match self.kind {
            Kind::Int if name == "one" => Json::from(1),
            Kind::Int => Json::from(row.get::<Option<i64>>(name)?),
            Kind::Real => Json::from(row.get::<Option<f64>>(name)?),
            Kind::Text => Json::from(row.get::<Option<String>>(name)?),
            Kind::Bytes => Json::from(row.get::<Option<Vec<u8>>>(name)?.map(|bytes| STANDARD.encode(bytes))),
            Kind::Uuid => Json::from(row.get::<Option<Uuid>>(name)?.map(|id| id.to_string())),
            Kind::Bool => Json::from(row.get::<bool>(name)?),
        })
    }

    /// `None` for a value of another kind.
    fn value(&self, json: Json) -> Option<Value> {
        let is_null = json.is_null();
        Some(match self.kind {
            Kind::Int if is_null => Value::Int(None),
            Kind::Int => Value::Int(Some(json.as_i64()?)),
            Kind::Real if is_null => Value::Real(None),
            Kind::Real => Value::Real(Some(json.as_f64()?)),
            Kind::Text => match json {
                Json::Null => Value::Text(None),
                Json::String(text) => Value::Text(Some(text)),
                _ => return None,
            },
            Kind::Bytes if is_null => Value::Bytes(None),
            Kind::Bytes => Value::Bytes(Some(STANDARD.decode(json.as_str()?).ok()?)),
            Kind::Uuid if is_null => Value::Uuid(None),
            Kind::Uuid => Value::Uuid(Some(json.as_str()?.parse().ok()?)),
            Kind::Bool => Value::Bool(json.as_bool()?),
        })
    }
}
