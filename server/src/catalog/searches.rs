//! The query log: storing searches with their hits, listing them, and forgetting old ones.
//!
//! A caller sees the searches of its own key, or everybody's, and of their hits those whose videos it sees.

use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use super::database::{Row, Sql, Tx, Value, values};
use super::error::CatalogError;
use super::store::Catalog;
use super::tables::stored::{level, level_name, named, parse_json, to_json};
use super::types::*;
use super::view::View;
use crate::terms::SearchKind;

/// Searches that one transaction forgets: SQLite's other writers wait for it.
const FORGOTTEN_AT_ONCE: u32 = 1000;

/// Columns of `searches s`.
const COLUMNS: &str = "s.id, s.at_ms, s.key, s.key_name, s.kind, s.space, s.text, s.query_hash, \
    s.clip, s.video, s.start_ms, s.end_ms, s.uploaded, s.examples, s.filter, s.filtered, s.hits, s.exhausted, s.live, \
    s.decode_ms, s.encode_ms, s.search_ms, s.catalog_ms, s.total_ms";

/// Columns of `search_hits h`.
pub(super) const HIT_COLUMNS: &str = "h.search, h.rank, h.span, h.video AS hit_video, h.level, h.start_ms AS hit_start_ms, \
    h.end_ms AS hit_end_ms, h.inside, h.score, h.visual_score, h.visual_rank, h.visual_z, h.spoken_score, \
    h.spoken_rank, h.spoken_z, h.screen_score, h.screen_rank, h.screen_z, h.full_video_score, h.full_video_rank, h.full_video_z";

impl Catalog {
    /// Stores pages of answers, the first pages of their searches before later ones. A later page whose search is not in the
    /// log is left out. A page that comes twice changes nothing.
    pub async fn log_searches(&self, pages: &[NewSearchPage]) -> Result<(), CatalogError> {
        let mut tx = self.database.begin().await?;
        insert_searches(&mut tx, pages).await?;
        let known = known(&mut tx, pages).await?;
        let pages: Vec<&NewSearchPage> = pages.iter().filter(|page| known.contains(&page.search)).collect();
        let hits = pages.iter().flat_map(|page| page.hits.iter().map(|hit| hit_values(page.search, hit)));
        let head = "INSERT INTO search_hits (search, rank, span, video, level, start_ms, end_ms, inside, score, \
                    visual_score, visual_rank, visual_z, spoken_score, spoken_rank, spoken_z, screen_score, \
                    screen_rank, screen_z, full_video_score, full_video_rank, full_video_z)";
        tx.insert(head, hits.collect(), "ON CONFLICT (search, rank, span) DO NOTHING").await?;
        for page in pages.iter().filter(|page| page.first.is_none()) {
            let sql = "UPDATE searches SET hits = $2, exhausted = $3 WHERE id = $1 AND hits <= $2";
            tx.execute(sql, values![page.search, page.shown, page.exhausted]).await?;
        }
        tx.commit().await
    }

    /// Forgets the searches older than this many milliseconds, with their hits and feedback. Returns their number.
    pub async fn forget_searches(&self, older_than_ms: i64) -> Result<u64, CatalogError> {
        let mut forgotten = 0;
        loop {
            let mut tx = self.database.begin().await?;
            let oldest = tx.now_ms().await?.saturating_sub(older_than_ms);
            let sql = "SELECT id FROM searches WHERE at_ms < $1 ORDER BY at_ms, id LIMIT $2";
            let rows = tx.rows(sql, values![oldest, FORGOTTEN_AT_ONCE]).await?;
            let ids: Vec<Uuid> = rows.iter().map(|row| row.get("id")).collect::<Result<_, _>>()?;
            if ids.is_empty() {
                return Ok(forgotten);
            }
            for (table, column) in
                [("search_hits", "search"), ("search_feedback", "search"), ("searches", "id")]
            {
                let sql = format!("DELETE FROM {table} WHERE {column} IN ({})", placeholders(ids.len()));
                tx.execute(Sql::Built(sql), ids.iter().map(|id| Value::from(*id)).collect()).await?;
            }
            tx.commit().await?;
            forgotten += ids.len() as u64;
        }
    }
}

