//! Who a token belongs to.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use thalweg::{Request, Status};

use crate::hex::hex;
use crate::store::{Store, User, now_s};

pub(crate) const VALID_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Of one user; with one more, the oldest ends.
const SESSIONS_MAX: u32 = 16;

/// All sessions, as every call asks for one. Tokens are kept as their hashes, here and in the database: who reads that
/// has none.
pub(crate) struct Sessions {
    store: Arc<Store>,
    by_token: RwLock<HashMap<[u8; 32], (User, u64)>>,
}

impl Sessions {
    pub(crate) fn load(store: &Arc<Store>) -> Result<Self, rusqlite::Error> {
        let sessions = store.sessions()?.into_iter().map(|(token, user, ends_s)| (token, (user, ends_s)));
        Ok(Self { store: store.clone(), by_token: RwLock::new(sessions.collect()) })
    }

    /// A new session's token.
    pub(crate) async fn begin(&self, user: User) -> Result<String, Status> {
        let mut token = [0; 32];
        getrandom::fill(&mut token)
            .map_err(|error| Status::internal(format!("no random bytes for a token: {error}")))?;
        let token = hex(&token);
        let (hash, ends_s) = (hash(&token), now_s().cast_unsigned() + VALID_FOR.as_secs());
        let id = user.id;
        let ended = self.store.run(move |store| store.add_session(hash, id, ends_s, SESSIONS_MAX)).await?;
        let mut by_token = self.write();
        by_token.insert(hash, (user, ends_s));
        for hash in ended {
            by_token.remove(&hash);
        }
        Ok(token)
    }

    pub(crate) async fn end<T>(&self, request: &Request<T>) -> Result<(), Status> {
        let hash = hash(token(request)?);
        self.write().remove(&hash);
        self.store.run(move |store| store.remove_session(hash)).await
    }

    /// The interceptor of services that are for users alone: their handlers find out by [`caller`] who calls.
    pub(crate) fn authorize(&self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let user = match self.read().get(&hash(token(&request)?)) {
            Some((user, ends_s)) if *ends_s > now_s().cast_unsigned() => user.clone(),
            _ => return Err(Status::unauthenticated("the session is over; log in again")),
        };
        request.extensions_mut().insert(user);
        Ok(request)
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<[u8; 32], (User, u64)>> {
        self.by_token.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<[u8; 32], (User, u64)>> {
        self.by_token.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who makes a call that was authorized.
pub(crate) fn caller<T>(request: &Request<T>) -> Result<User, Status> {
    request.extensions().get().cloned().ok_or_else(|| Status::internal("nobody asked who calls"))
}

/// Of `authorization: Bearer TOKEN` (RFC 6750 §2.1).
fn token<T>(request: &Request<T>) -> Result<&str, Status> {
    let value = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
    let token = value.and_then(|value| value.split_once(' '));
    match token {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token),
        _ => Err(Status::unauthenticated(
            "the metadata `authorization: Bearer TOKEN` is missing; log in first",
        )),
    }
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}
