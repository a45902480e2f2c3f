//! The table in docs/encoders.md: the difference of every family from its reference.
//!
//! Its numbers are upper bounds with room for rounding on another machine. The test fails if a difference exceeds its
//! bound, if a bound is meaninglessly large, or if the table's texts differ from the rows below.
//! `REPRISE_WRITE_PARITY=1` writes the table again.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::{encoders, encoders_blip_covr, encoders_clips, encoders_covr, encoders_sentence};

/// One line of the table.
struct Row {
    family: &'static str,
    /// The compared models.
    models: &'static str,
    /// Returns the reference's name and version, and the largest difference from it.
    found: fn() -> (String, f32),
}

fn rows() -> [Row; 16] {
    let row = |family, models, found| Row { family, models, found };
    [
        row(
            "CLIP",
            "Hugging Face's layout; byte-level BPE, WordPiece and unigram vocabularies; quick_gelu, gelu, tanh gelu",
            || farthest(&["legacy", "wordpiece", "unigram"]),
        ),
        row("Long-CLIP", "248 positions; Hugging Face's layout, and the original's names and tables", || {
            farthest(&["long-clip/hugging-face", "long-clip/original"])
        }),
        row(
            "OpenAI's own files",
            "a TorchScript archive in half floats; sizes by shapes, CLIP's vocabulary beside",
            || farthest(&["openai"]),
        ),
        row(
            "OpenCLIP",
            "text tower under both names; quick_gelu and tanh gelu; cropped and squashed; PyTorch's format",
            || farthest(&["open-clip/clip", "open-clip/custom"]),
        ),
        row(
            "EVA-CLIP",
            "EVA-02 with rotary positions, SwiGLU and sub-LN; the enormous one's norms behind",
            || farthest(&["open-clip/eva", "open-clip/eva-post"]),
        ),
        row("PE-Core", "with a class token, and without one", || {
            farthest(&["open-clip/pe", "open-clip/pe-large"])
        }),
        row(
            "SigLIP in OpenCLIP's layout",
            "both kinds of vocabulary, texts cleaned by OpenCLIP's code; gelu and tanh gelu",
            || farthest(&["open-clip-siglip/one", "open-clip-siglip/two"]),
        ),
        row("SigLIP", "SentencePiece's unigram vocabulary, padded with the end of text", || {
            farthest(&["siglip/one"])
        }),
        row("SigLIP 2", "Gemma's kind of vocabulary, padded with its own id, lower case", || {
            farthest(&["siglip/two"])
        }),
        row(
            "BLIP",
            "vectors of its contrastive loss; BERT's vocabulary; transformers' names and the released code's",
            || farthest(&["blip", "blip-covr"]),
        ),
        row(
            "BLIP-CoVR",
            "composed queries: modification texts read with cross-attention to a clip's middle frame",
            encoders_blip_covr::farthest,
        ),
        row("BLIP-2", "the mean of the queries' unit vectors, texts by the Q-Former", || {
            farthest(&["blip-2"])
        }),
        row("LanguageBind-Video", "texts, clips of 4 frames, short clips", encoders_clips::language_bind),
        row(
            "VideoCLIP-XL",
            "texts of up to 248 tokens, clips of 4 frames, short clips",
            encoders_clips::video_clip_xl,
        ),
        row(
            "AIM",
            "clips and composed queries; with a Q-Former, BERT and CLIP for texts",
            encoders_covr::farthest,
        ),
        row(
            "sentence",
            "queries and passages; means and first tokens, dense layers, prompts; BERT and XLM-RoBERTa",
            encoders_sentence::farthest,
        ),
    ]
}

/// The largest difference over several models with one reference.
fn farthest(variants: &[&str]) -> (String, f32) {
    let found: Vec<(String, f32)> = variants.iter().map(|variant| encoders::farthest(variant)).collect();
    assert!(found.iter().all(|(reference, _)| *reference == found[0].0), "one row, one reference");
    (found[0].0.clone(), found.iter().map(|(_, off)| *off).fold(0.0, f32::max))
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/encoders.md")
}

const BEGIN: &str = "<!-- The table is written by tests/it/encoders_parity.rs. -->\n";
const END: &str = "<!-- The end of the table. -->\n";

/// The text before the table, the table, and the text behind it.
fn parts(text: &str) -> (&str, &str, &str) {
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    (before, table, after)
}

/// The bound in the table's line of this family.
fn bound(table: &str, family: &str) -> Option<f32> {
    let line = table.lines().find(|line| line.starts_with(&format!("| {family} |")))?;
    line.trim_end_matches(" |").rsplit(' ').next()?.parse().ok()
}

/// Four times the difference, rounded up to one digit; at least 1e-6.
fn new_bound(found: f32) -> f32 {
    let room = (4.0 * found).max(1e-6);
    let digit = 10_f32.powf(room.log10().floor());
    (room / digit).ceil() * digit
}

/// The largest difference allowed for any family.
const MOST: f32 = 1e-4;

#[test]
fn the_table_says_how_far_each_family_is_from_its_reference() {
    let text = std::fs::read_to_string(page()).unwrap();
    let (before, table, after) = parts(&text);
    let anew = std::env::var_os("REPRISE_WRITE_PARITY").is_some();
    let mut expected = String::from(
        "| family | built and compared | reference | largest difference below |\n|---|---|---|---|\n",
    );
    for Row { family, models, found } in rows() {
        let (reference, found) = found();
        let bound = if anew { Some(new_bound(found)) } else { bound(table, family) };
        let bound = bound.unwrap_or_else(|| panic!("no line of {family}; set REPRISE_WRITE_PARITY=1"));
        println!("{family}: {found:e}, said to be below {bound:e}");
        assert!(found <= bound && bound <= MOST, "{family} is {found:e} off, said to be below {bound:e}");
        assert!(
            anew || bound <= 1e-6 + 50.0 * found,
            "{family} is only {found:e} off, {bound:e} says little"
        );
        writeln!(expected, "| {family} | {models} | {reference} | {bound:.0e} |").unwrap();
    }
    if anew {
        std::fs::write(page(), format!("{before}{BEGIN}{expected}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(table, expected, "set REPRISE_WRITE_PARITY=1 to write it anew");
}
