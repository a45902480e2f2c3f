//! Nearest-neighbour search for a query of several vectors.

use crate::terms::{Collection, KeySet, QueryVectors};
use crate::vectors::{Ask, EngineError, Hit, Hits, Vectors};

/// Returns the best `k` live vectors. Candidates are the nearest neighbours of each query vector.
pub(super) async fn search(
    vectors: &Vectors,
    at: Collection,
    query: &QueryVectors,
    ask: &Ask,
) -> Result<Hits, EngineError> {
    let mut found = vectors.search(at, query.vectors(), ask).await?.into_iter();
    let nothing = Hits { hits: Vec::new(), complete: true, exact: true };
    let first = found.next().unwrap_or(nothing);
    if query.vectors().len() == 1 {
        return Ok(first);
    }
    let mut keys: KeySet = first.hits.iter().map(|hit| hit.key).collect();
    let mut exact = first.exact;
    for of_vector in found {
        keys.extend(of_vector.hits.iter().map(|hit| hit.key));
        exact &= of_vector.exact;
    }
    let scored = vectors.scores(at, &keys, query.vectors()).await?;
    let mut hits: Vec<Hit> =
        scored.iter().map(|it| Hit { key: it.key, score: query.score_of(&it.cosines) }).collect();
    Hit::sort(&mut hits);
    hits.truncate(ask.k);
    Ok(Hits { hits, complete: first.complete, exact })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terms::{Aggregation, Level, SpaceInfo, SpanKey, UnitVector, VideoNumber};
    use crate::vectors::builtin::{Builtin, Settings};
    use crate::vectors::{Batch, Put, VectorIndex};

    fn unit(values: &[f32]) -> UnitVector {
        UnitVector::from_raw(values).unwrap().0
    }

    #[tokio::test]
    async fn a_vector_near_one_of_many_query_vectors_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = crate::catalog::open(&crate::catalog::embedded_url(folder.path())).await.unwrap();
        let spaces = vec![SpaceInfo { key: 1, id: "a".to_owned(), dim: 3 }];
        let index = folder.path().join("index");
        let engine = Builtin::open(index, catalog.clone(), &spaces, Settings::default()).await.unwrap();
        let at = Collection { space: 1, level: Level::Clip };
        let put = |key, values: &[f32]| {
            let (key, video) = (SpanKey::new(key), VideoNumber::new(1));
            Put { at, key, video, unit: unit(values) }
        };
        let near = (0..200_u64).map(|key| {
            let angle = key as f32 * 0.01;
            put(key, &[angle.cos(), angle.sin(), 0.01])
        });
        let put = near.chain([put(777, &[0.0, 0.1, 1.0])]).collect();
        engine.apply(Batch { put, ..Batch::default() }).await.unwrap();
        let vectors = Vectors::over(std::sync::Arc::new(engine), catalog, Vec::new()).await.unwrap();
        let queries = vec![unit(&[1.0, 0.0, 0.0]), unit(&[0.9, 0.4, 0.0]), unit(&[0.0, 0.1, 1.0])];
        for (aggregation, is_found) in [(Aggregation::Max, true), (Aggregation::Coverage, false)] {
            let query = QueryVectors::new(queries.clone(), aggregation).unwrap();
            let ask = Ask { k: 5, only: None, exact: false };
            let hits = search(&vectors, at, &query, &ask).await.unwrap().hits;
            assert_eq!(hits.len(), 5);
            assert_eq!(hits.iter().any(|hit| hit.key == SpanKey::new(777)), is_found, "{hits:?}");
            let ask = Ask { k: 300, only: None, exact: true };
            let all = search(&vectors, at, &query, &ask).await.unwrap();
            assert_eq!((all.hits.len(), all.complete, all.exact), (201, true, true));
            assert!(all.hits.windows(2).all(|pair| pair[0].score >= pair[1].score));
        }
    }
}
