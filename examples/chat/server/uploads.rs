//! Uploads in progress. Interrupted uploads can be resumed; incomplete files are not visible.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{error, fs};

use thalweg::{Code, Status, Stream};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_stream::StreamExt as _;

use crate::files::{Files, Hash, failed};
use crate::hex::hex;
use crate::names;
use crate::partial::Partial;
use crate::proto::upload_request::Part;
use crate::proto::{self, UploadRequest, UploadResponse};
use crate::store::Store;

/// Maximum size of a file in bytes.
const SIZE_MAX: u64 = 50 * 1024 * 1024;
/// Maximum size of a chunk in bytes.
const CHUNK_MAX: usize = 1024 * 1024;
/// Interval between progress responses, in bytes.
const PROGRESS_INTERVAL_BYTES: u64 = 1024 * 1024;
/// Maximum number of concurrent uploads per user.
const UPLOADS_PER_USER_MAX: usize = 8;
/// A client that sends nothing for this long has left or is malicious.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Interrupted uploads are removed after this time.
const PARTIAL_AGE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Overhead counted per file, because many small files fill a disk too.
pub(crate) const FILE_OVERHEAD: u64 = 4096;

/// Limits on the bytes of files, each counted with [`FILE_OVERHEAD`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    /// Limit of the files that one user uploaded first.
    pub(crate) per_user: u64,
    pub(crate) total: u64,
}

/// Partial files are named by user and hash, so that users cannot continue one another's uploads.
pub(crate) struct Uploads {
    folder: PathBuf,
    files: Arc<Files>,
    quota: Quota,
    /// By the names of the partial files.
    active: Mutex<HashMap<String, ActiveUpload>>,
}

struct ActiveUpload {
    size: u64,
    count: usize,
    /// Number of the upload that may write: the latest one. Earlier ones usually belong to lost connections.
    newest: watch::Sender<u64>,
    /// Held by the upload that writes.
    writing: Arc<tokio::sync::Mutex<()>>,
}

type ResponseSender = mpsc::Sender<Result<UploadResponse, Status>>;

impl Uploads {
    pub(crate) fn open(files: Arc<Files>, quota: Quota) -> Result<Self, Box<dyn error::Error>> {
        let folder = files.folder().join("partial");
        fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot keep files in {}: {error}", folder.display()))?;
        Ok(Self { folder, files, quota, active: Mutex::default() })
    }

    /// Receives a file, and returns when it is complete and on disk.
    pub(crate) async fn receive(
        self: &Arc<Self>,
        user: i64,
        mut parts: impl Stream<Item = Result<UploadRequest, Status>> + Unpin,
        responses: &ResponseSender,
    ) -> Result<(), Status> {
        let Some(Part::Head(head)) = next(&mut parts).await? else {
            return Err(Status::invalid_argument("an upload begins with its head"));
        };
        let hash = check(&head)?;
        let mut slot = self.reserve_slot(user, hash, head.size).await?;
        let writing = slot.writing.clone();
        let _turn = tokio::select! {
            turn = writing.lock() => turn,
            () = slot.superseded() => return Err(superseded()),
        };
        if self.files.has(hash, head.size).await? {
            send_progress(responses, head.size);
            return Ok(());
        }
        let path = self.folder.join(&slot.name);
        let mut partial = Partial::open(path.clone(), head.size).await?;
        let mut outcome = write(&mut partial, &head, &mut parts, &mut slot, responses).await;
        // Flushed before the next upload may write.
        outcome = outcome.and(partial.flush().await);
        if let Ok(()) = outcome {
            outcome = partial.finish(&head, hash).await;
        }
        match outcome {
            Ok(()) => self.files.keep(path, hash, head.size, user).await,
            // Invalid, so there is nothing to resume.
            Err(status) if status.code() == Code::InvalidArgument => {
                fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
                Err(status)
            }
            Err(status) => Err(status),
        }
    }

