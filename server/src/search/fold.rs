//! Folds hits that show the same moment of a video into one entry.

use std::collections::{BTreeSet, HashMap};

use uuid::Uuid;

use super::types::{Match, Source};
use crate::catalog::Span;
use crate::terms::{Level, SpanKey};

/// Largest intersection over union of two entries.
const MOST_SHARED: f64 = 0.5;
/// Largest number of overlapping hits that an entry shows, and of near duplicates. An answer stays small, however many clips overlap.
const MOST_SHOWN: usize = 20;

/// Folds a ranking, best first. An entry has the place and score of its best hit, and the others inside it.
///
/// A hit belongs to an entry of its video
/// - if it shares more than half of the union with the entry's best hit or with its moment,
/// - if it is a clip around the entry's moment, or the first moment inside the entry's clip.
///
/// It is compared with these two only: a chain of overlaps does not join distant hits. Later hits do not change how
/// earlier ones are folded, so a longer ranking has the same entries in the same order.
pub(super) fn fold(ranking: Vec<Match>) -> Vec<Match> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut of_video: HashMap<Uuid, Index> = HashMap::new();
    for found in ranking {
        let index = of_video.entry(found.span.span.video).or_default();
        let near = index.near(&found.span.span);
        let at = add(&mut entries, &near, found);
        index.insert(at, &entries[at]);
    }
    entries.into_iter().map(|entry| entry.best).collect()
}

/// Adds a hit to the entry that shows the same, of those in `near`, or as an entry of its own. Returns the entry's place.
fn add(entries: &mut Vec<Entry>, near: &BTreeSet<usize>, found: Match) -> usize {
    let span = &found.span.span;
    let overlapped = near.iter().filter(|at| entries[**at].overlaps(span)).count();
    match closest(entries, near, span) {
        // A moment that overlaps two entries can't lead one of them: the two would show the same.
        Some(at) => {
            entries[at].add(found, overlapped < 2);
            at
        }
        None => {
            entries.push(Entry::new(found));
            entries.len() - 1
        }
    }
}

/// Of the entries that show what a hit shows, the one that it overlaps most.
fn closest(entries: &[Entry], near: &BTreeSet<usize>, found: &Span) -> Option<usize> {
    let shows = near.iter().copied().filter(|at| entries[*at].has(found));
    shows.max_by(|one, other| {
        let shared = |at: usize| entries[at].times().map(|it| it.iou(Times::of(found))).fold(0.0, f64::max);
        // Of equal ones the best: the first.
        shared(*one).total_cmp(&shared(*other)).then(other.cmp(one))
    })
}

/// Finds the entries of a video near a hit. Comparing each hit with all entries takes minutes for the hits of long videos.
#[derive(Default)]
struct Index {
    /// Spans that hits are compared with, by the class of their length, their start and their entry.
    spans: BTreeSet<(u32, i64, usize)>,
    /// Middles of the entries' moments.
    moments: BTreeSet<(i64, usize)>,
}

impl Index {
    fn insert(&mut self, at: usize, entry: &Entry) {
        self.spans.extend(entry.times().map(|it| (it.class(), it.start_ms, at)));
        self.moments.extend(entry.moment.map(|it| (it.middle(), at)));
    }

    /// The entries with a span around the middle of the hit, and those with their moment inside it. A span that shares more
    /// than half of the union with the hit contains the hit's middle.
    fn near(&self, found: &Span) -> BTreeSet<usize> {
        let found = Times::of(found);
        let middle = found.middle();
        let mut near = BTreeSet::new();
        // A class is left by a jump to the next one that has spans.
        let mut class = self.spans.first().map(|it| it.0);
        while let Some(this) = class {
            let longest = 1_i64.checked_shl(this + 1).unwrap_or(i64::MAX);
            let around = (this, middle.saturating_sub(longest), 0)..=(this, middle, usize::MAX);
            near.extend(self.spans.range(around).map(|it| it.2));
            class = self.spans.range((this + 1, i64::MIN, 0)..).next().map(|it| it.0);
        }
        let inside = (found.start_ms, 0)..(found.end_ms.max(found.start_ms), 0);
        near.extend(self.moments.range(inside).map(|it| it.1));
        near
    }
}

/// The times of a span, in milliseconds, end exclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Times {
    start_ms: i64,
    end_ms: i64,
}

