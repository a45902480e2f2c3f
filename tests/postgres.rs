//! A private PostgreSQL server for the tests. The first test that needs it starts it; it stops with the process.
//!
//! With `TEST_DATABASE_URL` set, the tests use that server instead. Every test gets its own database.

use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Row};
use tokio::sync::OnceCell;

/// Prefix of test databases' names; the time of their creation in seconds and a number follow.
const PREFIX: &str = "reprise_test_";

/// Age after which a database on the server in `TEST_DATABASE_URL` counts as left over from a dead test run.
const LEFT_BEHIND_AFTER: Duration = Duration::from_secs(3600);

const START_WITHIN: Duration = Duration::from_secs(60);

/// The URL of a new, empty database; `None`, after printing the reason, without PostgreSQL.
///
/// # Panics
/// If the server cannot be started or reached, or if it is missing with `REPRISE_REQUIRE_DATA=1`.
pub async fn database() -> Option<String> {
    static SERVER: OnceCell<Option<Server>> = OnceCell::const_new();
    let server = SERVER.get_or_init(find_or_start).await.as_ref()?;
    let mut connection =
        server.connect().await.unwrap_or_else(|error| panic!("{}: {error}", server.url("…")));
    let name = format!("{PREFIX}{}_{}", unix_seconds(), unique());
    let sql = format!("CREATE DATABASE {name}");
    sqlx::query(AssertSqlSafe(sql))
        .execute(&mut connection)
        .await
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    Some(server.url(&name))
}

/// Process id and a counter: unique among the databases of this second.
fn unique() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

struct Server {
    /// The URL before and after the database's name.
    url: (String, String),
    /// The supervisor of a private server. It stops the server when this end of its pipe closes.
    _supervisor: Option<Child>,
}

impl Server {
    fn url(&self, database: &str) -> String {
        format!("{}{database}{}", self.url.0, self.url.1)
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        PgConnection::connect(&self.url("postgres")).await
    }
}

async fn find_or_start() -> Option<Server> {
    if let Ok(url) = std::env::var("TEST_DATABASE_URL") {
        let server = Server { url: split(&url), _supervisor: None };
        drop_left_behind(&server).await.unwrap_or_else(|error| panic!("TEST_DATABASE_URL: {error}"));
        return Some(server);
    }
    let Some(programs) = programs() else {
        crate::skip(
            "no PostgreSQL server is installed (initdb and postgres, in PATH or /usr/lib/postgresql/*/bin)",
        );
        return None;
    };
    let server = start(&programs).unwrap_or_else(|error| panic!("starting PostgreSQL: {error}"));
    wait_until_ready(&server).await;
    Some(server)
}

/// Splits a URL around its database's name.
fn split(url: &str) -> (String, String) {
    let (path, parameters) =
        url.split_once('?').map_or((url, String::new()), |(path, rest)| (path, format!("?{rest}")));
    let host = path.find("://").map_or(0, |at| at + 3);
    let end = path[host..].find('/').map_or(path.len(), |at| host + at);
    (format!("{}/", &path[..end]), parameters)
}

async fn drop_left_behind(server: &Server) -> Result<(), sqlx::Error> {
    let mut connection = server.connect().await?;
    let names = sqlx::query("SELECT datname FROM pg_database").fetch_all(&mut connection).await?;
    let oldest = unix_seconds().saturating_sub(LEFT_BEHIND_AFTER.as_secs());
    for name in names.iter().map(|row| row.get::<String, _>(0)) {
        let made = name.strip_prefix(PREFIX).and_then(|rest| rest.split('_').next()?.parse::<u64>().ok());
        if made.is_some_and(|made| made < oldest) {
            let sql = format!("DROP DATABASE IF EXISTS {name}");
            sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await?;
        }
    }
    Ok(())
}

/// The folder of `initdb` and `postgres`.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for (parent, inner) in [
        ("/usr/lib/postgresql", "bin"),
        ("/usr/local", "bin"),
        ("/usr/local/pgsql", "bin"),
        ("/opt/homebrew", "bin"),
        ("/opt/homebrew/opt", "bin"),
        ("/usr", "bin"),
    ] {
        folders.push(Path::new(parent).join(inner));
        let mut versions: Vec<PathBuf> = std::fs::read_dir(parent)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join(inner))
            .collect();
        versions.sort();
        folders.extend(versions.into_iter().rev());
    }
    folders.into_iter().find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

/// Owner and group of the data folder, if the tests run as root: PostgreSQL refuses to run as root.
fn unprivileged() -> Option<(u32, u32)> {
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |wanted: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(wanted))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    ids("postgres").or_else(|| ids("nobody"))
}

fn command(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").env_remove("PGDATA").stdin(Stdio::null());
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
}

/// The server's data folder. Its path is short because a socket's path is limited to about 100 bytes.
fn folder(user: Option<(u32, u32)>) -> io::Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix("reprise-pg-").tempdir_in("/tmp")?.keep();
    if let Some((uid, gid)) = user {
        chown(&folder, Some(uid), Some(gid))?;
    }
    Ok(folder)
}

/// Shell script of the supervisor. When its standard input closes, it stops the server at once and removes the
/// folder, however the test process ends. QUIT skips the checkpoint, which test data do not need.
const SUPERVISOR: &str = r#""$1" -D "$2/data" -k "$2" -c listen_addresses= -c max_connections=300 \
    -c shared_buffers=32MB >"$2/log" 2>&1 </dev/null &
server=$!
cat >/dev/null
kill -QUIT $server
wait $server
rm -rf "$2""#;

fn start(programs: &Path) -> io::Result<Server> {
    let user = unprivileged();
    let folder = folder(user)?;
    // If available, a locale that does not order by bytes: it reveals a missing COLLATE "C".
    if !initdb(programs, user, &folder, &["--locale-provider=icu", "--icu-locale=en-US"])?
        && !initdb(programs, user, &folder, &[])?
    {
        let _ = std::fs::remove_dir_all(&folder);
        return Err(io::Error::other("initdb failed"));
    }
    let mut supervisor = command(Path::new("/bin/sh"), user);
    supervisor.args(["-c", SUPERVISOR, "sh"]).arg(programs.join("postgres")).arg(&folder);
    // The supervisor has its own process group. Ctrl-C would kill it before it removes the folder.
    supervisor.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let child = supervisor.spawn()?;
    let url = ("postgres://reprise@localhost/".to_owned(), format!("?host={}", folder.display()));
    Ok(Server { url, _supervisor: Some(child) })
}

fn initdb(programs: &Path, user: Option<(u32, u32)>, folder: &Path, locale: &[&str]) -> io::Result<bool> {
    let mut initdb = command(&programs.join("initdb"), user);
    initdb.arg("-D").arg(folder.join("data")).args([
        "-U",
        "reprise",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
    ]);
    initdb.args(["--no-sync"]).args(locale).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(initdb.status()?.success())
}

async fn wait_until_ready(server: &Server) {
    let end = Instant::now() + START_WITHIN;
    loop {
        match server.connect().await {
            Ok(_) => return,
            Err(error) if Instant::now() >= end => panic!("PostgreSQL does not answer: {error}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