impl View<'_> {
    /// Searches, newest first, each with its hits of rank 1 to `most_rank` that were not shown inside others.
    pub async fn searches(
        &self,
        asked: &SearchesAsked,
        most_rank: i64,
    ) -> Result<Vec<LoggedSearch>, CatalogError> {
        let Conditions { texts, mut values } = Conditions::of(asked);
        values.push(asked.limit.into());
        let sql = format!(
            "SELECT {COLUMNS} FROM searches s WHERE {} ORDER BY s.id DESC LIMIT ${}",
            texts.join(" AND "),
            values.len()
        );
        let rows = self.database().rows(Sql::Built(sql), values).await?;
        let searches = rows.iter().map(from_row).collect::<Result<Vec<_>, _>>()?;
        self.with_hits(searches, Some(most_rank)).await
    }

    /// One search with all its hits. `None` if the caller sees no such search.
    pub async fn search(&self, id: Uuid, of: SearchesOf) -> Result<Option<LoggedSearch>, CatalogError> {
        let sql = format!("SELECT {COLUMNS} FROM searches s WHERE s.id = $1");
        let row = self.database().row(Sql::Built(sql), values![id]).await?;
        let found = row.as_ref().map(from_row).transpose()?;
        let seen = found.filter(|search| is_seen(of, search.facts.key));
        Ok(self.with_hits(seen.into_iter().collect(), None).await?.pop())
    }

    /// Adds the hits that the caller sees. `most_rank`: only hits up to this rank that were not shown inside others.
    async fn with_hits(
        &self,
        mut searches: Vec<LoggedSearch>,
        most_rank: Option<i64>,
    ) -> Result<Vec<LoggedSearch>, CatalogError> {
        if searches.is_empty() {
            return Ok(searches);
        }
        let mut values: Vec<Value> = searches.iter().map(|search| search.id.into()).collect();
        let ids = placeholders(values.len());
        let leading = match most_rank {
            Some(most_rank) => {
                values.push(most_rank.into());
                format!("AND h.rank <= ${} AND NOT h.inside", values.len())
            }
            None => String::new(),
        };
        let sql = format!(
            "SELECT {HIT_COLUMNS} FROM search_hits h JOIN visible_videos v ON v.id = h.video \
             WHERE h.search IN ({ids}) {leading} ORDER BY h.search, h.rank, h.inside, h.start_ms, h.span"
        );
        let rows = self.rows(Sql::Built(sql), values).await?;
        let feedback = self.feedback_on(&searches).await?;
        let mut hits: HashMap<Uuid, Vec<JudgedHit>> = HashMap::new();
        for row in &rows {
            let (search, hit) = (row.get("search")?, hit(row)?);
            let feedback = feedback.get(&(search, hit.span)).cloned().unwrap_or_default();
            hits.entry(search).or_default().push(JudgedHit { hit, feedback });
        }
        for search in &mut searches {
            search.hits = hits.remove(&search.id).unwrap_or_default();
        }
        Ok(searches)
    }
}

/// Whether a caller may see the searches of a key.
pub(super) fn is_seen(of: SearchesOf, key: Option<Uuid>) -> bool {
    match of {
        SearchesOf::Everybody => true,
        SearchesOf::Key(own) => key == Some(own),
    }
}

/// Conditions on `searches s`, and their values.
#[derive(Default)]
pub(super) struct Conditions {
    pub(super) texts: Vec<String>,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    fn of(asked: &SearchesAsked) -> Conditions {
        let mut all = Conditions::default();
        all.add("s.id <", asked.before.unwrap_or(Uuid::max()));
        all.narrow(asked);
        all
    }

