//! The cursor: a plan and a position in its ranking, as text that the client sends for the next page.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::digest::Key;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;

use super::error::SearchError;
use super::paging::Position;
use super::plan::SearchPlan;
use super::rounded::RoundedVectors;
use super::spoken::Meaning;
use crate::app::Authorized;
use crate::catalog::Secret;
use crate::terms::Aggregation;

/// Length of the signature: HMAC-SHA256, cut to 128 bits (RFC 2104, section 5).
const SIGNATURE_BYTES: usize = 16;
/// Raised when the encoding changes.
const VERSION: u8 = 5;

/// Signs the cursors of one caller and checks them. All servers of a library have the same secret, so each continues the
/// others' searches.
#[derive(Debug, Clone)]
pub struct CursorSigner {
    secret: Secret,
    /// The caller's API key. Another key must not continue its searches.
    owner: Option<Uuid>,
    /// Largest number of query vectors of one kind in a cursor: those of the longest query text.
    most_windows: usize,
}

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

impl CursorSigner {
    /// The signer of a caller.
    pub fn of(app: &Authorized) -> CursorSigner {
        let signer = CursorSigner::new(app.cursor_secret.clone(), app.config.max_windows);
        CursorSigner { owner: app.caller().key_id(), ..signer }
    }

    /// Signs with `secret`. A cursor may have `most_windows` vectors of one kind.
    pub fn new(secret: Secret, most_windows: usize) -> CursorSigner {
        CursorSigner { secret, owner: None, most_windows: most_windows.max(1) }
    }

    /// Encodes as base64: a signature, the version, the head's length, the head as JSON, then the bytes.
    ///
    /// # Errors
    /// [`SearchError::Cursor`] if JSON can't hold the plan.
    pub fn encode(&self, cursor: &Cursor) -> Result<String, SearchError> {
        let body = cursor.body()?;
        let signature = self.mac(&body).finalize().into_bytes();
        Ok(URL_SAFE_NO_PAD.encode([&signature[..SIGNATURE_BYTES], &body].concat()))
    }

    /// Decodes a cursor of this library.
    ///
    /// # Errors
    /// [`SearchError::Invalid`] at `/cursor`, or [`SearchError::CursorOutdated`].
    pub fn decode(&self, text: &str) -> Result<Cursor, SearchError> {
        let wrong = || SearchError::invalid("/cursor", "this is not a cursor of this service");
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| wrong())?;
        let (signature, body) = bytes.split_at_checked(SIGNATURE_BYTES).ok_or_else(wrong)?;
        self.mac(body).verify_truncated_left(signature).map_err(|_| wrong())?;
        match body.split_first() {
            Some((&VERSION, body)) => {
                let cursor = Cursor::of_body(body).ok_or_else(wrong)?;
                // The server may have been started with a lower limit since.
                if cursor.plan.is_within_bounds(self.most_windows) { Ok(cursor) } else { Err(wrong()) }
            }
            Some(_) => Err(SearchError::CursorOutdated),
            None => Err(wrong()),
        }
    }

    fn mac(&self, body: &[u8]) -> Hmac<Sha256> {
        // RFC 2104 fills a short key up with zeros.
        let mut key = Key::<Hmac<Sha256>>::default();
        key[..self.secret.bytes().len()].copy_from_slice(self.secret.bytes());
        Hmac::new(&key).chain_update(self.owner.unwrap_or(Uuid::nil()).as_bytes()).chain_update(body)
    }
}

impl Cursor {
    /// The version, the head's length, the head as JSON, then the bytes.
    fn body(&self) -> Result<Vec<u8>, SearchError> {
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
        Ok(body)
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
        rest.is_empty().then_some(Cursor { plan, after })
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

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::json;

    use super::super::paging::{Cut, Ranked, SHOWN_MOST, Scores, Standing, cut};
    use super::super::plan::PageShape;
    use super::super::spoken::SpokenQuery;
    use super::super::standing::Backgrounds;
    use super::super::types::{
        DuplicateBound, Exclude, Levels, NearDuplicates, Overlaps, QueryInfo, Weights,
    };
    use super::*;
    use crate::catalog::Filter;
    use crate::terms::{SearchKind, UnitVector};

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
        let info = QueryInfo { kind: SearchKind::Text, windows, ..QueryInfo::of_clip(0) };
        let meaning = Some(Meaning { space: "reader".to_owned(), vectors: vectors(windows, dim) });
        let plan = SearchPlan {
            id: Some(Uuid::from_u128(1)),
            space: "tiny".to_owned(),
            visual: Some(vectors(windows, dim)),
            spoken: Some(SpokenQuery { text: "bias".to_owned(), in_speech: true, on_screen: true, meaning }),
            filter: Some(Filter::parse(&json!({"field": "title", "eq": "a"})).unwrap()),
            levels: Levels::Clip,
            exclude: Exclude { itself: true, same_video: false },
            origins: Vec::new(),
            of_text: true,
            exact: false,
            min_z: Some(3.5),
            backgrounds: Some(Backgrounds::default()),
            duplicates: Some(DuplicateBound { cosine: Some(0.97) }),
            diversity: Some(0.3),
            facets: Vec::new(),
            shape: PageShape {
                limit: 20,
                per_group: None,
                overlaps: Overlaps::Fold,
                near_duplicates: NearDuplicates::Fold,
                merge_adjacent: false,
                explain: false,
            },
            info: QueryInfo {
                weights: Weights { visual: Some(1.0), spoken: Some(0.1), screen: Some(0.2) },
                ..info
            },
        };
        Cursor { plan, after: end.unwrap() }
    }

