//! The facts of files that were probed lately. An upload is probed before it is accepted, and its ingest begins soon after.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reprise_encoders::video::Probe;

use crate::storage::StoredFile;

/// Most files.
const MOST: usize = 64;

/// The probes of files that were stored lately, the oldest first.
#[derive(Debug, Default)]
pub struct Probes(Mutex<VecDeque<(StoredFile, Probe)>>);

impl Probes {
    /// Keeps the probe of a file in the storage, which does not change. The oldest leave.
    pub fn keep(&self, file: StoredFile, probe: Probe) {
        let mut kept = self.lock();
        kept.push_back((file, probe));
        while kept.len() > MOST {
            kept.pop_front();
        }
    }

    /// The probe of a file, at most once: whoever tries again looks at the file itself.
    pub fn take(&self, file: &StoredFile) -> Option<Probe> {
        let mut kept = self.lock();
        let at = kept.iter().position(|(known, _)| known == file)?;
        kept.remove(at).map(|(_, probe)| probe)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(StoredFile, Probe)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