    /// Admits an upload if there is room for the file.
    async fn reserve_slot(self: &Arc<Self>, user: i64, hash: Hash, size: u64) -> Result<UploadSlot, Status> {
        let uploads = self.clone();
        self.files.store().run(move |store| uploads.admit(store, user, hash, size)).await?
    }

    fn admit(
        self: Arc<Self>,
        store: &Store,
        user: i64,
        hash: Hash,
        size: u64,
    ) -> rusqlite::Result<Result<UploadSlot, Status>> {
        let per_user = format!("{user}-");
        let name = format!("{per_user}{}", hex(&hash));
        let is_known = store.file_size(&hash)? == Some(size);
        let stored = store.bytes_of_files(user, FILE_OVERHEAD)?;
        let mut active = self.active();
        let count: usize = active
            .iter()
            .filter(|(name, _)| name.starts_with(&per_user))
            .map(|(_, active)| active.count)
            .sum();
        if count >= UPLOADS_PER_USER_MAX {
            return Ok(Err(Status::resource_exhausted(format!(
                "you send {UPLOADS_PER_USER_MAX} files at this moment; wait for one of them"
            ))));
        }
        // The same file may already be in progress with another announced size; the larger one counts.
        let size = size.max(active.get(&name).map_or(0, |active| active.size));
        if !is_known {
            let mut partial = match self.partial() {
                Ok(partial) => partial,
                Err(error) => return Ok(Err(failed(&self.folder, &error))),
            };
            for (name, active) in active.iter() {
                partial.insert(name.clone(), active.size);
            }
            partial.insert(name.clone(), size);
            if let Err(status) = self.quota.check(stored, &partial, &per_user) {
                return Ok(Err(status));
            }
        }
        let active = active.entry(name.clone()).or_insert_with(|| ActiveUpload {
            size: 0,
            count: 0,
            newest: watch::Sender::new(0),
            writing: Arc::default(),
        });
        active.size = size;
        active.count += 1;
        active.newest.send_modify(|newest| *newest += 1);
        let newest = active.newest.subscribe();
        let number = *newest.borrow();
        let writing = active.writing.clone();
        Ok(Ok(UploadSlot { uploads: self.clone(), name, number, newest, writing }))
    }

    /// Returns the names and sizes of the partial files.
    fn partial(&self) -> io::Result<HashMap<String, u64>> {
        fs::read_dir(&self.folder)?
            .map(|entry| {
                let entry = entry?;
                Ok((entry.file_name().to_string_lossy().into_owned(), entry.metadata()?.len()))
            })
            .collect()
    }

