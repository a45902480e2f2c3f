//! docs/sql.md: its views have the columns that it names, its questions have answers, and its role reads nothing else.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use reprise_server::catalog::{NewFeedback, NextAttempt, SearchFacts, SearchTimes, SearchesOf, Verdict};
use reprise_server::terms::SearchKind;
use serde_json::{Value, json};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Column, Connection, Executor, Row, TypeInfo, ValueRef};
use uuid::Uuid;

use crate::catalog::samples::{add, lease, video};
use crate::catalog::searches::{facts, film, first_page, hit, log};
use crate::catalog::{ALL, Opened, on_both};

on_both!(
    the_ten_questions_have_answers,
    the_views_have_the_columns_of_their_document,
    times_and_ids_are_readable
);

const DAY: Duration = Duration::from_secs(24 * 3600);

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sql.md");
    std::fs::read_to_string(path).unwrap()
}

/// The statement in the section with this title.
fn statement(section: &str) -> String {
    let block = section.split("```sql\n").nth(1).and_then(|rest| rest.split("```").next());
    block.unwrap_or_else(|| panic!("no SQL in {section}")).to_owned()
}

/// The rows of a query as objects.
async fn rows(opened: &Opened, sql: &str) -> Vec<Value> {
    if opened.url.starts_with("postgres") {
        let mut connection = PgConnection::connect(&opened.url).await.unwrap();
        let sql = format!("SELECT to_json(t)::text FROM ({sql}) t");
        let rows: Vec<PgRow> = sqlx::query(AssertSqlSafe(sql)).fetch_all(&mut connection).await.unwrap();
        return rows.iter().map(|row| serde_json::from_str(&row.get::<String, _>(0)).unwrap()).collect();
    }
    let mut connection = SqliteConnection::connect(&opened.url).await.unwrap();
    let rows: Vec<SqliteRow> =
        sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(&mut connection).await.unwrap();
    rows.iter().map(object).collect()
}

fn object(row: &SqliteRow) -> Value {
    let value = |at: usize| {
        let raw = row.try_get_raw(at).unwrap();
        match raw.type_info().name() {
            _ if raw.is_null() => Value::Null,
            "INTEGER" => json!(row.get_unchecked::<i64, _>(at)),
            "REAL" => json!(row.get_unchecked::<f64, _>(at)),
            _ => json!(row.get_unchecked::<String, _>(at)),
        }
    };
    row.columns().iter().map(|column| (column.name().to_owned(), value(column.ordinal()))).collect()
}

/// A library with known searches, over two days. Returns the two days.
async fn library(opened: &Opened) -> [String; 2] {
    let catalog = &opened.catalog;
    let (dive, dive_clip) = film(opened, "Dive", "a").await;
    let (vault, vault_clip) = film(opened, "Vault", "a").await;
    film(opened, "Unseen", "a").await;
    let (deleted, deleted_clip) = film(opened, "Deleted", "a").await;
    add(catalog, video("Broken")).await;
    catalog.fail_job(&lease(catalog).await.lease, "no video stream", NextAttempt::Never).await.unwrap();
    let timed = |text: &str, total: f64| SearchFacts {
        times: SearchTimes { decode: 0.0, encode: total / 2.0, search: total / 4.0, catalog: 0.0, total },
        ..facts(text)
    };
    let keyed = |facts: SearchFacts| SearchFacts {
        key: Some(Uuid::from_u128(7)),
        key_name: Some("editors".to_owned()),
        ..facts
    };
    let first_day = catalog.now_ms().await.unwrap();
    let both = vec![hit(1, &vault, vault_clip), hit(2, &dive, dive_clip), hit(3, &deleted, deleted_clip)];
    let a_dive = log(opened, first_page(timed("a dive", 1000.0), both.clone())).await;
    let again = log(opened, first_page(keyed(timed("a dive", 500.0)), both)).await;
    log(opened, first_page(keyed(timed("a unicorn", 250.0)), Vec::new())).await;
    opened.clock.advance(DAY);
    let vaults = vec![hit(1, &vault, vault_clip)];
    let kind = SearchKind::Composed;
    let composed = SearchFacts { kind, space: "other".to_owned(), ..keyed(timed("backwards", 2000.0)) };
    let composed = log(opened, first_page(composed, vaults)).await;
    let view = catalog.view(ALL);
    for (search, span, verdict) in [
        (a_dive, vault_clip, Verdict::NotRelevant),
        (a_dive, dive_clip, Verdict::Relevant),
        (again, vault_clip, Verdict::NotRelevant),
        (again, deleted_clip, Verdict::Relevant),
        (composed, vault_clip, Verdict::Relevant),
        (composed, vault_clip, Verdict::Opened),
    ] {
        let new = NewFeedback { search, span, verdict, key: None, key_name: None };
        view.give_feedback(SearchesOf::Everybody, &new).await.unwrap();
    }
    view.delete_video(deleted.id).await.unwrap().unwrap();
    let day = |ms| reprise_server::catalog::instant::format(ms)[..10].to_owned();
    [day(first_day), day(catalog.now_ms().await.unwrap())]
}

