//! Files in a folder, named by their hash.

use std::io::{self, SeekFrom};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{error, fs};

use thalweg::Status;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::hex::hex;
use crate::proto::{self, DownloadResponse};
use crate::store::Store;

/// Size of a sent chunk in bytes.
const CHUNK: usize = 64 * 1024;
/// Files that no message carries after this time are removed.
const UNUSED_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// SHA-256.
pub(crate) type Hash = [u8; 32];

pub(crate) struct Files {
    folder: PathBuf,
    store: Arc<Store>,
    /// Held while the folder and the database are brought in line.
    changing: Mutex<()>,
}

impl Files {
    pub(crate) fn open(data: &Path, store: &Arc<Store>) -> Result<Self, Box<dyn error::Error>> {
        let folder = data.join("files");
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(|error| format!("cannot keep files in {}: {error}", folder.display()))?;
        Ok(Self { folder, store: store.clone(), changing: Mutex::default() })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Returns whether the file exists; if so, it is kept unused for another day.
    pub(crate) async fn has(self: &Arc<Self>, hash: Hash, size: u64) -> Result<bool, Status> {
        let files = self.clone();
        let renew = move |store: &Store| {
            let _changing = files.changing.lock().unwrap_or_else(PoisonError::into_inner);
            store.renew_file(&hash, size)
        };
        self.store.run(renew).await
    }

    /// Moves a complete file, already synced to disk, to its final place.
    pub(crate) async fn keep(
        self: &Arc<Self>,
        partial: PathBuf,
        hash: Hash,
        size: u64,
        owner: i64,
    ) -> Result<(), Status> {
        let path = self.folder.join(hex(&hash));
        let (files, target) = (self.clone(), path.clone());
        let keep = move |store: &Store| {
            let _changing = files.changing.lock().unwrap_or_else(PoisonError::into_inner);
            // Syncs the folder before the database lists the file.
            let kept = fs::rename(&partial, &target).and_then(|()| fs::File::open(&files.folder)?.sync_all());
            if kept.is_ok() {
                store.add_file(&hash, size, owner)?;
            }
            Ok(kept)
        };
        self.store.run(keep).await?.map_err(|error| failed(&path, &error))
    }

    /// Removes unused files.
    pub(crate) fn clean(&self) -> Result<(), Box<dyn error::Error + Send + Sync>> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        for hash in self.store.remove_unused_files(UNUSED_MAX)? {
            match fs::remove_file(self.folder.join(hex(&hash))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Streams a file from an offset.
    pub(crate) async fn send(
        &self,
        file: &proto::File,
        offset: u64,
    ) -> Result<ReceiverStream<Result<DownloadResponse, Status>>, Status> {
        if offset > file.size {
            let text = format!("{} has {} bytes; it has no byte {offset}", file.name, file.size);
            return Err(Status::out_of_range(text));
        }
        let path = self.folder.join(hex(&file.hash));
        let mut opened = File::open(&path).await.map_err(|error| failed(&path, &error))?;
        opened.seek(SeekFrom::Start(offset)).await.map_err(|error| failed(&path, &error))?;
        let (sender, receiver) = mpsc::channel(4);
        tokio::spawn(async move {
            loop {
                let mut chunk = Vec::with_capacity(CHUNK);
                let piece = match (&mut opened).take(CHUNK as u64).read_to_end(&mut chunk).await {
                    Ok(0) => break,
                    Ok(_) => Ok(DownloadResponse { chunk }),
                    Err(error) => Err(failed(&path, &error)),
                };
                // Fails if the client has left.
                if sender.send(piece).await.is_err() {
                    break;
                }
            }
        });
        Ok(ReceiverStream::new(receiver))
    }
}

/// Logs an error. The path is not revealed to the client.
pub(crate) fn failed(path: &Path, error: &io::Error) -> Status {
    eprintln!("chat-server: {}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Status::resource_exhausted("the server's disk is full")
        }
        _ => Status::internal("the server cannot read or write the file; its log says why"),
    }
}
