//! Checks of the machine: processor, GPU, memory, limits.

use std::fs;

use reprise_encoders::{threads, usable_devices};
use rustix::process::{Resource, getrlimit};

use super::check::Check;

const PROCESSOR: &str = "processor";
const MEMORY: &str = "memory";
const FILES: &str = "open files";

/// Less memory than this is little for a model, an index and a run of ffmpeg.
const LITTLE_MEMORY: u64 = 4 << 30;
/// The server's connections at once, by default, and about as many files beside them.
const FEW_FILES: u64 = 2048;

pub(super) fn checks() -> Vec<Check> {
    vec![processor(), gpu(), memory(), files()]
}

/// What a processor can do for `--precision`.
#[derive(Clone, Copy)]
struct Abilities {
    avx2: bool,
    avx512: bool,
    vnni: bool,
    bf16: bool,
    amx: bool,
}

fn processor() -> Check {
    match abilities() {
        Some(abilities) => of_abilities(&abilities, threads()),
        None => {
            let found = format!("{} threads; no kernels of its own on {}", threads(), std::env::consts::ARCH);
            Check::warning(PROCESSOR, found, "models run several times slower than on x86-64 with AVX2")
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn abilities() -> Option<Abilities> {
    // The standard library does not know AMX yet.
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Some(Abilities {
        avx2: is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
        avx512: is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw"),
        vnni: is_x86_feature_detected!("avx512vnni"),
        bf16: is_x86_feature_detected!("avx512bf16"),
        amx: flags.split_whitespace().any(|flag| flag == "amx_tile"),
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn abilities() -> Option<Abilities> {
    None
}

fn of_abilities(abilities: &Abilities, threads: usize) -> Check {
    let bf16 = if abilities.bf16 { ", BF16" } else { "" };
    match abilities {
        Abilities { vnni: true, bf16: true, amx: true, .. } => {
            let means = "--precision int8 and bf16 are three to five times as fast as f32";
            Check::ok(PROCESSOR, format!("{threads} threads, AVX-512 with VNNI, BF16 and AMX: {means}"))
        }
        Abilities { vnni: true, bf16: has_bf16, .. } => {
            let twice = if *has_bf16 { ", bf16 up to twice" } else { "" };
            let means = format!("--precision int8 is two to three times as fast as f32{twice}");
            Check::ok(PROCESSOR, format!("{threads} threads, AVX-512 with VNNI{bf16}: {means}"))
        }
        Abilities { avx512: true, .. } => {
            let means = "--precision f32 is fast; int8 saves memory, but gains no speed without VNNI";
            Check::ok(PROCESSOR, format!("{threads} threads, AVX-512: {means}"))
        }
        Abilities { avx2: true, .. } => {
            let means = "--precision int8 is up to twice as fast as f32";
            Check::ok(PROCESSOR, format!("{threads} threads, AVX2: {means}"))
        }
        _ => {
            let found = format!("{threads} threads without AVX2");
            Check::warning(
                PROCESSOR,
                found,
                "models run several times slower; in a virtual machine, pass the host's processor through",
            )
        }
    }
}

fn gpu() -> Check {
    let names = usable_devices().into_iter().map(|device| device.name).filter(|name| name != "cpu");
    let names: Vec<String> = names.collect();
    match (cfg!(feature = "cuda"), names.is_empty()) {
        (false, _) => Check::ok("gpu", "this binary uses the processor only"),
        (true, false) => Check::ok("gpu", names.join(", ")),
        (true, true) => {
            let advice = "install NVIDIA's driver; in a container, pass the GPU through";
            Check::warning("gpu", "this binary has CUDA, and no GPU can be used", advice)
        }
    }
}

fn memory() -> Check {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine = of_meminfo(&meminfo, "MemTotal:");
    // A container's limit; the text is `max` without one.
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|it| it.trim().parse().ok());
    match machine.into_iter().chain(group).min() {
        Some(bytes) => of_memory(bytes),
        None => Check::ok(MEMORY, "unknown"),
    }
}

fn of_memory(bytes: u64) -> Check {
    let found = format!("{:.1} GB", bytes as f64 / 1e9);
    match bytes {
        0..LITTLE_MEMORY => {
            let advice = "give it 4 GB, or choose a small model and lower --decode-memory and --runners";
            Check::warning(MEMORY, found, advice)
        }
        _ => Check::ok(MEMORY, found),
    }
}

/// The bytes behind `name` in the text of `/proc/meminfo`.
fn of_meminfo(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The server raises its limit to the highest that it may have.
fn files() -> Check {
    of_files(getrlimit(Resource::Nofile).maximum)
}

fn of_files(most: Option<u64>) -> Check {
    match most {
        None => Check::ok(FILES, "no limit"),
        Some(most) if most >= FEW_FILES => Check::ok(FILES, format!("at most {most}")),
        Some(most) => {
            let advice = "raise the hard limit (ulimit -Hn, LimitNOFILE=) or lower --max-connections";
            Check::warning(FILES, format!("at most {most}"), advice)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::State;
    use super::*;

    #[track_caller]
    fn check(abilities: Abilities, expected: &str) {
        let found = of_abilities(&abilities, 8).line();
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn a_processors_abilities_say_which_precision_is_fast() {
        let none = Abilities { avx2: false, avx512: false, vnni: false, bf16: false, amx: false };
        let avx2 = Abilities { avx2: true, ..none };
        let avx512 = Abilities { avx512: true, ..avx2 };
        let vnni = Abilities { vnni: true, ..avx512 };
        check(
            Abilities { bf16: true, amx: true, ..vnni },
            "int8 and bf16 are three to five times as fast as f32",
        );
        check(
            Abilities { bf16: true, ..vnni },
            "int8 is two to three times as fast as f32, bf16 up to twice",
        );
        check(vnni, "int8 is two to three times as fast");
        check(avx512, "int8 saves memory, but gains no speed without VNNI");
        check(avx2, "int8 is up to twice as fast as f32");
        check(none, "warning");
    }

    #[test]
    fn little_memory_and_few_files_are_warnings() {
        let meminfo = "MemTotal:       24689560 kB\nMemFree:  1 kB\n";
        assert_eq!(of_meminfo(meminfo, "MemTotal:"), Some(24_689_560 * 1024));
        assert_eq!(of_meminfo(meminfo, "SwapTotal:"), None);
        assert_eq!((of_memory(1 << 30).state, of_memory(8 << 30).state), (State::Warning, State::Ok));
        assert_eq!((of_files(Some(1024)).state, of_files(Some(4096)).state), (State::Warning, State::Ok));
        assert_eq!(of_files(None).state, State::Ok);
    }
}
