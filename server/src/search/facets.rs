//! Counts the best hits of a search by their metadata, or by their video, its day, folder or tags.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};
use uuid::Uuid;

use super::error::SearchError;
use super::types::{Facet, FacetCounts, FacetValue, Facets, Match};
use crate::app::Authorized;
use crate::catalog::{Labels, instant};

/// Number of best hits that are counted.
pub(super) const DEPTH: usize = 1000;
/// Largest number of facets of a search.
pub const MOST_FACETS: usize = 10;
/// Largest number of values of a facet. The rest is summed up.
const MOST_VALUES: usize = 100;
/// Longest text that is listed as a value, in bytes. A name is shorter; the rest is summed up.
const LONGEST: usize = 256;

/// Folders and tags by video.
type Labelled = HashMap<Uuid, Labels>;

/// Counts the best entries of a ranking. `complete`: whether the ranking has all of the search's.
pub(super) async fn of_ranking(
    app: &Authorized,
    facets: &[Facet],
    ranking: &[Match],
    complete: bool,
) -> Result<Facets, SearchError> {
    let labelled = match facets.iter().any(|facet| matches!(facet, Facet::Folder | Facet::Tag)) {
        true => labels(app, &ranking[..ranking.len().min(DEPTH)]).await?,
        false => Labelled::new(),
    };
    Ok(count(facets, ranking, &labelled, complete))
}

/// The labels of the hits' videos, which are asked for by one span each.
async fn labels(app: &Authorized, ranking: &[Match]) -> Result<Labelled, SearchError> {
    let spans: HashMap<Uuid, _> = ranking.iter().map(|it| (it.span.span.video, it.span.span.key)).collect();
    Ok(app.view().labels_of(&spans.into_values().collect::<Vec<_>>()).await?)
}

fn count(facets: &[Facet], ranking: &[Match], labelled: &Labelled, complete: bool) -> Facets {
    let counted = &ranking[..ranking.len().min(DEPTH)];
    Facets {
        counted: counted.len(),
        complete: complete && ranking.len() <= DEPTH,
        facets: facets.iter().map(|facet| of_facet(facet, counted, labelled)).collect(),
    }
}

/// A value as it is compared: numbers as 64-bit floats, as in filters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Counted<'a> {
    Boolean(bool),
    /// The bits of the number, so ordered that they sort as the number does.
    Number(u64),
    Text(&'a str),
    /// The key of a folder or a tag.
    Label(Vec<u8>),
    Video(Uuid),
    Day(String),
}

#[derive(Default)]
struct Tally<'a> {
    hits: usize,
    videos: HashSet<Uuid>,
    shown: Value,
    title: Option<&'a str>,
}

fn of_facet(facet: &Facet, ranking: &[Match], labelled: &Labelled) -> FacetCounts {
    let mut tallies: HashMap<Counted, Tally> = HashMap::new();
    let mut missing = 0;
    for found in ranking {
        let values = values(facet, found, labelled);
        missing += usize::from(values.is_empty());
        for (counted, shown) in values {
            let tally = tallies.entry(counted).or_insert_with(|| Tally { shown, ..Tally::default() });
            tally.hits += 1;
            tally.videos.insert(found.span.span.video);
            tally.title = matches!(facet, Facet::Video).then_some(&found.span.title);
        }
    }
    let mut sorted: Vec<(Counted, Tally)> = tallies.into_iter().collect();
    sorted.sort_by(|(one, of_one), (other, of_other)| {
        let by_count = of_other.hits.cmp(&of_one.hits).then(of_other.videos.len().cmp(&of_one.videos.len()));
        by_count.then(one.cmp(other))
    });
    let (short, long): (Vec<_>, Vec<_>) = sorted.into_iter().partition(|(counted, _)| counted.is_short());
    let further = short.iter().skip(MOST_VALUES).chain(&long);
    let (other_values, other_hits) = (further.clone().count(), further.map(|(_, tally)| tally.hits).sum());
    let values = short.into_iter().take(MOST_VALUES).map(|(_, tally)| tally.into_value()).collect();
    FacetCounts { facet: facet.clone(), values, other_values, other_hits, missing }
}

