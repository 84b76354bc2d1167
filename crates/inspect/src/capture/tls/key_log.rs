//! Secrets of TLS connections in `SSLKEYLOGFILE` format.

use std::collections::HashMap;
use std::sync::Arc;

use thiserror::Error;

/// Secrets of TLS connections, by the random of their ClientHello.
///
/// Clients and servers write them to the file named by the environment variable `SSLKEYLOGFILE`: browsers, curl, and
/// programs with OpenSSL, Go or rustls that enable it.
#[derive(Clone, Debug, Default)]
pub struct KeyLog(Arc<HashMap<[u8; 32], Secrets>>);

/// Secrets of one connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Secrets {
    /// The master secret of TLS 1.2.
    pub(super) master: Option<Vec<u8>>,
    pub(super) client_handshake: Option<Vec<u8>>,
    pub(super) server_handshake: Option<Vec<u8>>,
    pub(super) client_traffic: Option<Vec<u8>>,
    pub(super) server_traffic: Option<Vec<u8>>,
}

/// Error for an invalid key log.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub struct KeyLogError {
    line: usize,
    what: &'static str,
}

impl KeyLog {
    /// Parses lines of `LABEL RANDOM SECRET`, the last two in hex. Ignores other labels and comments, which start with
    /// `#`.
    ///
    /// # Errors
    ///
    /// Returns an error for a malformed line.
    pub fn parse(text: &str) -> Result<Self, KeyLogError> {
        let mut secrets: HashMap<[u8; 32], Secrets> = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let error = |what| KeyLogError { line: index + 1, what };
            let mut words = line.split_whitespace();
            let Some(label) = words.next().filter(|label| !label.starts_with('#')) else { continue };
            let (Some(random), Some(secret), None) = (words.next(), words.next(), words.next()) else {
                return Err(error("expected a label, a random and a secret"));
            };
            let secret = hex(secret).ok_or_else(|| error("the secret is not hex"))?;
            // `RSA` lines of old key exchanges have a shorter value here.
            let random = hex(random).and_then(|random| <[u8; 32]>::try_from(random).ok());
            let Some(random) = random else { return Err(error("the random is not 32 bytes in hex")) };
            let known = secrets.entry(random).or_default();
            let place = match label {
                "CLIENT_RANDOM" => &mut known.master,
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => &mut known.client_handshake,
                "SERVER_HANDSHAKE_TRAFFIC_SECRET" => &mut known.server_handshake,
                "CLIENT_TRAFFIC_SECRET_0" => &mut known.client_traffic,
                "SERVER_TRAFFIC_SECRET_0" => &mut known.server_traffic,
                _ => continue,
            };
            *place = Some(secret);
        }
        Ok(Self(Arc::new(secrets)))
    }

    /// Returns whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn of(&self, client_random: &[u8; 32]) -> Option<&Secrets> {
        self.0.get(client_random)
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs.iter().map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_lines_are_parsed_and_malformed_lines_rejected() {
        let random = "ab".repeat(32);
        let text = format!("# comment\n\nCLIENT_RANDOM {random} 0102\nEXPORTER_SECRET {random} 03\r\n");
        let log = KeyLog::parse(&text).expect("it is one");
        let secrets = Secrets { master: Some(vec![1, 2]), ..Secrets::default() };
        assert_eq!(log.of(&[0xab; 32]), Some(&secrets));
        assert_eq!(log.of(&[0; 32]), None);
        for (text, error) in [
            ("nonsense", "line 1: expected a label, a random and a secret"),
            ("\nCLIENT_RANDOM 00 00", "line 2: the random is not 32 bytes in hex"),
            (&format!("CLIENT_RANDOM {random} 0"), "line 1: the secret is not hex"),
        ] {
            assert_eq!(KeyLog::parse(text).expect_err(text).to_string(), error);
        }
    }
}
