//! Subtitle tracks and their cues: stored, replaced and deleted as a whole. Keeps the word counts up to date.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::database::{Row, Tx, Value, values};
use super::error::CatalogError;
use super::passages;
use super::store::Catalog;
use super::tables::tracks::{self, cue_kind_name, line};
use super::tables::vectors::{self, At, Op};
use super::tables::videos;
use super::types::*;
use super::view::View;
use crate::subtitles::words::words;

macro_rules! tracks_of {
    ($videos:literal) => {
        concat!(
            "SELECT t.key, t.kind, t.language, t.provenance, t.machine, t.warnings, \
             (SELECT count(*) FROM cues c WHERE c.track = t.key) AS cues FROM tracks t JOIN ",
            $videos,
            " v ON v.id = t.video WHERE t.video = $1 ORDER BY t.kind, t.language"
        )
    };
}

impl Catalog {
    /// Stores the tracks embedded in a video's file and replaces the earlier embedded ones; their provenance is
    /// [`EMBEDDED`]. A user's track of the same kind and language stays, a machine's is replaced. False if there is no
    /// such video.
    pub async fn keep_embedded(&self, video: Uuid, subtitles: &[Subtitles]) -> Result<bool, CatalogError> {
        subtitles.iter().try_for_each(check)?;
        let mut tx = self.database.begin().await?;
        if !videos::lock(&mut tx, video).await? {
            return Ok(false);
        }
        let mut ledger = Ledger::default();
        let mut taken = Vec::new();
        for row in tx.rows(tracks_of!("videos"), values![video]).await? {
            let (key, track) = (row.get("key")?, tracks::from_row(&row)?);
            if track.is_machine {
                continue;
            } else if track.provenance == EMBEDDED {
                remove(&mut tx, key, &mut ledger).await?;
            } else {
                taken.push((track.kind, track.language));
            }
        }
        let is_free = |it: &&Subtitles| !taken.contains(&(it.track.kind, it.track.language.clone()));
        for subtitles in subtitles.iter().filter(is_free) {
            forget(&mut tx, video, subtitles.track.kind, &subtitles.track.language, &mut ledger).await?;
            insert(&mut tx, video, subtitles, &mut ledger).await?;
        }
        ledger.apply(&mut tx, video).await?;
        tx.commit().await?;
        Ok(true)
    }
}

