//! Our parsers as functions of bytes. Each target feeds hostile bytes to one parser and panics if something that must hold for
//! every input does not. The test `parsers` and the fuzzers in `fuzz/` run the same targets.

mod cursors;
mod features;
mod filters;
mod keys;
mod languages;
mod made;
mod models;
mod nut;
mod probe;
mod requests;
mod rows;
mod snapshots;
mod subtitles;

pub use made::made;

/// One parser under test.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name: that of its seeds' folder and of its fuzzer.
    pub name: &'static str,
    /// Parses the bytes.
    ///
    /// # Panics
    /// If the parser broke a promise.
    pub run: fn(&[u8]),
    /// The most memory of a run.
    pub memory: Memory,
}

/// The most bytes that a run may hold at once: `fixed`, and `each` for every byte of the input.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Bytes for any input.
    pub fixed: usize,
    /// Bytes for a byte of the input.
    pub each: usize,
}

impl Memory {
    const fn of(fixed: usize, each: usize) -> Memory {
        Memory { fixed, each }
    }

    /// The most bytes for an input of this length.
    pub fn most(self, length: usize) -> usize {
        self.fixed + self.each * length
    }
}

const fn target(name: &'static str, run: fn(&[u8]), memory: Memory) -> Target {
    Target { name, run, memory }
}

/// All targets.
pub const TARGETS: [Target; 12] = [
    target("cursors", cursors::run, Memory::of(1 << 16, 40)),
    target("features", features::run, Memory::of(1 << 16, 40)),
    target("filters", filters::run, Memory::of(2 << 20, 200)),
    target("keys", keys::run, Memory::of(1 << 14, 16)),
    target("languages", languages::run, Memory::of(1 << 12, 8)),
    // A small model is read, and runs once.
    target("models", models::run, Memory::of(32 << 20, 100)),
    // Pictures up to the limit of this target, of which four are kept for the next ones, and the 1 MiB of a header.
    target("nut", nut::run, Memory::of(5 * nut::PICTURE_BYTES as usize + (2 << 20), 64)),
    target("probe", probe::run, Memory::of(1 << 14, 64)),
    // The pools of the service.
    target("requests", requests::run, Memory::of(32 << 20, 100)),
    // The two buffers of the .npy reader.
    target("rows", rows::run, Memory::of(2 << 20, 40)),
    target("snapshots", snapshots::run, Memory::of(8 << 20, 100)),
    target("subtitles", subtitles::run, Memory::of(1 << 14, 160)),
];

/// The target of this name.
///
/// # Panics
/// If there is none.
pub fn named(name: &str) -> &'static Target {
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("there is no target {name}"))
}