/// What the questions must answer, in order. Ids of searches are left out.
fn answers([first, second]: [String; 2]) -> [Value; 10] {
    let slow = |text: &str, total: f64| {
        json!({"text": text, "total_seconds": total, "decode_seconds": 0, "encode_seconds": total / 2.0,
            "search_seconds": total / 4.0, "catalog_seconds": 0})
    };
    [
        json!([
            {"text": "a dive", "kind": "text", "searches": 2},
            {"text": "a unicorn", "kind": "text", "searches": 1},
            {"text": "backwards", "kind": "composed", "searches": 1},
        ]),
        json!([{"text": "a unicorn", "searches": 1}]),
        json!([slow("backwards", 2.0), slow("a dive", 1.0), slow("a dive", 0.5), slow("a unicorn", 0.25)]),
        json!([{"title": "Unseen"}]),
        json!([
            {"day": second, "searches": 1, "without_results": 0, "mean_seconds": 2, "slowest_seconds": 2},
            {"day": first, "searches": 3, "without_results": 1, "mean_seconds": 0.583333, "slowest_seconds": 1},
        ]),
        json!([
            {"title": "Vault", "searches": 3, "best_rank": 1},
            {"title": "Dive", "searches": 2, "best_rank": 2},
        ]),
        json!([
            {"key_name": "editors", "searches": 3, "mean_seconds": 0.916667},
            {"key_name": null, "searches": 1, "mean_seconds": 1},
        ]),
        json!([
            {"space": "other", "searches": 1, "mean_reciprocal_rank": 1},
            {"space": "tiny", "searches": 1, "mean_reciprocal_rank": 0.5},
        ]),
        json!([{"text": "a dive", "times": 2}]),
        json!([{"kind": "ingest", "reason": "no video stream", "jobs": 1}]),
    ]
}

/// Rounds numbers, which one database gives as whole ones, and drops ids.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!((number.as_f64().unwrap() * 1e6).round() / 1e6),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| *name != "id")
            .map(|(name, value)| (name.clone(), plain(value)))
            .collect(),
        other => other.clone(),
    }
}

async fn the_ten_questions_have_answers(opened: &Opened) {
    let expected = answers(library(opened).await);
    let document = document();
    let questions: Vec<&str> = document.split("\n### ").skip(1).collect();
    assert_eq!(questions.len(), expected.len());
    for (question, expected) in questions.iter().zip(&expected) {
        let title = question.lines().next().unwrap();
        let got = rows(opened, &statement(question)).await;
        assert_eq!(plain(&json!(got)), plain(expected), "{title}");
    }
}

/// Both ways: what the document names is there, and what is there is named.
async fn the_views_have_the_columns_of_their_document(opened: &Opened) {
    library(opened).await;
    let document = document();
    let described = document.split("\n## ").find(|section| section.starts_with("The views")).unwrap();
    let mut documented = BTreeSet::new();
    for part in described.split("**`").skip(1) {
        let (view, rest) = part.split_once("`**").unwrap();
        let got = rows(opened, &format!("SELECT * FROM {view}")).await;
        let row = got.first().unwrap_or_else(|| panic!("{view} is empty"));
        let columns: BTreeSet<String> = row.as_object().unwrap().keys().cloned().collect();
        assert_eq!(columns, described_columns(rest), "the columns of {view} and those of docs/sql.md");
        documented.insert(view.to_owned());
    }
    assert_eq!(documented, views(opened).await, "the views and those of docs/sql.md");
    let role = document.split("\n## ").find(|section| section.starts_with("A role")).unwrap();
    let granted = statement(role);
    let granted = granted.split("GRANT SELECT ON ").nth(1).and_then(|it| it.split(" TO ").next()).unwrap();
    let granted: BTreeSet<String> = granted.split(", ").map(str::to_owned).collect();
    assert_eq!(granted, documented, "the views that the role reads");
}