    /// Removes partial files of uploads that were interrupted long ago.
    pub(crate) fn clean(&self) -> io::Result<()> {
        // Held, so that no upload starts in the meantime.
        let active = self.active();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let is_old = entry.metadata()?.modified()?.elapsed().is_ok_and(|age| age > PARTIAL_AGE_MAX);
            if is_old && !active.contains_key(entry.file_name().to_string_lossy().as_ref()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn active(&self) -> MutexGuard<'_, HashMap<String, ActiveUpload>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Quota {
    fn check(
        self,
        (per_user, total): (u64, u64),
        partial: &HashMap<String, u64>,
        user: &str,
    ) -> Result<(), Status> {
        let cost = |user: &str| -> u64 {
            partial
                .iter()
                .filter(|(name, _)| name.starts_with(user))
                .map(|(_, size)| size + FILE_OVERHEAD)
                .sum()
        };
        if per_user + cost(user) > self.per_user {
            let quota = self.per_user / (1024 * 1024);
            let text = format!("your files would take more than the {quota} MiB that a user has");
            return Err(Status::resource_exhausted(text));
        }
        if total + cost("") > self.total {
            return Err(Status::resource_exhausted("there is no room for more files on this server"));
        }
        Ok(())
    }
}

/// An admitted upload; frees its place when dropped.
struct UploadSlot {
    uploads: Arc<Uploads>,
    /// Name of its partial file.
    name: String,
    number: u64,
    newest: watch::Receiver<u64>,
    writing: Arc<tokio::sync::Mutex<()>>,
}

impl UploadSlot {
    /// Returns when the same user has started the same upload again.
    async fn superseded(&mut self) {
        // Fails if the entry is gone from the map, which happens only when this is dropped.
        let _ = self.newest.wait_for(|newest| *newest != self.number).await;
    }
}

impl Drop for UploadSlot {
    fn drop(&mut self) {
        let mut active = self.uploads.active();
        let Some(entry) = active.get_mut(&self.name) else { return };
        entry.count -= 1;
        if entry.count == 0 {
            active.remove(&self.name);
        }
    }
}

/// Writes chunks until the stream ends.
async fn write(
    partial: &mut Partial,
    head: &proto::File,
    mut parts: impl Stream<Item = Result<UploadRequest, Status>> + Unpin,
    slot: &mut UploadSlot,
    responses: &ResponseSender,
) -> Result<(), Status> {
    send_progress(responses, partial.received);
    loop {
        let part = tokio::select! {
            part = next(&mut parts) => part?,
            () = slot.superseded() => return Err(superseded()),
        };
        let chunk = match part {
            None => return Ok(()),
            Some(Part::Chunk(chunk)) => chunk,
            Some(Part::Head(_)) => {
                return Err(Status::invalid_argument("an upload has one head, and then chunks"));
            }
        };
        let length = chunk.len();
        if length > CHUNK_MAX {
            let text = format!("a chunk has {length} bytes; it may have {CHUNK_MAX}");
            return Err(Status::invalid_argument(text));
        }
        let reported = partial.received / PROGRESS_INTERVAL_BYTES;
        partial.write(head, &chunk).await?;
        if partial.received / PROGRESS_INTERVAL_BYTES > reported {
            partial.flush().await?;
            send_progress(responses, partial.received);
        }
    }
}

/// Validates a head and returns the file's hash.
fn check(head: &proto::File) -> Result<Hash, Status> {
    let proto::File { hash, name, size } = head;
    names::check_file(name)?;
    if *size > SIZE_MAX {
        let text = format!("{name} has {size} bytes; a file may have {SIZE_MAX} (50 MiB)");
        return Err(Status::invalid_argument(text));
    }
    names::check_hash(hash)
}

/// Returns the next part, or `None` at the end.
async fn next(
    mut parts: impl Stream<Item = Result<UploadRequest, Status>> + Unpin,
) -> Result<Option<Part>, Status> {
    let Ok(request) = timeout(IDLE_TIMEOUT, parts.next()).await else {
        let text = format!("nothing came for {} s; send it again", IDLE_TIMEOUT.as_secs());
        return Err(Status::deadline_exceeded(text));
    };
    match request.transpose()? {
        None => Ok(None),
        Some(UploadRequest { part: Some(part) }) => Ok(Some(part)),
        Some(UploadRequest { part: None }) => {
            Err(Status::invalid_argument("a part has neither head nor chunk"))
        }
    }
}

/// Sends the progress. Dropped if the client does not read; later ones supersede it.
fn send_progress(responses: &ResponseSender, received: u64) {
    let _ = responses.try_send(Ok(UploadResponse { received }));
}

fn superseded() -> Status {
    Status::aborted("you have begun to send this file again, elsewhere")
}

#[cfg(test)]
mod tests {
    use sha2::{Digest as _, Sha256};

    use super::*;
    use crate::proto::DownloadResponse;

    const MIB: u64 = 1024 * 1024;

    struct World {
        uploads: Arc<Uploads>,
        users: [i64; 2],
        _folder: tempfile::TempDir,
    }

    fn world(quota: Quota) -> World {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(folder.path()).unwrap());
        let users = ["ada", "bob"].map(|name| store.add_user(name, "hash").unwrap().unwrap().id);
        let files = Arc::new(Files::open(folder.path(), &store).unwrap());
        World { uploads: Arc::new(Uploads::open(files, quota).unwrap()), users, _folder: folder }
    }

    impl World {
        /// Sends the parts, and returns the numbers that the server reports, in order.
        async fn send(&self, user: usize, parts: Vec<Result<Part, Status>>) -> Result<Vec<u64>, Status> {
            let (responses, mut received) = mpsc::channel(64);
            let parts = parts.into_iter().map(|part| part.map(|part| UploadRequest { part: Some(part) }));
            let parts = tokio_stream::iter(parts.collect::<Vec<_>>());
            self.uploads.receive(self.users[user], parts, &responses).await?;
            drop(responses);
            let mut progress = Vec::new();
            while let Some(response) = received.recv().await {
                progress.push(response?.received);
            }
            Ok(progress)
        }

        fn partial(&self) -> Vec<u64> {
            self.uploads.partial().unwrap().into_values().collect()
        }
    }

    fn roomy() -> World {
        world(Quota { per_user: 1024 * MIB, total: 1024 * MIB })
    }

    fn head(name: &str, bytes: &[u8]) -> Part {
        let hash = Sha256::digest(bytes).to_vec();
        Part::Head(proto::File { hash, name: name.to_owned(), size: bytes.len() as u64 })
    }

    fn chunk(bytes: &[u8]) -> Part {
        Part::Chunk(bytes.to_vec())
    }

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| ((at * at) >> 7) as u8).collect()
    }

    fn lost() -> Result<Part, Status> {
        Err(Status::unavailable("the connection is lost"))
    }

    #[track_caller]
    fn check(outcome: Result<Vec<u64>, Status>, code: Code, says: &str) {
        let status = outcome.unwrap_err();
        assert_eq!(status.code(), code, "{status:?}");
        assert!(status.message().contains(says), "{status:?}");
    }

    #[tokio::test]
    async fn file_is_received_in_chunks() {
        for bytes in [bytes(200_000), Vec::new()] {
            let world = roomy();
            let head = head("a.bin", &bytes);
            let mut parts = vec![Ok(head.clone()), Ok(chunk(&[]))];
            parts.extend(bytes.chunks(70_000).map(|piece| Ok(chunk(piece))));
            assert_eq!(world.send(0, parts).await.unwrap(), [0]);
            assert!(world.partial().is_empty());
            let Part::Head(file) = head else { unreachable!() };
            for offset in [0, bytes.len() / 2, bytes.len()] {
                let pieces = world.uploads.files.send(&file, offset as u64).await.unwrap();
                let pieces: Vec<DownloadResponse> = pieces.map(Result::unwrap).collect().await;
                let read: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.chunk).collect();
                assert_eq!(read, bytes[offset..]);
            }
            assert!(world.uploads.files.send(&file, bytes.len() as u64 + 1).await.is_err());
        }
    }

    #[tokio::test]
    async fn interrupted_upload_is_resumed() {
        let (world, bytes) = (roomy(), bytes(3_000_000));
        let head = || Ok(head("a.bin", &bytes));
        let broken_off = vec![head(), Ok(chunk(&bytes[..1_000_000])), lost()];
        check(world.send(0, broken_off).await, Code::Unavailable, "the connection is lost");
        let broken_off = vec![head(), Ok(chunk(&bytes[1_000_000..1_900_000])), lost()];
        check(world.send(0, broken_off).await, Code::Unavailable, "the connection is lost");
        assert_eq!(world.partial(), [1_900_000]);
        // Uploads of another user start from zero.
        check(world.send(1, vec![head(), lost()]).await, Code::Unavailable, "");
        let mut partial = world.partial();
        partial.sort_unstable();
        assert_eq!(partial, [0, 1_900_000]);
        let rest = [&bytes[1_900_000..2_500_000], &bytes[2_500_000..]].map(|piece| Ok(chunk(piece)));
        let responses = world.send(0, [head()].into_iter().chain(rest).collect()).await.unwrap();
        assert_eq!(responses, [1_900_000, 2_500_000]);
        // A file that is stored already need not be sent.
        assert_eq!(world.send(1, vec![head()]).await.unwrap(), [3_000_000]);
    }

    #[tokio::test]
    async fn invalid_upload_is_rejected_and_removed() {
        let large =
            || Part::Head(proto::File { hash: vec![7; 32], name: "a".to_owned(), size: SIZE_MAX + 1 });
        let short = || Part::Head(proto::File { hash: vec![7; 31], name: "a".to_owned(), size: 1 });
        for (parts, says) in [
            (vec![], "begins with its head"),
            (vec![chunk(b"abc")], "begins with its head"),
            (vec![head("../a", b"abc"), chunk(b"abc")], "has a path"),
            (vec![large()], "may have 52428800 (50 MiB)"),
            (vec![short()], "has 32 bytes; this has 31"),
            (vec![head("a", b"abc"), chunk(b"ab")], "was to have 3 bytes, and 2 came"),
            (vec![head("a", b"abc"), chunk(b"abcd")], "was to have 3 bytes, and at least 4 came"),
            (vec![head("a", b"abc"), head("a", b"abc")], "one head"),
            (vec![head("a", &bytes(2 << 20)), chunk(&bytes(CHUNK_MAX + 1))], "a chunk has 1048577 bytes"),
            (vec![head("a", b"abc"), chunk(b"abd")], "the SHA-256 of what came is not a's"),
        ] {
            let world = roomy();
            check(world.send(0, parts.into_iter().map(Ok).collect()).await, Code::InvalidArgument, says);
            assert!(world.partial().is_empty());
            assert_eq!(fs::read_dir(world.uploads.files.folder()).unwrap().count(), 1, "{says}");
        }
    }

    #[tokio::test]
    async fn partial_bytes_are_verified() {
        let world = roomy();
        let head = || Ok(head("a", b"abcdef"));
        check(world.send(0, vec![head(), Ok(chunk(b"xyz")), lost()]).await, Code::Unavailable, "");
        let refused = world.send(0, vec![head(), Ok(chunk(b"def"))]).await;
        check(refused, Code::InvalidArgument, "the SHA-256 of what came");
        assert_eq!(world.send(0, vec![head(), Ok(chunk(b"abcdef"))]).await.unwrap(), [0]);
    }

    #[tokio::test]
    async fn user_quota_is_enforced() {
        let mib = bytes(MIB as usize);
        let other = vec![0; MIB as usize];
        let all = |bytes: &[u8]| vec![Ok(head("a", bytes)), Ok(chunk(bytes))];
        // Uploads in progress and interrupted ones count.
        let world = world(Quota { per_user: 2 * MIB, total: 3 * MIB });
        check(world.send(0, vec![Ok(head("a", &mib)), Ok(chunk(&mib)), lost()]).await, Code::Unavailable, "");
        check(world.send(0, all(&other)).await, Code::ResourceExhausted, "the 2 MiB that a user has");
        world.send(0, vec![Ok(head("a", &mib))]).await.unwrap();
        check(world.send(0, all(&other)).await, Code::ResourceExhausted, "the 2 MiB that a user has");
        // A file that is stored already takes no extra space.
        world.send(0, vec![Ok(head("a", &mib))]).await.unwrap();
        world.send(1, all(&other)).await.unwrap();
        let third = bytes(MIB as usize - 1);
        check(world.send(1, all(&third)).await, Code::ResourceExhausted, "the 2 MiB that a user has");
    }

    /// The client announces the size, and may announce another one each time.
    #[tokio::test]
    async fn active_upload_counts_with_its_full_size() {
        let world = world(Quota { per_user: 2 * MIB, total: 3 * MIB });
        let begin =
            async |hash: u8, size: u64| world.uploads.reserve_slot(world.users[0], [hash; 32], size).await;
        let refused = async |hash, size| {
            let refused = begin(hash, size).await.map(|_| Vec::new());
            check(refused, Code::ResourceExhausted, "the 2 MiB that a user has");
        };
        let first = begin(7, 1).await.unwrap();
        refused(7, 2 * MIB).await;
        let second = begin(7, MIB).await.unwrap();
        refused(8, MIB).await;
        drop(first);
        refused(8, MIB).await;
        drop(second);
        begin(8, MIB).await.unwrap();
    }

    #[tokio::test]
    async fn total_quota_is_enforced() {
        let world = world(Quota { per_user: 2 * MIB, total: 2 * MIB });
        let all = |bytes: &[u8]| vec![Ok(head("a", bytes)), Ok(chunk(bytes))];
        world.send(0, all(&bytes(MIB as usize))).await.unwrap();
        let refused = world.send(1, all(&vec![0; MIB as usize])).await;
        check(refused, Code::ResourceExhausted, "no room for more files on this server");
    }

    #[tokio::test]
    async fn partial_uploads_are_removed_after_a_day() {
        let world = roomy();
        check(
            world.send(0, vec![Ok(head("a", b"abc")), Ok(chunk(b"a")), lost()]).await,
            Code::Unavailable,
            "",
        );
        world.uploads.clean().unwrap();
        assert_eq!(world.partial(), [1]);
        let path = fs::read_dir(&world.uploads.folder).unwrap().next().unwrap().unwrap().path();
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_modified(std::time::SystemTime::now() - PARTIAL_AGE_MAX - Duration::from_secs(60)).unwrap();
        world.uploads.clean().unwrap();
        assert!(world.partial().is_empty());
    }

    /// A client reconnects before the server notices that its first connection is lost.
    #[tokio::test]
    async fn latest_upload_supersedes_earlier_ones() {
        let world = roomy();
        let (sender, receiver) = mpsc::channel(4);
        let (uploads, user) = (world.uploads.clone(), world.users[0]);
        let (responses, mut progress) = mpsc::channel(4);
        let silent = tokio::spawn(async move {
            let parts = tokio_stream::wrappers::ReceiverStream::new(receiver);
            uploads.receive(user, parts, &responses).await
        });
        for part in [head("a", b"abcdef"), chunk(b"abc")] {
            sender.send(Ok(UploadRequest { part: Some(part) })).await.unwrap();
        }
        assert_eq!(progress.recv().await.unwrap().unwrap().received, 0);
        while sender.capacity() < 4 {
            tokio::task::yield_now().await;
        }
        let responses = world.send(0, vec![Ok(head("a", b"abcdef")), Ok(chunk(b"def"))]).await.unwrap();
        assert_eq!(responses, [3]);
        check(silent.await.unwrap().map(|()| Vec::new()), Code::Aborted, "elsewhere");
        assert!(world.uploads.active().is_empty());
    }

    #[tokio::test]
    async fn concurrent_uploads_per_user_are_limited() {
        let world = roomy();
        let begin = async |user: i64, length: usize| {
            world.uploads.reserve_slot(user, Sha256::digest(bytes(length)).into(), length as u64).await
        };
        let mut places = Vec::new();
        for length in 0..UPLOADS_PER_USER_MAX {
            places.push(begin(world.users[0], length).await.unwrap());
        }
        let refused = begin(world.users[0], 100).await.map(|_| Vec::new());
        check(refused, Code::ResourceExhausted, "you send 8 files at this moment");
        begin(world.users[1], 100).await.unwrap();
        places.pop();
        begin(world.users[0], 100).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn idle_upload_times_out() {
        let world = roomy();
        let (sender, receiver) = mpsc::channel(1);
        sender.send(Ok(UploadRequest { part: Some(head("a", b"abc")) })).await.unwrap();
        let parts = tokio_stream::wrappers::ReceiverStream::new(receiver);
        let (responses, _progress) = mpsc::channel(4);
        let outcome = world.uploads.receive(world.users[0], parts, &responses).await;
        check(outcome.map(|()| Vec::new()), Code::DeadlineExceeded, "nothing came for 30 s");
    }
}
