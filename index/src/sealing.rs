//! Makes segments of what has grown, and new ones of those that are small or half dead, while searches, inserts and
//! removals go on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use roaring::RoaringBitmap;

use crate::collection::{Collection, Held, State};
use crate::part::{Body, Part};
use crate::rows::Rows;
use crate::sealed::{Making, Sealed, SegmentError, Source};
use crate::{Filter, SpanKey};

/// Dead rows under which rewriting is not worth it.
const DEAD_MOST: u64 = 1_024;

/// Hears how many rows are linked, and how many there are.
pub(crate) type Report<'a> = &'a (dyn Fn(usize, usize) + Sync);

impl Collection {
    /// Rewrites all live rows as one part: a segment, or rows for brute force if they are few. Returns when that is in
    /// place; another seal that is running is waited for.
    pub(crate) fn seal(&self, threads: usize, report: Report) {
        let mut sealing = self.sealing.lock();
        while *sealing {
            self.sealed.wait(&mut sealing);
        }
        *sealing = true;
        drop(sealing);
        let _sealing = Sealing(self);
        self.merge(|_| true, threads, report);
    }

    /// Returns when no seal is running.
    pub(crate) fn settle(&self) {
        let mut sealing = self.sealing.lock();
        while *sealing {
            self.sealed.wait(&mut sealing);
        }
    }

    /// Starts sealing in the background if that is due and nobody does.
    pub(crate) fn seal_if_due(self: &Arc<Collection>) {
        if self.due().is_empty() {
            return;
        }
        {
            let mut sealing = self.sealing.lock();
            if *sealing {
                return;
            }
            *sealing = true;
        }
        let collection = Arc::clone(self);
        let started = std::thread::Builder::new().name("index-seal".into()).spawn(move || {
            let _sealing = Sealing(&collection);
            loop {
                let due = collection.due();
                let threads = collection.settings.build_threads;
                if due.is_empty() || !collection.merge(|held| due.contains(&held.id), threads, &|_, _| ()) {
                    break;
                }
            }
        });
        if let Err(error) = started {
            tracing::warn!(%error, "no thread for sealing the index: searches stay right but get slower");
            drop(Sealing(self));
        }
    }

    /// The parts that should become one: what has grown enough, what is half dead, what failed before, and then each
    /// segment that is not much larger than these together, so that sizes stay far apart and parts few.
    fn due(&self) -> Vec<u64> {
        let state = self.state.read();
        let mut due: Vec<&Held> = state.held.iter().filter(|held| self.is_due(&state, held)).collect();
        if due.is_empty() {
            return Vec::new();
        }
        let mut rest: Vec<&Held> = state
            .frozen()
            .iter()
            .filter(|held| !due.iter().any(|one| one.id == held.id) && !held.is_damaged())
            .collect();
        rest.sort_by_key(|held| held.part.live.len());
        let mut live: u64 = due.iter().map(|held| held.part.live.len()).sum();
        for held in rest {
            if held.part.live.len() > live + live / 2 {
                break;
            }
            live += held.part.live.len();
            due.push(held);
        }
        due.iter().map(|held| held.id).collect()
    }

    fn is_due(&self, state: &State, held: &Held) -> bool {
        let (live, dead) = (held.part.live.len(), held.part.dead());
        if held.is_damaged() {
            return false;
        }
        if dead >= DEAD_MOST && dead >= live {
            return true;
        }
        match &held.part.body {
            Body::Growing(rows) if held.id == state.growing().id => {
                u64::from(rows.len()) >= self.settings.seal_from
            }
            // A seal failed.
            Body::Growing(_) => live >= self.settings.segment_from,
            Body::Sealed(_) => false,
        }
    }

    /// Makes one part of those that are picked and not damaged; whether that worked.
    fn merge(&self, is_picked: impl Fn(&Held) -> bool, threads: usize, report: Report) -> bool {
        loop {
            let picked = self.pick(&is_picked);
            match self.make(&picked, threads, report) {
                Ok(part) => {
                    self.put_in_place(&picked, part);
                    return true;
                }
                // Its part is known to be damaged now, and is left out of the next try.
                Err(SegmentError::Unreadable) => {}
                Err(error) => {
                    tracing::warn!(%error, "the index can't be sealed: searches stay right but get slower");
                    return false;
                }
            }
        }
    }

    fn make(&self, picked: &[(u64, Part)], threads: usize, report: Report) -> Result<Part, SegmentError> {
        let source = Picked::new(picked.iter().map(|(_, part)| part.clone()).collect());
        if (source.len() as u64) < self.settings.segment_from {
            return source.rewritten(self.dimension);
        }
        let report = |done| report(done, source.len());
        let making = Making { codes: self.settings.codes, threads, report: &report };
        Sealed::make(&source, self.dimension, making).map(Part::sealed)
    }