/// The values of a hit, each once.
fn values<'a>(facet: &Facet, found: &'a Match, labelled: &Labelled) -> HashMap<Counted<'a>, Value> {
    let span = &found.span.span;
    match facet {
        Facet::Video => HashMap::from([(Counted::Video(span.video), json!(span.video))]),
        Facet::Day => {
            let day = found.span.recorded_at_ms.map(instant::day);
            day.map(|day| (Counted::Day(day.clone()), Value::String(day))).into_iter().collect()
        }
        Facet::Folder => {
            let folder = labelled.get(&span.video).map(|labels| &labels.folder);
            let above =
                folder.into_iter().flat_map(|it| (1..=it.depth()).map(move |depth| it.ancestor(depth)));
            above.map(|it| (Counted::Label(it.key().to_vec()), json!(it.path()))).collect()
        }
        Facet::Tag => {
            let tags = labelled.get(&span.video).map(|labels| labels.tags.iter());
            let tags = tags.into_iter().flatten();
            tags.map(|tag| (Counted::Label(tag.key().to_vec()), json!(tag.text()))).collect()
        }
        Facet::Field(field) => {
            let values = field.values(&found.span.video_metadata, &span.metadata).into_iter();
            values.filter_map(|value| Some((Counted::of(value)?, value.clone()))).collect()
        }
    }
}

impl Counted<'_> {
    fn of(value: &Value) -> Option<Counted<'_>> {
        match value {
            Value::Bool(value) => Some(Counted::Boolean(*value)),
            Value::String(text) => Some(Counted::Text(text)),
            Value::Number(number) => number.as_f64().map(|number| Counted::Number(ordered_bits(number))),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn is_short(&self) -> bool {
        !matches!(self, Counted::Text(text) if text.len() > LONGEST)
    }
}