/// The columns that the paragraph of a view names. Values and remarks are in parentheses. `…_end` stands for a column of each
/// source.
fn described_columns(paragraph: &str) -> BTreeSet<String> {
    let outside = |part: &str| part.split_once(')').map_or(part.to_owned(), |(_, rest)| rest.to_owned());
    let plain: String = paragraph.split('(').map(outside).collect();
    let quoted = plain.split('`').skip(1).step_by(2);
    let (ends, names): (Vec<&str>, Vec<&str>) = quoted.partition(|it| it.starts_with('…'));
    let sources: &[&str] = if ends.is_empty() { &[] } else { &["visual", "spoken", "screen", "full_video"] };
    let of_sources = sources
        .iter()
        .flat_map(|source| ends.iter().map(move |end| format!("{source}{}", end.trim_start_matches('…'))));
    let own = names.iter().filter(|name| !sources.contains(name)).map(|name| (*name).to_owned());
    own.chain(of_sources).collect()
}

/// The names of all views in the database.
async fn views(opened: &Opened) -> BTreeSet<String> {
    let sql = match opened.url.starts_with("postgres") {
        true => "SELECT viewname AS name FROM pg_views WHERE schemaname = current_schema()",
        false => "SELECT name FROM sqlite_schema WHERE type = 'view'",
    };
    rows(opened, sql).await.iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

async fn times_and_ids_are_readable(opened: &Opened) {
    let (video, clip) = film(opened, "one", "a").await;
    let asked = SearchFacts { key: Some(Uuid::from_u128(7)), ..facts("x") };
    let id = log(opened, first_page(asked, vec![hit(1, &video, clip)])).await;
    let videos = rows(opened, "SELECT id, created_at, recorded_at, duration_seconds FROM v_videos").await;
    let created = reprise_server::catalog::instant::parse(videos[0]["created_at"].as_str().unwrap());
    assert_eq!(created, Some(video.created_at_ms), "{videos:?}");
    assert_eq!((&videos[0]["id"], &videos[0]["recorded_at"]), (&json!(video.id), &Value::Null));
    assert_eq!(videos[0]["duration_seconds"].as_f64(), Some(1.0));
    let hits = rows(opened, "SELECT h.clip_id, s.id, s.key_id, s.query_video_id FROM v_hits h JOIN v_searches s ON s.id = h.search_id").await;
    let expected = json!([{"clip_id": clip, "id": id, "key_id": Uuid::from_u128(7), "query_video_id": null}]);
    assert_eq!(json!(hits), expected);
}

#[tokio::test]
async fn the_role_of_the_document_reads_views_and_nothing_else() {
    let Some(opened) = Opened::postgres().await else { return };
    library(&opened).await;
    let (path, parameters) = opened.url.split_once('?').unwrap_or((&opened.url, ""));
    let (server, database) = path.rsplit_once('/').unwrap();
    let role = format!("reader_{}", Uuid::now_v7().simple());
    let document = document();
    let section = document.split("\n## ").find(|section| section.starts_with("A role")).unwrap();
    let sql = statement(section).replace("reprise_reader", &role);
    let sql = sql.replace("DATABASE reprise ", &format!("DATABASE {database} "));
    let mut owner = PgConnection::connect(&opened.url).await.unwrap();
    owner.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
    let host = server.split_once("://").unwrap().1.rsplit('@').next().unwrap();
    let reader = format!("postgres://{role}:choose%20one@{host}/{database}?{parameters}");
    let mut reader = PgConnection::connect(&reader).await.unwrap();
    for view in ["v_videos", "v_clips", "v_jobs", "v_searches", "v_hits", "v_feedback", "v_daily"] {
        let sql = format!("SELECT count(*) FROM {view}");
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut reader).await.unwrap();
        assert!(count > 0, "{view} is empty");
    }
    for refused in
        ["SELECT * FROM api_keys", "SELECT * FROM secrets", "SELECT * FROM videos", "DELETE FROM v_videos"]
    {
        let done = reader.execute(sqlx::raw_sql(refused)).await;
        assert!(done.is_err(), "{refused}");
    }
    drop(reader);
    let sql = format!("DROP OWNED BY {role}; DROP ROLE {role}");
    owner.execute(sqlx::raw_sql(AssertSqlSafe(sql))).await.unwrap();
}
