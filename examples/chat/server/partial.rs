//! A partially received file.

use std::fs;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use thalweg::Status;
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;
use tokio::task::spawn_blocking;

use crate::files::{Hash, failed};
use crate::proto;

pub(crate) struct Partial {
    path: PathBuf,
    file: File,
    pub(crate) received: u64,
    hash: Sha256,
}

impl Partial {
    /// Opens a partial file and hashes the bytes it already has.
    pub(crate) async fn open(path: PathBuf, size: u64) -> Result<Self, Status> {
        let (at, opened) = (path.clone(), spawn_blocking(move || read(&path, size)));
        let opened = opened.await.map_err(|error| Status::internal(error.to_string()))?;
        let (file, received, hash) = opened.map_err(|error| failed(&at, &error))?;
        Ok(Self { path: at, file: File::from_std(file), received, hash })
    }

    pub(crate) async fn write(&mut self, head: &proto::File, chunk: &[u8]) -> Result<(), Status> {
        self.received += chunk.len() as u64;
        if self.received > head.size {
            return Err(wrong_size(head, &format!("at least {}", self.received)));
        }
        self.hash.update(chunk);
        self.file.write_all(chunk).await.map_err(|error| failed(&self.path, &error))
    }

    /// Flushes to the operating system, so that the data outlives this process and the next one can read it.
    pub(crate) async fn flush(&mut self) -> Result<(), Status> {
        self.file.flush().await.map_err(|error| failed(&self.path, &error))
    }

    /// Verifies size and hash, and syncs the file to disk.
    pub(crate) async fn finish(&mut self, head: &proto::File, hash: Hash) -> Result<(), Status> {
        if self.received != head.size {
            return Err(wrong_size(head, &self.received.to_string()));
        }
        if self.hash.finalize_reset().as_slice() != hash {
            let text = format!("the SHA-256 of what came is not {}'s; did it change meanwhile?", head.name);
            return Err(Status::invalid_argument(text));
        }
        self.file.sync_all().await.map_err(|error| failed(&self.path, &error))
    }
}

/// Opens the file, positioned at its end.
fn read(path: &Path, size: u64) -> io::Result<(fs::File, u64, Sha256)> {
    let mut file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let (mut received, mut hash) = (0, Sha256::new());
    let mut bytes = vec![0; 64 * 1024];
    loop {
        match file.read(&mut bytes)? {
            0 => break,
            length => {
                received += length as u64;
                hash.update(&bytes[..length]);
            }
        }
    }
    if received > size {
        // It was started with another size, and one of the two was wrong.
        file.set_len(0)?;
        file.rewind()?;
        (received, hash) = (0, Sha256::new());
    }
    Ok((file, received, hash))
}

fn wrong_size(head: &proto::File, came: &str) -> Status {
    Status::invalid_argument(format!("{} was to have {} bytes, and {came} came", head.name, head.size))
}
