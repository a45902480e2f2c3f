//! The files of a model: configurations, tokenizers, safetensors, PyTorch's checkpoints.

use std::path::Path;

use reprise_encoders::{LoadOptions, load_with};

/// Folders of small models, and the file in each that the input replaces. The first byte chooses.
pub(super) const FILES: [(&str, &str); 8] = [
    ("sentence/e5-tiny", "config.json"),
    ("sentence/e5-tiny", "tokenizer.json"),
    ("sentence/e5-tiny", "model.safetensors"),
    ("open-clip/clip", "open_clip_config.json"),
    ("open-clip/clip", "open_clip_pytorch_model.bin"),
    ("siglip/one", "config.json"),
    ("siglip/one", "preprocessor_config.json"),
    ("siglip/one", "tokenizer_config.json"),
];

/// The folder of a model.
pub(super) fn folder(model: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("parity/data").join(model)
}

/// A model with a hostile file is refused, or is a model.
pub(super) fn run(bytes: &[u8]) {
    let Some((first, content)) = bytes.split_first() else { return };
    let (model, replaced) = FILES[usize::from(*first) % FILES.len()];
    let copy = tempfile::tempdir().expect("a temporary folder");
    for entry in std::fs::read_dir(folder(model)).expect("the model is there").flatten() {
        let name = entry.file_name();
        let skipped = ["expected.json", "pixels.bin", replaced].iter().any(|it| name == **it);
        if !skipped {
            std::os::unix::fs::symlink(entry.path(), copy.path().join(name)).expect("a link");
        }
    }
    std::fs::write(copy.path().join(replaced), content).expect("the folder can be written");
    let name = copy.path().to_string_lossy().parse().expect("a folder is a model's name");
    if let Ok(loaded) = load_with(&name, &LoadOptions::default()) {
        assert!(loaded.space.dim > 0 && !loaded.space.id.is_empty());
    }
}
