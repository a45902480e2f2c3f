//! Encodes many inputs, each distinct one once.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use indicatif::ProgressBar;
use reprise_encoders::text::Overflow;
use reprise_encoders::text::normalise::normalise_modification;
use reprise_encoders::video::{self, Limits};
use reprise_encoders::{Embedder, Input};
use reprise_research::rows::Rows;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::cache::{Cache, Key};
use super::list::{self, Named};
use reprise_research::encode::{self, CLIPS_AT_ONCE, Stretch};
use reprise_research::terminal::bar;
use reprise_server::config::MAX_WINDOWS;
use reprise_server::search::text_vectors;

/// Text windows encoded per block, before they are cached.
const TEXTS_AT_ONCE: usize = 64;

/// A file of texts and how to read them.
pub(crate) struct TextList<'a> {
    /// One text per line, or a CSV with a column `text` or `modification`.
    pub(crate) file: &'a Path,
    /// Passages to be found instead of queries.
    pub(crate) are_passages: bool,
    /// Normalise each text as TF-CoVR's data set does.
    pub(crate) normalise: bool,
}

/// Summary of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    rows: usize,
    dim: usize,
    space: String,
    /// Number of encoded inputs.
    encoded: usize,
    /// Number of distinct inputs found in the cache.
    from_cache: usize,
    out: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<PathBuf>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { rows, dim, space, encoded, from_cache, out, names } = self;
        write!(
            f,
            "{rows} vectors of {dim} values in {space}: {encoded} encoded, {from_cache} from the cache"
        )?;
        write!(f, "\nwrote {}", out.display())?;
        names.iter().try_for_each(|names| write!(f, " and {}", names.display()))
    }
}

/// A model with the cache of its vectors.
pub(crate) struct Many<'a> {
    model: &'a mut Embedder,
    cache: Cache,
    hidden: bool,
    encoded: usize,
    from_cache: usize,
}

impl<'a> Many<'a> {
    /// Opens the cache of the model's space in `folder`. `hidden` hides the progress bar.
    ///
    /// # Errors
    /// The cache can't be opened.
    pub(crate) fn open(model: &'a mut Embedder, folder: &Path, hidden: bool) -> anyhow::Result<Self> {
        let cache = Cache::open(folder, &model.space)?;
        Ok(Many { model, cache, hidden, encoded: 0, from_cache: 0 })
    }

    /// Writes the raw vectors of the listed videos to `out`, one row each, and a table of their names beside it.
    ///
    /// # Errors
    /// The list or a video can't be read, or the model takes no videos or fails. Vectors encoded before stay in the
    /// cache.
    pub(crate) fn videos(&mut self, list: &Path, out: &Path) -> anyhow::Result<Report> {
        ensure!(self.model.space.can.frames, "{} takes no videos", self.model.space.name);
        let named = list::videos(list)?;
        let mut digests = Digests::default();
        let keys = named.iter().map(|it| digests.key(it)).collect::<anyhow::Result<Vec<Key>>>()?;
        let missing = self.missing(&keys);
        let bar = self.bar(missing.len(), "videos")?;
        let mut seekable = HashMap::new();
        for chunk in missing.chunks(CLIPS_AT_ONCE) {
            let stretches = chunk.iter().map(|at| stretch(&named[*at], &mut seekable));
            let stretches = stretches.collect::<anyhow::Result<Vec<Stretch>>>()?;
            let space = &self.model.space;
            let inputs = encode::decoded(&stretches, space.sampler, space.scaling)?;
            self.encode(chunk.iter().map(|at| keys[*at]), &inputs)?;
            bar.inc(chunk.len() as u64);
        }
        bar.finish_and_clear();
        let vectors = keys.iter().map(|key| Ok(self.vector(key)?.to_vec()));
        let rows = self.rows(vectors.collect::<anyhow::Result<_>>()?)?;
        rows.write(out)?;
        let names = out.with_extension("names.csv");
        write_names(&names, &named)?;
        Ok(self.report(&rows, out, Some(names)))
    }

    /// Writes the raw vectors of a list's texts to `out`, one row each, as passages or as queries. A text of several
    /// windows gives the vector that a search would use.
    ///
    /// # Errors
    /// The file can't be read, or the model takes no texts or fails. Vectors encoded before stay in the cache.
    pub(crate) fn texts(&mut self, list: &TextList<'_>, out: &Path) -> anyhow::Result<Report> {
        let takes_none = || format!("{} takes no texts", self.model.space.name);
        ensure!(self.model.space.can.text, takes_none());
        let tokenizer = self.model.tokenizer.clone().with_context(takes_none)?;
        let windows = |text: &String| -> anyhow::Result<Vec<Input>> {
            let windows = match list.are_passages {
                true => tokenizer.passages(text, Overflow::Window, MAX_WINDOWS)?,
                false => tokenizer.windows(text, Overflow::Window, MAX_WINDOWS)?,
            };
            let windows = windows.windows;
            Ok(windows.into_iter().map(|window| Input::Text(window.tokens)).collect())
        };
        let mut texts = list::texts(list.file)?;
        if list.normalise {
            texts.iter_mut().for_each(|text| *text = normalise_modification(text));
        }
        let texts = texts.iter().map(windows).collect::<anyhow::Result<Vec<_>>>()?;
        let inputs: Vec<&Input> = texts.iter().flatten().collect();
        let keys: Vec<Key> = inputs.iter().map(|input| text_key(input)).collect();
        let missing = self.missing(&keys);
        let bar = self.bar(missing.len(), "texts")?;
        for chunk in missing.chunks(TEXTS_AT_ONCE) {
            let chosen: Vec<Input> = chunk.iter().map(|at| inputs[*at].clone()).collect();
            self.encode(chunk.iter().map(|at| keys[*at]), &chosen)?;
            bar.inc(chunk.len() as u64);
        }
        bar.finish_and_clear();
        let mut vectors = Vec::with_capacity(texts.len());
        for windows in &texts {
            let raw = windows.iter().map(|input| Ok(self.vector(&text_key(input))?.to_vec()));
            let (_, unit, norm) = text_vectors(&raw.collect::<anyhow::Result<Vec<_>>>()?)?;
            vectors.push(unit.values().iter().map(|value| value * norm).collect());
        }
        let rows = self.rows(vectors)?;
        rows.write(out)?;
        Ok(self.report(&rows, out, None))
    }

