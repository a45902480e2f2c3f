//! Cuts a ranking into pages.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::types::{Group, Match};

/// Largest number of entries that a position stores: 64 KiB of a cursor.
pub(super) const SHOWN_MOST: usize = 8192;

/// The end of a page in its ranking.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Bits of the last entry's score. A decimal would not be exact.
    score_bits: u32,
    /// Key of the last entry. Among equal scores the lower key comes first.
    key: u64,
    /// Number of entries on this page and all before.
    seen: u64,
    /// Ids of the entries on all pages so far, if scores may change between pages. The cursor stores them as bytes.
    #[serde(skip)]
    shown: Vec<u64>,
}

/// An entry's sort key and identity in a ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standing {
    pub(super) score: f32,
    pub(super) key: u64,
    /// Identifies the entry, whatever its score.
    pub(super) id: u64,
}

/// An entry of a ranking.
pub(super) trait Ranked {
    /// `None` for a group without a hit, which is left out.
    fn standing(&self) -> Option<Standing>;

    /// Ids of further entries that this one stands for. No later page shows them.
    fn folded(&self) -> Vec<u64> {
        Vec::new()
    }
}

impl Ranked for Match {
    fn standing(&self) -> Option<Standing> {
        let key = self.span.span.key.number();
        Some(Standing { score: self.score, key, id: key })
    }

    fn folded(&self) -> Vec<u64> {
        let inside =
            |found: &Match| found.folded.iter().map(|it| it.span.span.key.number()).collect::<Vec<_>>();
        let mut ids = inside(self);
        for found in &self.duplicates {
            ids.push(found.span.span.key.number());
            ids.extend(inside(found));
        }
        ids
    }
}

impl Ranked for Group {
    /// The standing of the group's best hit, with the video's id.
    fn standing(&self) -> Option<Standing> {
        // The last 62 bits of a version 7 UUID are random.
        let (_, id) = self.video.as_u64_pair();
        Some(Standing { id, ..self.matches.first()?.standing()? })
    }
}

/// Whether scores stay the same from page to page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scores {
    /// An entry keeps its score. Score and key decide if it comes after a page.
    Fixed,
    /// A score depends on other entries. The next page shows entries that no page showed.
    Relative,
}

/// The entries of one page.
#[derive(Debug, PartialEq)]
pub(super) struct Cut<T> {
    pub(super) entries: Vec<T>,
    /// Whether more entries follow.
    pub(super) more: bool,
    /// Position of the last entry. `None` for an empty page.
    pub(super) end: Option<Position>,
}

/// Cuts the `limit` entries after `after` from a ranking that is sorted best first.
pub(super) fn cut<T: Ranked>(
    ranking: Vec<T>,
    after: Option<&Position>,
    limit: usize,
    scores: Scores,
) -> Cut<T> {
    let next = Next::new(after);
    let mut entries: Vec<(Standing, T)> = ranking
        .into_iter()
        .filter_map(|it| it.standing().filter(|at| next.has(at)).map(|at| (at, it)))
        .collect();
    let more = entries.len() > limit;
    entries.truncate(limit);
    let page: Vec<Standing> = entries.iter().map(|(standing, _)| *standing).collect();
    let shown = match scores {
        Scores::Fixed => Vec::new(),
        Scores::Relative => entries.iter().flat_map(|(at, it)| [vec![at.id], it.folded()].concat()).collect(),
    };
    let end = Position::after(after, &page, shown);
    Cut { entries: entries.into_iter().map(|(_, it)| it).collect(), more, end }
}

/// Selects the entries after a position.
struct Next<'a> {
    after: Option<&'a Position>,
    shown: HashSet<u64>,
}

impl<'a> Next<'a> {
    fn new(after: Option<&'a Position>) -> Next<'a> {
        Next { after, shown: after.iter().flat_map(|after| after.shown.iter().copied()).collect() }
    }

    fn has(&self, it: &Standing) -> bool {
        let Some(after) = self.after else { return true };
        let last = f32::from_bits(after.score_bits);
        let is_below = it.score < last || (it.score == last && after.key < it.key);
        let remembers_all = (1..SHOWN_MOST).contains(&self.shown.len());
        !self.shown.contains(&it.id) && (remembers_all || is_below)
    }
}

impl Position {
    /// The position after the last entry of `page`, which showed `shown`. `before` is the end of the page before.
    fn after(before: Option<&Position>, page: &[Standing], shown: Vec<u64>) -> Option<Position> {
        let last = page.last()?;
        let before_shown = before.into_iter().flat_map(|before| before.shown.iter().copied());
        let shown = before_shown.chain(shown);
        Some(Position {
            score_bits: last.score.to_bits(),
            key: last.key,
            seen: Position::seen(before) as u64 + page.len() as u64,
            shown: shown.take(SHOWN_MOST).collect(),
        })
    }

    /// Number of entries on the pages so far.
    pub(super) fn seen(before: Option<&Position>) -> usize {
        before.map_or(0, |before| usize::try_from(before.seen).unwrap_or(usize::MAX))
    }

    /// Ids of the entries shown so far.
    pub(super) fn shown(&self) -> &[u64] {
        &self.shown
    }

