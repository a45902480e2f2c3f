//! Builds segments from grown rows and merges small or half-dead segments, while searches, inserts and removals go on.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use roaring::{RoaringBitmap, RoaringTreemap};

use crate::budget::Demand;
use crate::due::{self, Growth, Kind, Size};
use crate::part::{Body, Part};
use crate::rows::Rows;
use crate::sealed::{Linked, Making, SegmentError, Source, core_bytes, link};
use crate::segment_set::{Held, SegmentSet, State};
use crate::work::Work;
use crate::{Filter, IndexError, SpanKey};

/// Receives the number of linked rows and their total.
pub(crate) type Report<'a> = &'a (dyn Fn(usize, usize) + Sync);

impl SegmentSet {
    /// Inserts a vector. Waits while inserts come faster than seals finish.
    pub(crate) fn insert(self: &Arc<SegmentSet>, key: SpanKey, vector: &[f32]) -> Result<(), IndexError> {
        self.fill(key, vector)?;
        self.seal_if_due();
        self.keep_pace();
        Ok(())
    }

    /// Removes a key. Starts a merge if its part is now half dead.
    pub(crate) fn remove(self: &Arc<SegmentSet>, key: SpanKey) {
        if self.forget(key) {
            self.seal_if_due();
        }
    }

    /// Rewrites all live rows as one part: a segment, or rows for brute force if they are few. Returns when that part
    /// is in place. First waits for running jobs.
    pub(crate) fn seal(self: &Arc<SegmentSet>, threads: usize, report: Report) {
        let claim = Claim::of(self);
        self.merge(|_| true, threads, report);
        drop(claim);
        self.seal_if_due();
    }

    /// Waits until no job runs.
    pub(crate) fn settle(&self) {
        let mut work = self.work.lock();
        while work.is_claimed || !work.kinds.is_empty() {
            self.worked.wait(&mut work);
        }
    }

    /// Starts the due jobs of each idle kind in the background.
    pub(crate) fn seal_if_due(self: &Arc<SegmentSet>) {
        for kind in Kind::ALL {
            let Some(job) = Job::next(self, kind) else { continue };
            let started = std::thread::Builder::new().name("index-seal".into()).spawn(|| job.work());
            if let Err(error) = started {
                tracing::warn!(%error, "no thread for sealing the index: searches stay right but get slower");
            }
        }
    }

    /// Waits while inserts come faster than seals finish: otherwise searches would become slower and slower.
    pub(crate) fn keep_pace(&self) {
        let is_flooded =
            || due::is_flooded(u64::from(self.state.read().growing().part.len()), &self.settings);
        if is_flooded() {
            let mut work = self.work.lock();
            while work.kinds.contains(&Kind::Seal) && is_flooded() {
                self.worked.wait(&mut work);
            }
        }
    }

    /// Wakes the waiting threads. They check under this lock; without it, one could check before the change and sleep
    /// after it.
    fn tell(&self) {
        let _nobody_looks = self.work.lock();
        self.worked.notify_all();
    }

    /// The sizes of the parts that may be rewritten.
    fn sizes(&self, busy: &HashSet<u64>) -> Vec<Size> {
        let state = self.state.read();
        let growing = state.growing().id;
        let free = state.held.iter().filter(|held| !busy.contains(&held.id) && !held.is_damaged());
        free.map(|held| Size {
            id: held.id,
            live: held.part.live.len(),
            dead: held.part.dead(),
            state: match &held.part.body {
                Body::Growing(_) if held.id == growing => Growth::Grows,
                Body::Growing(_) => Growth::Rows,
                Body::Sealed(_) => Growth::Sealed,
            },
        })
        .collect()
    }

    /// Rewrites the picked, undamaged parts as one; returns whether that worked.
    fn merge(&self, is_picked: impl Fn(&Held) -> bool, threads: usize, report: Report) -> bool {
        loop {
            let picked = self.pick(&is_picked);
            self.tell();
            let source = Picked::new(picked.iter().map(|(_, part)| part.clone()).collect());
            let made = self.make(&source, threads, report);
            match made.and_then(|made| self.put_in_place(&picked, made)) {
                Ok(()) => return true,
                // The part is now marked damaged; the next try leaves it out.
                Err(SegmentError::Unreadable) => {}
                Err(error) => {
                    tracing::warn!(%error, "the index can't be sealed: searches stay right but get slower");
                    return false;
                }
            }
        }
    }

