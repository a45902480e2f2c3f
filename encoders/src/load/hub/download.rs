//! One file's bytes from the hub into the cache: continued where they stopped, checked before they count.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::Hub;
use super::progress::Progress;
use super::remote::{Bytes, Facts, Refusal, pause};
use crate::LoadError;

/// Failures in a row, without much coming between them, after which it is given up.
const TRIES: u32 = 5;
/// So many bytes are progress: the failures before them are forgotten.
const PROGRESS: u64 = 1 << 20;

/// Why one try to get the rest of a file ended.
enum Ended {
    /// The hub ended it.
    Refused(Refusal),
    /// What is here is not what the hub says it has.
    Wrong(String),
    /// It can't be written here.
    Disk(io::Error),
}

impl Hub {
    /// Gets the bytes that `facts` name into the cache. They are there under their name only once they are whole and
    /// right; what has come of them stays for the next time.
    ///
    /// # Errors
    /// [`LoadError`]; bytes that are not what the hub says they are aren't kept.
    pub(super) fn download(&self, file: &str, facts: &Facts) -> Result<(), LoadError> {
        let blob = self.cache.blob(&facts.etag);
        let part = self.cache.incomplete(&facts.etag);
        let disk = |error| self.disk(&blob, &error);
        let _lock = self.cache.lock(&facts.etag).map_err(disk)?;
        if blob.is_file() {
            return Ok(());
        }
        for again in [false, true] {
            self.check_space(&part, facts)?;
            match self.fetch(file, facts, &part).and_then(|()| check(&part, facts)) {
                Ok(()) => return std::fs::rename(&part, &blob).map_err(disk),
                // What was there before may have been at fault: once more from the start.
                Err(Ended::Wrong(why)) => {
                    std::fs::remove_file(&part).map_err(disk)?;
                    if again {
                        let (model, file) = (self.model.clone(), file.to_owned());
                        return Err(LoadError::Corrupt { model, file, why });
                    }
                    tracing::warn!(model = self.model, file, why, "downloading again");
                }
                Err(Ended::Disk(error)) => return Err(disk(error)),
                Err(Ended::Refused(refusal)) => return Err(self.refused(file, &facts.commit, refusal)),
            }
        }
        Ok(())
    }

    /// Gets what is missing of the file, trying again what may go better.
    fn fetch(&self, file: &str, facts: &Facts, part: &Path) -> Result<(), Ended> {
        let mut out = OpenOptions::new().append(true).create(true).open(part).map_err(Ended::Disk)?;
        let mut at = out.metadata().map_err(Ended::Disk)?.len();
        let mut progress = Progress::new(&self.model, file, at, facts.bytes);
        let (mut failures, mut since) = (0, at);
        while facts.bytes != Some(at) {
            let refusal = match self.receive(file, facts, &mut out, &mut at, &mut progress) {
                Ok(()) => break,
                Err(Ended::Refused(Refusal::OutOfRange)) if at > 0 => {
                    at = 0;
                    out.set_len(0).map_err(Ended::Disk)?;
                    Refusal::Passing("it has nothing where the download stopped".to_owned())
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
            tracing::info!(file, at, why, "the download stopped; going on");
            std::thread::sleep(pause(self.settings.patience, failures));
        }
        out.sync_all().map_err(Ended::Disk)
    }

    /// Appends what one answer brings.
    fn receive(
        &self,
        file: &str,
        facts: &Facts,
        out: &mut File,
        at: &mut u64,
        progress: &mut Progress,
    ) -> Result<(), Ended> {
        let of = (self.repository.as_str(), facts.commit.as_str());
        let Bytes { from, total, mut reader } = self.remote.bytes(of, file, *at).map_err(Ended::Refused)?;
        if let (Some(said), Some(total)) = (facts.bytes, total)
            && said != total
        {
            return Err(Ended::Wrong(format!("it has {total} bytes and is said to have {said}")));
        }
        if from != *at {
            // Only ever the whole file: a range that was not asked for is no use.
            if from != 0 {
                return Err(Ended::Wrong(format!(
                    "bytes from {from} on came, those from {at} were asked for"
                )));
            }
            out.set_len(0).map_err(Ended::Disk)?;
            *at = 0;
        }
        let mut buffer = vec![0; 1 << 16];
        loop {
            let came = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(came) => came,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let why = format!("the connection ended at byte {at} of {file}: {error}");
                    return Err(Ended::Refused(Refusal::Passing(why)));
                }
            };
            out.write_all(&buffer[..came]).map_err(Ended::Disk)?;
            *at += came as u64;
            progress.at(*at);
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
                Err(Ended::Refused(Refusal::Passing(why)))
            }
            _ => Ok(()),
        }
    }

    /// Says that a file is too large for the disk before half of it is there.
    fn check_space(&self, part: &Path, facts: &Facts) -> Result<(), LoadError> {
        let here = part.metadata().map_or(0, |it| it.len());
        let missing = facts.bytes.unwrap_or(0).saturating_sub(here);
        let folder = part.parent().unwrap_or(part);
        // Where the file system does not say how much is free, writing shows it.
        let free = rustix::fs::statvfs(folder).map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize));
        if missing <= free {
            return Ok(());
        }
        let why = format!("{missing} bytes are still to come and {free} are free");
        Err(LoadError::NoSpace { model: self.model.clone(), folder: folder.to_owned(), why })
    }
}

/// Whether the whole file is what the hub says it has.
fn check(path: &Path, facts: &Facts) -> Result<(), Ended> {
    let bytes = path.metadata().map_err(Ended::Disk)?.len();
    if let Some(said) = facts.bytes.filter(|said| *said != bytes) {
        return Err(Ended::Wrong(format!("it has {bytes} bytes and is said to have {said}")));
    }
    // Of small files the hub states git's name of them, which only its size vouches for here.
    let is_sha256 = facts.etag.len() == 64 && facts.etag.bytes().all(|it| it.is_ascii_hexdigit());
    if !is_sha256 {
        return Ok(());
    }
    let mut hasher = Sha256::new();
    let mut file = File::open(path).map_err(Ended::Disk)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(Ended::Disk)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        }
    }
    let found: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found.eq_ignore_ascii_case(&facts.etag) {
        return Ok(());
    }
    Err(Ended::Wrong(format!("its SHA-256 is {found} and is said to be {}", facts.etag)))
}
