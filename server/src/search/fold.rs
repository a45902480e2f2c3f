//! Folds hits that show the same moment of a video into one entry.

use std::collections::HashMap;

use uuid::Uuid;

use super::types::{Match, Source};
use crate::catalog::Span;
use crate::terms::Level;

/// Largest intersection over union of two entries.
const MOST_SHARED: f64 = 0.5;

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
    let mut of_video: HashMap<Uuid, Vec<usize>> = HashMap::new();
    for found in ranking {
        let places = of_video.entry(found.span.span.video).or_default();
        let span = &found.span.span;
        let overlapped = places.iter().filter(|at| entries[**at].overlaps(span)).count();
        match closest(&entries, places, span) {
            // A moment that overlaps two entries can't lead one of them: the two would show the same.
            Some(at) => entries[at].add(found, overlapped < 2),
            None => {
                places.push(entries.len());
                entries.push(Entry { best: found });
            }
        }
    }
    entries.into_iter().map(|entry| entry.best).collect()
}

/// Of the entries that show what a hit shows, the one that it overlaps most.
fn closest(entries: &[Entry], places: &[usize], found: &Span) -> Option<usize> {
    let shows = places.iter().copied().filter(|at| entries[*at].has(found));
    shows.max_by(|one, other| {
        let shared = |at: usize| entries[at].spans().map(|it| iou(it, found)).fold(0.0, f64::max);
        // Of equal ones the best: the first.
        shared(*one).total_cmp(&shared(*other)).then(other.cmp(one))
    })
}

/// Lets the moment lead its entry: it shows the event, and the clip around it much else. A clip that subtitles speak for
/// leads its moments, because the words belong to the whole clip. Place, score and rank stay.
pub(super) fn lead(entry: Match) -> Match {
    let is_spoken = entry.evidence.iter().any(|it| it.source == Source::Spoken);
    let Some(at) = place_of_moment(&entry).filter(|_| !is_spoken) else { return entry };
    let (rank, score) = (entry.rank, entry.score);
    let mut clip = entry;
    let mut folded = std::mem::take(&mut clip.folded);
    let moment = std::mem::replace(&mut folded[at], clip);
    // The clip scores highest, so it comes first among the others.
    folded[..=at].rotate_right(1);
    Match { rank, score, folded, moment: None, ..moment }
}

/// The place of an entry's moment among the hits inside it.
fn place_of_moment(entry: &Match) -> Option<usize> {
    let moment = entry.moment?;
    entry.folded.iter().position(|it| it.span.span.key == moment)
}

/// An entry while the ranking is folded.
struct Entry {
    best: Match,
}

impl Entry {
    fn moment(&self) -> Option<&Span> {
        if is_moment(&self.best) {
            return Some(&self.best.span.span);
        }
        place_of_moment(&self.best).map(|at| &self.best.folded[at].span.span)
    }

    fn overlaps(&self, found: &Span) -> bool {
        self.spans().any(|it| iou(it, found) > MOST_SHARED)
    }

    /// The spans that hits are compared with: the best hit's and the moment's.
    fn spans(&self) -> impl Iterator<Item = &Span> {
        std::iter::once(&self.best.span.span).chain(self.moment())
    }

    /// Whether a hit of the same video shows what this entry shows.
    fn has(&self, found: &Span) -> bool {
        let (best, moment) = (&self.best.span.span, self.moment());
        let is_around = |moment: &Span| found.level == Level::Clip && is_inside(moment, found);
        let is_first_inside = moment.is_none() && found.level == Level::Moment && is_inside(found, best);
        is_first_inside || moment.is_some_and(is_around) || self.overlaps(found)
    }

    fn add(&mut self, mut found: Match, may_lead: bool) {
        if may_lead && is_moment(&found) && self.moment().is_none() {
            self.best.moment = Some(found.span.span.key);
        }
        let inside = std::mem::take(&mut found.folded);
        for it in std::iter::once(found).chain(inside) {
            put_inside(&mut self.best, it);
        }
    }
}

/// Puts a hit into an entry. Each span is there once, with the evidence of all sources.
pub(super) fn put_inside(entry: &mut Match, found: Match) {
    if entry.span.span.key == found.span.span.key {
        return;
    }
    match entry.folded.iter_mut().find(|it| it.span.span.key == found.span.span.key) {
        Some(known) if known.evidence.len() < found.evidence.len() => *known = found,
        Some(_) => {}
        None => entry.folded.push(found),
    }
}

fn is_moment(found: &Match) -> bool {
    found.span.span.level == Level::Moment
}

/// Intersection over union of two spans of one video, 0 to 1.
fn iou(one: &Span, other: &Span) -> f64 {
    let shared = one.end_ms.min(other.end_ms).saturating_sub(one.start_ms.max(other.start_ms)).max(0);
    let union = one.end_ms.max(other.end_ms).saturating_sub(one.start_ms.min(other.start_ms)).max(1);
    shared as f64 / union as f64
}

/// Whether the middle of a moment lies inside a clip.
fn is_inside(moment: &Span, clip: &Span) -> bool {
    let middle = moment.start_ms.midpoint(moment.end_ms);
    clip.start_ms <= middle && middle < clip.end_ms
}

#[cfg(test)]
mod tests {
    use Level::{Clip, Moment};
    use proptest::prelude::*;

    use super::super::fuse::tests::found;
    use super::super::types::Evidence;
    use super::*;
    use crate::terms::SpanKey;

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
        hits[0].evidence = vec![Evidence { source: Source::Spoken, score: 7.0, rank: 1, excerpt: None }];
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
        let evidence = |source| Evidence { source, score: 0.5, rank: 1, excerpt: None };
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
    fn hits_of_two_videos_are_two_entries() {
        assert_eq!(fold(vec![found(1, 0, 2000, 0.5), found(2, 0, 2000, 0.4)]).len(), 2);
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
                let apart = |other: &Match| iou(&one.span.span, &other.span.span) <= MOST_SHARED;
                prop_assert!(leading[at + 1..].iter().all(apart), "{:?}", leading.iter().map(times).collect::<Vec<_>>());
            }
            let some = fold(ranking(&hits[..fetched.index(hits.len() + 1)]));
            let places = |entries: &[Match]| entries.iter().map(|it| (times(it), it.score.to_bits())).collect::<Vec<_>>();
            prop_assert_eq!(&places(&all)[..some.len()], &places(&some)[..]);
        }
    }
}