    fn make<'a>(&self, source: &'a Picked, threads: usize, report: Report) -> Result<Made<'a>, SegmentError> {
        if (source.len() as u64) < self.settings.segment_from {
            return source.rewritten(self.dimension).map(Made::Rows);
        }
        let report = |done| report(done, source.len());
        let freed = source.taken();
        let bytes = |codes| core_bytes(codes, self.dimension, source.len());
        let codes =
            self.home.budget.choose(self.settings.codes, |codes| Demand { bytes: bytes(codes), freed });
        let making = Making { codes, threads, freed, report: &report };
        link(source, self.dimension, making).map(|linked| Made::Segment(Box::new(linked)))
    }

    /// Snapshots of the picked parts; a growing part is frozen.
    fn pick(&self, is_picked: &impl Fn(&Held) -> bool) -> Vec<(u64, Part)> {
        let _writer = self.writer.lock();
        let mut state = self.state.write();
        if is_picked(state.growing()) {
            state.freeze(self.dimension);
        }
        let picked = state.frozen().iter().filter(|held| is_picked(held) && !held.is_damaged());
        picked.map(|held| (held.id, held.part.clone())).collect()
    }

    /// Replaces the picked parts by what was made of them, without the keys removed meanwhile.
    fn put_in_place(&self, picked: &[(u64, Part)], made: Made) -> Result<(), SegmentError> {
        let changing = self.home.change();
        let mut part = match made {
            Made::Rows(part) => part,
            Made::Segment(linked) => Part::sealed(self.home.store(*linked)?),
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
        drop((writer, changing));
        // Freeing large parts takes time: it happens outside the lock.
        drop(replaced);
        Ok(())
    }

    /// Keys that were live in the snapshots and are now dead.
    fn removed_since(&self, picked: &[(u64, Part)]) -> RoaringTreemap {
        let state = self.state.read();
        let mut gone = RoaringTreemap::new();
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
    /// All parts except the growing one.
    fn frozen(&self) -> &[Held] {
        &self.held[..self.held.len() - 1]
    }
}

impl Part {
    /// Marks the rows of these keys dead.
    fn forget(&mut self, keys: &RoaringTreemap) {
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
    /// Whether a live vector is known to be unreadable. The server restores it from the catalog before the part is
    /// rewritten.
    fn is_damaged(&self) -> bool {
        !self.part.unreadable(&Filter::default()).is_empty()
    }
}

impl Work {
    /// Marks the next due parts as being rewritten, and returns them.
    fn take(&mut self, collection: &SegmentSet, kind: Kind) -> Vec<u64> {
        if self.is_claimed {
            return Vec::new();
        }
        let parts = due::due(kind, &collection.sizes(&self.parts), &self.kinds, &collection.settings);
        if parts == self.failed {
            return Vec::new();
        }
        self.parts.extend(&parts);
        parts
    }
}

/// A background job: the parts that it merges into one; none when it ends.
struct Job {
    collection: Arc<SegmentSet>,
    kind: Kind,
    parts: Vec<u64>,
    /// Whether a thread runs it: a job for which no thread could start has not failed.
    has_begun: bool,
}

impl Job {
    /// The next job of a kind, if one is due and none of this kind runs.
    fn next(collection: &Arc<SegmentSet>, kind: Kind) -> Option<Job> {
        let mut work = collection.work.lock();
        if work.kinds.contains(&kind) {
            return None;
        }
        let parts = work.take(collection, kind);
        if parts.is_empty() {
            return None;
        }
        work.kinds.push(kind);
        Some(Job { collection: Arc::clone(collection), kind, parts, has_begun: false })
    }

    fn work(mut self) {
        self.has_begun = true;
        let collection = Arc::clone(&self.collection);
        let threads = collection.settings.build_threads;
        while collection.merge(|held| self.parts.contains(&held.id), threads, &|_, _| ()) {
            // Jobs of other kinds may be due now.
            collection.seal_if_due();
            if !self.go_on() {
                break;
            }
        }
    }

    /// Takes the next due parts, or ends. It does both under one lock: a thread that waits for all seals must never
    /// find due parts without a job.
    fn go_on(&mut self) -> bool {
        let mut work = self.collection.work.lock();
        work.parts.retain(|part| !self.parts.contains(part));
        self.parts = work.take(&self.collection, self.kind);
        if self.parts.is_empty() {
            work.kinds.retain(|kind| *kind != self.kind);
            self.collection.worked.notify_all();
        }
        !self.parts.is_empty()
    }
}

/// Dropped early if it panicked, failed or never began.
impl Drop for Job {
    fn drop(&mut self) {
        if !self.parts.is_empty() {
            let mut work = self.collection.work.lock();
            work.parts.retain(|part| !self.parts.contains(part));
            work.kinds.retain(|kind| *kind != self.kind);
            if self.has_begun {
                work.failed = std::mem::take(&mut self.parts);
            }
            self.collection.worked.notify_all();
        }
    }
}

/// The right to rewrite all parts, until it is dropped.
struct Claim<'a>(&'a SegmentSet);

impl Claim<'_> {
    fn of(collection: &SegmentSet) -> Claim<'_> {
        let mut work = collection.work.lock();
        while work.is_claimed {
            collection.worked.wait(&mut work);
        }
        work.is_claimed = true;
        while !work.kinds.is_empty() {
            collection.worked.wait(&mut work);
        }
        Claim(collection)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.work.lock().is_claimed = false;
        self.0.worked.notify_all();
    }
}

