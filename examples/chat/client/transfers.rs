//! Files on their way, with their progress.

use std::io::{self, ErrorKind, SeekFrom};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use thalweg::{Request, Status};
use tokio::fs::{self, File};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::connection::{Connection, is_lost};
use crate::proto::upload_request::{Head, Part};
use crate::proto::{self, DownloadRequest, UploadRequest};
use crate::requests::Token;

const CHUNK: usize = 64 * 1024;
/// Under one name and its variants.
const NAMES_MAX: u32 = 1_000;

/// Sends a file, from its beginning again where the connection was lost. `progress` is told the bytes that have gone
/// and those there are.
pub(crate) async fn upload(
    connection: &Connection,
    token: &Token,
    path: &Path,
    progress: impl Fn(u64, u64) + Clone + Send + 'static,
) -> Result<proto::File, String> {
    let named = |error: io::Error| format!("cannot read {}: {error}", path.display());
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| format!("{} has no name that can be sent", path.display()))?;
    loop {
        let file = File::open(path).await.map_err(named)?;
        let metadata = file.metadata().await.map_err(named)?;
        if !metadata.is_file() {
            return Err(format!("{} is not a file", path.display()));
        }
        let head = Head { name: name.to_owned(), size: metadata.len() };
        let (sender, parts) = mpsc::channel(2);
        let reader = tokio::spawn(read(file, head, sender, progress.clone()));
        let request = Request::new(ReceiverStream::new(parts));
        let outcome =
            connection.once(|channel| async move { token.client(channel).upload(request).await }).await;
        match (outcome, reader.await) {
            (Ok(file), _) => return Ok(file.into_inner()),
            (_, Ok(Err(error))) => return Err(named(error)),
            (Err(status), _) if is_lost(&status) => {}
            (Err(status), _) => return Err(format!("{name} was not sent: {}", status.message())),
        }
    }
}

/// Reads the parts of an upload until all have gone, or nobody takes them any more.
async fn read(
    mut file: File,
    head: Head,
    sender: mpsc::Sender<UploadRequest>,
    progress: impl Fn(u64, u64),
) -> io::Result<()> {
    let (mut sent, size) = (0, head.size);
    let mut part = Part::Head(head);
    while sender.send(UploadRequest { part: Some(part) }).await.is_ok() {
        progress(sent, size);
        let mut chunk = Vec::with_capacity(CHUNK);
        if (&mut file).take(CHUNK as u64).read_to_end(&mut chunk).await? == 0 {
            break;
        }
        sent += chunk.len() as u64;
        part = Part::Chunk(chunk);
    }
    Ok(())
}

/// Saves the file that a message carries in `folder`, under its own name or one like it: where it is then. A download
/// whose connection was lost goes on where it was.
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
    // A server of bad intent may say anything.
    let name = Path::new(&file.name).file_name().and_then(|name| name.to_str()).unwrap_or("file");
    let partial = PartialFile::create(folder, name).await.map_err(failed)?;
    let (mut saved, mut hash) = (partial.0.1.try_clone().await.map_err(failed)?, Sha256::new());
    let mut offset = 0;
    loop {
        // A piece that was lost on its way to the disk is written again.
        saved.seek(SeekFrom::Start(offset)).await.map_err(failed)?;
        let request = DownloadRequest { room: room.to_owned(), number, offset };
        let outcome = connection.once(async |channel| {
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
            Err(status) if is_lost(&status) => {}
            Err(status) => return Err(format!("{name} was not saved: {}", status.message())),
        }
    }
    if hash.finalize().as_slice() != file.hash {
        return Err(format!("{name} was not saved: what came is not what was sent (its SHA-256 differs)"));
    }
    saved.sync_all().await.map_err(failed)?;
    partial.keep(folder, name).await.map_err(failed)
}

/// A file that is not whole yet, and is removed if it is dropped so.
struct PartialFile((PathBuf, File));

impl PartialFile {
    async fn create(folder: &Path, name: &str) -> io::Result<Self> {
        let (path, file) = create(folder, |number| match number {
            0 => format!(".{name}.part"),
            _ => format!(".{name}.{number}.part"),
        })
        .await?;
        Ok(Self((path, file)))
    }

    /// Gives it its name, or one with a number where there is such a file already.
    async fn keep(self, folder: &Path, name: &str) -> io::Result<PathBuf> {
        let (stem, extension) = match name.rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() => (stem, format!(".{extension}")),
            _ => (name, String::new()),
        };
        let (path, _) = create(folder, |number| match number {
            0 => name.to_owned(),
            _ => format!("{stem} ({number}){extension}"),
        })
        .await?;
        fs::rename(&self.0.0, &path).await?;
        Ok(path)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // It has its name already, mostly.
        let _ = std::fs::remove_file(&self.0.0);
    }
}

/// The first of the names that is free, taken.
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