impl Times {
    fn of(span: &Span) -> Times {
        Times { start_ms: span.start_ms, end_ms: span.end_ms }
    }

    fn middle(self) -> i64 {
        self.start_ms.midpoint(self.end_ms)
    }

    /// The binary logarithm of the length, rounded down.
    fn class(self) -> u32 {
        self.end_ms.saturating_sub(self.start_ms).max(1).ilog2()
    }

    fn contains_middle_of(self, other: Times) -> bool {
        self.start_ms <= other.middle() && other.middle() < self.end_ms
    }

    /// Intersection over union with another span of the same video, 0 to 1.
    fn iou(self, other: Times) -> f64 {
        let shared = self.end_ms.min(other.end_ms).saturating_sub(self.start_ms.max(other.start_ms)).max(0);
        let union = self.end_ms.max(other.end_ms).saturating_sub(self.start_ms.min(other.start_ms)).max(1);
        shared as f64 / union as f64
    }
}

/// An entry as an answer shows it: led by its moment, with its best folded hits.
pub(super) fn shown(entry: Match) -> Match {
    let mut entry = lead(entry);
    entry.folded.truncate(MOST_SHOWN);
    entry.duplicates.truncate(MOST_SHOWN);
    let duplicates = std::mem::take(&mut entry.duplicates).into_iter();
    entry.duplicates = duplicates.map(|it| Match { folded: Vec::new(), ..lead(it) }).collect();
    entry
}

/// Lets the moment lead its entry: it shows the event, and the clip around it much else. A clip that subtitles or text on screen
/// speak for leads its moments, because the words belong to the whole clip. Place, rank, score and strength stay.
fn lead(entry: Match) -> Match {
    let is_spoken = entry.evidence.iter().any(|it| matches!(it.source, Source::Spoken | Source::Screen));
    let Some(at) = place_of_moment(&entry).filter(|_| !is_spoken) else { return entry };
    let (rank, score, weak, similarity) = (entry.rank, entry.score, entry.weak, entry.similarity);
    let mut clip = Match { similarity: None, ..entry };
    let mut folded = std::mem::take(&mut clip.folded);
    let duplicates = std::mem::take(&mut clip.duplicates);
    let moment = std::mem::replace(&mut folded[at], clip);
    // The clip scores highest, so it comes first among the others.
    folded[..=at].rotate_right(1);
    Match { rank, score, weak, similarity, folded, duplicates, moment: None, ..moment }
}

/// The place of an entry's moment among the hits inside it.
fn place_of_moment(entry: &Match) -> Option<usize> {
    let moment = entry.moment?;
    entry.folded.iter().position(|it| it.span.span.key == moment)
}

/// An entry while the ranking is folded.
struct Entry {
    best: Match,
    /// Its moment: the best hit, or one inside.
    moment: Option<Times>,
    /// The places of the hits inside.
    places: HashMap<SpanKey, usize>,
}

impl Entry {
    /// An entry of a hit, which may have hits inside already.
    fn new(best: Match) -> Entry {
        let inside = place_of_moment(&best).map(|at| &best.folded[at]);
        let moment = if is_moment(&best) { Some(&best) } else { inside };
        let moment = moment.map(|it| Times::of(&it.span.span));
        let places = best.folded.iter().enumerate().map(|(at, it)| (it.span.span.key, at)).collect();
        Entry { best, moment, places }
    }

    /// The spans that hits are compared with: the best hit's and the moment's.
    fn times(&self) -> impl Iterator<Item = Times> {
        std::iter::once(Times::of(&self.best.span.span)).chain(self.moment)
    }

    fn overlaps(&self, found: &Span) -> bool {
        self.times().any(|it| it.iou(Times::of(found)) > MOST_SHARED)
    }

    /// Whether a hit of the same video shows what this entry shows.
    fn has(&self, found: &Span) -> bool {
        let (best, times) = (Times::of(&self.best.span.span), Times::of(found));
        let is_inside = match (found.level, self.moment) {
            (Level::Clip, Some(moment)) => times.contains_middle_of(moment),
            (Level::Moment, None) => best.contains_middle_of(times),
            _ => false,
        };
        is_inside || self.overlaps(found)
    }

    fn add(&mut self, mut found: Match, may_lead: bool) {
        if may_lead && is_moment(&found) && self.moment.is_none() {
            self.best.moment = Some(found.span.span.key);
            self.moment = Some(Times::of(&found.span.span));
        }
        let inside = std::mem::take(&mut found.folded);
        for it in std::iter::once(found).chain(inside) {
            self.put_inside(it);
        }
    }

