//! Decides when a snapshot is due, and tracks the state of the last one.

/// A snapshot is due after this many changes.
const CHANGES_PER_SNAPSHOT: i64 = 20_000;

/// A state of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// Its newest change.
    pub(super) seq: i64,
    /// The index's generation: rises with each seal.
    pub(super) generation: u64,
}

/// The state of the snapshots on disk.
pub(super) struct Snapshots {
    /// The state on disk; `None`: no usable snapshot.
    saved: Option<Mark>,
    /// The last state that was to be saved, even if that failed, so that a full disk is not written to every second.
    tried: Mark,
    /// The state being saved; `None` if outdated meanwhile.
    saving: Option<Mark>,
}

impl Snapshots {
    /// No snapshot exists. The first becomes due by later changes or seals.
    pub(super) fn new(now: Mark) -> Snapshots {
        Snapshots { saved: None, tried: now, saving: None }
    }

    /// Whether to write a snapshot while the server runs: after many changes, and after a seal. A crash after the seal
    /// would otherwise leave a segment that no snapshot names.
    pub(super) fn is_due(&self, now: Mark) -> bool {
        now.generation != self.tried.generation || now.seq - self.tried.seq >= CHANGES_PER_SNAPSHOT
    }

    /// Begins to save `now`, which then counts as tried. Returns whether a save is needed.
    pub(super) fn begin(&mut self, now: Mark) -> bool {
        (self.tried, self.saving) = (now, Some(now));
        self.saved != Some(now)
    }

    /// The save has succeeded.
    pub(super) fn finish(&mut self) {
        self.saved = self.saving.take();
    }

    /// The snapshot on disk has this state.
    pub(super) fn are_as(&mut self, mark: Mark) {
        (self.saved, self.tried) = (Some(mark), mark);
    }

    /// The index differs from the snapshot although no change was applied.
    pub(super) fn are_outdated(&mut self) {
        (self.saved, self.saving) = (None, None);
    }

    /// The snapshot on disk is damaged, so a new one is due.
    pub(super) fn are_damaged(&mut self) {
        self.are_outdated();
        // No index has this generation.
        self.tried.generation = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Mark = Mark { seq: 100, generation: 3 };

    #[track_caller]
    fn check(snapshots: &Snapshots, seq: i64, generation: u64, expected: bool) {
        assert_eq!(snapshots.is_due(Mark { seq, generation }), expected);
    }

    fn save(snapshots: &mut Snapshots, now: Mark) {
        assert!(snapshots.begin(now));
        snapshots.finish();
    }

    #[test]
    fn one_is_due_after_many_changes_or_a_seal() {
        let mut snapshots = Snapshots::new(START);
        check(&snapshots, 100, 3, false);
        check(&snapshots, 20_099, 3, false);
        check(&snapshots, 20_100, 3, true);
        check(&snapshots, 101, 4, true);
        save(&mut snapshots, Mark { seq: 101, generation: 4 });
        check(&snapshots, 20_100, 4, false);
        check(&snapshots, 101, 5, true);
    }

    #[test]
    fn what_could_not_be_written_is_tried_again_when_something_happens() {
        let mut snapshots = Snapshots::new(START);
        let sealed = Mark { generation: 4, ..START };
        assert!(snapshots.begin(sealed));
        check(&snapshots, 100, 4, false);
        check(&snapshots, 100, 5, true);
        assert!(snapshots.begin(sealed), "at the end it is tried all the same");
        snapshots.finish();
        assert!(!snapshots.begin(sealed));
    }

    #[test]
    fn a_mended_index_is_written_at_once_and_a_completed_one_at_the_end() {
        let mut snapshots = Snapshots::new(START);
        snapshots.are_as(START);
        snapshots.are_outdated();
        check(&snapshots, 100, 3, false);
        save(&mut snapshots, START);
        assert!(!snapshots.begin(START));
        snapshots.are_damaged();
        check(&snapshots, 100, 3, true);
    }

    #[test]
    fn what_is_mended_while_a_snapshot_is_written_may_not_be_in_it() {
        let mut snapshots = Snapshots::new(START);
        assert!(snapshots.begin(START));
        snapshots.are_damaged();
        snapshots.finish();
        check(&snapshots, 100, 3, true);
        assert!(snapshots.begin(START));
    }
}