impl View<'_> {
    /// Stores a track, and replaces the video's track of the same kind and language. It is searchable at once.
    /// Vectors of clips and videos stay. False if the video does not exist.
    pub async fn replace_cues(&self, video: Uuid, subtitles: &Subtitles) -> Result<bool, CatalogError> {
        check(subtitles)?;
        let mut tx = self.begin().await?;
        if !videos::lock(&mut tx, video).await? {
            return Ok(false);
        }
        store(&mut tx, video, std::slice::from_ref(subtitles)).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Deletes a track with its cues; false if there is none.
    pub async fn delete_track(
        &self,
        video: Uuid,
        kind: CueKind,
        language: &str,
    ) -> Result<bool, CatalogError> {
        let mut tx = self.begin().await?;
        let mut ledger = Ledger::default();
        if !videos::lock(&mut tx, video).await?
            || !forget(&mut tx, video, kind, language, &mut ledger).await?
        {
            return Ok(false);
        }
        ledger.apply(&mut tx, video).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Tracks of a video, by kind and language.
    pub async fn tracks(&self, video: Uuid) -> Result<Vec<TrackRow>, CatalogError> {
        let rows = self.rows(tracks_of!("visible_videos"), values![video]).await?;
        let track = |row: &Row| {
            let warnings: String = row.get("warnings")?;
            let warnings = warnings.lines().map(str::to_owned).collect();
            Ok(TrackRow { track: tracks::from_row(row)?, cues: row.get("cues")?, warnings })
        };
        rows.iter().map(track).collect()
    }

    /// Lines of one track in order of start, on the container's clock; none if there is no such track.
    pub async fn track_lines(
        &self,
        video: Uuid,
        kind: CueKind,
        language: &str,
    ) -> Result<Vec<Line>, CatalogError> {
        let sql = "SELECT c.start_ms, c.end_ms, c.text FROM cues c JOIN tracks t ON t.key = c.track JOIN visible_videos v ON v.id = t.video \
                   WHERE t.video = $1 AND t.kind = $2 AND t.language = $3 ORDER BY c.place";
        let rows = self.rows(sql, values![video, cue_kind_name(kind), language]).await?;
        rows.iter().map(line).collect()
    }

    /// Cues of a video in order of (start, id), after `after`, on the container's clock.
    pub async fn cues(
        &self,
        video: Uuid,
        after: Option<(i64, Uuid)>,
        limit: u32,
    ) -> Result<Vec<Cue>, CatalogError> {
        self.transcript(video, &TranscriptPart { after, ..TranscriptPart::default() }, limit).await
    }
}

/// Stores tracks that passed [`check`] and replaces those of their kind and language. The video must be locked.
pub(super) async fn store(tx: &mut Tx, video: Uuid, all: &[Subtitles]) -> Result<(), CatalogError> {
    let mut ledger = Ledger::default();
    for subtitles in all {
        forget(tx, video, subtitles.track.kind, &subtitles.track.language, &mut ledger).await?;
        insert(tx, video, subtitles, &mut ledger).await?;
    }
    ledger.apply(tx, video).await
}

/// Stores what a machine heard, in place of all speech that machines wrote before. The video must be locked, and no person's
/// track be in the way. Call last in a transaction.
pub(super) async fn store_heard(tx: &mut Tx, video: Uuid, heard: &Subtitles) -> Result<(), CatalogError> {
    let mut ledger = Ledger::default();
    let sql = "SELECT key FROM tracks WHERE video = $1 AND kind = 'speech' AND machine ORDER BY key";
    for row in tx.rows(sql, values![video]).await? {
        remove(tx, row.get("key")?, &mut ledger).await?;
    }
    insert(tx, video, heard, &mut ledger).await?;
    ledger.apply(tx, video).await
}

/// Stores what a machine read on screen, in place of all that machines read before. The video must be locked, and no
/// person's track be in the way. Call last in a transaction.
pub(super) async fn store_read(tx: &mut Tx, video: Uuid, read: &ReadText) -> Result<(), CatalogError> {
    let mut ledger = Ledger::default();
    let sql = "SELECT key FROM tracks WHERE video = $1 AND kind = 'ocr' AND machine ORDER BY key";
    for row in tx.rows(sql, values![video]).await? {
        remove(tx, row.get("key")?, &mut ledger).await?;
    }
    if !read.cues.is_empty()
        && let Some(track) = insert_track(tx, video, &read.track, String::new()).await?
    {
        let cues = read.cues.iter().map(|it| NewCue { line: &it.line, region: Some(it.region) });
        let mut cues: Vec<NewCue> = cues.collect();
        cues.sort_by_key(|cue| cue.line.start_ms);
        insert_cues(tx, track, &cues, &mut ledger).await?;
    }
    ledger.apply(tx, video).await
}

/// Adds `by` to the count of each word for each cue of a video: -1 when it is hidden, 1 when it is back. The video must be
/// locked.
pub(super) async fn count_video(tx: &mut Tx, video: Uuid, by: i64) -> Result<(), CatalogError> {
    let mut ledger = Ledger::default();
    let sql = "SELECT c.words FROM cues c JOIN tracks t ON t.key = c.track WHERE t.video = $1";
    for row in tx.rows(sql, values![video]).await? {
        ledger.count(&row.get::<String>("words")?, by);
    }
    ledger.count_words(tx).await
}

/// Refuses a line with a negative start or without length.
pub(super) fn check(subtitles: &Subtitles) -> Result<(), CatalogError> {
    check_lines(subtitles.lines.iter())
}

/// The same for lines without a track.
pub(super) fn check_lines<'a>(mut lines: impl Iterator<Item = &'a Line>) -> Result<(), CatalogError> {
    match lines.find(|line| line.start_ms < 0 || line.end_ms <= line.start_ms) {
        Some(bad) => {
            Err(CatalogError::Invalid(format!("{} to {} ms is no range", bad.start_ms, bad.end_ms).into()))
        }
        None => Ok(()),
    }
}

const OF_TRACK: &str = "SELECT key FROM tracks WHERE video = $1 AND kind = $2 AND language = $3";

async fn forget(
    tx: &mut Tx,
    video: Uuid,
    kind: CueKind,
    language: &str,
    ledger: &mut Ledger,
) -> Result<bool, CatalogError> {
    let row = tx.row(OF_TRACK, values![video, cue_kind_name(kind), language]).await?;
    let Some(row) = row else { return Ok(false) };
    remove(tx, row.get("key")?, ledger).await?;
    Ok(true)
}

async fn remove(tx: &mut Tx, track: i64, ledger: &mut Ledger) -> Result<(), CatalogError> {
    for row in tx.rows("SELECT words FROM cues WHERE track = $1", values![track]).await? {
        ledger.count(&row.get::<String>("words")?, -1);
    }
    ledger.forget_passages(tx, track).await?;
    tx.execute("DELETE FROM tracks WHERE key = $1", values![track]).await?;
    Ok(())
}