    /// Sets the shown ids. `None` if there are over [`SHOWN_MOST`] ids, or if `seen` exceeds a u32.
    pub(super) fn with_shown(self, shown: Vec<u64>) -> Option<Position> {
        let is_possible = shown.len() <= SHOWN_MOST && u32::try_from(self.seen).is_ok();
        is_possible.then_some(Position { shown, ..self })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// An entry by its score, in tenths, and its key.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Entry {
        tenths: i16,
        key: u64,
    }

    impl Ranked for Entry {
        fn standing(&self) -> Option<Standing> {
            Some(Standing { score: f32::from(self.tenths) / 10.0, key: self.key, id: self.key })
        }
    }

    /// Few distinct scores, so that many are equal.
    fn entries() -> impl Strategy<Value = Vec<Entry>> {
        proptest::collection::vec(-5_i16..5, 0..60).prop_map(|tenths| {
            tenths.into_iter().zip(0..).map(|(tenths, key)| Entry { tenths, key }).collect()
        })
    }

    fn ranked(entries: &[Entry]) -> Vec<Entry> {
        let mut ranked = entries.to_vec();
        ranked.sort_by_key(|it| (-it.tenths, it.key));
        ranked
    }

    /// Cuts all pages. `change` modifies the library after each page, and the next page ranks the modified library.
    fn pages(
        mut library: Vec<Entry>,
        limit: usize,
        scores: Scores,
        mut change: impl FnMut(&mut Vec<Entry>),
    ) -> Vec<Entry> {
        let (mut shown, mut after) = (Vec::new(), None);
        loop {
            let cut = cut(ranked(&library), after.as_ref(), limit, scores);
            assert!(!cut.more || cut.entries.len() == limit);
            shown.extend(cut.entries);
            if !cut.more {
                return shown;
            }
            after = cut.end;
            change(&mut library);
        }
    }

    fn assert_no_repeats(shown: &[Entry]) {
        let keys: BTreeSet<u64> = shown.iter().map(|it| it.key).collect();
        assert_eq!(keys.len(), shown.len(), "{shown:?}");
    }

    proptest! {
        #[test]
        fn pages_of_any_size_are_the_ranking_cut_in_pieces(library in entries(), limit in 1_usize..20) {
            for scores in [Scores::Fixed, Scores::Relative] {
                prop_assert_eq!(pages(library.clone(), limit, scores, |_| ()), ranked(&library));
            }
        }

        #[test]
        fn whatever_comes_and_goes_between_pages_nothing_repeats_and_nothing_that_stays_is_skipped(
            library in entries(),
            limit in 1_usize..20,
            come in proptest::collection::vec(-5_i16..5, 0..60),
            go in proptest::collection::vec(any::<prop::sample::Index>(), 0..60),
        ) {
            for scores in [Scores::Fixed, Scores::Relative] {
                let (mut key, mut gone) = (1000, BTreeSet::new());
                let (mut come, mut go) = (come.iter(), go.iter());
                let shown = pages(library.clone(), limit, scores, |library| {
                    if let Some(tenths) = come.next() {
                        library.push(Entry { tenths: *tenths, key });
                        key += 1;
                    }
                    if let Some(index) = go.next().filter(|_| !library.is_empty()) {
                        gone.insert(library.swap_remove(index.index(library.len())).key);
                    }
                });
                assert_no_repeats(&shown);
                let stayed = library.iter().filter(|it| !gone.contains(&it.key));
                prop_assert!(stayed.clone().all(|it| shown.contains(it)), "{:?}", shown);
            }
        }

        #[test]
        fn scores_that_change_between_pages_repeat_nothing_and_skip_nothing(
            library in entries(),
            limit in 1_usize..20,
            changes in proptest::collection::vec((any::<prop::sample::Index>(), -5_i16..5), 0..200),
        ) {
            let mut changes = changes.chunks(5);
            let shown = pages(library.clone(), limit, Scores::Relative, |library| {
                for (index, tenths) in changes.next().unwrap_or_default() {
                    let at = index.index(library.len());
                    library[at].tenths = *tenths;
                }
            });
            assert_no_repeats(&shown);
            prop_assert_eq!(shown.len(), library.len());
        }
    }

    #[test]
    fn a_position_remembers_a_bounded_number_of_entries() {
        let library: Vec<Entry> = (0..2 * SHOWN_MOST as u64).map(|key| Entry { tenths: 0, key }).collect();
        let first = cut(library.clone(), None, SHOWN_MOST + 10, Scores::Relative);
        let end = first.end.expect("a page with entries ends somewhere");
        assert_eq!((end.shown().len(), Position::seen(Some(&end))), (SHOWN_MOST, SHOWN_MOST + 10));
        let second = cut(library, Some(&end), 1, Scores::Relative);
        assert_eq!(second.entries[0].key, SHOWN_MOST as u64 + 10, "then score and key decide");
        assert_eq!(end.clone().with_shown(vec![0; SHOWN_MOST + 1]), None);
        assert_eq!(Position { seen: u64::MAX, ..end }.with_shown(Vec::new()), None);
    }
}
