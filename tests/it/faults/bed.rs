//! A data folder on which servers are started and killed, and checks of the stored data.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use reprise_tests::film::{Store, film};
use reprise_tests::server::{PATIENCE, Server, binary};
use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection, SqliteConnection};
use tempfile::TempDir;

/// A data folder, a database, and an ffmpeg that can be slowed down to the film's own speed.
pub(crate) struct Bed {
    folder: TempDir,
    /// `None`: the embedded SQLite.
    database: Option<String>,
}

/// Makes `sqlite::name` and `postgres::name` of each `async fn name(bed: &Bed)`.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(&crate::faults::bed::Bed::sqlite()).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(bed) = crate::faults::bed::Bed::postgres().await {
                    super::$name(&bed).await;
                }
            })+
        }
    };
}
pub(crate) use on_both;

impl Bed {
    pub(crate) fn sqlite() -> Bed {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("data")).expect("the folder can be written");
        let script = format!(
            "#!/bin/sh\necho \"$*\" >>'{0}/runs'\n[ -e '{0}/slow' ] && set -- -re \"$@\"\nexec ffmpeg \"$@\"\n",
            folder.path().display()
        );
        let ffmpeg = folder.path().join("ffmpeg");
        fs::write(&ffmpeg, script).expect("the folder can be written");
        fs::set_permissions(&ffmpeg, fs::Permissions::from_mode(0o755)).expect("it is ours");
        Bed { folder, database: None }
    }

    /// `None`, after printing the reason, without PostgreSQL.
    pub(crate) async fn postgres() -> Option<Bed> {
        let database = reprise_tests::postgres::database().await?;
        Some(Bed { database: Some(database), ..Bed::sqlite() })
    }

    /// The folder for films.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The servers' data folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// An empty bed on the same kind of database.
    pub(crate) async fn fresh(&self) -> Bed {
        match self.database {
            Some(_) => Bed::postgres().await.expect("PostgreSQL was there"),
            None => Bed::sqlite(),
        }
    }

    /// Drops the database, so that hundreds of beds fit on the disk.
    pub(crate) async fn discard(self) {
        if let Some(database) = &self.database {
            reprise_tests::postgres::drop_database(database).await;
        }
    }

    /// Starts a server on this folder and database.
    pub(crate) fn start(&self, more: &[&str]) -> Server {
        self.try_start(more, &[]).unwrap_or_else(|said| panic!("the server did not start:\n{said}"))
    }

    /// Like [`Bed::start`], with environment variables; returns the server's output if it fails to start.
    pub(crate) fn try_start(&self, more: &[&str], environment: &[(&str, &Path)]) -> Result<Server, String> {
        let database = self.database.iter().flat_map(|url| ["--database-url", url]);
        let arguments: Vec<&str> = more.iter().copied().chain(database).collect();
        let ffmpeg = self.folder().join("ffmpeg");
        // Its ffmpeg is a script, which no sandbox starts.
        let script: [(&str, &Path); 2] =
            [("REPRISE_FFMPEG", &ffmpeg), ("REPRISE_NO_SANDBOX", Path::new("true"))];
        let environment = [environment, &script].concat();
        Server::try_start_with(&self.data(), &arguments, &environment)
    }

    /// Whether the database is the embedded SQLite.
    pub(crate) fn is_embedded(&self) -> bool {
        self.database.is_none()
    }

    /// An empty bed on the other kind of database; `None` without PostgreSQL.
    pub(crate) async fn other(&self) -> Option<Bed> {
        if self.is_embedded() { Bed::postgres().await } else { Some(Bed::sqlite()) }
    }

    /// Runs a command of the binary on this folder and database.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary starts")
    }

    /// A command of the binary on this folder and database.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let database = self.database.iter().flat_map(|url| ["--database-url", url]);
        let mut command = Command::new(binary());
        command.args(arguments).arg("--data-dir").arg(self.data()).args(database);
        command.env_remove("DATABASE_URL");
        command
    }

    /// Runs statements on the database, without the server.
    pub(crate) async fn execute(&self, sql: &str) {
        let sql = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()));
        match &self.database {
            Some(url) => {
                let mut connection = PgConnection::connect(url).await.expect("it runs");
                sql.execute(&mut connection).await.expect("a statement");
            }
            None => {
                let url = reprise_server::catalog::embedded_url(&self.data());
                let mut connection = SqliteConnection::connect(&url).await.expect("it is there");
                sql.execute(&mut connection).await.expect("a statement");
            }
        }
    }

    /// The number that a query of the database gives, without the server.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let sql = sqlx::AssertSqlSafe(sql.to_owned());
        match &self.database {
            Some(url) => {
                let mut connection = PgConnection::connect(url).await.expect("it runs");
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.expect("a number")
            }
            None => {
                let url = reprise_server::catalog::embedded_url(&self.data());
                let mut connection = SqliteConnection::connect(&url).await.expect("it is there");
                sqlx::query_scalar(sql).fetch_one(&mut connection).await.expect("a number")
            }
        }
    }

    /// Switches ffmpeg between the film's own speed and full speed.
    pub(crate) fn slow(&self, slow: bool) {
        let flag = self.folder().join("slow");
        if slow {
            fs::write(flag, "").expect("the folder can be written");
        } else {
            fs::remove_file(flag).expect("it was slow");
        }
    }

    /// The arguments of each ffmpeg run over an input so far, one line per run.
    pub(crate) fn runs(&self) -> Vec<String> {
        let runs = fs::read_to_string(self.folder().join("runs")).unwrap_or_default();
        runs.lines().filter(|run| run.contains(" -i ")).map(str::to_owned).collect()
    }

    /// The log of the last server.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.data().join("server.log")).expect("a server was started")
    }

    /// A film of `shots` shots of two seconds; no two films share a colour.
    pub(crate) fn film(&self, number: usize, shots: usize) -> PathBuf {
        let colours: Vec<String> = (0..shots).map(|shot| colour(number * 100 + shot)).collect();
        let sources: Vec<&str> = colours.iter().map(String::as_str).collect();
        film(self.folder(), &format!("film{number}"), &sources, Store::Web)
    }
}