    /// Pictures of the parts; those that grow stop growing.
    fn pick(&self, is_picked: &impl Fn(&Held) -> bool) -> Vec<(u64, Part)> {
        let _writer = self.writer.lock();
        let mut state = self.state.write();
        if is_picked(state.growing()) {
            state.freeze(self.dimension);
        }
        let picked = state.frozen().iter().filter(|held| is_picked(held) && !held.is_damaged());
        picked.map(|held| (held.id, held.part.clone())).collect()
    }

    /// Replaces the picked parts, without what was removed from them meanwhile.
    fn put_in_place(&self, picked: &[(u64, Part)], part: Part) {
        let _changing = self.home.change();
        let mut part = match part.body {
            // Nobody else has it yet.
            Body::Sealed(sealed) => match Arc::try_unwrap(sealed) {
                Ok(sealed) => Part::sealed(self.home.store(sealed)),
                Err(sealed) => Part { body: Body::Sealed(sealed), live: part.live },
            },
            body => Part { body, live: part.live },
        };
        let writer = self.writer.lock();
        let gone = self.removed_since(picked);
        part.forget(&gone);
        let mut state = self.state.write();
        let is_picked = |held: &Held| picked.iter().any(|(id, _)| *id == held.id);
        let replaced: Vec<Held> = state.held.extract_if(.., |held| is_picked(held)).collect();
        if !part.live.is_empty() {
            state.add(part);
        }
        drop(state);
        self.generation.fetch_add(1, Ordering::Relaxed);
        drop(writer);
        // Freeing large parts takes a while: nobody waits for it.
        drop(replaced);
    }

    /// Keys that were live in the pictures and are not any more.
    fn removed_since(&self, picked: &[(u64, Part)]) -> RoaringBitmap {
        let state = self.state.read();
        let mut gone = RoaringBitmap::new();
        for (id, before) in picked {
            let now = state.held.iter().find(|held| held.id == *id).map(|held| &held.part.live);
            let removed = match now {
                Some(now) => before.live.as_ref() - now.as_ref(),
                None => before.live.as_ref().clone(),
            };
            gone.extend(removed.iter().map(|row| before.key(row)));
        }
        gone
    }
}

impl State {
    /// All parts but the one that grows.
    fn frozen(&self) -> &[Held] {
        &self.held[..self.held.len() - 1]
    }
}

impl Part {
    /// Makes the rows of these keys dead.
    fn forget(&mut self, keys: &RoaringBitmap) {
        if keys.is_empty() {
            return;
        }
        let gone: Vec<u32> = match &self.body {
            Body::Sealed(sealed) => keys.iter().filter_map(|key| sealed.find(key)).collect(),
            Body::Growing(rows) => self.live.iter().filter(|&row| keys.contains(rows.key(row))).collect(),
        };
        let live = Arc::make_mut(&mut self.live);
        gone.iter().for_each(|&row| {
            live.remove(row);
        });
    }
}

impl Held {
    /// Whether a live vector is known to be unreadable: to be read from the catalog first, then rewritten.
    fn is_damaged(&self) -> bool {
        !self.part.unreadable(&Filter::default()).is_empty()
    }
}

/// Says that a seal is over, also when it panicked.
struct Sealing<'a>(&'a Collection);

impl Drop for Sealing<'_> {
    fn drop(&mut self) {
        *self.0.sealing.lock() = false;
        self.0.sealed.notify_all();
    }
}

/// The live rows of some parts.
struct Picked {
    parts: Vec<Part>,
    /// Part and row.
    rows: Vec<(u32, u32)>,
}

impl Picked {
    fn new(parts: Vec<Part>) -> Picked {
        let rows = (0..).zip(&parts).flat_map(|(at, part)| part.live.iter().map(move |row| (at, row)));
        Picked { rows: rows.collect(), parts }
    }

    /// The same rows, for brute force.
    fn rewritten(&self, dimension: usize) -> Result<Part, SegmentError> {
        let mut rows = Rows::new(dimension);
        for row in 0..self.len() {
            rows.push(self.key(row), self.vector(row).ok_or(SegmentError::Unreadable)?);
        }
        let live = Arc::new(RoaringBitmap::from_iter(0..rows.len()));
        Ok(Part { body: Body::Growing(rows), live })
    }
}

impl Source for Picked {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn key(&self, row: usize) -> SpanKey {
        let (part, row) = self.rows[row];
        self.parts[part as usize].key(row)
    }

    fn vector(&self, row: usize) -> Option<&[f32]> {
        let (part, row) = self.rows[row];
        self.parts[part as usize].vector(row)
    }
}
