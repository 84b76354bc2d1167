//! Registers users and logs them in.

use std::sync::Arc;

use thalweg::{Request, Response, Status};

use crate::names;
use crate::passwords::Passwords;
use crate::proto::{self, Credentials, Session};
use crate::sessions::{Sessions, VALID_FOR};
use crate::store::{Store, User};

/// Maximum number of accounts.
const USERS_MAX: i64 = 100_000;

pub(crate) struct Accounts {
    pub(crate) store: Arc<Store>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) passwords: Passwords,
}

impl proto::accounts_server::Accounts for Accounts {
    async fn register(&self, request: Request<Credentials>) -> Result<Response<Session>, Status> {
        let Credentials { name, password } = request.into_inner();
        names::check("user", &name)?;
        let taken = |name: &str| {
            Status::already_exists(format!("the name {name} is taken; log in, or choose another"))
        };
        let asked = name.clone();
        if self.store.run(move |store| store.user(&asked)).await?.is_some() {
            return Err(taken(&name));
        }
        if self.store.run(Store::users).await? >= USERS_MAX {
            return Err(Status::resource_exhausted(format!("there are {USERS_MAX} users; no more may be")));
        }
        let hash = self.passwords.hash(password).await?;
        let asked = name.clone();
        let user = self.store.run(move |store| store.add_user(&asked, &hash)).await?;
        self.begin(user.ok_or_else(|| taken(&name))?).await
    }

    async fn log_in(&self, request: Request<Credentials>) -> Result<Response<Session>, Status> {
        let Credentials { name, password } = request.into_inner();
        let (user, hash) = self.store.run(move |store| store.user(&name)).await?.unzip();
        let right = self.passwords.verify(password, hash).await?;
        match user {
            Some(user) if right => self.begin(user).await,
            _ => Err(Status::unauthenticated("the name or the password is wrong")),
        }
    }
}

impl Accounts {
    async fn begin(&self, user: User) -> Result<Response<Session>, Status> {
        let name = user.name.clone();
        let token = self.sessions.begin(user).await?;
        Ok(Response::new(Session { name, token, valid_for_s: VALID_FOR.as_secs() }))
    }
}
