//! OpenAI's own files: TorchScript archives without a configuration (encoders.rs compares their vectors).

use std::path::Path;

use reprise_encoders::{Embedder, FrameSize, LoadError, load};

use super::encoders::{folder, load_changed, refused};

const MODEL: &str = "openai";
const FILE: &str = "tiny-32.pt";

fn loaded(path: &Path) -> Result<Embedder, LoadError> {
    load(&path.to_str().unwrap().parse()?, 1)
}

#[test]
fn a_file_is_the_same_space_as_a_folder_with_it_alone() {
    let (file, folder) = (loaded(&folder(MODEL).join(FILE)).unwrap(), loaded(&folder(MODEL)).unwrap());
    assert_eq!(file.space.id, folder.space.id);
    assert!(file.space.name.starts_with("tiny-32-") && folder.space.name.starts_with("openai-"));
    assert_eq!((file.space.dim, file.space.max_text_tokens), (16, 20));
    assert_eq!(file.space.scaling.size, FrameSize::ShortEdge(32));
}

#[test]
fn a_file_without_the_vocabulary_beside_it_says_where_to_get_one() {
    let remove = |folder: &Path| std::fs::remove_file(folder.join("tokenizer.json")).unwrap();
    refused(MODEL, remove, &["has no tokenizer.json", "openai/clip-vit-base-patch32"]);
}

#[test]
fn of_several_files_one_must_be_named() {
    let two = |folder: &Path| {
        std::fs::copy(folder.join(FILE), folder.join("other.pt")).unwrap();
    };
    refused(MODEL, two, &["has no config.json"]);
    let named = load_changed(MODEL, |folder| {
        two(folder);
        assert!(loaded(&folder.join("other.pt")).is_ok());
        std::fs::remove_file(folder.join(FILE)).unwrap();
    });
    assert!(named.is_ok());
}

#[test]
fn a_damaged_archive_is_named() {
    let damage = |at: fn(usize) -> usize, to: Option<u8>| {
        move |folder: &Path| {
            let path = folder.join(FILE);
            let mut bytes = std::fs::read(&path).unwrap();
            let at = at(bytes.len());
            match to {
                Some(byte) => bytes[at..at + 16].fill(byte),
                None => bytes.truncate(at),
            }
            std::fs::write(path, bytes).unwrap();
        }
    };
    refused(MODEL, damage(|all| all / 2, Some(7)), &[FILE, "can't be used"]);
    refused(MODEL, damage(|all| all / 2, None), &[FILE, "can't be used"]);
    refused(MODEL, damage(|_| 0, None), &[FILE, "can't be used"]);
}

#[test]
fn tensors_alone_may_be_another_clips_and_are_refused() {
    let state_dict = |to: &Path| {
        std::fs::copy(folder("long-clip/original").join("model.pt"), to.join(FILE)).unwrap();
    };
    refused(MODEL, state_dict, &[FILE, "state_dict", "activation and heads", "config.json"]);
}

#[test]
fn another_file_is_no_model() {
    let error = loaded(&folder(MODEL).join("tokenizer.json")).err().unwrap();
    assert!(matches!(error, LoadError::Name(_)), "{error}");
}