    /// The conditions on the searches of all pages.
    pub(super) fn without_position(asked: &SearchesAsked) -> Conditions {
        let mut all = Conditions::default();
        all.narrow(asked);
        all
    }

    fn narrow(&mut self, asked: &SearchesAsked) {
        if let SearchesOf::Key(own) = asked.of {
            self.add("s.key =", own);
        }
        asked.key.into_iter().for_each(|key| self.add("s.key =", key));
        asked.since_ms.into_iter().for_each(|since| self.add("s.at_ms >=", since));
        asked.until_ms.into_iter().for_each(|until| self.add("s.at_ms <", until));
        asked.kind.into_iter().for_each(|kind| self.add("s.kind =", kind.name()));
        asked.space.iter().for_each(|space| self.add("s.space =", space.as_str()));
        match asked.without_results {
            Some(true) => self.add("s.hits =", 0_i64),
            Some(false) => self.add("s.hits >", 0_i64),
            None => {}
        }
    }

    fn add(&mut self, test: &str, value: impl Into<Value>) {
        self.values.push(value.into());
        self.texts.push(format!("{test} ${}", self.values.len()));
    }
}

/// `$1, $2, $3` for three values.
pub(super) fn placeholders(count: usize) -> String {
    (1..=count).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
}

async fn insert_searches(tx: &mut Tx, pages: &[NewSearchPage]) -> Result<(), CatalogError> {
    let now = tx.now_ms().await?;
    let firsts = pages.iter().filter_map(|page| page.first.as_ref().map(|first| (page, first)));
    let rows = firsts.map(|(page, first)| search_values(page, first, now)).collect::<Result<Vec<_>, _>>()?;
    let head = "INSERT INTO searches (id, at_ms, key, key_name, kind, space, text, query_hash, clip, video, start_ms, \
                end_ms, uploaded, examples, filter, filtered, hits, exhausted, live, decode_ms, encode_ms, search_ms, \
                catalog_ms, total_ms)";
    tx.insert(head, rows, "ON CONFLICT (id) DO NOTHING").await?;
    Ok(())
}

fn search_values(page: &NewSearchPage, first: &NewSearch, now_ms: i64) -> Result<Vec<Value>, CatalogError> {
    let NewSearch { answered, search } = first;
    let age = i64::try_from(answered.elapsed().as_millis()).unwrap_or(i64::MAX);
    let SearchFacts { query, times, .. } = search;
    Ok(values![
        page.search,
        now_ms.saturating_sub(age),
        search.key,
        search.key_name.clone(),
        search.kind.name(),
        search.space.as_str(),
        query.text.clone(),
        query.hash.as_str(),
        query.clip,
        query.video,
        query.start_ms,
        query.end_ms,
        query.uploaded,
        query.examples.as_ref().map(to_json).transpose()?,
        query.filter.as_ref().map(to_json).transpose()?,
        query.filtered,
        page.shown,
        page.exhausted,
        search.live,
        times.decode,
        times.encode,
        times.search,
        times.catalog,
        times.total,
    ])
}

fn hit_values(search: Uuid, hit: &SearchHit) -> Vec<Value> {
    let mut row = values![
        search,
        hit.rank,
        hit.span,
        hit.video,
        level_name(hit.level),
        hit.start_ms,
        hit.end_ms,
        hit.inside,
        hit.score,
    ];
    for source in [hit.visual, hit.spoken, hit.screen, hit.full_video] {
        row.extend(values![
            Value::Real(source.map(|it| it.score)),
            source.map(|it| it.rank),
            Value::Real(source.and_then(|it| it.z)),
        ]);
    }
    row
}

/// The searches of these pages that the log holds.
async fn known(tx: &mut Tx, pages: &[NewSearchPage]) -> Result<HashSet<Uuid>, CatalogError> {
    let ids: HashSet<Uuid> = pages.iter().map(|page| page.search).collect();
    if ids.is_empty() {
        return Ok(ids);
    }
    let sql = format!("SELECT id FROM searches WHERE id IN ({})", placeholders(ids.len()));
    let rows = tx.rows(Sql::Built(sql), ids.into_iter().map(Value::from).collect()).await?;
    rows.iter().map(|row| row.get("id")).collect()
}

