//! Uploads and downloads, with their progress.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use sha2::{Digest as _, Sha256};
use thalweg::{InterceptedChannel, Request, Status};
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_stream::wrappers::ReceiverStream;

use crate::connection::{Connection, is_connection_lost};
use crate::proto::chat_client::ChatClient;
use crate::proto::upload_request::Part;
use crate::proto::{self, DownloadRequest, UploadRequest, UploadResponse};
use crate::requests::Token;
use crate::text::{file_name, split_extension};

const CHUNK: usize = 64 * 1024;
/// Maximum size of a file, as on the server; checked before the file is read.
const SIZE_MAX: u64 = 50 * 1024 * 1024;
/// Pause before a transfer resumes.
const PAUSE: Duration = Duration::from_millis(200);
/// Prefix of partial files; the file's hash and a number follow.
const PARTIAL: &str = ".chat-download-";
/// Partial files that nobody has written to for this long are removed.
const LEFT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum number of variants of a name.
const NAMES_MAX: u32 = 1_000;

/// Uploads a file, and resumes after a lost connection. `progress` gets the bytes that the server has and the file's
/// size.
pub(crate) async fn upload(
    connection: &Connection,
    token: &Token,
    path: &Path,
    progress: impl Fn(u64, u64),
) -> Result<proto::File, String> {
    let named = |error: io::Error| format!("failed to read {}: {error}", path.display());
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| format!("{} has no name that can be sent", path.display()))?;
    let mut file = File::open(path).await.map_err(named)?;
    let metadata = file.metadata().await.map_err(named)?;
    if !metadata.is_file() {
        return Err(format!("{} is not a file", path.display()));
    }
    let size = metadata.len();
    if size > SIZE_MAX {
        return Err(format!("{name} has {size} bytes; a file may have {SIZE_MAX} (50 MiB)"));
    }
    progress(0, size);
    let hash = hash(&mut file, size).await.map_err(named)?.finalize().to_vec();
    let head = proto::File { hash, name: name.to_owned(), size };
    loop {
        let client = |channel| token.client(channel);
        match connection
            .call_once(async |channel| send(&client(channel), &mut file, &head, &progress).await)
            .await
        {
            Ok(()) => return Ok(head),
            // Pauses between tries while a reachable server refuses.
            Err(status) if is_connection_lost(&status) => sleep(PAUSE).await,
            Err(status) => return Err(format!("{name} was not sent: {}", status.message())),
        }
    }
}

/// Returns the SHA-256 state after the first `length` bytes.
async fn hash(file: &mut File, length: u64) -> io::Result<Sha256> {
    let mut hash = Sha256::new();
    file.rewind().await?;
    let (mut bytes, mut file) = (vec![0; CHUNK], file.take(length));
    loop {
        match file.read(&mut bytes).await? {
            0 => return Ok(hash),
            length => hash.update(&bytes[..length]),
        }
    }
}

/// Sends the bytes that the server does not have yet.
async fn send(
    client: &ChatClient<InterceptedChannel>,
    file: &mut File,
    head: &proto::File,
    progress: impl Fn(u64, u64),
) -> Result<(), Status> {
    let (sender, parts) = mpsc::channel(2);
    // Cannot fail: the queue is empty.
    let _ = sender.try_send(UploadRequest { part: Some(Part::Head(head.clone())) });
    let mut responses = client.upload(Request::new(ReceiverStream::new(parts))).await?.into_inner();
    let Some(UploadResponse { received }) = responses.message().await? else {
        return Err(Status::internal("the server does not say how much of the file it has"));
    };
    progress(received, head.size);
    let confirmed = async {
        while let Some(UploadResponse { received }) = responses.message().await? {
            progress(received, head.size);
        }
        Ok::<_, Status>(())
    };
    tokio::pin!(confirmed);
    tokio::select! {
        outcome = &mut confirmed => outcome,
        read = feed(file, received, sender) => {
            read.map_err(|error| Status::internal(format!("cannot read it: {error}")))?;
            confirmed.await
        }
    }
}

/// Sends a file's chunks from an offset, until all are sent or the receiver is closed.
async fn feed(file: &mut File, offset: u64, sender: mpsc::Sender<UploadRequest>) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset)).await?;
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        if (&mut *file).take(CHUNK as u64).read_to_end(&mut chunk).await? == 0 {
            return Ok(());
        }
        if sender.send(UploadRequest { part: Some(Part::Chunk(chunk)) }).await.is_err() {
            return Ok(());
        }
    }
}

