//! A local server with a model hub's HTTP interface, which fails on request.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sha1::Sha1;
use sha2::{Digest, Sha256};

/// The commit of every model on the hub.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// A received request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// `GET` or `HEAD`.
    pub method: String,
    /// The path.
    pub path: String,
    /// The first byte of the requested range.
    pub from: usize,
    /// The `Authorization` header.
    pub authorization: String,
}

/// A fault in the answer to a request for a file's bytes. `Status` and `Size` also apply to HEAD requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Closes the connection after this many bytes of the answer's body.
    Cut(usize),
    /// Sends this many bytes of the body, then nothing more.
    Silent(usize),
    /// Sends this many bytes of the body, then one byte per millisecond.
    Trickle(usize),
    /// Changes the last byte.
    Damaged,
    /// States a size other than the file's.
    Size(u64),
    /// Sends the whole file for any requested range.
    Whole,
    /// Answers with this status.
    Status(u16),
}

#[derive(Default)]
struct State {
    models: HashMap<String, Model>,
    asked: Vec<Asked>,
    faults: Vec<(String, Fault, usize)>,
}

#[derive(Clone)]
struct Model {
    folder: PathBuf,
    hidden: Vec<String>,
    token: Option<String>,
}

/// The hub. It serves until the test ends.
pub struct Hub {
    /// Address, `http://127.0.0.1:PORT`.
    pub endpoint: String,
    state: Arc<Mutex<State>>,
}

impl Hub {
    /// Starts a hub without models.
    pub fn start() -> Hub {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let endpoint = format!("http://{}", listener.local_addr().expect("a listener has an address"));
        let state = Arc::new(Mutex::new(State::default()));
        let hub = Hub { endpoint, state: Arc::clone(&state) };
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&state);
                // A client that disconnects is no failure of the hub.
                std::thread::spawn(move || drop(answer(stream, &state)));
            }
        });
        hub
    }

    /// Adds the model `name` with the files of `folder`, except the `hidden` ones.
    #[must_use]
    pub fn with(self, name: &str, folder: &Path, hidden: &[&str]) -> Hub {
        let hidden = hidden.iter().map(|file| (*file).to_owned()).collect();
        let model = Model { folder: folder.to_owned(), hidden, token: None };
        lock(&self.state).models.insert(name.to_owned(), model);
        self
    }

    /// Requires `token` for the model `name`.
    #[must_use]
    pub fn closed(self, name: &str, token: &str) -> Hub {
        if let Some(model) = lock(&self.state).models.get_mut(name) {
            model.token = Some(token.to_owned());
        }
        self
    }

    /// Applies a fault to the next `times` requests for `file`.
    #[must_use]
    pub fn failing(self, file: &str, fault: Fault, times: usize) -> Hub {
        lock(&self.state).faults.push((file.to_owned(), fault, times));
        self
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.state).asked.clone()
    }

    /// The first byte of each range request for `file`.
    pub fn asked_for(&self, file: &str) -> Vec<usize> {
        let of_file = |it: &Asked| it.method == "GET" && it.path.ends_with(&format!("/{file}"));
        self.asked().into_iter().filter(of_file).map(|it| it.from).collect()
    }
}

fn lock(state: &Mutex<State>) -> std::sync::MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Takes the next fault for this file, if one applies to the request.
    fn fault(&mut self, file: &str, is_head: bool) -> Option<Fault> {
        let is_due = |(name, fault, times): &&mut (String, Fault, usize)| {
            let speaks = matches!(fault, Fault::Status(_) | Fault::Size(_)) || !is_head;
            name == file && *times > 0 && speaks
        };
        let (_, fault, times) = self.faults.iter_mut().find(is_due)?;
        *times -= 1;
        Some(*fault)
    }
}

fn answer(mut stream: TcpStream, state: &Mutex<State>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let mut headers = HashMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
    let mut words = request.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let from = header("range").trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap_or(0);
    let asked = Asked { method, path, from, authorization: header("authorization") };
    lock(state).asked.push(asked.clone());
    respond(&mut stream, state, &asked)
}