    /// Indices of the inputs that are not cached; of equal inputs only the first.
    fn missing(&mut self, keys: &[Key]) -> Vec<usize> {
        let mut seen = HashSet::new();
        let distinct: Vec<usize> = (0..keys.len()).filter(|at| seen.insert(keys[*at])).collect();
        let missing: Vec<usize> =
            distinct.iter().copied().filter(|at| self.cache.get(&keys[*at]).is_none()).collect();
        self.from_cache += distinct.len() - missing.len();
        missing
    }

    fn encode(&mut self, keys: impl Iterator<Item = Key>, inputs: &[Input]) -> anyhow::Result<()> {
        for (key, vector) in keys.zip(encode::inputs(self.model, inputs)?) {
            self.cache.insert(key, vector)?;
            self.encoded += 1;
        }
        Ok(())
    }

    fn vector(&self, key: &Key) -> anyhow::Result<&[f32]> {
        self.cache.get(key).context("a vector is missing that was just made")
    }

    fn rows(&self, vectors: Vec<Vec<f32>>) -> anyhow::Result<Rows> {
        Ok(Rows::new(vectors.concat(), self.model.space.dim)?)
    }

    fn report(&self, rows: &Rows, out: &Path, names: Option<PathBuf>) -> Report {
        let (encoded, from_cache) = (self.encoded, self.from_cache);
        let (rows, dim, space) = (rows.len(), rows.dim(), self.model.space.name.clone());
        Report { rows, dim, space, encoded, from_cache, out: out.to_owned(), names }
    }

    fn bar(&self, length: usize, what: &str) -> anyhow::Result<ProgressBar> {
        bar(self.hidden || length == 0, length, what)
    }
}

fn write_names(path: &Path, named: &[Named]) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_path(path).with_context(|| path.display().to_string())?;
    for row in named {
        writer.serialize(row).with_context(|| path.display().to_string())?;
    }
    writer.flush().with_context(|| path.display().to_string())
}

/// The part of a file to decode. `seekable` caches which files allow safe seeking.
fn stretch(named: &Named, seekable: &mut HashMap<PathBuf, bool>) -> anyhow::Result<Stretch> {
    let Named { file, span_ms: (start, end), .. } = named;
    if *start == 0 {
        return Ok(Stretch { file: file.clone(), span_ms: *start..*end, in_order: true });
    }
    let safe = match seekable.get(file) {
        Some(safe) => *safe,
        None => {
            let limits = Limits::default();
            let safe =
                video::probe(file, &limits).and_then(|probe| video::seek_is_safe(file, &probe, &limits));
            let safe = safe.with_context(|| file.display().to_string())?;
            seekable.insert(file.clone(), safe);
            safe
        }
    };
    Ok(Stretch { file: file.clone(), span_ms: *start..*end, in_order: !safe })
}

/// SHA-256 of files; each file is read once.
#[derive(Default)]
struct Digests(HashMap<PathBuf, Key>);

impl Digests {
    /// Key from the file's content and the part: a moved file keeps its vectors, a changed one does not.
    fn key(&mut self, named: &Named) -> anyhow::Result<Key> {
        let file = match self.0.get(&named.file) {
            Some(known) => *known,
            None => {
                let digest = digest(&named.file).with_context(|| named.file.display().to_string())?;
                self.0.insert(named.file.clone(), digest);
                digest
            }
        };
        let (start, end) = named.span_ms;
        let parts = [&b"video"[..], &file, &start.to_le_bytes(), &end.to_le_bytes()];
        Ok(Sha256::digest(parts.concat()).into())
    }
}

fn digest(path: &Path) -> io::Result<Key> {
    let mut hasher = Hasher(Sha256::new());
    io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(hasher.0.finalize().into())
}

/// A digest as a writer.
struct Hasher(Sha256);

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Key from token ids: the encoder's input, independent of text and tokenizer.
fn text_key(input: &Input) -> Key {
    let ids = match input {
        Input::Text(tokens) => tokens.ids.as_slice(),
        _ => &[],
    };
    let mut hasher = Sha256::new();
    hasher.update(b"text");
    ids.iter().for_each(|id| hasher.update(id.to_le_bytes()));
    hasher.finalize().into()
}
