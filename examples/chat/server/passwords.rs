//! Passwords, hashed with argon2id and its crate's defaults (19 MiB, two rounds; OWASP recommends the same).

use std::sync::Arc;
use std::thread::available_parallelism;

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash};
use thalweg::Status;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

const LENGTH_MIN: usize = 8;
const LENGTH_MAX: usize = 128;
const SALT_LENGTH: usize = 16;
/// Maximum number of logins waiting for a processor. Beyond it a flooded server rejects logins instead of taking
/// minutes for each.
const WAITING_MAX: usize = 64;

/// Hashes and verifies. Each operation takes 19 MiB and a processor for tens of milliseconds, so at most one runs per
/// processor.
pub(crate) struct Passwords {
    processors: Arc<Semaphore>,
    waiting: Semaphore,
    /// Hash used for unknown names, so that rejecting them takes as long as rejecting a wrong password.
    nobody: String,
}

impl Passwords {
    pub(crate) fn new() -> Result<Self, Status> {
        let processors = available_parallelism().map_or(1, usize::from);
        Ok(Self {
            processors: Arc::new(Semaphore::new(processors)),
            waiting: Semaphore::new(processors + WAITING_MAX),
            nobody: hash("nobody has this password")?,
        })
    }

    /// Hashes a password for storage.
    pub(crate) async fn hash(&self, password: String) -> Result<String, Status> {
        if !(LENGTH_MIN..=LENGTH_MAX).contains(&password.len()) {
            let length = password.len();
            return Err(Status::invalid_argument(format!(
                "a password has {LENGTH_MIN} to {LENGTH_MAX} bytes; this has {length}"
            )));
        }
        self.run(move || hash(&password)).await?
    }

    /// Returns whether the password matches the hash; false if there is no hash.
    pub(crate) async fn verify(&self, password: String, hash: Option<String>) -> Result<bool, Status> {
        if password.len() > LENGTH_MAX {
            return Ok(false);
        }
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.nobody.clone());
        let right = self.run(move || {
            let hash = PasswordHash::new(&hash).map_err(|error| broken("a stored hash", &error))?;
            Ok::<_, Status>(Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
        });
        Ok(right.await?? && known)
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Status> {
        let Ok(_place) = self.waiting.try_acquire() else {
            return Err(Status::resource_exhausted(
                "too many log in at this moment; try again in some seconds",
            ));
        };
        // Moved into the work, which continues even if the caller has left.
        let processor = self.processors.clone().acquire_owned().await.expect("never closed");
        let done = spawn_blocking(move || {
            let done = work();
            drop(processor);
            done
        });
        done.await.map_err(|error| broken("hashing", &error))
    }
}

fn hash(password: &str) -> Result<String, Status> {
    let mut salt = [0; SALT_LENGTH];
    getrandom::fill(&mut salt).map_err(|error| broken("random bytes", &error))?;
    let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
    Ok(hash.map_err(|error| broken("hashing", &error))?.to_string())
}

fn broken(what: &str, error: &dyn std::fmt::Display) -> Status {
    Status::internal(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn passwords() {
        let passwords = Passwords::new().unwrap();
        let stored = passwords.hash("correct horse".to_owned()).await.unwrap();
        assert!(stored.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{stored}");
        assert_ne!(stored, passwords.hash("correct horse".to_owned()).await.unwrap(), "salted");
        let check = async |password: &str, hash: Option<&String>, right: bool| {
            let verified = passwords.verify(password.to_owned(), hash.cloned()).await.unwrap();
            assert_eq!(verified, right, "{password:?} {hash:?}");
        };
        check("correct horse", Some(&stored), true).await;
        check("correct horsE", Some(&stored), false).await;
        check("", Some(&stored), false).await;
        check("nobody has this password", None, false).await;
        check(&"x".repeat(LENGTH_MAX + 1), Some(&stored), false).await;
    }

    #[tokio::test]
    async fn excess_hashes_are_rejected() {
        let passwords = Passwords::new().unwrap();
        let waiting = passwords.waiting.available_permits();
        let verify = || passwords.verify("correct horse".to_owned(), None);
        let all = passwords.waiting.acquire_many(waiting as u32 - 1).await.unwrap();
        let (first, second) = tokio::join!(verify(), verify());
        assert!(!first.unwrap());
        assert_eq!(second.unwrap_err().code(), thalweg::Code::ResourceExhausted);
        drop(all);
        assert!(!verify().await.unwrap());
        // Abandoned work keeps its processor until it is done.
        let processors = passwords.processors.available_permits();
        let left = tokio::time::timeout(std::time::Duration::from_millis(1), verify()).await;
        let running = passwords.processors.available_permits();
        assert!(left.is_ok() || running < processors, "{left:?} {running}");
    }

    #[tokio::test]
    async fn lengths() {
        let passwords = Passwords::new().unwrap();
        for (length, allowed) in [(7, false), (8, true), (128, true), (129, false)] {
            assert_eq!(passwords.hash("x".repeat(length)).await.is_ok(), allowed, "{length}");
        }
    }
}
