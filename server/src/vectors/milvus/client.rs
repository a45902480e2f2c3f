//! Calls to Milvus: each with a time limit, each failure sorted by who must act.

use std::collections::HashMap;
use std::error::Error as _;
use std::time::Duration;

use milvus::v2::error::{Error, ServerError};
use milvus::v2::prelude::{
    ClientV2, CollectionSchema, ConsistencyLevel, CreateCollectionRequest, CreateIndexRequest, DeleteRequest,
    DropCollectionRequest, FieldData, GetServerVersionRequest, HasCollectionRequest, IndexParam, IndexType,
    InsertRequest, LoadCollectionRequest, MetricType, QueryRequest, QueryResults, SearchRequest,
    SearchResults, UpsertRequest,
};

use super::address;
use crate::vectors::EngineError;

/// The oldest Milvus with keys in order and replaced rows.
const OLDEST: [u32; 2] = [2, 4];
/// The crate tries to connect during [`CALL`], and its own message says so.
const CONNECT: Duration = Duration::from_secs(11);
/// Most time for a call.
pub(super) const CALL: Duration = Duration::from_secs(10);
/// Most time to create, index, load or drop a collection.
const BUILD: Duration = Duration::from_secs(60);
/// Most rows of one answer; a limit of Milvus.
pub(super) const ROWS: usize = 16_384;
/// The crate refuses answers of more than 4 MiB, so requests ask for less.
pub(super) const ANSWER_BYTES: usize = 3 << 20;

/// The vector field of every collection.
pub(super) const UNIT: &str = "unit";

/// A connection to a Milvus server. It reconnects by itself.
pub(super) struct Client(ClientV2);

/// The outcome of a call of the crate.
type Called<T> = Result<T, Error>;

impl Client {
    /// Connects; waits for a server that is starting.
    pub(super) async fn connect(address: &str) -> Result<Client, EngineError> {
        let settings = address::settings(address, CALL)?;
        let client = within(CONNECT, ClientV2::new(&settings)).await.map_err(failure)?;
        let request = GetServerVersionRequest::builder().build().map_err(failure)?;
        let answer = within(CALL, client.server_version(request)).await.map_err(failure)?;
        check_version(answer.version())?;
        Ok(Client(client))
    }

    async fn has(&self, name: &str) -> Result<bool, EngineError> {
        let request = HasCollectionRequest::builder().collection_name(name).build().map_err(failure)?;
        within(CALL, self.0.has_collection(request)).await.map(|it| it.exists()).map_err(failure)
    }

    /// Creates a collection and its index, and loads it. A second call changes nothing.
    pub(super) async fn create(&self, name: &str, schema: CollectionSchema) -> Result<(), EngineError> {
        if !self.has(name).await? {
            let request = CreateCollectionRequest::builder()
                .collection_name(name)
                .schema(schema)
                .consistency_level(ConsistencyLevel::Strong)
                .build()
                .map_err(failure)?;
            let created = within(BUILD, self.0.create_collection(request)).await;
            // Another server may have created it meanwhile.
            if let Err(error) = created
                && !self.has(name).await?
            {
                return Err(failure(error));
            }
        }
        self.index(name).await.map_err(failure)?;
        self.load(name, BUILD).await.map_err(failure)
    }

    /// Creates the index of a collection, unless it has one. Does not wait, as the collection is empty, and as Milvus
    /// Lite lacks the call that the crate waits with.
    async fn index(&self, name: &str) -> Called<()> {
        let request = CreateIndexRequest::builder().collection_name(name).index_param(graph()).sync(false);
        match within(BUILD, self.0.create_index(request.build()?)).await {
            Err(Error::Server(error)) if has_index(&error) => Ok(()),
            done => done,
        }
    }

    /// Loads a collection into memory: only loaded ones answer.
    async fn load(&self, name: &str, limit: Duration) -> Called<()> {
        let request = LoadCollectionRequest::builder().collection_name(name).build()?;
        within(limit, self.0.load_collection(request)).await
    }

    /// Loads a collection that is not loaded. Milvus Lite loads none at its start, and an operator may release one. Makes
    /// the index if a server died before it did.
    async fn load_again(&self, name: &str) -> Called<()> {
        match self.load(name, CALL).await {
            Err(Error::Server(error)) if lacks_index(&error) => {
                self.index(name).await?;
                self.load(name, CALL).await
            }
            done => done,
        }
    }

