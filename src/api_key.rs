//! API keys: who asks, and what it may do. A key is 256 random bits; only its SHA-256 is stored. A client may hold several,
//! so that one can be replaced in the middle of a retry without changing who is asking.

use diesel::prelude::*;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::db::tables::{api_keys, clients, tenants};
use crate::db::{self, Db, Fault};
use crate::on_db;

/// Every scope that a key can be given. There is no default and no wildcard.
pub const SCOPES: &[(&str, &str)] = &[
    ("orders:read", "read the tenant's orders"),
    ("orders:write", "create, replace and cancel orders"),
    ("payments:read", "read payments"),
    ("payments:write", "record payments"),
    ("stock:read", "read stock and reservations"),
    ("stock:write", "set stock, reserve and release"),
    ("messages:read", "read messages to customers"),
    ("messages:write", "send messages to customers"),
    ("operations:read", "read the operations of every client of the tenant"),
    ("operations:manage", "retry and resolve operations (duty desk)"),
];

/// How a key begins, so that people and secret scanners recognise one.
const PREFIX: &str = "osk_";

/// The owner of a valid key.
#[derive(Clone, Debug)]
pub struct Principal {
    /// The company whose orders these are.
    pub tenant_id: String,
    /// The application that asks.
    pub client_id: String,
    scopes: Vec<String>,
}

impl Principal {
    #[cfg(test)]
    pub(crate) fn for_test(tenant_id: &str, client_id: &str) -> Principal {
        Principal { tenant_id: tenant_id.to_owned(), client_id: client_id.to_owned(), scopes: Vec::new() }
    }

    /// Whether the key was given `scope`.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|own| own == scope)
    }
}

/// Why a key cannot be issued or revoked as asked.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The scope does not exist.
    #[error("unknown scope '{0}'; known are {known}", known = scope_names())]
    UnknownScope(String),
    /// No scope was named.
    #[error("a key needs at least one scope; known are {known}", known = scope_names())]
    NoScope,
    /// The name of a tenant or client does not fit.
    #[error("'{0}' is not a name: 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit")]
    BadName(String),
    /// No such key, or it was revoked before.
    #[error("there is no valid key '{0}'; 'key list' shows them")]
    UnknownKey(String),
    /// The database failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

fn scope_names() -> String {
    SCOPES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// Makes a new key for a client, and the tenant and the client where they are missing. Returns the key: this is the only
/// moment at which it exists outside its owner.
///
/// # Errors
/// [`KeyError`] for an unknown scope, a bad name or a failing database; nothing is made then.
pub fn issue(db: &mut Db, tenant_id: &str, client_id: &str, scopes: &[&str]) -> Result<String, KeyError> {
    for name in [tenant_id, client_id] {
        if !is_name(name) {
            return Err(KeyError::BadName(name.to_owned()));
        }
    }
    if let Some(unknown) = scopes.iter().find(|scope| !SCOPES.iter().any(|(name, _)| name == *scope)) {
        return Err(KeyError::UnknownScope((*unknown).to_owned()));
    }
    if scopes.is_empty() {
        return Err(KeyError::NoScope);
    }
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret).map_err(|error| Fault::Bug(format!("no randomness: {error}")))?;
    let key = format!("{PREFIX}{}", hex::encode(secret));
    let key_hash = hash(&key);
    let key_row = (
        api_keys::key_hash.eq(&key_hash),
        api_keys::key_id.eq(&key_hash[..KEY_ID_LENGTH]),
        api_keys::tenant_id.eq(tenant_id),
        api_keys::client_id.eq(client_id),
        api_keys::scopes.eq(scopes.join(",")),
    );
    db.transaction(LOCK_WAIT, |db| {
        on_db!(&mut *db, conn => diesel::insert_into(tenants::table)
            .values(tenants::tenant_id.eq(tenant_id))
            .on_conflict_do_nothing()
            .execute(conn))?;
        on_db!(&mut *db, conn => diesel::insert_into(clients::table)
            .values((clients::tenant_id.eq(tenant_id), clients::client_id.eq(client_id)))
            .on_conflict_do_nothing()
            .execute(conn))?;
        on_db!(db, conn => diesel::insert_into(api_keys::table).values(key_row).execute(conn))?;
        Ok(())
    })?;
    Ok(key)
}

/// Hex digits of the hash that name a key in lists and for revoking.
const KEY_ID_LENGTH: usize = 16;

/// How long the administration of keys waits for a lock.
const LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(5);

fn is_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

fn hash(key: &str) -> String {
    hex::encode(Sha256::digest(key))
}

/// Finds the owner of `key`; nobody when it is unknown or revoked. Asked on every call, so that a revocation holds at once.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn authenticate(db: &mut Db, key: &str) -> Result<Option<Principal>, Fault> {
    let key_hash = hash(key);
    let found: Option<(String, String, String, String)> = on_db!(db, conn => api_keys::table
        .find(&key_hash)
        .filter(api_keys::revoked_at.is_null())
        .select((api_keys::key_hash, api_keys::tenant_id, api_keys::client_id, api_keys::scopes))
        .first(conn)
        .optional())?;
    // The index compared hashes of what was sent; this comparison decides, in constant time.
    Ok(found.filter(|(stored, ..)| bool::from(stored.as_bytes().ct_eq(key_hash.as_bytes()))).map(
        |(_, tenant_id, client_id, scopes)| Principal {
            tenant_id,
            client_id,
            scopes: scopes.split(',').map(str::to_owned).collect(),
        },
    ))
}

/// One key as an operator sees it; the key itself is not stored.
#[derive(Clone, Debug, Queryable)]
pub struct Listed {
    /// The name to revoke it by.
    pub key_id: String,
    /// Its tenant.
    pub tenant_id: String,
    /// Its client.
    pub client_id: String,
    /// Its scopes, separated by commas.
    pub scopes: String,
    /// When it was issued.
    pub created_at: db::Instant,
    /// When it was revoked, if it was.
    pub revoked_at: Option<db::Instant>,
}

/// All keys, revoked ones too, by tenant, client and age.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn list(db: &mut Db) -> Result<Vec<Listed>, Fault> {
    let keys = on_db!(db, conn => api_keys::table
        .order((api_keys::tenant_id, api_keys::client_id, api_keys::created_at))
        .select((
            api_keys::key_id,
            api_keys::tenant_id,
            api_keys::client_id,
            api_keys::scopes,
            api_keys::created_at,
            api_keys::revoked_at,
        ))
        .load::<Listed>(conn));
    Ok(keys?)
}

/// Revokes the key that `key_id` names. It holds for every call that begins afterwards, replays included.
///
/// # Errors
/// [`KeyError::UnknownKey`] when there is no valid key of that name.
pub fn revoke(db: &mut Db, key_id: &str) -> Result<(), KeyError> {
    let now = db.now()?;
    let revoked = on_db!(db, conn => diesel::update(api_keys::table
        .filter(api_keys::key_id.eq(key_id))
        .filter(api_keys::revoked_at.is_null()))
        .set(api_keys::revoked_at.eq(now))
        .execute(conn))
    .map_err(Fault::from)?;
    if revoked == 0 { Err(KeyError::UnknownKey(key_id.to_owned())) } else { Ok(()) }
}

/// Whether there is no tenant yet: the database is fresh.
///
/// # Errors
/// A [`Fault`] of the query.
pub fn nobody_yet(db: &mut Db) -> Result<bool, Fault> {
    let tenants: i64 = on_db!(db, conn => tenants::table.count().get_result(conn))?;
    Ok(tenants == 0)
}
