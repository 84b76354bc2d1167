//! Files: in a folder, each under its hash.

use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{error, fs};

use sha2::{Digest as _, Sha256};
use thalweg::{Status, Stream};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;

use crate::hex::hex;
use crate::names;
use crate::proto::upload_request::{Head, Part};
use crate::proto::{self, DownloadResponse, UploadRequest};
use crate::store::Store;

/// Bytes of a file.
const SIZE_MAX: u64 = 50 * 1024 * 1024;
/// Bytes of one piece that is received.
const CHUNK_MAX: usize = 1024 * 1024;
/// Bytes of one piece that is sent.
const CHUNK: usize = 64 * 1024;
/// Under way at once, of all users.
const UPLOADS_MAX: usize = 64;
/// A file that no message carries by then is removed when the server starts.
const UNUSED_MAX: Duration = Duration::from_secs(24 * 60 * 60);

pub(crate) struct Files {
    folder: PathBuf,
    uploads: Semaphore,
}

impl Files {
    /// Removes what is left of uploads that broke off, and files that nobody sent.
    pub(crate) fn open(data: &Path, store: &Store) -> Result<Self, Box<dyn error::Error>> {
        let folder = data.join("files");
        let failed = |error| format!("cannot keep files in {}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(failed)?;
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == PARTIAL) {
                fs::remove_file(&path).map_err(failed)?;
            }
        }
        for hash in store.forget_files(UNUSED_MAX)? {
            match fs::remove_file(folder.join(hex(&hash))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error).into()),
                _ => {}
            }
        }
        Ok(Self { folder, uploads: Semaphore::new(UPLOADS_MAX) })
    }

    /// Takes a file in. It is there under its hash when it is whole and on the disk, and not before.
    pub(crate) async fn receive(
        &self,
        mut parts: impl Stream<Item = Result<UploadRequest, Status>> + Unpin,
        store: &Arc<Store>,
    ) -> Result<proto::File, Status> {
        let Ok(_upload) = self.uploads.try_acquire() else {
            return Err(Status::resource_exhausted(
                "too many files are sent at this moment; try again later",
            ));
        };
        let Some(Part::Head(head)) = parts.next().await.transpose()?.and_then(|request| request.part) else {
            return Err(Status::invalid_argument("an upload begins with its head"));
        };
        names::check_file(&head.name)?;
        if head.size > SIZE_MAX {
            return Err(Status::invalid_argument(format!(
                "{} has {} bytes; a file may have {SIZE_MAX} (50 MiB)",
                head.name, head.size
            )));
        }
        let partial = Partial::new(&self.folder)?;
        let hash = write(&partial.0, &head, parts).await?;
        let path = self.folder.join(hex(&hash));
        fs::rename(&partial.0, &path).map_err(|error| failed(&path, &error))?;
        // The name is on the disk, too, before the database says that there is one.
        File::open(&self.folder)
            .await
            .map_err(|error| failed(&path, &error))?
            .sync_all()
            .await
            .map_err(|error| failed(&path, &error))?;
        store.run(move |store| store.add_file(&hash, head.size)).await?;
        Ok(proto::File { hash: hash.to_vec(), name: head.name, size: head.size })
    }

    /// The bytes of a file from an offset on.
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
                // An error: the client has left.
                if sender.send(piece).await.is_err() {
                    break;
                }
            }
        });
        Ok(ReceiverStream::new(receiver))
    }
}

const PARTIAL: &str = "part";

/// A file that is not whole yet: removed when it is dropped, unless it has been renamed.
struct Partial(PathBuf);

impl Partial {
    fn new(folder: &Path) -> Result<Self, Status> {
        let mut name = [0; 16];
        getrandom::fill(&mut name)
            .map_err(|error| Status::internal(format!("no random bytes for a name: {error}")))?;
        Ok(Self(folder.join(hex(&name)).with_extension(PARTIAL)))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Mostly it has its place already. What cannot be removed is at the next start.
        let _ = fs::remove_file(&self.0);
    }
}