    fn signer() -> CursorSigner {
        static SECRET: LazyLock<Secret> = LazyLock::new(Secret::random);
        CursorSigner::new(SECRET.clone(), 128)
    }

    /// Applies `change` to the bytes of a valid cursor, then decodes them.
    #[track_caller]
    fn check(change: impl Fn(&mut Vec<u8>), expected: bool) {
        let signer = signer();
        let mut bytes = URL_SAFE_NO_PAD.decode(signer.encode(&cursor(2, 3, 20)).unwrap()).unwrap();
        change(&mut bytes);
        assert_eq!(signer.decode(&URL_SAFE_NO_PAD.encode(&bytes)).is_ok(), expected);
    }

    /// Decodes a body that this service signed.
    fn signed(body: &[u8]) -> Result<Cursor, SearchError> {
        let signature = signer().mac(body).finalize().into_bytes();
        signer().decode(&URL_SAFE_NO_PAD.encode([&signature[..SIGNATURE_BYTES], body].concat()))
    }

    #[test]
    fn a_cursor_comes_back_as_it_went() {
        for sent in [cursor(2, 3, 40), cursor(1, 1, 1)] {
            assert_eq!(signer().decode(&signer().encode(&sent).unwrap()).unwrap(), sent);
        }
    }

    #[test]
    fn a_changed_cursor_is_refused_wherever_it_was_changed() {
        let length = URL_SAFE_NO_PAD.decode(signer().encode(&cursor(2, 3, 20)).unwrap()).unwrap().len();
        check(|_| (), true);
        for place in 0..length {
            check(|bytes| bytes[place] ^= 1, false);
            check(|bytes| bytes.truncate(place), false);
        }
        assert!(signer().decode("").is_err());
        assert!(signer().decode("%%%").is_err());
    }

    #[test]
    fn a_cursor_of_another_secret_is_refused() {
        let other = CursorSigner::new(Secret::random(), 128).encode(&cursor(2, 3, 20)).unwrap();
        assert!(matches!(signer().decode(&other), Err(SearchError::Invalid { .. })));
    }

    #[test]
    fn a_cursor_of_another_key_is_refused() {
        let of = |owner| CursorSigner { owner, ..signer() };
        let (mine, other) = (of(Some(Uuid::now_v7())), of(Some(Uuid::now_v7())));
        let sent = mine.encode(&cursor(2, 3, 20)).unwrap();
        assert!(
            mine.decode(&sent).is_ok() && other.decode(&sent).is_err() && of(None).decode(&sent).is_err()
        );
    }

    #[test]
    fn a_signature_does_not_lift_the_bounds() {
        let shaped = |change: &dyn Fn(&mut SearchPlan)| {
            let mut cursor = cursor(2, 3, 20);
            change(&mut cursor.plan);
            signer().decode(&signer().encode(&cursor).unwrap()).is_ok()
        };
        assert!(shaped(&|_| ()));
        assert!(!shaped(&|plan| plan.shape.limit = 0));
        assert!(!shaped(&|plan| plan.shape.limit = usize::MAX));
        assert!(!shaped(&|plan| plan.shape.per_group = Some(0)));
        assert!(!shaped(&|plan| plan.diversity = Some(1.5)));
        assert!(!shaped(&|plan| (plan.visual, plan.spoken) = (None, None)));
        assert!(shaped(&|plan| plan.visual = Some(vectors(128, 3))));
        assert!(!shaped(&|plan| plan.visual = Some(vectors(129, 3))));
        for body in [&[VERSION][..], &[VERSION, 255, 255, 255, 255], &[VERSION, 2, 0, 0, 0, b'{', b'}']] {
            assert!(matches!(signed(body), Err(SearchError::Invalid { .. })), "{body:?}");
        }
    }

    #[test]
    fn a_cursor_of_another_version_is_no_damaged_one() {
        for body in [&[VERSION + 1, 0][..], &[1, 2, 3]] {
            assert!(matches!(signed(body), Err(SearchError::CursorOutdated)), "{body:?}");
        }
    }

    #[test]
    fn the_longest_cursor_fits_into_a_request() {
        // 128 windows for two models of the widest known vectors, and the most shown entries.
        let longest = signer().encode(&cursor(128, 1280, SHOWN_MOST)).unwrap();
        assert!(longest.len() < 1 << 20, "{} bytes", longest.len());
    }
}
