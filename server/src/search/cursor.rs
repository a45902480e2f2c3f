//! The cursor: a plan and a position in its ranking, as text that the client sends for the next page.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::SearchError;
use super::paging::Position;
use super::plan::SearchPlan;
use super::rounded::RoundedVectors;
use super::spoken::Meaning;
use crate::terms::Aggregation;

/// A damaged cursor passes the check with probability 2^-64.
const CHECKSUM_BYTES: usize = 8;
/// Raised when the encoding changes. Cursors from before version 1 have `{` in this byte.
const VERSION: u8 = 1;

/// Continues a search on its next page.
#[derive(Debug, Clone, PartialEq)]
pub struct Cursor {
    /// The search.
    pub plan: SearchPlan,
    /// The end of the page before.
    pub after: Position,
}

/// The JSON part of a cursor. The bytes of vectors and of shown entries follow it, in the order of the fields.
#[derive(Serialize, Deserialize)]
struct Head {
    plan: SearchPlan,
    after: Position,
    visual: Option<Rows>,
    meaning: Option<(String, Rows)>,
}

/// The shape of encoded vectors.
#[derive(Serialize, Deserialize)]
struct Rows {
    aggregation: Aggregation,
    count: usize,
    bytes: usize,
}

impl Cursor {
    /// Encodes as base64: a checksum, the version, the head's length, the head as JSON, then the bytes.
    ///
    /// # Errors
    /// [`SearchError::Cursor`] if JSON can't hold the plan.
    pub fn encode(&self) -> Result<String, SearchError> {
        let meaning = self.plan.spoken.as_ref().and_then(|spoken| spoken.meaning.as_ref());
        let vectors = [self.plan.visual.as_ref(), meaning.map(|meaning| &meaning.vectors)];
        let head = Head {
            plan: self.plan.clone(),
            after: self.after.clone(),
            visual: vectors[0].map(Rows::of),
            meaning: meaning.map(|meaning| (meaning.space.clone(), Rows::of(&meaning.vectors))),
        };
        let head = serde_json::to_vec(&head).map_err(SearchError::Cursor)?;
        let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
        let mut body = vec![VERSION];
        body.extend(length.to_le_bytes());
        body.extend(head);
        body.extend(vectors.into_iter().flatten().flat_map(RoundedVectors::bytes));
        body.extend(self.after.shown().iter().flat_map(|id| id.to_le_bytes()));
        Ok(URL_SAFE_NO_PAD.encode([&checksum(&body)[..], &body].concat()))
    }

    /// Decodes a cursor. The checksum finds accidental damage only. A client can forge it, so every value of a cursor
    /// is checked.
    ///
    /// # Errors
    /// [`SearchError::Invalid`] at `/cursor`, or [`SearchError::CursorOutdated`].
    pub fn decode(text: &str) -> Result<Cursor, SearchError> {
        let wrong = || SearchError::invalid("/cursor", "this is not a cursor of this service");
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
        let (sum, body) = bytes.split_first_chunk::<CHECKSUM_BYTES>().ok_or_else(wrong)?;
        if *sum != checksum(body) {
            return Err(wrong());
        }
        match body.split_first() {
            Some((&VERSION, body)) => Cursor::of_body(body).ok_or_else(wrong),
            Some(_) => Err(SearchError::CursorOutdated),
            None => Err(wrong()),
        }
    }

    fn of_body(body: &[u8]) -> Option<Cursor> {
        let (length, body) = body.split_first_chunk::<4>()?;
        let (head, mut bytes) = body.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        let Head { mut plan, after, visual, meaning } = serde_json::from_slice(head).ok()?;
        if let Some(rows) = visual {
            plan.visual = Some(rows.vectors(&mut bytes)?);
        }
        if let Some((space, rows)) = meaning {
            plan.spoken.as_mut()?.meaning = Some(Meaning { space, vectors: rows.vectors(&mut bytes)? });
        }
        let (shown, rest) = bytes.as_chunks::<8>();
        let after = after.with_shown(shown.iter().map(|id| u64::from_le_bytes(*id)).collect())?;
        (rest.is_empty() && plan.is_within_bounds()).then_some(Cursor { plan, after })
    }
}

impl Rows {
    fn of(vectors: &RoundedVectors) -> Rows {
        let (aggregation, count) = (vectors.aggregation(), vectors.count());
        Rows { aggregation, count, bytes: vectors.bytes().count() }
    }

    /// Takes this row set's vectors from the front of `bytes`.
    fn vectors(&self, bytes: &mut &[u8]) -> Option<RoundedVectors> {
        let (own, rest) = bytes.split_at_checked(self.bytes)?;
        *bytes = rest;
        RoundedVectors::from_bytes(own, self.count, self.aggregation)
    }
}