/// Writes what comes; the hash of it.
async fn write(
    path: &Path,
    head: &Head,
    mut parts: impl Stream<Item = Result<UploadRequest, Status>> + Unpin,
) -> Result<[u8; 32], Status> {
    let mut file = File::create_new(path).await.map_err(|error| failed(path, &error))?;
    let (mut hash, mut size) = (Sha256::new(), 0);
    while let Some(part) = parts.next().await.transpose()? {
        let Some(Part::Chunk(chunk)) = part.part else {
            return Err(Status::invalid_argument("an upload has one head, and then chunks"));
        };
        if chunk.len() > CHUNK_MAX {
            let length = chunk.len();
            return Err(Status::invalid_argument(format!(
                "a chunk has {length} bytes; it may have {CHUNK_MAX}"
            )));
        }
        size += chunk.len() as u64;
        if size > head.size {
            break;
        }
        hash.update(&chunk);
        file.write_all(&chunk).await.map_err(|error| failed(path, &error))?;
    }
    if size != head.size {
        let more = if size > head.size { "at least " } else { "" };
        return Err(Status::invalid_argument(format!(
            "{} was to have {} bytes, and {more}{size} came",
            head.name, head.size
        )));
    }
    file.sync_all().await.map_err(|error| failed(path, &error))?;
    Ok(hash.finalize().into())
}

/// The path is the operator's, not the client's.
fn failed(path: &Path, error: &io::Error) -> Status {
    eprintln!("chat-server: {}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Status::resource_exhausted("the server's disk is full")
        }
        _ => Status::internal("the server cannot read or write the file; its log says why"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(name: &str, size: u64) -> Part {
        Part::Head(Head { name: name.to_owned(), size })
    }

    fn chunk(bytes: &[u8]) -> Part {
        Part::Chunk(bytes.to_vec())
    }

    /// What comes of an upload: its bytes when they are read again, or a part of the error; and no rest of it.
    async fn check(parts: Vec<Part>, outcome: Result<&[u8], &str>) {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(folder.path()).unwrap());
        let files = Files::open(folder.path(), &store).unwrap();
        let parts = parts.into_iter().map(|part| Ok(UploadRequest { part: Some(part) }));
        let received = files.receive(tokio_stream::iter(parts.collect::<Vec<_>>()), &store).await;
        match (received, outcome) {
            (Ok(file), Ok(bytes)) => {
                let half = bytes.len() / 2;
                for offset in [0, half, bytes.len()] {
                    let pieces = files.send(&file, offset as u64).await.unwrap();
                    let pieces: Vec<DownloadResponse> = pieces.map(Result::unwrap).collect().await;
                    let read: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.chunk).collect();
                    assert_eq!(read, bytes[offset..]);
                }
                assert!(files.send(&file, bytes.len() as u64 + 1).await.is_err());
            }
            (Err(status), Err(text)) => assert!(status.message().contains(text), "{status:?}"),
            (received, _) => panic!("{received:?}"),
        }
        let left = fs::read_dir(&files.folder).unwrap().count();
        assert_eq!(left, usize::from(outcome.is_ok()));
    }

    #[tokio::test]
    async fn a_file_comes_in_pieces() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| at as u8).collect();
        let parts = vec![head("a.bin", 200_000), chunk(&bytes[..1]), chunk(&bytes[1..]), chunk(&[])];
        check(parts, Ok(&bytes)).await;
        check(vec![head("empty", 0)], Ok(&[])).await;
    }

    #[tokio::test]
    async fn what_is_no_file_is_refused() {
        check(vec![], Err("begins with its head")).await;
        check(vec![chunk(b"abc")], Err("begins with its head")).await;
        check(vec![head("../a", 3), chunk(b"abc")], Err("has a path")).await;
        check(vec![head("a", SIZE_MAX + 1)], Err("may have 52428800 (50 MiB)")).await;
        check(vec![head("a", 3), chunk(b"ab")], Err("was to have 3 bytes, and 2 came")).await;
        check(vec![head("a", 3), chunk(b"abcd")], Err("was to have 3 bytes, and at least 4 came")).await;
        check(vec![head("a", 3), head("a", 3)], Err("one head")).await;
        let large = vec![0; CHUNK_MAX + 1];
        check(vec![head("a", SIZE_MAX), chunk(&large)], Err("a chunk has 1048577 bytes")).await;
    }
}
