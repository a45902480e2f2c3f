//! Milvus servers for the tests: Milvus Lite from the environment of `scripts/engines.sh`, or the server that
//! `TEST_MILVUS_URL` names, where every test gets its own database.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use milvus::v2::prelude::{
    ClientV2, CreateDatabaseRequest, DropCollectionRequest, DropDatabaseRequest, ListCollectionsRequest,
};
use milvus::v2::{ConnectConfig, error::Error};
use reqwest::Url;
use tempfile::TempDir;

const START_WITHIN: Duration = Duration::from_secs(60);

/// An empty Milvus: a server of its own, or a database of the server in `TEST_MILVUS_URL`. Removed when dropped.
pub enum Empty {
    /// A private server.
    Private(Lite),
    /// A database of a server that others may use too.
    Shared(Database),
}

impl Empty {
    /// Starts a server or makes a database; `None`, after printing the reason, if there is no server.
    ///
    /// # Panics
    /// If the server does not start, or refuses the database.
    pub async fn start() -> Option<Empty> {
        match std::env::var("TEST_MILVUS_URL") {
            Ok(url) => Some(Empty::Shared(Database::new(&url).await)),
            Err(_) => Lite::start().await.map(Empty::Private),
        }
    }

    /// Its address.
    pub fn url(&self) -> String {
        match self {
            Empty::Private(lite) => lite.url(),
            Empty::Shared(database) => database.url.to_string(),
        }
    }
}

/// A database of a shared server; dropped with its collections.
pub struct Database {
    url: Url,
    name: String,
}

impl Database {
    async fn new(server: &str) -> Database {
        let mut url = Url::parse(server).expect("TEST_MILVUS_URL is a URL");
        let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
        let name = format!("reprise_test_{}_{}", since.as_nanos(), std::process::id());
        let request = CreateDatabaseRequest::builder().database_name(&name).build().expect("a name");
        let made = client(&url, "").await.create_database(request).await;
        made.unwrap_or_else(|error| panic!("TEST_MILVUS_URL: {error}"));
        url.set_path(&name);
        Database { url, name }
    }

    async fn remove(&self) -> Result<(), Error> {
        let inside = client(&self.url, &self.name).await;
        let all = inside.list_collections(ListCollectionsRequest::builder().build()?).await?;
        for name in all.collection_names() {
            inside.drop_collection(DropCollectionRequest::builder().collection_name(name).build()?).await?;
        }
        let request = DropDatabaseRequest::builder().database_name(&self.name).build()?;
        client(&self.url, "").await.drop_database(request).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A runtime of its own: that of the test may be the one that drops.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                if let Err(error) = runtime.expect("a runtime").block_on(self.remove()) {
                    eprintln!("{} stays behind: {error}", self.name);
                }
            });
        });
    }
}

async fn client(url: &Url, database: &str) -> ClientV2 {
    let server =
        format!("{}://{}:{}", url.scheme(), url.host_str().unwrap_or_default(), url.port().unwrap_or(19_530));
    let mut settings = ConnectConfig::new().uri(server).database(database);
    if let Some(password) = url.password() {
        settings = settings.token(format!("{}:{password}", url.username()));
    }
    ClientV2::new(&settings).await.unwrap_or_else(|error| panic!("TEST_MILVUS_URL: {error}"))
}

/// A Milvus Lite server with its own folder; killed when dropped.
pub struct Lite {
    program: PathBuf,
    folder: TempDir,
    port: u16,
    child: Child,
}

impl Lite {
    /// Starts a server; `None`, after printing the reason, if none is installed.
    ///
    /// # Panics
    /// If the server does not start.
    pub async fn start() -> Option<Lite> {
        let program = program("milvus-lite")?;
        let port = free_port();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let child = spawn(&program, &folder, port);
        wait_until_it_listens(port).await;
        Some(Lite { program, folder, port, child })
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Kills the server (SIGKILL).
    ///
    /// # Panics
    /// If there is no such process.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server is alive");
        self.child.wait().expect("it ends");
    }

    /// Removes folders of collections that a kill cut off in their making. Milvus Lite makes the folder before the file that
    /// names the collection (`db.py`), so it neither knows such a collection nor can make it again.
    fn remove_half_made(&self) {
        let collections = std::fs::read_dir(self.folder.path().join("data/collections"));
        for collection in collections.into_iter().flatten().flatten().map(|entry| entry.path()) {
            if !collection.join("schema.json").exists() {
                std::fs::remove_dir_all(collection).expect("a folder of our own");
            }
        }
    }

    /// Starts the server again after [`Lite::kill`], and waits until it listens.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_again(&mut self) {
        self.remove_half_made();
        self.child = spawn(&self.program, &self.folder, self.port);
        wait_until_it_listens(self.port).await;
    }
}

impl Drop for Lite {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &PathBuf, folder: &TempDir, port: u16) -> Child {
    let log = File::options().create(true).append(true).open(folder.path().join("log")).expect("a log");
    let mut command = Command::new(program);
    command.args(["server", "--host", "127.0.0.1", "--port", &port.to_string(), "--data-dir"]);
    command.arg(folder.path().join("data"));
    // With its default of 128 MB it keeps small sets unindexed, and never walks a graph.
    command.env("MILVUS_LITE_MEMTABLE_MEMORY_LIMIT_BYTES", "100000");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("milvus-lite runs")
}

/// A server that says it is a Milvus of some version, and knows one password: that of `root:right`. It answers what a
/// Milvus 2.3.5 with passwords was seen to answer to the first calls of a client, and knows no others.
pub struct Doorkeeper {
    port: u16,
    child: Child,
}

impl Doorkeeper {
    /// Starts it; `None`, after printing the reason, without the Python environment of the engines.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(version: &str) -> Option<Doorkeeper> {
        let python = program("python")?;
        let port = free_port();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/engines/doorkeeper.py");
        let mut command = Command::new(python);
        let child = command.args([script, &port.to_string(), version]).stdin(Stdio::null()).spawn();
        let doorkeeper = Doorkeeper { port, child: child.expect("Python runs") };
        wait_until_it_listens(port).await;
        Some(doorkeeper)
    }

    /// Its address with a password for `root`.
    pub fn url(&self, password: &str) -> String {
        format!("http://root:{password}@127.0.0.1:{}", self.port)
    }
}

impl Drop for Doorkeeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of the Python environment; `None` after printing the reason.
fn program(name: &str) -> Option<PathBuf> {
    let program = crate::engines().map(|engines| engines.join("bin").join(name)).filter(|it| it.is_file());
    if program.is_none() {
        crate::skip("Milvus Lite is not installed (scripts/engines.sh installs it)");
    }
    program
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it has an address").port()
}

async fn wait_until_it_listens(port: u16) {
    let end = Instant::now() + START_WITHIN;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < end, "the Milvus of the tests does not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