    /// Drops a collection. A second call changes nothing.
    pub(super) async fn drop(&self, name: &str) -> Result<(), EngineError> {
        let request = DropCollectionRequest::builder().collection_name(name).build().map_err(failure)?;
        match within(BUILD, self.0.drop_collection(request)).await {
            Err(error) if is_missing(&error) => Ok(()),
            done => done.map(drop).map_err(failure),
        }
    }

    /// Stores rows or replaces the rows of the same keys; `None` if the collection does not exist.
    pub(super) async fn upsert(
        &self,
        name: &str,
        columns: Vec<FieldData>,
    ) -> Result<Option<()>, EngineError> {
        let rows =
            InsertRequest::builder().collection_name(name).columns(columns).build().map_err(failure)?;
        let request = UpsertRequest::builder().insert(rows).build().map_err(failure)?;
        let call = || within(CALL, self.0.upsert(request.clone()));
        Ok(self.answered(name, call).await?.map(drop))
    }

    /// Removes the rows that match; nothing if the collection does not exist.
    pub(super) async fn delete(&self, name: &str, filter: String) -> Result<(), EngineError> {
        let request =
            DeleteRequest::builder().collection_name(name).filter(filter).build().map_err(failure)?;
        let call = || within(CALL, self.0.delete(request.clone()));
        self.answered(name, call).await.map(drop)
    }

    /// The rows that match; `None` if the collection does not exist. With a limit, those with the lowest keys, in order.
    pub(super) async fn query(
        &self,
        name: &str,
        filter: &str,
        fields: &[&str],
        limit: Option<usize>,
    ) -> Result<Option<QueryResults>, EngineError> {
        let mut request = QueryRequest::builder()
            .collection_name(name)
            .filter(filter)
            .output_fields(fields.iter().copied())
            .consistency_level(ConsistencyLevel::Strong);
        if let Some(limit) = limit {
            // Without these a segment returns any rows up to the limit, not the first ones.
            let in_order =
                ["iterator", "reduce_stop_for_best"].map(|name| (name.to_owned(), "true".to_owned()));
            request = request.limit(limit as i64).extra_params(HashMap::from(in_order));
        }
        let request = request.build().map_err(failure)?;
        let call = || within(CALL, self.0.query(request.clone()));
        Ok(self.answered(name, call).await?.map(|answer| answer.results().clone()))
    }

    /// The number of rows that match; 0 if the collection does not exist.
    pub(super) async fn count(&self, name: &str, filter: &str) -> Result<u64, EngineError> {
        const COUNT: &str = "count(*)";
        let Some(found) = self.query(name, filter, &[COUNT], None).await? else { return Ok(0) };
        match found.get_output_field(COUNT) {
            Some(FieldData::Int64 { values, .. }) => Ok(values.first().copied().unwrap_or(0).max(0) as u64),
            _ => Err(odd("a count without a number")),
        }
    }

    /// The nearest rows; `None` if the collection does not exist.
    pub(super) async fn search(
        &self,
        name: &str,
        request: SearchRequest,
    ) -> Result<Option<SearchResults>, EngineError> {
        let call = || within(CALL, self.0.search(request.clone()));
        Ok(self.answered(name, call).await?.map(|answer| answer.results().clone()))
    }

    /// Calls once, and again after loading if the collection is not loaded. `None` if it does not exist.
    async fn answered<T, F: Future<Output = Called<T>>>(
        &self,
        name: &str,
        call: impl Fn() -> F,
    ) -> Result<Option<T>, EngineError> {
        let mut answer = call().await;
        if answer.as_ref().is_err_and(is_unloaded) {
            answer = match self.load_again(name).await {
                Ok(()) => call().await,
                Err(error) => Err(error),
            };
        }
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(failure(error)),
        }
    }
}

