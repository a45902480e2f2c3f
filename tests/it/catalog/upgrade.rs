//! A database of an earlier version: its jobs continue, also if its migration is cut off.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use reprise_server::catalog::{self, JobFilter, JobName, JobState, Segmentation};
use reprise_tests::server::binary;
use sqlx::migrate::Migrator;
use uuid::Uuid;

use super::ALL;
use super::samples::{LEASE, filled};

/// The newest migration of the previous version.
const LAST: &str = "0004";

/// Moments at which a migration is killed.
const KILLS: u32 = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_jobs_of_the_version_before_go_on() {
    let folder = tempfile::tempdir().unwrap();
    assert_jobs_go_on(&earlier_sqlite(folder.path()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_jobs_of_the_version_before_go_on() {
    let Some(url) = earlier_postgres().await else { return };
    assert_jobs_go_on(&url).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_of_sqlite_that_is_killed_goes_on() {
    killed_and_migrated(async || {
        let folder = tempfile::tempdir().unwrap();
        let url = earlier_sqlite(folder.path()).await;
        Some((url, Some(folder)))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_of_postgres_that_is_killed_goes_on() {
    killed_and_migrated(async || Some((earlier_postgres().await?, None))).await;
}

/// Kills the migration of an earlier database at many moments; `earlier` makes one, with the folder that it needs.
async fn killed_and_migrated(earlier: impl AsyncFn() -> Option<(String, Option<tempfile::TempDir>)>) {
    let migrate = |url: &str| {
        let mut command = Command::new(binary());
        command.args(["migrate", "--database-url", url, "--data-dir"]).arg(std::env::temp_dir());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    };
    let Some((url, _folder)) = earlier().await else { return };
    let started = Instant::now();
    assert!(migrate(&url).status().unwrap().success());
    let mut takes = started.elapsed();
    let mut killed = 0;
    for number in 0..KILLS {
        let (url, _folder) = earlier().await.unwrap();
        let moment = takes * number / KILLS;
        let mut child = migrate(&url).spawn().unwrap();
        std::thread::sleep(moment);
        match child.try_wait().unwrap() {
            None => killed += 1,
            // The machine is less busy than when the time was taken.
            Some(_) => takes = moment,
        }
        let _ = child.kill();
        child.wait().unwrap();
        assert_jobs_go_on(&url).await;
    }
    assert!(killed > 2, "{killed} of {KILLS} migrations were cut off");
}

/// A SQLite database of the version before, in this folder.
async fn earlier_sqlite(folder: &Path) -> String {
    let url = catalog::embedded_url(folder);
    let options = url.parse::<sqlx::sqlite::SqliteConnectOptions>().unwrap().create_if_missing(true);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    earlier("sqlite").await.run(&pool).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(rows(|id| format!("x'{}'", id.simple()))))
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;
    url
}

/// A Postgres database of the version before; `None` without PostgreSQL.
async fn earlier_postgres() -> Option<String> {
    let url = reprise_tests::postgres::database().await?;
    let pool = sqlx::PgPool::connect(&url).await.unwrap();
    earlier("postgres").await.run(&pool).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(rows(|id| format!("'{id}'")))).execute(&pool).await.unwrap();
    pool.close().await;
    Some(url)
}

/// The migrations of the previous version.
async fn earlier(database: &str) -> Migrator {
    let folder = tempfile::tempdir().unwrap();
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations").join(database);
    for file in std::fs::read_dir(all).unwrap() {
        let file = file.unwrap();
        if file.file_name().to_str().unwrap()[..4] <= *LAST {
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
    }
    Migrator::new(folder.path()).await.unwrap()
}

fn id(number: u128) -> Uuid {
    Uuid::from_u128(0x0190_163d_8694_739b_aea5_966c_26f8_ad00 + number)
}

/// Two videos, one ready and one failed, and jobs of each kind in each state that the migration changes.
fn rows(literal: impl Fn(Uuid) -> String) -> String {
    let [ready, failed] = [1, 2].map(|number| literal(id(number)));
    let video = |id: &str, hash: &str, state: &str| {
        format!(
            "INSERT INTO videos VALUES ({id}, '{hash}', 'f', 'f', 1, 't', '{{}}', NULL, NULL, 1, '{state}', \
             '{{\"policy\": \"content\", \"params\": {{}}}}', NULL, 1000, 0, '[]');"
        )
    };
    let job = |number: u128, kind: &str, video: &str, rest: &str| {
        let id = literal(id(number));
        format!(
            "INSERT INTO jobs (id, kind, video, state, attempts, reason, lease_until_ms, created_at_ms, \
             updated_at_ms, segmentation) VALUES ({id}, '{kind}', {video}, {rest});"
        )
    };
    [
        video(&ready, "a", "ready"),
        video(&failed, "b", "failed"),
        job(10, "ingest", &ready, "'succeeded', 1, NULL, NULL, 1, 2, NULL"),
        job(11, "ingest", &failed, "'failed', 5, 'no memory', NULL, 1, 2, NULL"),
        job(12, "fill", &ready, "'running', 1, NULL, 1, 1, 2, NULL"),
        job(
            13,
            "ingest",
            &ready,
            "'queued', 0, NULL, NULL, 1, 2, '{\"policy\": \"fixed\", \"params\": {\"every_seconds\": 1.50}}'",
        ),
    ]
    .concat()
}

async fn assert_jobs_go_on(url: &str) {
    let opened = catalog::open(url).await.unwrap();
    let all = opened.view(ALL).jobs(&JobFilter::default(), None, 10).await.unwrap();
    let shown: Vec<_> = all.iter().map(|job| (job.id, job.kind, job.state, job.attempts)).collect();
    assert_eq!(
        shown,
        [
            (id(13), JobName::Ingest, JobState::Queued, 0),
            (id(12), JobName::Fill, JobState::Running, 1),
            (id(11), JobName::Ingest, JobState::Failed, 5),
            (id(10), JobName::Ingest, JobState::Succeeded, 1),
        ]
    );
    assert!(all.iter().all(|job| job.attempts_most == 5 && job.retry_at_ms.is_none()), "{all:?}");
    assert_eq!(all[2].reason.as_deref(), Some("no memory"));
    // The previous version's worker is gone.
    let fill = opened.lease_job(Uuid::now_v7(), &JobName::ALL, LEASE).await.unwrap().unwrap();
    assert_eq!((fill.job.id, fill.job.attempts, fill.job.video), (id(12), 2, Some(id(1))));
    opened.finish_fill(&fill.lease, filled(vec![])).await.unwrap();
    let ingest = opened.lease_job(Uuid::now_v7(), &JobName::ALL, LEASE).await.unwrap().unwrap();
    let video = ingest.video.unwrap();
    let fixed = Segmentation::Fixed { every_seconds: 1.5 };
    assert_eq!((ingest.job.id, video.segmentation), (id(13), fixed));
    let retried = opened.view(ALL).retry_job(id(11)).await.unwrap().unwrap();
    assert_eq!((retried.state, retried.attempts), (JobState::Queued, 0));
    opened.view(ALL).delete_video(id(1)).await.unwrap().unwrap();
    assert_eq!(opened.view(ALL).jobs(&JobFilter::default(), None, 10).await.unwrap().len(), 1);
    opened.close().await;
}