fn respond(stream: &mut TcpStream, state: &Mutex<State>, asked: &Asked) -> std::io::Result<()> {
    let parts: Vec<&str> = asked.path.trim_start_matches("/api/models").split('/').skip(1).collect();
    let [org, name, rest @ ..] = &parts[..] else { return status(stream, 404, "") };
    let Some(model) = lock(state).models.get(&format!("{org}/{name}")).cloned() else {
        return status(stream, 404, "");
    };
    match &model.token {
        Some(_) if asked.authorization.is_empty() => return status(stream, 401, ""),
        Some(token) if asked.authorization != format!("Bearer {token}") => {
            return status(stream, 403, "x-error-code: GatedRepo\r\n");
        }
        _ => {}
    }
    match rest {
        ["revision", "main" | COMMIT] => status(stream, 200, ""),
        ["resolve", "main" | COMMIT, file @ ..] => {
            let file = file.join("/");
            let is_head = asked.method == "HEAD";
            let fault = lock(state).fault(&file, is_head);
            let body = std::fs::read(model.folder.join(&file)).ok().filter(|_| !model.hidden.contains(&file));
            match (fault, body) {
                (Some(Fault::Status(code)), _) => status(stream, code, ""),
                (fault, Some(body)) => send(stream, &body, (is_head, asked.from), fault),
                // The hub's mirrors answer like this, without a reason.
                (_, None) => status(stream, 404, ""),
            }
        }
        _ => status(stream, 404, ""),
    }
}

fn status(stream: &mut TcpStream, code: u16, headers: &str) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {code} So\r\nconnection: close\r\n{headers}content-length: 0\r\n\r\n")
}

/// Sends a file. Large files are weights, with their SHA-256 as etag. Small files have git's hash.
fn send(
    stream: &mut TcpStream,
    body: &[u8],
    (is_head, from): (bool, usize),
    fault: Option<Fault>,
) -> std::io::Result<()> {
    let git =
        || Sha1::new_with_prefix(format!("blob {}\0", body.len())).chain_update(body).finalize().to_vec();
    let hash = if body.len() > 10_000 { Sha256::digest(body).to_vec() } else { git() };
    let etag: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let total = match fault {
        Some(Fault::Size(bytes)) => bytes,
        _ => body.len() as u64,
    };
    let from = if fault == Some(Fault::Whole) { 0 } else { from };
    if from > 0 && from >= body.len() {
        return status(stream, 416, "");
    }
    let code = if from > 0 { "206 Partial Content" } else { "200 OK" };
    let range = if from > 0 {
        format!("content-range: bytes {from}-{}/{total}\r\n", body.len() - 1)
    } else {
        String::new()
    };
    write!(
        stream,
        "HTTP/1.1 {code}\r\nconnection: close\r\nx-repo-commit: {COMMIT}\r\netag: \"{etag}\"\r\n\
         {range}content-length: {}\r\n\r\n",
        total - from as u64
    )?;
    if is_head {
        return Ok(());
    }
    let mut body = body[from..].to_vec();
    match fault {
        Some(Fault::Cut(bytes)) => body.truncate(bytes),
        Some(Fault::Damaged) => {
            if let Some(byte) = body.last_mut() {
                *byte ^= 1;
            }
        }
        Some(Fault::Silent(bytes)) => {
            stream.write_all(&body[..bytes.min(body.len())])?;
            // Hold the connection until the client stops reading.
            std::io::copy(stream, &mut std::io::sink())?;
            return Ok(());
        }
        Some(Fault::Trickle(bytes)) => {
            let (at_once, slowly) = body.split_at(bytes.min(body.len()));
            stream.write_all(at_once)?;
            for byte in slowly {
                stream.write_all(&[*byte])?;
                std::thread::sleep(Duration::from_millis(1));
            }
            return Ok(());
        }
        _ => {}
    }
    stream.write_all(&body)
}