/// The index of the vectors. They are of length 1, so the inner product is the cosine.
fn graph() -> IndexParam {
    let settings = [("M", "16"), ("efConstruction", "200")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    IndexParam::new()
        .field_name(UNIT)
        .index_type(IndexType::Hnsw)
        .metric_type(MetricType::Ip)
        .extra_params(HashMap::from(settings))
}

/// Refuses an old server. Versions of another form, as Milvus Lite's, pass.
fn check_version(version: &str) -> Result<(), EngineError> {
    let numbers = version.trim_start_matches('v').split('.').map(str::parse::<u32>);
    let found: Vec<u32> = numbers.take(2).map_while(Result::ok).collect();
    if found.len() == 2 && found[..] < OLDEST[..] {
        let [major, minor] = OLDEST;
        return Err(EngineError::Unusable(format!(
            "Milvus {version} is too old; use {major}.{minor} or later"
        )));
    }
    Ok(())
}

/// An answer that no Milvus gives.
pub(super) fn odd(what: &str) -> EngineError {
    EngineError::Failed(format!("Milvus answered with {what}").into())
}

async fn within<T>(limit: Duration, call: impl Future<Output = Called<T>>) -> Called<T> {
    match tokio::time::timeout(limit, call).await {
        Ok(done) => done,
        Err(_) => Err(Error::Timeout(format!("no answer within {} seconds", limit.as_secs()))),
    }
}

fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Server(error) if error.code() == 100 || error.legacy_code() == 4)
}

fn is_unloaded(error: &Error) -> bool {
    matches!(error, Error::Server(error) if error.code() == 101)
}

fn lacks_index(error: &ServerError) -> bool {
    error.code() == 700
}

/// Milvus accepts an equal index again, and Milvus Lite refuses it.
fn has_index(error: &ServerError) -> bool {
    error.legacy_code() == 35
}

/// Sorts an error by who must act: nobody, as it is temporary; the operator; or a developer.
fn failure(error: Error) -> EngineError {
    match &error {
        Error::RetryExhausted { source, .. } => failure((**source).clone()),
        Error::Timeout(_) | Error::Cancelled(_) => EngineError::Away(Box::new(error)),
        Error::Grpc(status) => match i32::from(status.code()) {
            // Cancelled, deadline exceeded, unavailable.
            1 | 4 | 14 => EngineError::Away(Box::new(error)),
            7 | 16 => {
                EngineError::Unusable(format!("Milvus refuses the name or password: {}", status.message()))
            }
            12 => EngineError::Unusable(format!("this Milvus is too old or too new: {}", status.message())),
            // A status with a cause was made here, of a broken connection. Others come from the server.
            _ if status.source().is_some() => EngineError::Away(Box::new(error)),
            _ => EngineError::Failed(Box::new(error)),
        },
        Error::Server(server) => refusal(server).unwrap_or_else(|| EngineError::Failed(Box::new(error))),
        _ => EngineError::Failed(Box::new(error)),
    }
}

/// What a known code of a server means; see `pkg/util/merr/errors.go` of Milvus.
fn refusal(error: &ServerError) -> Option<EngineError> {
    let unusable = |what: &str| Some(EngineError::Unusable(format!("{what}: {}", error.reason())));
    // Code 1 is "service not ready" in Milvus, and any failure in Milvus Lite.
    if error.code() == 1 && error.reason().contains("service not ready") {
        return Some(EngineError::Away(Box::new(error.clone())));
    }
    match error.code() {
        // Unavailable, too many requests, rate limit, late clocks, not yet loaded, recovering, no node for it.
        2 | 4 | 8 | 11 | 12 | 101 | 103 | 106 | 202 | 401 | 503 | 901..=905 => {
            Some(EngineError::Away(Box::new(error.clone())))
        }
        3 | 7 | 9 => unusable("Milvus is full"),
        102 => unusable("Milvus takes no more collections"),
        800 => unusable("Milvus lacks this database"),
        1400 | 1401 | 1800 => unusable("Milvus refuses the name or password"),
        10 => unusable("this Milvus lacks a function"),
        _ => None,
    }
}

/// A column of numbers. Empty if there are no rows, as an answer without rows may lack columns.
pub(super) fn numbers<'a>(found: &'a QueryResults, name: &str) -> Result<&'a [i64], EngineError> {
    match found.get_output_field(name) {
        Some(FieldData::Int64 { values, .. }) => Ok(values),
        None if found.is_empty() => Ok(&[]),
        _ => Err(odd("rows without a column")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_server_is_refused() {
        for (version, may) in [
            ("v2.3.21", false),
            ("1.1.1", false),
            ("v2.4.0-rc.1", true),
            ("2.6.1", true),
            ("v3.0", true),
            ("milvus_lite-3.2.2", true),
        ] {
            assert_eq!(check_version(version).is_ok(), may, "{version}");
        }
    }
}
