//! Language tags, and those in file names.

use reprise_server::subtitles::language::{of_file_name, stem_of, tag};

/// A tag has one spelling, and a file name is split, never changed.
pub(super) fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(normal) = tag(&text) {
        assert!(normal.len() <= 35 && normal.is_ascii(), "{normal}");
        assert_eq!(tag(&normal), Some(normal));
    }
    let (stem, language) = of_file_name(&text);
    assert!(text.starts_with(stem) && text.starts_with(stem_of(&text)));
    assert_eq!(tag(&language), Some(language));
}