/// Bright and dark shots alternate, so that the detector finds every cut.
fn colour(number: usize) -> String {
    let mut random = Random(number as u64);
    let mut channel = || (random.next() % 110 + if number.is_multiple_of(2) { 0 } else { 145 }) as u8;
    let (red, green, blue) = (channel(), channel(), channel());
    format!("color=c=0x{red:02x}{green:02x}{blue:02x}")
}

/// Pseudo-random numbers, the same in every run (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Polls until `is_so` returns a value.
#[track_caller]
pub(crate) fn until<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut is_so: impl FnMut() -> F,
) -> impl Future<Output = T> {
    let deadline = Instant::now() + PATIENCE;
    async move {
        loop {
            if let Some(found) = is_so().await {
                return found;
            }
            assert!(Instant::now() < deadline, "still not: {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A string field of a JSON answer.
#[track_caller]
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {value}"))
}

/// Uploads a film without waiting for its job; returns (video id, job id).
pub(crate) async fn upload(server: &Server, film: &Path) -> (String, String) {
    let (status, answer) = server.upload(film, &[]).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    (text(&answer, "/video/id").to_owned(), text(&answer, "/job/id").to_owned())
}

pub(crate) async fn job(server: &Server, id: &str) -> Value {
    let (status, job) = server.get(&format!("/v1/jobs/{id}")).await;
    assert_eq!(status, StatusCode::OK, "{job}");
    job
}

/// Waits until the job decodes.
pub(crate) async fn decoding(server: &Server, id: &str) {
    let is_decoding = async || {
        let job = job(server, id).await;
        assert!(job["state"] != "succeeded" && job["state"] != "failed", "too late: {job}");
        (job["frames_done"].as_i64() > Some(0)).then_some(())
    };
    until("the job decodes", is_decoding).await;
}

pub(crate) async fn videos(server: &Server) -> Vec<Value> {
    items(server, "/v1/videos").await
}

pub(crate) async fn clips(server: &Server, video: &str) -> Vec<Value> {
    items(server, &format!("/v1/videos/{video}/clips")).await
}

async fn items(server: &Server, path: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut cursor = String::new();
    loop {
        let (status, page) = server.get(&format!("{path}?limit=1000{cursor}")).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        all.extend(page["items"].as_array().cloned().unwrap_or_default());
        let Some(next) = page["next_cursor"].as_str() else { return all };
        cursor = format!("&cursor={next}");
    }
}

/// Checks that the clips found cover the video without gap or overlap. Returns all clips.
pub(crate) async fn assert_covered(server: &Server, video: &str) -> Vec<Value> {
    let (_, described) = server.get(&format!("/v1/videos/{video}")).await;
    assert_eq!(described["state"], "ready", "{described}");
    let clips = clips(server, video).await;
    let mut end = 0.0;
    for clip in clips.iter().filter(|clip| clip["given"] == false) {
        assert_eq!(clip["start"].as_f64(), Some(end), "gap or overlap: {clips:?}");
        end = clip["end"].as_f64().expect("a clip has an end");
    }
    assert_eq!(described["duration"].as_f64(), Some(end), "{described}");
    clips
}

/// Checks that the video is completely searchable: its clips cover it, and searches find it and each clip.
pub(crate) async fn assert_whole(server: &Server, video: &str) {
    for clip in assert_covered(server, video).await {
        assert_found(server, "clip", "clip_id", text(&clip, "/id"), text(&clip, "/id")).await;
    }
    let first = clips(server, video).await.remove(0);
    assert_found(server, "video", "video_id", text(&first, "/id"), video).await;
}

async fn assert_found(server: &Server, level: &str, field: &str, query: &str, expected: &str) {
    let body = json!({"query": {"clip_id": query}, "level": level, "exact": true, "limit": 1000,
        "exclude": {"self": false}});
    let hits = server.search_hits(body).await;
    let same = hits.iter().filter(|hit| hit[field] == expected);
    let scores: Vec<f64> = same.filter_map(|hit| hit["score"].as_f64()).collect();
    assert_eq!(scores.len(), 1, "{expected} occurs {} times in {hits:?}", scores.len());
    assert!(level == "video" || scores[0] > 0.9999, "{expected} is not like itself: {scores:?}");
    let all: BTreeSet<&str> = hits.iter().map(|hit| text(hit, &format!("/{field}"))).collect();
    assert_eq!(all.len(), hits.len(), "a {level} is there twice: {hits:?}");
}

/// Checks that catalog and index hold the same vectors, and a vector of every span in the only space.
pub(crate) async fn assert_consistent(server: &Server) -> Value {
    let caught_up = async || {
        let (_, stats) = server.get("/v1/stats").await;
        (stats["catalog_seq"] == stats["index_seq"]).then_some(stats)
    };
    let stats = until("the index has caught up", caught_up).await;
    let levels = stats["index"].as_array().expect("stats list the index");
    for (level, expected) in [("clip", &stats["clips"]), ("video", &stats["videos_ready"])] {
        for of_space in levels.iter().filter(|it| it["level"] == level) {
            assert_eq!(&of_space["live"], expected, "{level}: {stats}");
        }
    }
    let live: i64 = levels.iter().filter_map(|it| it["live"].as_i64()).sum();
    assert_eq!(Some(live), stats["vectors"].as_i64(), "{stats}");
    stats
}

/// Retries the job if it has failed; waits until it succeeds.
pub(crate) async fn see_through(server: &Server, id: &str) {
    let mut ended = json!(null);
    for _ in 0..3 {
        ended = server.job_end(id).await;
        if ended["state"] == "succeeded" {
            return;
        }
        assert!(ended["reason"].as_str().is_some_and(|why| !why.is_empty()), "no reason: {ended}");
        let (status, answer) = server.post(&format!("/v1/jobs/{id}/retry"), &json!({})).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    panic!("the job never succeeds: {ended}");
}
