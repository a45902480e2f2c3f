//! `/v1/keys`: API keys.

use std::sync::Arc;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::error::ApiError;
use super::extract::{self, Id, Json};
use super::instant as rfc3339;
use super::names::ScopeName;
use super::search::FilterForms;
use crate::access::KeyToken;
use crate::app::{App, Authorized};
use crate::catalog::{ApiKey, KeyLimits, NewApiKey, Scope, VideoFilter, instant};

/// Routes of `/v1/keys`.
pub(super) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list, add)).routes(routes!(revoke))
}

/// Limits of a key. A missing limit is none.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = ApiKeyLimits)]
struct Limits {
    /// Number of requests per minute, in each server process; at least 1. Null: no limit.
    #[schema(minimum = 1)]
    requests_per_minute: Option<u32>,
    /// Number of searches at once, in each server process; at least 1. Null: no limit.
    #[schema(minimum = 1)]
    searches_at_once: Option<u32>,
    /// Bytes of all videos that the key added. Null: no limit.
    stored_bytes: Option<u64>,
    /// Seconds of all videos that the key added. Null: no limit.
    stored_seconds: Option<u64>,
}

/// A key to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewApiKey)]
struct NewKey {
    /// A name for people, 1 to 200 characters, not only white space.
    #[schema(min_length = 1, max_length = 200, pattern = r"^[^\x00]*[^\s\x00][^\x00]*$")]
    name: String,
    /// Rights, at least one. `admin` includes the others.
    #[schema(value_type = Vec<ScopeName>, min_items = 1)]
    scopes: Vec<Scope>,
    /// A filter on metadata, tags and folders. The key reaches only the videos that match, such as
    /// `{"field": "metadata.team", "eq": "a"}`; null: all. Not with the scope `admin`.
    #[schema(value_type = Option<FilterForms>)]
    only: Option<Value>,
    /// End of its validity: an RFC 3339 date or instant; null: it does not expire.
    expires_at: Option<String>,
    /// Limits of the key.
    #[serde(default, deserialize_with = "extract::object")]
    limits: Limits,
}

/// An API key without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
struct KeyOut {
    /// The key's id, a uuid v7. It is the public half of the key.
    id: Uuid,
    /// The name for people.
    name: String,
    /// Its rights.
    #[schema(value_type = Vec<ScopeName>)]
    scopes: Vec<Scope>,
    /// The filter of the videos that the key reaches; null: all.
    #[schema(value_type = Option<FilterForms>)]
    only: Option<Value>,
    /// Limits of the key.
    limits: Limits,
    /// Time of its making (RFC 3339).
    created_at: String,
    /// End of its validity (RFC 3339). Null: it does not expire.
    expires_at: Option<String>,
    /// Time of the last use (RFC 3339), to a minute. Null: never used.
    last_used_at: Option<String>,
    /// Time of its revocation (RFC 3339). Null: not revoked.
    revoked_at: Option<String>,
}

impl From<ApiKey> for KeyOut {
    fn from(key: ApiKey) -> KeyOut {
        let unsigned = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok());
        KeyOut {
            id: key.id,
            name: key.name,
            scopes: key.scopes,
            only: key.only.map(|only| only.to_json().clone()),
            limits: Limits {
                requests_per_minute: key.limits.requests_per_minute,
                searches_at_once: key.limits.searches_at_once,
                stored_bytes: unsigned(key.limits.stored_bytes),
                stored_seconds: unsigned(key.limits.stored_seconds),
            },
            created_at: rfc3339(key.created_at_ms),
            expires_at: key.expires_at_ms.map(rfc3339),
            last_used_at: key.last_used_at_ms.map(rfc3339),
            revoked_at: key.revoked_at_ms.map(rfc3339),
        }
    }
}

/// A new key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AddedApiKey)]
struct AddedKey {
    /// The key itself. It is shown only this once.
    key: String,
    #[serde(flatten)]
    about: KeyOut,
}

/// All keys, oldest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKeyList)]
struct KeyList {
    /// The keys.
    items: Vec<KeyOut>,
}

/// Lists the API keys, revoked ones too.
#[utoipa::path(get, path = "/v1/keys", operation_id = "listApiKeys", tag = "access",
    responses((status = 200, body = KeyList)))]
async fn list(app: Authorized) -> Result<axum::Json<KeyList>, ApiError> {
    let keys = app.catalog.keys().await?;
    Ok(axum::Json(KeyList { items: keys.into_iter().map(KeyOut::from).collect() }))
}

/// Makes an API key. From then on every request needs a key.
#[utoipa::path(post, path = "/v1/keys", operation_id = "addApiKey", tag = "access", request_body = NewKey,
    responses((status = 201, body = AddedKey)))]
async fn add(
    app: Authorized,
    Json(body): Json<NewKey>,
) -> Result<(StatusCode, axum::Json<AddedKey>), ApiError> {
    let token = KeyToken::random();
    let key = app.catalog.add_key(token.id(), token.hash(), body.checked()?).await?;
    app.gate.forget();
    let added = AddedKey { key: token.to_string(), about: key.into() };
    Ok((StatusCode::CREATED, axum::Json(added)))
}

/// Revokes an API key, within a second on every server.
#[utoipa::path(delete, path = "/v1/keys/{id}", operation_id = "revokeApiKey", tag = "access",
    params(("id" = Uuid, Path, description = "The key's id")), responses((status = 200, body = KeyOut)))]
async fn revoke(app: Authorized, Id(id): Id) -> Result<axum::Json<KeyOut>, ApiError> {
    let key = app.catalog.revoke_key(id).await?;
    app.gate.forget();
    Ok(axum::Json(key.ok_or_else(|| ApiError::no_such("key", id))?.into()))
}

impl NewKey {
    fn checked(self) -> Result<NewApiKey, ApiError> {
        let only = self.only.as_ref().map(VideoFilter::parse).transpose();
        let only =
            only.map_err(|error| ApiError::invalid(format!("/only{}", error.pointer), error.detail))?;
        let expires_at_ms = self.expires_at.as_deref().map(|text| {
            instant::parse(text)
                .ok_or_else(|| ApiError::invalid("/expires_at", "must be an RFC 3339 date or instant"))
        });
        let (bytes, seconds) = (self.limits.stored_bytes, self.limits.stored_seconds);
        for (limit, pointer) in [(bytes, "/limits/stored_bytes"), (seconds, "/limits/stored_seconds")] {
            if limit.is_some_and(|limit| i64::try_from(limit).is_err()) {
                return Err(ApiError::invalid(pointer, format!("must be at most {}", i64::MAX)));
            }
        }
        let key = NewApiKey {
            name: self.name,
            scopes: self.scopes,
            only: only.map(Arc::new),
            limits: self.limits.into(),
            expires_at_ms: expires_at_ms.transpose()?,
        };
        key.check().map_err(|wrong| ApiError::invalid(wrong.field, wrong.detail))?;
        Ok(key)
    }
}

impl From<Limits> for KeyLimits {
    fn from(limits: Limits) -> KeyLimits {
        let signed = |value: Option<u64>| value.map(|value| i64::try_from(value).unwrap_or(i64::MAX));
        KeyLimits {
            requests_per_minute: limits.requests_per_minute,
            searches_at_once: limits.searches_at_once,
            stored_bytes: signed(limits.stored_bytes),
            stored_seconds: signed(limits.stored_seconds),
        }
    }
}
