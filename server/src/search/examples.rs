//! Encodes several examples as one query vector: like the positive ones, unlike the negative ones.

use std::time::Instant;

use reprise_encoders::text::Overflow;
use reprise_encoders::{Input, Source};

use super::encode::{Encoded, QueryEncoder, Wanted, text_vectors, tokenizer, too_long, unit};
use super::error::SearchError;
use super::timings::millis;
use super::types::{Examples, Origin, Query, QueryInfo};
use crate::terms::{NEGATIVE_SHARE, SearchKind, UnitVector, rocchio};

/// The examples' inputs for the encoder, and the vectors that are stored.
struct Gathered {
    parts: Vec<Part>,
    inputs: Vec<Input>,
    origins: Vec<Origin>,
    info: QueryInfo,
    decode_ms: f64,
    encode_ms: f64,
}

/// The vector of one example.
enum Part {
    /// A stored raw vector.
    Stored(Vec<f32>),
    /// Number of the encoder's inputs that belong to it: 1 for a clip, or all windows of a text.
    Encoded(usize),
}

impl QueryEncoder<'_> {
    /// Encodes all examples with one call of the encoder. The texts may have together as many windows as one text.
    pub(super) async fn examples(
        self,
        examples: &Examples,
        overflow: Overflow,
    ) -> Result<Encoded, SearchError> {
        let mut gathered = Gathered::new();
        for (list, side) in [(&examples.like, "like"), (&examples.unlike, "unlike")] {
            for (place, example) in list.iter().enumerate() {
                let pointer = format!("/query/{side}/{place}");
                match example {
                    Query::Text(text) => self.gather_text(&mut gathered, text, overflow, &pointer)?,
                    clip => self.gather_clip(&mut gathered, clip, &pointer).await?,
                }
            }
        }
        let Gathered { parts, inputs, origins, info, decode_ms, encode_ms } = gathered;
        let started = Instant::now();
        let raw = match inputs.is_empty() {
            true => Vec::new(),
            false => self.space.pool.encode(self.permit, inputs).await?,
        };
        let mut like = vectors(parts, raw)?;
        let unlike = like.split_off(examples.like.len());
        let cancelled = || SearchError::invalid("/query", "the examples cancel each other out");
        let (vector, norm) = rocchio(&like, &unlike, NEGATIVE_SHARE).ok_or_else(cancelled)?;
        let encode_ms = encode_ms + millis(started);
        Ok(Encoded { vector, norm, windows: Vec::new(), origins, info, decode_ms, encode_ms })
    }

    fn gather_text(
        &self,
        gathered: &mut Gathered,
        text: &str,
        overflow: Overflow,
        at: &str,
    ) -> Result<(), SearchError> {
        let left = self.app.config.max_windows.saturating_sub(gathered.info.windows).max(1);
        let at = format!("{at}/text");
        let windows = tokenizer(self.space, &at)?
            .windows(text, overflow, left)
            .map_err(|error| too_long(&at, &error))?;
        gathered.info.tokens_total += windows.tokens_total;
        gathered.info.tokens_used += windows.tokens_used;
        gathered.info.windows += windows.windows.len();
        gathered.info.truncated |= windows.truncated;
        gathered.parts.push(Part::Encoded(windows.windows.len()));
        gathered.inputs.extend(windows.windows.into_iter().map(|window| Input::Text(window.tokens)));
        Ok(())
    }

    async fn gather_clip(&self, gathered: &mut Gathered, clip: &Query, at: &str) -> Result<(), SearchError> {
        let footage = self.footage(clip, Wanted::Vector, at).await?;
        gathered.info.frames += footage.frames;
        gathered.origins.extend(footage.origin);
        gathered.decode_ms += footage.decode_ms;
        gathered.encode_ms += footage.encode_ms;
        gathered.parts.push(match footage.source {
            Source::Raw(raw) => Part::Stored(raw),
            Source::Frames(clip) => {
                gathered.inputs.push(Input::Frames(clip));
                Part::Encoded(1)
            }
        });
        Ok(())
    }
}

impl Gathered {
    fn new() -> Gathered {
        Gathered {
            parts: Vec::new(),
            inputs: Vec::new(),
            origins: Vec::new(),
            info: QueryInfo { kind: SearchKind::Examples, ..QueryInfo::of_clip(0) },
            decode_ms: 0.0,
            encode_ms: 0.0,
        }
    }
}

/// The unit vector of each example. `raw`: the encoder's vectors, in the order of its inputs.
fn vectors(parts: Vec<Part>, raw: Vec<Vec<f32>>) -> Result<Vec<UnitVector>, SearchError> {
    let mut raw = raw.into_iter();
    let vector = |part| match part {
        Part::Stored(raw) => Ok(unit(&raw)?.0),
        Part::Encoded(count) => {
            let own: Vec<Vec<f32>> = raw.by_ref().take(count).collect();
            if own.len() < count {
                return Err(SearchError::Internal("the encoder gave too few vectors"));
            }
            Ok(text_vectors(&own)?.1)
        }
    };
    parts.into_iter().map(vector).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(parts: Vec<Part>, raw: &[[f32; 2]], expected: Option<&[[f32; 2]]>) {
        let got = vectors(parts, raw.iter().map(|raw| raw.to_vec()).collect()).ok();
        let got = got.map(|units| units.iter().map(|unit| unit.values().to_vec()).collect::<Vec<_>>());
        let expected = expected.map(|units| units.iter().map(|unit| unit.to_vec()).collect::<Vec<_>>());
        assert_eq!(got, expected);
    }

    #[test]
    fn each_example_gets_its_own_vectors() {
        use Part::{Encoded, Stored};
        check(vec![], &[], Some(&[]));
        check(vec![Stored(vec![0.0, 2.0]), Encoded(1)], &[[3.0, 0.0]], Some(&[[0.0, 1.0], [1.0, 0.0]]));
        let windows = [[2.0, 0.0], [5.0, 0.0], [0.0, -1.0]];
        check(vec![Encoded(2), Encoded(1)], &windows, Some(&[[1.0, 0.0], [0.0, -1.0]]));
        check(vec![Encoded(2)], &[[1.0, 0.0]], None);
        check(vec![Stored(vec![0.0, 0.0])], &[], None);
    }
}