    /// Puts a hit inside. Each span is there once, with the evidence of all sources.
    fn put_inside(&mut self, found: Match) {
        let key = found.span.span.key;
        let folded = &mut self.best.folded;
        match self.places.get(&key) {
            _ if self.best.span.span.key == key => {}
            Some(at) if folded[*at].evidence.len() < found.evidence.len() => folded[*at] = found,
            Some(_) => {}
            None => {
                self.places.insert(key, folded.len());
                folded.push(found);
            }
        }
    }
}

/// Takes a hit of another source with the hits inside it into an entry.
pub(super) fn take_inside(entry: &mut Match, found: Match) {
    let moment = if is_moment(&found) { Some(found.span.span.key) } else { found.moment };
    entry.moment = entry.moment.or(moment);
    let mut whole = Entry::new(std::mem::replace(entry, Match::new(0.0, found.span.clone())));
    whole.add(found, false);
    *entry = whole.best;
}

fn is_moment(found: &Match) -> bool {
    found.span.span.level == Level::Moment
}

#[cfg(test)]
mod tests {
    use Level::{Clip, Moment};
    use proptest::prelude::*;

    use super::super::fuse::tests::found;
    use super::super::types::Evidence;
    use super::*;

    /// A hit by its level, start and end in milliseconds.
    type Hit = (Level, i64, i64);

    fn ranking(hits: &[Hit]) -> Vec<Match> {
        let hit = |(place, (level, start_ms, end_ms)): (usize, &Hit)| {
            let mut found = found(1, *start_ms, *end_ms, 0.9 - place as f32 * 0.01);
            found.span.span.level = *level;
            found.span.span.key = SpanKey::new(place as u64);
            found
        };
        hits.iter().enumerate().map(hit).collect()
    }

    fn times(found: &Match) -> (i64, i64) {
        (found.span.span.start_ms, found.span.span.end_ms)
    }

