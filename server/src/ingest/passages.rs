//! Vectors of passages, in the spaces that answer spoken queries.

use std::sync::Arc;

use reprise_encoders::text::{Overflow, Tokenizer};
use reprise_encoders::{EncodeError, Input};
use uuid::Uuid;

use super::error::IngestError;
use super::progress::JobProgress;
use super::spaces::fillable;
use crate::app::App;
use crate::catalog::{CatalogError, NewVector, PassageText};
use crate::models::LoadedSpace;
use crate::terms::{QueryKind, SpanKey, UnitVector};

/// Passages per batch. A stop signal is checked before each.
const AT_ONCE: usize = 32;

/// Encodes the missing vectors of a video's passages in all spaces that answer spoken queries.
///
/// # Errors
/// The encoder or the catalog failed, or the job received a stop.
pub(super) async fn fill(
    app: &App,
    video: Uuid,
    progress: &JobProgress,
) -> Result<Vec<NewVector>, IngestError> {
    let mut vectors = Vec::new();
    for space in spaces(app).await? {
        let Some(tokenizer) = space.tokenizer.as_deref() else { continue };
        let lacking = app.catalog.passages_without_vector(video, space.key).await?;
        for some in lacking.chunks(AT_ONCE) {
            if let Some(stop) = progress.stopped() {
                return Err(IngestError::Stopped(stop));
            }
            vectors.extend(encode(&space, tokenizer, some).await?);
        }
    }
    Ok(vectors)
}

/// All loaded passage spaces whose fill is not paused. An inactive one must be complete before it is made active.
async fn spaces(app: &App) -> Result<Vec<Arc<LoadedSpace>>, CatalogError> {
    let mut spaces = fillable(app).await?;
    spaces.retain(|it| it.can(QueryKind::Spoken));
    Ok(spaces)
}

/// Enqueues a fill if a passage of the video lacks a vector. Errors are logged, and the next start tries again.
pub(crate) async fn enqueue(app: &App, video: Uuid) {
    let enqueued = async {
        for space in spaces(app).await? {
            if !app.catalog.passages_without_vector(video, space.key).await?.is_empty() {
                app.catalog.enqueue_fill(video).await?;
                break;
            }
        }
        Ok::<_, CatalogError>(())
    };
    if let Err(error) = enqueued.await {
        tracing::warn!(%error, %video, "the passages of a video wait for the next start to be encoded");
    }
}

async fn encode(
    space: &LoadedSpace,
    tokenizer: &Tokenizer,
    passages: &[PassageText],
) -> Result<Vec<NewVector>, EncodeError> {
    let (mut inputs, mut windows) = (Vec::new(), Vec::new());
    for passage in passages {
        // The number of windows needs no limit, because the cues bound the length of a passage.
        let cut = tokenizer.passages(&passage.text, Overflow::Window, usize::MAX);
        let cut = cut.map_err(|error| EncodeError::BadInput(error.into()))?;
        windows.push((passage.span, cut.windows.len()));
        inputs.extend(cut.windows.into_iter().map(|window| Input::Text(window.tokens)));
    }
    let mut raws = space.pool.encode_bulk(inputs).await?.into_iter();
    windows.into_iter().map(|(span, count)| vector(span, space.key, raws.by_ref().take(count))).collect()
}

/// The mean direction of the windows. For a single window, its raw vector.
fn vector(span: SpanKey, space: u32, raws: impl Iterator<Item = Vec<f32>>) -> Result<NewVector, EncodeError> {
    let useless = || EncodeError::Failed("a passage's vector is zero or not finite".into());
    let units = raws.map(|raw| UnitVector::from_raw(&raw).ok_or_else(useless));
    let units = units.collect::<Result<Vec<(UnitVector, f32)>, _>>()?;
    if let [(unit, norm)] = &units[..] {
        return Ok(NewVector { span, space, unit: unit.clone(), norm: *norm });
    }
    let mut mean = vec![0_f32; units.first().map_or(0, |(unit, _)| unit.values().len())];
    for (unit, _) in &units {
        mean.iter_mut().zip(unit.values()).for_each(|(sum, value)| *sum += value / units.len() as f32);
    }
    let (unit, norm) = UnitVector::from_raw(&mean).ok_or_else(useless)?;
    Ok(NewVector { span, space, unit, norm })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raws: &[&[f32]], expected: Option<(&[f32], f32)>) {
        let got = vector(SpanKey::new(3), 1, raws.iter().map(|raw| raw.to_vec())).ok();
        let Some((unit, norm)) = expected else { return assert!(got.is_none(), "{got:?}") };
        let got = got.unwrap();
        assert_eq!((got.span, got.space), (SpanKey::new(3), 1));
        let off = got.unit.values().iter().zip(unit).map(|(got, it)| (got - it).abs()).fold(0.0, f32::max);
        assert!(off < 1e-6 && (got.norm - norm).abs() < 1e-6, "{got:?}");
    }

    #[test]
    fn a_passage_of_several_windows_has_the_mean_of_their_directions() {
        check(&[&[3.0, 4.0]], Some((&[0.6, 0.8], 5.0)));
        let half = 0.5_f32.sqrt();
        check(&[&[2.0, 0.0], &[0.0, 7.0]], Some((&[half, half], half)));
        check(&[&[1.0, 0.0], &[-2.0, 0.0]], None);
        check(&[], None);
    }
}
