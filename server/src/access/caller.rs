//! The sender of a request, with what it may do.

use std::sync::Arc;

use uuid::Uuid;

use crate::catalog::{ApiKey, Owner, Scope, Visibility};

/// The sender of a request. Every handler that reads or changes the library takes one.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The API key; `None` for the server's own key, and on a server without keys.
    key: Option<Arc<ApiKey>>,
    scopes: Vec<Scope>,
    visibility: Visibility,
}

impl Caller {
    /// A caller who may do everything: the holder of the server's own key, or anybody on a server without keys.
    pub fn unlimited() -> Caller {
        Caller { key: None, scopes: vec![Scope::Admin], visibility: Visibility::All }
    }

    /// The holder of a key.
    pub fn of_key(key: Arc<ApiKey>) -> Caller {
        let visibility = key.only.clone().map_or(Visibility::All, Visibility::Matching);
        Caller { scopes: key.scopes.clone(), visibility, key: Some(key) }
    }

    /// The same caller, who may only read.
    pub fn reading(self) -> Caller {
        Caller { scopes: vec![Scope::Read], ..self }
    }

    /// Whether the caller has this scope. `admin` includes the others.
    pub fn may(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope) || self.scopes.contains(&Scope::Admin)
    }

    /// The videos that the caller may see and change.
    pub fn visibility(&self) -> &Visibility {
        &self.visibility
    }

    /// The webhooks and alerts that the caller sees and changes: its own, or all with the scope `admin`.
    pub fn owner(&self) -> Owner {
        match self.key_id() {
            Some(key) if !self.may(Scope::Admin) => Owner::Key(key),
            _ => Owner::Anybody,
        }
    }

    /// The API key; `None` for the server's own key, and on a server without keys.
    pub fn key(&self) -> Option<&Arc<ApiKey>> {
        self.key.as_ref()
    }

    /// The id of the API key.
    pub fn key_id(&self) -> Option<Uuid> {
        self.key.as_ref().map(|key| key.id)
    }
}
