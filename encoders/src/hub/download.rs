//! Downloads one file into the cache: resumes partial downloads and verifies size and hash.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::progress::Progress;
use super::remote::{Bytes, Facts, Refusal, pause};
use super::repository::Repository;
use crate::{Cause, LoadError};

/// Consecutive failures with less than [`PROGRESS`] bytes between them after which the download fails.
const TRIES: u32 = 5;
/// Bytes that reset the count of failures.
const PROGRESS: u64 = 1 << 20;

/// A transfer slower than [`PACE_LEAST`] bytes per second over this many silence limits counts as stalled.
const PACE_WINDOWS: u32 = 3;
const PACE_LEAST: f64 = 2048.0;

/// Why one attempt to download a file ended.
enum Ended {
    /// The hub refused or the connection failed.
    Refused(Refusal),
    /// The bytes differ from the hub's size or hash.
    Wrong(String),
    /// Writing failed.
    Disk(io::Error),
}

impl Repository {
    /// Downloads the bytes that `facts` describe. They get their final name only after verification; a partial download
    /// stays for the next attempt.
    ///
    /// # Errors
    /// [`LoadError`]; bytes that fail verification are deleted.
    pub(super) fn download(&self, file: &str, facts: &Facts) -> Result<(), LoadError> {
        let blob = self.cache.blob(&facts.etag);
        let part = self.cache.incomplete(&facts.etag);
        let disk = |error| self.disk(&blob, error);
        let _lock = self.cache.lock(&facts.etag).map_err(disk)?;
        if blob.is_file() {
            return Ok(());
        }
        for again in [false, true] {
            self.check_space(&part, facts)?;
            match self.fetch(file, facts, &part).and_then(|()| check(&part, facts)) {
                Ok(()) => return std::fs::rename(&part, &blob).map_err(disk),
                // The earlier partial download may be at fault, so start over once.
                Err(Ended::Wrong(why)) => {
                    std::fs::remove_file(&part).map_err(disk)?;
                    if again {
                        let (model, file) = (self.model.clone(), file.to_owned());
                        return Err(LoadError::Corrupt { model, file, why: why.into() });
                    }
                    tracing::warn!(model = self.model, file, why, "downloading again");
                }
                Err(Ended::Disk(error)) => return Err(disk(error)),
                Err(Ended::Refused(refusal)) => return Err(self.refused(file, &facts.commit, refusal)),
            }
        }
        Ok(())
    }

    /// Downloads the missing bytes; retries failures that may pass.
    fn fetch(&self, file: &str, facts: &Facts, part: &Path) -> Result<(), Ended> {
        let mut out = OpenOptions::new().append(true).create(true).open(part).map_err(Ended::Disk)?;
        let mut at = out.metadata().map_err(Ended::Disk)?.len();
        let mut progress = Progress::new(&self.model, file, at, facts.bytes, self.progress.clone());
        let (mut failures, mut since) = (0, at);
        while facts.bytes != Some(at) {
            let refusal = match self.receive(file, facts, &mut out, &mut at, &mut progress) {
                Ok(()) => break,
                Err(Ended::Refused(Refusal::OutOfRange)) if at > 0 => {
                    at = 0;
                    out.set_len(0).map_err(Ended::Disk)?;
                    Refusal::Passing("it has nothing where the download stopped".into())
                }
                Err(Ended::Refused(refusal)) => refusal,
                Err(other) => return Err(other),
            };
            let Refusal::Passing(why) = &refusal else { return Err(Ended::Refused(refusal)) };
            failures = if at >= since + PROGRESS { 1 } else { failures + 1 };
            since = at;
            if failures >= TRIES {
                return Err(Ended::Refused(refusal));
            }
            tracing::info!(file, at, %why, "the download stopped; going on");
            std::thread::sleep(pause(self.settings.patience, failures));
        }
        out.sync_all().map_err(Ended::Disk)
    }

