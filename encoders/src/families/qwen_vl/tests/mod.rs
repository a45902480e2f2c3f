//! Parity with transformers 5.23.0 on small seeded models: `fixtures/` of the folder `REPRISE_TEST_WORDS`, by default
//! `words` beside the folder of the test data. Skipped without.

mod cases;
mod embedding;
mod fixture;
mod model;
mod pixels;
mod random;
mod refused;
mod tables;
mod writing;
