//! A deterministic provider for rustls: the same seeds give the same connection, byte for byte. So one side's recorded
//! bytes can be sent to the other again.
//!
//! Its keys are not secret. Encryption and certificate verification are unchanged.

use std::cell::RefCell;
use std::sync::Arc;

use thalweg::tls::rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
    aws_lc_rs,
};
use thalweg::tls::rustls::{Error, NamedGroup, PeerMisbehaved};

use crate::random::Random;

/// Each side has its own numbers, so the order of draws on both sides does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// A side's replacement for randomness.
#[derive(Debug)]
struct Seeded(Side);

static CLIENT: Seeded = Seeded(Side::Client);
static SERVER: Seeded = Seeded(Side::Server);

thread_local! {
    static RANDOM: RefCell<[Random; 2]> = RefCell::new([Random::new(0), Random::new(0)]);
}

/// Sets the seed of `side` on this thread.
pub(super) fn seed(side: Side, seed: u64) {
    RANDOM.with_borrow_mut(|random| random[side as usize] = Random::new(seed));
}

pub(super) fn provider(side: Side) -> Arc<CryptoProvider> {
    let seeded = match side {
        Side::Client => &CLIENT,
        Side::Server => &SERVER,
    };
    let provider = aws_lc_rs::default_provider();
    Arc::new(CryptoProvider { kx_groups: vec![seeded], secure_random: seeded, ..provider })
}

const SHARE_LEN: usize = 32;

impl Seeded {
    fn draw(&self, bytes: &mut [u8]) {
        RANDOM.with_borrow_mut(|random| bytes.fill_with(|| random[self.0 as usize].number() as u8));
    }
}

impl SecureRandom for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        self.draw(bytes);
        Ok(())
    }
}

/// Key shares with X25519's form, but without a secret.
impl SupportedKxGroup for Seeded {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut share = [0; SHARE_LEN];
        self.draw(&mut share);
        Ok(Box::new(Share(share)))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct Share([u8; SHARE_LEN]);

impl ActiveKeyExchange for Share {
    fn complete(self: Box<Self>, theirs: &[u8]) -> Result<SharedSecret, Error> {
        if theirs.len() != SHARE_LEN {
            return Err(PeerMisbehaved::InvalidKeyShare.into());
        }
        let secret: Vec<u8> = self.0.iter().zip(theirs).map(|(ours, theirs)| ours ^ theirs).collect();
        Ok(SharedSecret::from(&secret[..]))
    }

    fn pub_key(&self) -> &[u8] {
        &self.0
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}