/// Saves the file of a message in `folder`, under its own name or a similar one, and returns its path. Resumes after a
/// lost connection, and continues a download that an earlier process left unfinished.
pub(crate) async fn download(
    connection: &Connection,
    token: &Token,
    (room, number): (&str, u64),
    file: &proto::File,
    folder: &Path,
    progress: impl Fn(u64, u64),
) -> Result<PathBuf, String> {
    let failed = |error: io::Error| format!("cannot save {} in {}: {error}", file.name, folder.display());
    fs::create_dir_all(folder).await.map_err(failed)?;
    let name = &file_name(&file.name);
    let partial = PartialFile::open(folder, &file.hash).map_err(failed)?;
    let mut saved = File::from_std(partial.file.try_clone().map_err(failed)?);
    let mut offset = saved.metadata().await.map_err(failed)?.len();
    let mut hash = hash(&mut saved, offset).await.map_err(failed)?;
    progress(offset, file.size);
    loop {
        // Overwrites a chunk that failed to reach the disk.
        saved.seek(SeekFrom::Start(offset)).await.map_err(failed)?;
        let request = DownloadRequest { room: room.to_owned(), number, offset };
        let outcome = connection.call_once(async |channel| {
            let mut pieces = token.client(channel).download(request).await?.into_inner();
            while let Some(piece) = pieces.message().await? {
                if offset + piece.chunk.len() as u64 > file.size {
                    return Err(Status::data_loss("more came than the file has"));
                }
                saved.write_all(&piece.chunk).await?;
                hash.update(&piece.chunk);
                offset += piece.chunk.len() as u64;
                progress(offset, file.size);
            }
            Ok(())
        });
        match outcome.await {
            Ok(()) => break,
            Err(status) if is_connection_lost(&status) => sleep(PAUSE).await,
            Err(status) => return Err(format!("{name} was not saved: {}", status.message())),
        }
    }
    if hash.finalize().as_slice() != file.hash {
        partial.remove();
        return Err(format!("{name} was not saved: what came is not what was sent (its SHA-256 differs)"));
    }
    saved.sync_all().await.map_err(failed)?;
    partial.keep(folder, name).await.map_err(failed)
}

/// A hidden partial file, locked by its writer. If not empty, it is kept for the next download of the same file.
struct PartialFile {
    path: PathBuf,
    file: Flock<std::fs::File>,
}

impl PartialFile {
    /// Opens the partial file of an earlier download with this hash, or a new one. Removes partial files that are too
    /// old.
    fn open(folder: &Path, hash: &[u8]) -> io::Result<Self> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let is_partial = entry.file_name().to_str().is_some_and(is_partial);
            if is_partial && entry.metadata()?.modified()?.elapsed().is_ok_and(|age| age > LEFT_MAX) {
                // Another process may have removed it.
                let _ = std::fs::remove_file(entry.path());
            }
        }
        let mut name = PARTIAL.to_owned();
        for byte in hash {
            let _ = write!(name, "{byte:02x}");
        }
        let mut options = std::fs::File::options();
        options.read(true).write(true).create(true).truncate(false);
        for number in 0..NAMES_MAX {
            let path = folder.join(format!("{name}-{number}.part"));
            match Flock::lock(options.open(&path)?, FlockArg::LockExclusiveNonblock) {
                // The previous writer may have renamed it.
                Ok(file) if is_at(&file, &path) => return Ok(Self { path, file }),
                // Another download is writing to it.
                Ok(_) | Err(_) => {}
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Renames the file to `name`, or to a numbered variant if that exists.
    async fn keep(self, folder: &Path, name: &str) -> io::Result<PathBuf> {
        let (stem, extension) = split_extension(name);
        let (path, _) = create(folder, |number| match number {
            0 => name.to_owned(),
            _ => format!("{stem} ({number}){extension}"),
        })
        .await?;
        fs::rename(&self.path, &path).await?;
        Ok(path)
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if self.file.metadata().is_ok_and(|metadata| metadata.len() == 0) && is_at(&self.file, &self.path) {
            self.remove();
        }
    }
}

/// Returns whether the path leads to this file.
fn is_at(file: &std::fs::File, path: &Path) -> bool {
    let (Ok(file), Ok(found)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (file.dev(), file.ino()) == (found.dev(), found.ino())
}

fn is_partial(name: &str) -> bool {
    let hash = name.strip_prefix(PARTIAL).and_then(|name| name.strip_suffix(".part"));
    hash.is_some_and(|hash| hash.bytes().all(|digit| digit.is_ascii_hexdigit() || digit == b'-'))
}

/// Creates the file with the first free name.
async fn create(folder: &Path, name: impl Fn(u32) -> String) -> io::Result<(PathBuf, File)> {
    for number in 0..NAMES_MAX {
        let path = folder.join(name(number));
        match File::create_new(&path).await {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            outcome => return outcome.map(|file| (path, file)),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[tokio::test]
    async fn partial_files_are_hidden_and_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - LEFT_MAX - Duration::from_secs(60);
        for (name, modified) in [
            (".chat-download-cd-0.part", old),
            (".chat-download-ef-0.part", SystemTime::now()),
            (".chat-download-mine.part", old),
            ("photo.jpeg", old),
        ] {
            std::fs::File::create(folder.path().join(name)).unwrap().set_modified(modified).unwrap();
        }
        let others = [".chat-download-ef-0.part", ".chat-download-mine.part", "photo.jpeg"];
        let check = |more: &[&str]| {
            let names = std::fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> =
                names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            let mut expected = [&others, more].concat();
            expected.sort_unstable();
            assert_eq!(names, expected);
        };
        let open = || PartialFile::open(folder.path(), &[0xab]).unwrap();
        let length = |partial: &PartialFile| partial.file.metadata().unwrap().len();

        let first = open();
        check(&[".chat-download-ab-0.part"]);
        std::fs::write(&first.path, "half").unwrap();
        let second = open();
        assert_eq!(length(&second), 0);
        drop((first, second));
        check(&[".chat-download-ab-0.part"]);
        let again = open();
        assert_eq!(length(&again), 4);
        again.keep(folder.path(), "photo.jpeg").await.unwrap();
        check(&["photo (1).jpeg"]);
    }
}
