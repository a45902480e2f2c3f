//! A fault at each write of a backup and of a restore: an error, or the end of the process. Afterwards the same command
//! works, and the restored library is whole.

use std::path::Path;

use reprise_tests::is_full;

use super::{prints, said, shown};
use crate::faults::bed::{Bed, on_both};

/// Faults of each kind in a short run; a full run tries every write.
const TRIED: usize = 5;

on_both!(a_fault_at_any_write_leaves_a_library_that_can_be_saved_and_restored,);

async fn a_fault_at_any_write_leaves_a_library_that_can_be_saved_and_restored(bed: &Bed) {
    let server = bed.start(&[]);
    for number in 0..2 {
        server.ingest(&bed.film(number, 2)).await;
    }
    assert!(server.stop(), "it did not stop well");
    let whole = bed.folder().join("whole");
    for (fault, number) in faults(writes(bed, &["backup", shown(&whole)])) {
        let backup = bed.folder().join(format!("{fault}-{number}"));
        let arguments = ["backup", shown(&backup)];
        assert!(!works_with(bed, &arguments, &format!("{fault}:{number}")), "{fault} {number} was no fault");
        let partial = backup.with_extension("partial");
        // After an error nothing is left. After a death the next backup names what is.
        assert!(fault == "kill" || backup.exists() || !partial.exists(), "{fault} {number} left a part");
        if partial.exists() {
            std::fs::remove_dir_all(&partial).unwrap();
        }
        // The name may have become durable just before the fault. Then the backup is whole.
        if !backup.exists() {
            prints(bed, &arguments);
        }
        prints(bed, &["verify"]);
        restored(bed, &backup, &format!("a backup after {fault} {number}")).await;
    }
    let restore = ["restore", shown(&whole)];
    for (fault, number) in faults(writes(&bed.fresh().await, &restore)) {
        let target = bed.fresh().await;
        assert!(
            !works_with(&target, &restore, &format!("{fault}:{number}")),
            "{fault} {number} was no fault"
        );
        let again = target.run(&restore);
        assert!(again.status.success() || said(&again).contains("holds 2 videos"), "{}", said(&again));
        prints(&target, &["verify"]);
    }
}

/// The number of writes of a command that must succeed.
fn writes(bed: &Bed, arguments: &[&str]) -> usize {
    let list = bed.folder().join("writes");
    let mut command = bed.command(arguments);
    let output = command.env("REPRISE_FAULT", format!("list:{}", list.display())).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    std::fs::read_to_string(list).unwrap().lines().count()
}

/// The faults to try: each kind at each write, or at some of them.
fn faults(writes: usize) -> Vec<(&'static str, usize)> {
    assert!(writes > 5, "only {writes} writes");
    let step = if is_full() { 1 } else { writes.div_ceil(TRIED) };
    let numbers = (1..=writes).step_by(step);
    numbers.flat_map(|number| ["error", "kill"].map(|fault| (fault, number))).collect()
}

/// Runs a command with a fault; whether it succeeded.
fn works_with(bed: &Bed, arguments: &[&str], fault: &str) -> bool {
    bed.command(arguments).env("REPRISE_FAULT", fault).output().unwrap().status.success()
}

/// Restores a backup into an empty library and checks it.
async fn restored(bed: &Bed, backup: &Path, what: &str) {
    let target = bed.fresh().await;
    let output = target.run(&["restore", shown(backup)]);
    assert!(output.status.success(), "{what}: {}", said(&output));
    let checked = target.run(&["verify"]);
    assert!(checked.status.success(), "{what}: {}", String::from_utf8_lossy(&checked.stdout));
}