/// What is made of picked parts.
enum Made<'a> {
    /// Too few for a segment.
    Rows(Part),
    Segment(Box<Linked<'a, Picked>>),
}

/// The live rows of the picked parts.
struct Picked {
    parts: Vec<Part>,
    /// Live rows, each as (index in `parts`, row in that part).
    rows: Vec<(u32, u32)>,
}

impl Picked {
    fn new(parts: Vec<Part>) -> Picked {
        let rows = (0..).zip(&parts).flat_map(|(at, part)| part.live.iter().map(move |row| (at, row)));
        Picked { rows: rows.collect(), parts }
    }

    /// Bytes of the budget that its parts take, and give back when they are replaced.
    fn taken(&self) -> u64 {
        self.parts.iter().map(Part::taken).sum()
    }

    /// The same rows as a part for brute force.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    const SETTINGS: Settings = Settings {
        segment_from: 10,
        seal_from: 20,
        codes: crate::Codes::F32,
        memory: None,
        build_threads: 1,
    };

    fn fill(collection: &SegmentSet, keys: std::ops::Range<u64>) {
        keys.for_each(|key| collection.fill(key, &[1.0, 0.0]).unwrap());
    }

    /// Checks how many parts the next seal would take; none if none is due.
    #[track_caller]
    fn check(collection: &Arc<SegmentSet>, expected: usize) {
        assert_eq!(Job::next(collection, Kind::Seal).map_or(0, |job| job.parts.len()), expected);
    }

    #[test]
    fn what_failed_is_due_again_when_more_has_come_and_what_never_began_at_once() {
        let collection = Arc::new(SegmentSet::new(2, SETTINGS, Arc::default(), Arc::default()));
        fill(&collection, 0..20);
        // Each of these jobs is dropped before a thread runs it.
        check(&collection, 1);
        check(&collection, 1);
        let mut failing = Job::next(&collection, Kind::Seal).unwrap();
        failing.has_begun = true;
        collection.pick(&|held| failing.parts.contains(&held.id));
        drop(failing);
        fill(&collection, 20..39);
        check(&collection, 0);
        fill(&collection, 39..40);
        check(&collection, 2);
        collection.seal_if_due();
        collection.settle();
        assert_eq!((collection.view().has_graph(), collection.keys().len()), (true, 40));
    }
}