fn from_row(row: &Row) -> Result<LoggedSearch, CatalogError> {
    let facts = SearchFacts {
        key: row.get("key")?,
        key_name: row.get("key_name")?,
        kind: kind(row)?,
        space: row.get("space")?,
        query: query(row)?,
        live: row.get("live")?,
        times: SearchTimes {
            decode: row.get("decode_ms")?,
            encode: row.get("encode_ms")?,
            search: row.get("search_ms")?,
            catalog: row.get("catalog_ms")?,
            total: row.get("total_ms")?,
        },
    };
    Ok(LoggedSearch {
        id: row.get("id")?,
        at_ms: row.get("at_ms")?,
        facts,
        shown: row.get("hits")?,
        exhausted: row.get("exhausted")?,
        hits: Vec::new(),
    })
}

pub(super) fn kind(row: &Row) -> Result<SearchKind, CatalogError> {
    named(&row.get::<String>("kind")?, &SearchKind::ALL.map(|kind| (kind, kind.name())))
}

/// The query of `searches s`.
pub(super) fn query(row: &Row) -> Result<LoggedQuery, CatalogError> {
    Ok(LoggedQuery {
        text: row.get("text")?,
        hash: row.get("query_hash")?,
        clip: row.get("clip")?,
        video: row.get("video")?,
        start_ms: row.get("start_ms")?,
        end_ms: row.get("end_ms")?,
        uploaded: row.get("uploaded")?,
        examples: row.get::<Option<String>>("examples")?.as_deref().map(parse_json).transpose()?,
        filter: row.get::<Option<String>>("filter")?.as_deref().map(parse_json).transpose()?,
        filtered: row.get("filtered")?,
    })
}

/// The hit in a row with [`HIT_COLUMNS`].
pub(super) fn hit(row: &Row) -> Result<SearchHit, CatalogError> {
    let source = |name: &str| -> Result<Option<SourceScore>, CatalogError> {
        let score: Option<f64> = row.get(&format!("{name}_score"))?;
        let rank: Option<i64> = row.get(&format!("{name}_rank"))?;
        let z = row.get(&format!("{name}_z"))?;
        Ok(score.zip(rank).map(|(score, rank)| SourceScore { score, rank, z }))
    };
    Ok(SearchHit {
        rank: row.get("rank")?,
        span: row.get("span")?,
        video: row.get("hit_video")?,
        level: level(row)?,
        start_ms: row.get("hit_start_ms")?,
        end_ms: row.get("hit_end_ms")?,
        inside: row.get("inside")?,
        score: row.get("score")?,
        visual: source("visual")?,
        spoken: source("spoken")?,
        screen: source("screen")?,
        full_video: source("full_video")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(change: impl Fn(&mut SearchesAsked), expected: &str) {
        let mut asked = SearchesAsked {
            of: SearchesOf::Everybody,
            before: None,
            limit: 1,
            since_ms: None,
            until_ms: None,
            kind: None,
            space: None,
            key: None,
            without_results: None,
        };
        change(&mut asked);
        let found = Conditions::of(&asked);
        assert_eq!(found.texts.join(" AND "), expected);
        assert_eq!(found.values.len(), found.texts.len());
    }

    #[test]
    fn conditions_number_their_values() {
        check(|_| (), "s.id < $1");
        check(|asked| asked.of = SearchesOf::Key(Uuid::nil()), "s.id < $1 AND s.key = $2");
        check(
            |asked| (asked.since_ms, asked.kind) = (Some(1), Some(SearchKind::Clip)),
            "s.id < $1 AND s.at_ms >= $2 AND s.kind = $3",
        );
        check(|asked| asked.without_results = Some(false), "s.id < $1 AND s.hits > $2");
    }
}
