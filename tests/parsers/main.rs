//! Every parser under seeds and random changes of them. No input breaks what its target promises, and none costs more
//! memory than the target allows.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod counting;
mod seeds;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

use counting::peak_of;
use reprise_tests::is_full;
use reprise_tests::mutations::{Dice, mutated};
use reprise_tests::targets::{Target, named};

/// How many times as many inputs the long tests try.
const FULL: usize = 30;

/// Runs the target on its seeds, and on `count` changed ones. A failure names the file that holds its input.
#[track_caller]
fn check(name: &str, count: usize) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let target = named(name);
    let seeds = seeds::of(name);
    assert!(!seeds.is_empty(), "{name} has no seeds");
    // What the first run makes for all.
    (target.run)(&seeds[0]);
    seeds.iter().for_each(|seed| try_one(target, seed));
    let mut dice = Dice::new(name.bytes().fold(18, |seed, byte| seed * 31 + u64::from(byte)));
    for _ in 0..if is_full() { count * FULL } else { count } {
        try_one(target, &mutated(&seeds, &mut dice));
    }
}

#[track_caller]
fn try_one(target: &Target, input: &[u8]) {
    let (result, peak) = peak_of(|| catch_unwind(AssertUnwindSafe(|| (target.run)(input))));
    let most = target.memory.most(input.len());
    if result.is_ok() && peak <= most {
        return;
    }
    let (_, path) = tempfile::NamedTempFile::new().unwrap().keep().unwrap();
    std::fs::write(&path, input).unwrap();
    let (name, length) = (target.name, input.len());
    assert!(result.is_ok(), "{name} broke its promise; the input is in {}", path.display());
    panic!("{name} took {peak} bytes of {most} for {length}; the input is in {}", path.display());
}

#[test]
fn cursors_are_refused_or_come_back() {
    check("cursors", 3_000);
}

#[test]
fn damaged_features_are_cut_off() {
    check("features", 600);
}

#[test]
fn filters_are_bounded_queries() {
    check("filters", 1_500);
}

#[test]
fn keys_and_signatures_have_one_spelling() {
    check("keys", 3_000);
}

#[test]
fn language_tags_have_one_spelling() {
    check("languages", 5_000);
}

#[test]
fn models_are_refused_or_load() {
    check("models", 150);
}

#[test]
fn packets_of_a_damaged_pipe_are_bounded() {
    check("nut", 2_000);
}

#[test]
fn facts_of_a_hostile_file_are_finite() {
    check("probe", 3_000);
}

#[test]
fn requests_are_answered() {
    check("requests", 250);
}

#[test]
fn tables_hold_what_their_files_hold() {
    check("rows", 600);
}

#[test]
fn damaged_snapshots_give_no_wrong_scores() {
    check("snapshots", 300);
}

#[test]
fn subtitles_are_in_order_and_come_back() {
    check("subtitles", 2_000);
}