    /// `hits` of one video, best first. `expected`: each entry's span and those inside it.
    #[track_caller]
    fn check(hits: &[Hit], expected: &[&[(i64, i64)]]) {
        let entries = fold(ranking(hits)).into_iter().map(lead);
        let got: Vec<Vec<(i64, i64)>> = entries
            .map(|entry| [vec![times(&entry)], entry.folded.iter().map(times).collect()].concat())
            .collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn hits_that_share_over_half_of_their_union_are_one_entry() {
        check(&[(Clip, 0, 3000), (Clip, 0, 2900), (Clip, 0, 1500)], &[&[(0, 3000), (0, 2900)], &[(0, 1500)]]);
        check(&[(Clip, 0, 3000), (Clip, 3000, 6000)], &[&[(0, 3000)], &[(3000, 6000)]]);
        check(&[(Moment, 0, 2000), (Moment, 500, 2400)], &[&[(0, 2000), (500, 2400)]]);
    }

    #[test]
    fn a_chain_of_overlaps_does_not_join_its_ends() {
        check(
            &[(Clip, 0, 3000), (Clip, 900, 3900), (Clip, 1800, 4800)],
            &[&[(0, 3000), (900, 3900)], &[(1800, 4800)]],
        );
    }

    #[test]
    fn a_clip_and_the_moments_inside_it_are_an_entry_a_moment() {
        let (clip, first, second) = ((Clip, 0, 10_000), (Moment, 1000, 3000), (Moment, 6000, 8000));
        let expected: &[&[(i64, i64)]] = &[&[(1000, 3000), (0, 10_000)], &[(6000, 8000)]];
        check(&[clip, first, second], expected);
        check(&[first, clip, second], expected);
        check(&[first, second, clip], expected);
        check(&[clip], &[&[(0, 10_000)]]);
    }

    #[test]
    fn a_moment_across_a_cut_belongs_to_the_clip_of_its_middle() {
        check(
            &[(Clip, 0, 4000), (Clip, 4000, 9000), (Moment, 3500, 5500)],
            &[&[(0, 4000)], &[(3500, 5500), (4000, 9000)]],
        );
    }

    #[test]
    fn a_clip_with_spoken_evidence_leads_its_moments() {
        let mut hits = ranking(&[(Clip, 0, 10_000), (Moment, 1000, 3000)]);
        hits[0].evidence =
            vec![Evidence { source: Source::Spoken, score: 7.0, z: None, rank: 1, excerpt: None }];
        let entries: Vec<Match> = fold(hits).into_iter().map(lead).collect();
        assert_eq!((times(&entries[0]), times(&entries[0].folded[0])), ((0, 10_000), (1000, 3000)));
    }

    #[test]
    fn the_moment_that_leads_keeps_the_place_of_its_clip() {
        let mut hits = ranking(&[(Clip, 0, 10_000), (Clip, 0, 9000), (Moment, 1000, 3000)]);
        hits[0].rank = 4;
        let entry = lead(fold(hits).remove(0));
        assert_eq!((entry.rank, entry.score, times(&entry)), (4, 0.9, (1000, 3000)));
        assert_eq!(entry.folded.iter().map(times).collect::<Vec<_>>(), [(0, 10_000), (0, 9000)]);
    }

    #[test]
    fn a_span_that_two_sources_found_is_inside_once() {
        let evidence = |source| Evidence { source, score: 0.5, z: None, rank: 1, excerpt: None };
        let both = [evidence(Source::Visual), evidence(Source::Spoken)].to_vec();
        let mut hits = ranking(&[(Clip, 0, 3000), (Clip, 0, 2900), (Clip, 100, 3000)]);
        let mut again = Match { evidence: both, ..hits[1].clone() };
        again.folded = vec![hits[0].clone()];
        hits[2].folded = vec![again];
        let entry = fold(hits).remove(0);
        let inside: Vec<(i64, usize)> =
            entry.folded.iter().map(|it| (it.span.span.end_ms, it.evidence.len())).collect();
        assert_eq!(inside, [(2900, 2), (3000, 0)]);
    }

    #[test]
    fn an_entry_shows_its_best_folded_hits() {
        let hits: Vec<Hit> = (0..30).map(|at| (Clip, at, 10_000)).collect();
        let entry = shown(fold(ranking(&hits)).remove(0));
        let expected: Vec<(i64, i64)> = (1..21).map(|at| (at, 10_000)).collect();
        assert_eq!(entry.folded.iter().map(times).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn hits_of_two_videos_are_two_entries() {
        assert_eq!(fold(vec![found(1, 0, 2000, 0.5), found(2, 0, 2000, 0.4)]).len(), 2);
    }

    /// Folds by comparing each hit with every entry. All hits are of one video.
    fn fold_slowly(ranking: Vec<Match>) -> Vec<Match> {
        let mut entries = Vec::new();
        for found in ranking {
            let all = (0..entries.len()).collect();
            add(&mut entries, &all, found);
        }
        entries.into_iter().map(|entry| entry.best).collect()
    }

    fn hits() -> impl Strategy<Value = Vec<Hit>> {
        let level = prop_oneof![Just(Clip), Just(Moment)];
        let hit = (level, 0_i64..40, 1_i64..20);
        let hits = proptest::collection::vec(hit, 0..40);
        hits.prop_map(|hits| {
            hits.into_iter().map(|(level, start, long)| (level, start * 500, (start + long) * 500)).collect()
        })
    }

    proptest! {
        #[test]
        fn every_hit_is_in_one_entry_and_a_longer_ranking_has_the_same_entries(
            hits in hits(),
            fetched in any::<prop::sample::Index>(),
        ) {
            let all = fold(ranking(&hits));
            prop_assert_eq!(all.iter().map(|entry| 1 + entry.folded.len()).sum::<usize>(), hits.len());
            prop_assert!(all.is_sorted_by(|one, other| one.score >= other.score));
            let leading: Vec<Match> = all.iter().cloned().map(lead).collect();
            for (at, one) in leading.iter().enumerate() {
                let apart = |other: &Match| Times::of(&one.span.span).iou(Times::of(&other.span.span)) <= MOST_SHARED;
                prop_assert!(leading[at + 1..].iter().all(apart), "{:?}", leading.iter().map(times).collect::<Vec<_>>());
            }
            prop_assert_eq!(&all, &fold_slowly(ranking(&hits)));
            let some = fold(ranking(&hits[..fetched.index(hits.len() + 1)]));
            let places = |entries: &[Match]| entries.iter().map(|it| (times(it), it.score.to_bits())).collect::<Vec<_>>();
            prop_assert_eq!(&places(&all)[..some.len()], &places(&some)[..]);
        }
    }
}