fn checksum(body: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let digest = Sha256::digest(body);
    std::array::from_fn(|index| digest[index])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::paging::{Cut, Ranked, SHOWN_MOST, Scores, Standing, cut};
    use super::super::plan::PageShape;
    use super::super::spoken::SpokenQuery;
    use super::super::types::{Exclude, Levels, QueryInfo, Weights};
    use super::*;
    use crate::catalog::Filter;
    use crate::terms::{QueryKind, UnitVector};

    #[derive(Debug, PartialEq)]
    struct Entry(u64);

    impl Ranked for Entry {
        fn standing(&self) -> Option<Standing> {
            Some(Standing { score: 0.25, key: self.0, id: self.0 })
        }
    }

    fn vectors(count: usize, dim: usize) -> RoundedVectors {
        let unit = |row: usize| -> Vec<f32> { (0..dim).map(|at| ((row + at) as f32).sin()).collect() };
        let units: Vec<UnitVector> =
            (1..=count).filter_map(|row| UnitVector::from_raw(&unit(row))).map(|it| it.0).collect();
        RoundedVectors::new(&units, Aggregation::Coverage).unwrap()
    }

    fn cursor(windows: usize, dim: usize, seen: usize) -> Cursor {
        let Cut { end, .. } = cut((0..seen as u64).map(Entry).collect(), None, seen, Scores::Relative);
        let info = QueryInfo { kind: QueryKind::Text, windows, ..QueryInfo::of_clip(0) };
        let meaning = Some(Meaning { space: "reader".to_owned(), vectors: vectors(windows, dim) });
        let plan = SearchPlan {
            space: "tiny".to_owned(),
            visual: Some(vectors(windows, dim)),
            spoken: Some(SpokenQuery { text: "bias".to_owned(), meaning }),
            filter: Some(Filter::parse(&json!({"field": "title", "eq": "a"})).unwrap()),
            levels: Levels::Clip,
            exclude: Exclude { itself: true, same_video: false },
            origin: None,
            exact: false,
            shape: PageShape { limit: 20, per_group: None, merge_adjacent: false, explain: false },
            info: QueryInfo { weights: Weights { visual: Some(1.0), spoken: Some(0.1) }, ..info },
        };
        Cursor { plan, after: end.unwrap() }
    }

    /// Applies `change` to the bytes of a valid cursor, then decodes them.
    #[track_caller]
    fn check(change: impl Fn(&mut Vec<u8>), expected: bool) {
        let mut bytes = URL_SAFE_NO_PAD.decode(cursor(2, 3, 20).encode().unwrap()).unwrap();
        change(&mut bytes);
        assert_eq!(Cursor::decode(&URL_SAFE_NO_PAD.encode(&bytes)).is_ok(), expected);
    }

    /// Decodes a body with a correct checksum, as a client could forge it.
    fn forged(body: &[u8]) -> Result<Cursor, SearchError> {
        Cursor::decode(&URL_SAFE_NO_PAD.encode([&checksum(body)[..], body].concat()))
    }

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        for sent in [cursor(2, 3, 40), cursor(1, 1, 1)] {
            assert_eq!(Cursor::decode(&sent.encode().unwrap()).unwrap(), sent);
        }
    }

    #[test]
    fn a_changed_cursor_is_refused_wherever_it_was_changed() {
        let length = URL_SAFE_NO_PAD.decode(cursor(2, 3, 20).encode().unwrap()).unwrap().len();
        check(|_| (), true);
        for place in 0..length {
            check(|bytes| bytes[place] ^= 1, false);
            check(|bytes| bytes.truncate(place), false);
        }
        assert!(Cursor::decode("").is_err());
        assert!(Cursor::decode("%%%").is_err());
    }

    #[test]
    fn a_forged_checksum_does_not_lift_the_bounds() {
        let shaped = |change: &dyn Fn(&mut SearchPlan)| {
            let mut cursor = cursor(2, 3, 20);
            change(&mut cursor.plan);
            Cursor::decode(&cursor.encode().unwrap()).is_ok()
        };
        assert!(shaped(&|_| ()));
        assert!(!shaped(&|plan| plan.shape.limit = 0));
        assert!(!shaped(&|plan| plan.shape.limit = usize::MAX));
        assert!(!shaped(&|plan| plan.shape.per_group = Some(0)));
        assert!(!shaped(&|plan| (plan.visual, plan.spoken) = (None, None)));
        for body in [&[VERSION][..], &[VERSION, 255, 255, 255, 255], &[VERSION, 2, 0, 0, 0, b'{', b'}']] {
            assert!(matches!(forged(body), Err(SearchError::Invalid { .. })), "{body:?}");
        }
    }

    #[test]
    fn a_cursor_of_another_version_is_no_damaged_one() {
        for body in [&br#"{"vectors":["AAA"],"said":null,"filter":null,"state":{}}"#[..], &[VERSION + 1, 0]] {
            assert!(matches!(forged(body), Err(SearchError::CursorOutdated)), "{body:?}");
        }
    }

    #[test]
    fn the_longest_cursor_fits_into_a_request() {
        // 128 windows for two models of the widest known vectors, and the most shown entries.
        let longest = cursor(128, 1280, SHOWN_MOST).encode().unwrap();
        assert!(longest.len() < 1 << 20, "{} bytes", longest.len());
    }
}
