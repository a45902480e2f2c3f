//! Names of models: built-in, a folder, a file, or a hub id.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::error::LoadError;

/// The default model.
pub const DEFAULT_MODEL: &str = "builtin:sports";

/// A model's name: `builtin:sports`, `builtin:tiny`, a folder, a `.pt` file, or a hub id `org/name[@revision]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelName(Source);

/// The location of a model's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the binary; the name without `builtin:`.
    BuiltIn(&'static str),
    /// A folder.
    Folder(PathBuf),
    /// A single file.
    File(PathBuf),
    /// A repository of the model hub.
    Hub {
        /// `org/name`.
        repository: String,
        /// A branch, tag or commit; `None`: the default branch.
        revision: Option<String>,
    },
}

/// The models in the binary.
const BUILT_IN: [&str; 2] = ["sports", "tiny"];

impl FromStr for ModelName {
    type Err = LoadError;

    fn from_str(name: &str) -> Result<Self, LoadError> {
        let built_in = name.strip_prefix("builtin:");
        if let Some(known) = BUILT_IN.into_iter().find(|known| Some(*known) == built_in) {
            return Ok(ModelName(Source::BuiltIn(known)));
        }
        if !name.is_empty() && PathBuf::from(name).is_dir() {
            return Ok(ModelName(Source::Folder(PathBuf::from(name))));
        }
        if is_model_file(Path::new(name)) {
            return Ok(ModelName(Source::File(PathBuf::from(name))));
        }
        let (repository, revision) = match name.split_once('@') {
            Some((repository, revision)) => (repository, Some(revision)),
            None => (name, None),
        };
        let parts: Vec<&str> = repository.split('/').collect();
        let valid = parts.len() == 2 && parts.into_iter().chain(revision).all(is_hub_word);
        if !valid {
            return Err(LoadError::Name(name.to_owned()));
        }
        let (repository, revision) = (repository.to_owned(), revision.map(str::to_owned));
        Ok(ModelName(Source::Hub { repository, revision }))
    }
}

/// Whether `path` is a single-file model: its name ends in `.pt`, as OpenAI's files do.
pub(crate) fn is_model_file(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("pt"))
}

/// Whether the hub allows `word` as a user, model or revision, and `word` cannot leave a folder.
fn is_hub_word(word: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    !word.is_empty() && word.chars().all(allowed) && !word.starts_with('.') && !word.contains("..")
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::BuiltIn(name) => write!(f, "builtin:{name}"),
            Source::Folder(path) | Source::File(path) => path.display().fmt(f),
            Source::Hub { repository, revision: None } => f.write_str(repository),
            Source::Hub { repository, revision: Some(revision) } => write!(f, "{repository}@{revision}"),
        }
    }
}

impl ModelName {
    /// The folder or file; `None` for other names.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Source::Folder(path) | Source::File(path) => Some(path),
            _ => None,
        }
    }

    /// `org/name` of a model of the hub; `None` for other names.
    pub fn repository(&self) -> Option<&str> {
        match &self.0 {
            Source::Hub { repository, .. } => Some(repository),
            _ => None,
        }
    }

    /// The location of the model's files.
    pub(crate) fn source(&self) -> &Source {
        &self.0
    }

    /// The first part of the names of the model's spaces, in characters that need no quoting.
    pub(crate) fn short(&self) -> String {
        let long = match &self.0 {
            Source::BuiltIn(name) => (*name).to_owned(),
            Source::Folder(path) => {
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                path.file_name()
                    .map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
            }
            Source::File(path) => path
                .file_stem()
                .map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned()),
            Source::Hub { repository, .. } => repository.rsplit('/').next().unwrap_or_default().to_owned(),
        };
        let safe = |letter: char| if letter.is_ascii_alphanumeric() || letter == '.' { letter } else { '-' };
        long.to_lowercase().chars().map(safe).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The source that a name gives, and its short form; `None` where it is no name of a model.
    #[track_caller]
    fn check(name: &str, expected: Option<(Source, &str)>) {
        let got = name.parse::<ModelName>().ok();
        let got = got.map(|it| (it.source().clone(), it.short()));
        assert_eq!(got, expected.map(|(source, short)| (source, short.to_owned())), "{name}");
    }

    fn hub(repository: &str, revision: Option<&str>) -> Source {
        Source::Hub { repository: repository.to_owned(), revision: revision.map(str::to_owned) }
    }

    #[test]
    fn names_are_of_the_binary_or_of_the_hub() {
        check("builtin:tiny", Some((Source::BuiltIn("tiny"), "tiny")));
        check("org/A_b-1.5", Some((hub("org/A_b-1.5", None), "a-b-1.5")));
        check("org/name@main", Some((hub("org/name", Some("main")), "name")));
        for name in ["", "builtin:other", "name", "a/b/c", "a/", "a/.b", "a/b..c", "a/b@", "a/b c", "../b"] {
            check(name, None);
        }
    }

    #[test]
    fn a_folder_and_a_file_that_ends_in_pt_are_models() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        for file in ["Old Weights.PT", "weights.bin"] {
            std::fs::write(path(file), "").unwrap();
        }
        std::fs::create_dir(path("Folder.pt")).unwrap();
        let file = path("Old Weights.PT");
        check(&file, Some((Source::File(PathBuf::from(&file)), "old-weights")));
        let inner = path("Folder.pt");
        check(&inner, Some((Source::Folder(PathBuf::from(&inner)), "folder.pt")));
        check(&path("weights.bin"), None);
        check(&path("missing.pt"), None);
    }
}
