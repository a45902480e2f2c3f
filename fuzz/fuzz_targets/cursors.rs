#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (reprise_tests::targets::named("cursors").run)(bytes));