async fn insert(
    tx: &mut Tx,
    video: Uuid,
    subtitles: &Subtitles,
    ledger: &mut Ledger,
) -> Result<(), CatalogError> {
    let one_a_line = |warning: &String| format!("{}\n", warning.replace(['\r', '\n'], " "));
    let warnings: String = subtitles.warnings.iter().map(one_a_line).collect();
    let Some(track) = insert_track(tx, video, &subtitles.track, warnings).await? else { return Ok(()) };
    let mut cues: Vec<NewCue> = subtitles.lines.iter().map(|line| NewCue { line, region: None }).collect();
    cues.sort_by_key(|cue| cue.line.start_ms);
    insert_cues(tx, track, &cues, ledger).await
}

/// Inserts a track without cues; returns its key.
async fn insert_track(
    tx: &mut Tx,
    video: Uuid,
    track: &Track,
    warnings: String,
) -> Result<Option<i64>, CatalogError> {
    let Track { kind, language, provenance, is_machine } = track;
    let sql = "INSERT INTO tracks (video, kind, language, provenance, machine, warnings) \
               VALUES ($1, $2, $3, $4, $5, $6) RETURNING key";
    let kind = cue_kind_name(*kind);
    let values = values![video, kind, language.as_str(), provenance.as_str(), *is_machine, warnings];
    tx.row(sql, values).await?.map(|row| row.get("key")).transpose()
}

/// A cue to insert.
struct NewCue<'a> {
    line: &'a Line,
    region: Option<CueBox>,
}

/// Inserts the cues of a track, which are in order of start.
async fn insert_cues(
    tx: &mut Tx,
    track: i64,
    cues: &[NewCue<'_>],
    ledger: &mut Ledger,
) -> Result<(), CatalogError> {
    let row = |(place, cue): (i64, &NewCue<'_>)| -> Vec<Value> {
        let Line { start_ms, end_ms, text } = cue.line;
        let words = words(text).join(" ");
        ledger.count(&words, 1);
        let mut row = values![Uuid::now_v7(), track, place, *start_ms, *end_ms, text.as_str(), words];
        row.extend(sides(cue.region));
        row
    };
    let rows = (0..).zip(cues).map(row).collect();
    let head = "INSERT INTO cues (id, track, place, start_ms, end_ms, text, words, box_left, box_top, box_width, \
                box_height)";
    tx.insert(head, rows, "").await?;
    Ok(())
}

/// The values of the columns `box_…`.
pub(super) fn sides(region: Option<CueBox>) -> [Value; 4] {
    let sides = region.map(|it| [it.left, it.top, it.width, it.height]);
    [0, 1, 2, 3].map(|side| Value::Real(sides.map(|sides| sides[side])))
}

/// Consequences of stored and deleted tracks, applied at the end of the transaction.
#[derive(Default)]
pub(super) struct Ledger {
    /// Change of the cue count of each word.
    terms: BTreeMap<String, i64>,
    /// Positions of the deleted passages' vectors.
    gone: Vec<At>,
}

impl Ledger {
    /// Adds `by` to the count of each distinct word of a cue. The empty word counts all cues.
    pub(super) fn count(&mut self, words: &str, by: i64) {
        let distinct: BTreeSet<&str> = words.split(' ').filter(|word| !word.is_empty()).chain([""]).collect();
        for word in distinct {
            *self.terms.entry(word.to_owned()).or_default() += by;
        }
    }

    /// Writes the counts in order of word, so that two transactions with common words do not deadlock.
    pub(super) async fn count_words(&mut self, tx: &mut Tx) -> Result<(), CatalogError> {
        let changed = std::mem::take(&mut self.terms).into_iter().filter(|(_, by)| *by != 0);
        let changed: Vec<Vec<Value>> = changed.map(|(term, by)| values![term, by]).collect();
        let tail = "ON CONFLICT (term) DO UPDATE SET cues = cue_terms.cues + excluded.cues";
        tx.insert("INSERT INTO cue_terms (term, cues)", changed, tail).await?;
        tx.execute("DELETE FROM cue_terms WHERE cues = 0", values![]).await?;
        Ok(())
    }

    /// Deletes the passages of a track. [`Ledger::apply`] makes those of its lines anew.
    pub(super) async fn forget_passages(&mut self, tx: &mut Tx, track: i64) -> Result<(), CatalogError> {
        self.gone.extend(passages::remove(tx, track).await?);
        Ok(())
    }

    /// Call last in a transaction: it appends to the changes.
    pub(super) async fn apply(mut self, tx: &mut Tx, video: Uuid) -> Result<(), CatalogError> {
        passages::make(tx, video).await?;
        self.count_words(tx).await?;
        vectors::append_changes(tx, self.gone.into_iter().map(|at| (Op::Delete, at)).collect()).await
    }
}