/// Bits that sort as the numbers do. Adding 0 turns -0 into 0.
fn ordered_bits(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

impl Tally<'_> {
    fn into_value(self) -> FacetValue {
        FacetValue {
            value: self.shown,
            title: self.title.map(str::to_owned),
            hits: self.hits,
            videos: self.videos.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fuse::tests::found;
    use super::*;
    use crate::catalog::{Folder, MetadataField, Tag};

    /// A hit by its video, the video's metadata and the clip's.
    type Hit = (u128, Value, Value);

    fn ranking(hits: &[Hit]) -> Vec<Match> {
        let hit = |(place, (video, of_video, of_clip)): (usize, &Hit)| {
            let mut found = found(*video, place as i64, place as i64 + 1, 0.5);
            (found.span.video_metadata, found.span.span.metadata) = (of_video.clone(), of_clip.clone());
            found.span.recorded_at_ms = (*video > 1).then_some(86_400_000 * *video as i64 + 5);
            found
        };
        hits.iter().enumerate().map(hit).collect()
    }

    fn field(name: &str) -> Facet {
        Facet::Field(MetadataField::parse(name).unwrap())
    }

    /// `expected`: value, hits and videos of each, and the number of hits without a value.
    #[track_caller]
    fn check(facet: &Facet, hits: &[Hit], expected: (Value, usize)) {
        check_labelled(facet, hits, &Labelled::new(), expected);
    }

    #[track_caller]
    fn check_labelled(facet: &Facet, hits: &[Hit], labelled: &Labelled, expected: (Value, usize)) {
        let counts = of_facet(facet, &ranking(hits), labelled);
        let values: Vec<Value> =
            counts.values.iter().map(|it| json!([it.value, it.hits, it.videos])).collect();
        assert_eq!((Value::Array(values), counts.missing), expected);
    }

    #[test]
    fn a_clips_field_hides_its_videos() {
        let hits = [
            (1, json!({"team": "USA"}), json!({})),
            (1, json!({"team": "USA"}), json!({"team": "ROU"})),
            (2, json!({"team": "ROU"}), json!({"team": null})),
            (2, json!({}), json!({"team": {"name": "ROU"}})),
            (3, json!({"team": "ROU"}), json!({})),
        ];
        check(&field("metadata.team"), &hits, (json!([["ROU", 2, 2], ["USA", 1, 1]]), 2));
    }

    #[test]
    fn each_value_of_an_array_counts_once_for_a_hit() {
        let hits = [
            (1, json!({"a": {"b": [2, "2", 2.0, true, null, [3], {"c": 1}]}}), json!({})),
            (2, json!({"a": {"b": "2"}}), json!({})),
            (3, json!({"a": [{"b": 4}]}), json!({})),
        ];
        let counts = of_facet(&field("metadata.a.b"), &ranking(&hits), &Labelled::new());
        let shown: Vec<_> = counts.values.iter().map(|it| (it.value.as_f64(), it.hits)).collect();
        assert_eq!(shown, [(None, 2), (None, 1), (Some(2.0), 1)], "{counts:?}");
        assert_eq!(counts.missing, 1);
    }

    #[test]
    fn numbers_come_in_their_order() {
        let hits: Vec<Hit> =
            [3.5, -1.0, 0.0, -20.0].map(|number| (1, json!({"n": number}), json!({}))).to_vec();
        let expected = json!([[-20.0, 1, 1], [-1.0, 1, 1], [0.0, 1, 1], [3.5, 1, 1]]);
        check(&field("metadata.n"), &hits, (expected, 0));
    }

    #[test]
    fn hits_are_counted_by_video_and_by_day() {
        let hits = [1, 2, 2, 3].map(|video| (video, json!({}), json!({})));
        let id = Uuid::from_u128;
        let expected = json!([[id(2), 2, 1], [id(1), 1, 1], [id(3), 1, 1]]);
        check(&Facet::Video, &hits, (expected, 0));
        check(&Facet::Day, &hits, (json!([["1970-01-03", 2, 1], ["1970-01-04", 1, 1]]), 1));
    }

    #[test]
    fn hits_are_counted_by_folder_and_by_tag_without_case() {
        let of = |folder: &str, tags: &[&str]| Labels {
            folder: Folder::parse(folder).unwrap(),
            tags: tags.iter().map(|tag| Tag::parse(tag).unwrap()).collect(),
        };
        let labelled = [of("Season/Finals", &["vault", "best"]), of("season", &["VAULT"]), of("", &[])];
        let labelled = (1..).map(Uuid::from_u128).zip(labelled).collect();
        let hits = [1, 1, 2, 3, 4].map(|video| (video, json!({}), json!({})));
        let folders = json!([["Season", 3, 2], ["Season/Finals", 2, 1]]);
        check_labelled(&Facet::Folder, &hits, &labelled, (folders, 2));
        check_labelled(&Facet::Tag, &hits, &labelled, (json!([["vault", 3, 2], ["best", 2, 1]]), 2));
    }

    #[test]
    fn rare_and_long_values_are_summed_up() {
        let of = |text: String| (1, json!({"t": text}), json!({}));
        let mut hits: Vec<Hit> = (0..MOST_VALUES + 7).map(|at| of(format!("{at:04}"))).collect();
        hits.extend([of("x".repeat(LONGEST + 1)), of("x".repeat(LONGEST + 1))]);
        let counts = of_facet(&field("metadata.t"), &ranking(&hits), &Labelled::new());
        assert_eq!((counts.values.len(), counts.other_values, counts.other_hits), (MOST_VALUES, 8, 9));
    }

    #[test]
    fn the_best_hits_are_counted() {
        let hits = ranking(&vec![(1, json!({}), json!({})); DEPTH + 1]);
        let of = |hits: &[Match], complete| {
            let facets = count(&[Facet::Video], hits, &Labelled::new(), complete);
            (facets.counted, facets.complete, facets.facets[0].values[0].hits)
        };
        assert_eq!(of(&hits, true), (DEPTH, false, DEPTH));
        assert_eq!(of(&hits[1..], true), (DEPTH, true, DEPTH));
        assert_eq!(of(&hits[..2], false), (2, false, 2));
    }
}
