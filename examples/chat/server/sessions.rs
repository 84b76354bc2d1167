//! Maps tokens to users.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use thalweg::{Request, Status};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::hex::hex;
use crate::store::{Store, User, now_s};

pub(crate) const VALID_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Maximum number of sessions per user; one more ends the oldest.
const SESSIONS_MAX: u32 = 16;

/// All sessions, in memory because every call looks one up. Only hashes of tokens are kept, here and in the database.
/// So the database reveals no tokens, and neither does the time of a look-up.
pub(crate) struct Sessions {
    store: Arc<Store>,
    by_token: RwLock<HashMap<[u8; 32], Session>>,
}

struct Session {
    user: User,
    ends_s: u64,
    /// Dropped when the session ends early.
    alive: watch::Sender<()>,
}

/// The user who makes a call.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) user: User,
    ends_s: u64,
    alive: watch::Receiver<()>,
}

impl Caller {
    /// Returns when the session is over, so that long calls end with it.
    pub(crate) async fn expired(mut self) {
        let left = Duration::from_secs(self.ends_s.saturating_sub(now_s().cast_unsigned()));
        tokio::select! {
            () = sleep(left) => (),
            // Always an error, because nothing is ever sent.
            _ = self.alive.changed() => (),
        }
    }
}

impl Session {
    fn new(user: User, ends_s: u64) -> Self {
        Self { user, ends_s, alive: watch::Sender::new(()) }
    }

    fn caller(&self) -> Caller {
        Caller { user: self.user.clone(), ends_s: self.ends_s, alive: self.alive.subscribe() }
    }
}

impl Sessions {
    pub(crate) fn load(store: &Arc<Store>) -> Result<Self, rusqlite::Error> {
        let sessions =
            store.sessions()?.into_iter().map(|(token, user, ends_s)| (token, Session::new(user, ends_s)));
        Ok(Self { store: store.clone(), by_token: RwLock::new(sessions.collect()) })
    }

    /// Starts a session and returns its token.
    pub(crate) async fn begin(&self, user: User) -> Result<String, Status> {
        let mut token = [0; 32];
        getrandom::fill(&mut token)
            .map_err(|error| Status::internal(format!("no random bytes for a token: {error}")))?;
        let token = hex(&token);
        let (hash, ends_s) = (hash(&token), now_s().cast_unsigned() + VALID_FOR.as_secs());
        let id = user.id;
        let ended = self.store.run(move |store| store.add_session(hash, id, ends_s, SESSIONS_MAX)).await?;
        let mut by_token = self.write();
        by_token.insert(hash, Session::new(user, ends_s));
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

    /// An interceptor for services that need a login. Handlers get the user from [`caller`].
    pub(crate) fn authorize(&self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let caller = match self.read().get(&hash(token(&request)?)) {
            Some(session) if session.ends_s > now_s().cast_unsigned() => session.caller(),
            _ => return Err(expired()),
        };
        request.extensions_mut().insert(caller);
        Ok(request)
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<[u8; 32], Session>> {
        self.by_token.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<[u8; 32], Session>> {
        self.by_token.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the user of an authorized call.
pub(crate) fn caller<T>(request: &Request<T>) -> Result<Caller, Status> {
    request.extensions().get().cloned().ok_or_else(|| Status::internal("nobody asked who calls"))
}

pub(crate) fn expired() -> Status {
    Status::unauthenticated("the session is over; log in again")
}

/// Parses `authorization: Bearer TOKEN` (RFC 6750 §2.1).
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

#[cfg(test)]
mod tests {
    use thalweg::Code;

    use super::*;

    fn with(token: &str) -> Request<()> {
        let mut request = Request::new(());
        request.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        request
    }

    #[tokio::test]
    async fn session_ends_on_expiry_and_logout() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(folder.path()).unwrap());
        let ada = store.add_user("ada", "hash").unwrap().unwrap();
        let sessions = Sessions::load(&store).unwrap();
        let tokens = [sessions.begin(ada.clone()).await.unwrap(), sessions.begin(ada.clone()).await.unwrap()];
        let callers =
            tokens.each_ref().map(|token| caller(&sessions.authorize(with(token)).unwrap()).unwrap());
        assert_eq!(callers[0].user, ada);

        // A restart finds both; the database has no plain tokens.
        let loaded = Sessions::load(&store).unwrap();
        assert!(tokens.iter().all(|token| loaded.authorize(with(token)).is_ok()));
        assert!(
            store.sessions().unwrap().iter().all(|(stored, ..)| tokens.iter().all(|t| hex(stored) != *t))
        );

        sessions.write().get_mut(&hash(&tokens[0])).unwrap().ends_s = now_s().cast_unsigned();
        assert_eq!(sessions.authorize(with(&tokens[0])).unwrap_err().code(), Code::Unauthenticated);
        sessions.end(&with(&tokens[1])).await.unwrap();
        assert_eq!(sessions.authorize(with(&tokens[1])).unwrap_err().code(), Code::Unauthenticated);
        let [first, second] = callers;
        second.expired().await;
        let ends = Caller { ends_s: now_s().cast_unsigned(), ..first };
        ends.expired().await;
        assert_eq!(Sessions::load(&store).unwrap().read().len(), 1);
    }
}