    /// Appends the bytes of one response.
    fn receive(
        &self,
        file: &str,
        facts: &Facts,
        out: &mut File,
        at: &mut u64,
        progress: &mut Progress,
    ) -> Result<(), Ended> {
        let (repository, commit) = (self.repository.as_str(), facts.commit.as_str());
        let Bytes { from, total, mut reader } =
            self.remote.bytes(repository, commit, file, *at).map_err(Ended::Refused)?;
        if let (Some(said), Some(total)) = (facts.bytes, total)
            && said != total
        {
            return Err(Ended::Wrong(format!("it has {total} bytes and is said to have {said}")));
        }
        if from != *at {
            // Only the whole file is acceptable instead of the requested range.
            if from != 0 {
                return Err(Ended::Wrong(format!(
                    "it sent the bytes from {from} on; the request was for those from {at}"
                )));
            }
            out.set_len(0).map_err(Ended::Disk)?;
            *at = 0;
        }
        let mut buffer = vec![0; 1 << 16];
        let mut pace = Pace::new(self.settings.patience);
        loop {
            let came = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(came) => came,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let ended = format!("the connection ended at byte {at} of {file}");
                    return Err(Ended::Refused(Refusal::Passing(Cause::in_context(ended, error))));
                }
            };
            out.write_all(&buffer[..came]).map_err(Ended::Disk)?;
            *at += came as u64;
            progress.at(*at);
            if pace.is_lost(came) && facts.bytes.or(total) != Some(*at) {
                let why = format!("hardly any bytes come: it is at byte {at} of {file}");
                return Err(Ended::Refused(Refusal::Passing(why.into())));
            }
            if facts.bytes.is_some_and(|bytes| bytes < *at) {
                return Err(Ended::Wrong(format!(
                    "more than {} bytes came",
                    facts.bytes.unwrap_or_default()
                )));
            }
        }
        match facts.bytes.or(total) {
            Some(whole) if *at < whole => {
                let why = format!("the connection ended at byte {at} of {file}, which has {whole}");
                Err(Ended::Refused(Refusal::Passing(why.into())))
            }
            _ => Ok(()),
        }
    }

    /// Fails before the download if the file is too large for the disk.
    fn check_space(&self, part: &Path, facts: &Facts) -> Result<(), LoadError> {
        let here = part.metadata().map_or(0, |it| it.len());
        let missing = facts.bytes.unwrap_or(0).saturating_sub(here);
        let folder = part.parent().unwrap_or(part);
        // If the free space is unknown, a full disk fails the write instead.
        let free = rustix::fs::statvfs(folder).map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize));
        if missing <= free {
            return Ok(());
        }
        let why = format!("{missing} bytes are still to come and {free} are free");
        Err(LoadError::NoSpace { model: self.model.clone(), folder: folder.to_owned(), why: why.into() })
    }
}

/// Compares the whole file with the hub's size and hash.
fn check(path: &Path, facts: &Facts) -> Result<(), Ended> {
    let bytes = path.metadata().map_err(Ended::Disk)?.len();
    if let Some(said) = facts.bytes.filter(|said| *said != bytes) {
        return Err(Ended::Wrong(format!("it has {bytes} bytes and is said to have {said}")));
    }
    let is_hex = facts.etag.bytes().all(|it| it.is_ascii_hexdigit());
    let (kind, found) = match facts.etag.len() {
        64 if is_hex => ("SHA-256", hash(path, Sha256::new())),
        // Small files have git's blob hash; some mirrors hash the bytes alone.
        40 if is_hex => match hash(path, Sha1::new()) {
            Ok(found) if found.eq_ignore_ascii_case(&facts.etag) => return Ok(()),
            Ok(_) => ("git hash", hash(path, Sha1::new_with_prefix(format!("blob {bytes}\0")))),
            Err(error) => return Err(Ended::Disk(error)),
        },
        // A mirror's own etag: only the size can be checked.
        _ => return Ok(()),
    };
    let found = found.map_err(Ended::Disk)?;
    if found.eq_ignore_ascii_case(&facts.etag) {
        return Ok(());
    }
    Err(Ended::Wrong(format!("its {kind} is {found} and is said to be {}", facts.etag)))
}

/// Hash in hex of a file's bytes, appended to the hasher's earlier input.
fn hash(path: &Path, mut hasher: impl Digest) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Detects a transfer that is too slow to finish, although it is never silent.
struct Pace {
    window: Duration,
    since: Instant,
    bytes: u64,
}

impl Pace {
    fn new(patience: Duration) -> Pace {
        Pace { window: patience.saturating_mul(PACE_WINDOWS), since: Instant::now(), bytes: 0 }
    }

    /// Adds `came` bytes; returns whether the transfer is too slow.
    fn is_lost(&mut self, came: usize) -> bool {
        self.bytes += came as u64;
        let elapsed = self.since.elapsed();
        if elapsed < self.window {
            return false;
        }
        let is_lost = (self.bytes as f64) < PACE_LEAST * elapsed.as_secs_f64();
        (self.since, self.bytes) = (Instant::now(), 0);
        is_lost
    }
}
