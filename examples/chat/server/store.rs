//! The database: users, sessions, rooms, messages and metadata of files.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, TransactionBehavior, params};
use thalweg::Status;
use tokio::task::spawn_blocking;

use crate::proto::{File, Message, message::Body};

/// Always exists.
const FIRST_ROOM: &str = "lobby";
const VERSION: i32 = 2;
/// Maximum number of messages per user and day (UTC).
pub(crate) const MESSAGES_A_DAY_MAX: i64 = 10_000;
/// Maximum size of the database in bytes; it rejects writes beyond it.
const SIZE_MAX: i64 = 8 << 30;
const PAGE_SIZE: i64 = 4096;
const DAY_S: i64 = 24 * 60 * 60;

const SCHEMA: &str = "
    CREATE TABLE users (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        password TEXT NOT NULL,
        -- Of the last day on which he sent any.
        sent_day INTEGER NOT NULL DEFAULT 0,
        sent_count INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE sessions (
        token BLOB PRIMARY KEY,
        user INTEGER NOT NULL REFERENCES users,
        ends_s INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX sessions_of_user ON sessions (user, ends_s);
    CREATE TABLE rooms (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE COLLATE NOCASE,
        last INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE files (
        hash BLOB PRIMARY KEY,
        size INTEGER NOT NULL,
        stored_s INTEGER NOT NULL,
        -- Whoever sent it first.
        owner INTEGER NOT NULL REFERENCES users
    ) WITHOUT ROWID;
    CREATE TABLE messages (
        room INTEGER NOT NULL REFERENCES rooms,
        number INTEGER NOT NULL,
        author INTEGER NOT NULL REFERENCES users,
        id BLOB NOT NULL,
        sent_ms INTEGER NOT NULL,
        text TEXT,
        file BLOB REFERENCES files,
        file_name TEXT,
        PRIMARY KEY (room, number),
        UNIQUE (author, id)
    ) WITHOUT ROWID;
    CREATE INDEX messages_of_file ON messages (file) WHERE file IS NOT NULL;
";

/// The columns that `message` reads, in its order.
const MESSAGES: &str = "
    SELECT rooms.name, messages.number, messages.id, users.name, messages.sent_ms, messages.text,
        messages.file, messages.file_name, files.size
    FROM messages JOIN rooms ON rooms.id = messages.room JOIN users ON users.id = messages.author
        LEFT JOIN files ON files.hash = messages.file
    WHERE messages.room = ?1";

/// Uses one connection to write and another to read, so that readers do not wait for the disk.
pub(crate) struct Store {
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("failed to write {}: {error}; name another folder with --data", path.display())]
    Folder { path: PathBuf, error: std::io::Error },
    #[error("cannot open the database {}: {error}", path.display())]
    Database { path: PathBuf, error: rusqlite::Error },
    #[error("the database {} has version {found}, and this program knows {VERSION}", path.display())]
    Version { path: PathBuf, found: i32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) id: i64,
    pub(crate) name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRoom {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) last: u64,
}

/// The outcome of sending a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Stored, now or when it was sent before.
    Stored { number: u64, sent_ms: i64 },
    /// Another message of this author has this id.
    IdIsTaken,
    /// The attached file has not been uploaded.
    NoSuchFile,
    /// The author has sent [`MESSAGES_A_DAY_MAX`] messages today.
    TooMany,
}

impl Store {
    pub(crate) fn open(folder: &Path) -> Result<Self, OpenError> {
        fs::create_dir_all(folder).map_err(|error| OpenError::Folder { path: folder.into(), error })?;
        let path = folder.join("chat.sqlite");
        let failed = |error| OpenError::Database { path: path.clone(), error };
        // Only the owner may read messages and hashes; SQLite gives its other files the mode of this one.
        let created = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
        created.map_err(|error| OpenError::Folder { path: path.clone(), error })?;
        let mut writer = connect(&path).map_err(failed)?;
        let version = writer.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(failed)?;
        match version {
            0 => create(&mut writer).map_err(failed)?,
            VERSION => {}
            found => return Err(OpenError::Version { path, found }),
        }
        let reader = connect(&path).map_err(failed)?;
        Ok(Self { writer: Mutex::new(writer), reader: Mutex::new(reader) })
    }

    /// Runs `work` on a thread that may block. Logs the details of errors; clients only learn that it failed.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Status> {
        let store = self.clone();
        let done = spawn_blocking(move || work(&store)).await;
        done.map_err(|error| Status::internal(format!("the store's task failed: {error}")))?.map_err(
            |error| {
                eprintln!("chat-server: the database failed: {error}");
                match error.sqlite_error_code() {
                    Some(ErrorCode::DiskFull) => Status::resource_exhausted("the server is full"),
                    _ => Status::internal("the server's database failed; its log says why"),
                }
            },
        )
    }

    /// Number of accounts; none is ever removed.
    pub(crate) fn users(&self) -> rusqlite::Result<i64> {
        self.reader().query_row("SELECT coalesce(max(id), 0) FROM users", [], |row| row.get(0))
    }

    /// Returns `None` if the name is taken.
    pub(crate) fn add_user(&self, name: &str, password: &str) -> rusqlite::Result<Option<User>> {
        let writer = self.writer();
        let added = writer.execute("INSERT INTO users (name, password) VALUES (?1, ?2)", [name, password]);
        Ok(none_if_taken(added)?.map(|_| User { id: writer.last_insert_rowid(), name: name.to_owned() }))
    }

    /// Returns the user and the password's hash.
    pub(crate) fn user(&self, name: &str) -> rusqlite::Result<Option<(User, String)>> {
        let query = "SELECT id, name, password FROM users WHERE name = ?1";
        let user = |row: &Row<'_>| Ok((User { id: row.get(0)?, name: row.get(1)? }, row.get(2)?));
        self.reader().query_row(query, [name], user).optional()
    }

    /// Adds a session. Ends the user's expired and surplus sessions, and returns their tokens.
    pub(crate) fn add_session(
        &self,
        token: [u8; 32],
        user: i64,
        ends_s: u64,
        sessions_max: u32,
    ) -> rusqlite::Result<Vec<[u8; 32]>> {
        let mut writer = self.writer();
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute(
            "INSERT INTO sessions VALUES (?1, ?2, ?3)",
            params![token, user, ends_s.cast_signed()],
        )?;
        let ended = transaction
            .prepare(
                "DELETE FROM sessions WHERE user = ?1 AND (ends_s <= ?2 OR token NOT IN
                    (SELECT token FROM sessions WHERE user = ?1 ORDER BY token = ?4 DESC, ends_s DESC LIMIT ?3))
                 RETURNING token",
            )?
            .query_map(params![user, now_s(), sessions_max, token], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        transaction.commit()?;
        Ok(ended)
    }

    pub(crate) fn remove_session(&self, token: [u8; 32]) -> rusqlite::Result<()> {
        self.writer().execute("DELETE FROM sessions WHERE token = ?1", [token]).map(drop)
    }

    /// Returns all unexpired sessions: token, user, end.
    pub(crate) fn sessions(&self) -> rusqlite::Result<Vec<([u8; 32], User, u64)>> {
        let writer = self.writer();
        writer.execute("DELETE FROM sessions WHERE ends_s <= ?1", [now_s()])?;
        let mut query = writer
            .prepare("SELECT token, users.id, name, ends_s FROM sessions JOIN users ON users.id = user")?;
        let session = |row: &Row<'_>| {
            let user = User { id: row.get(1)?, name: row.get(2)? };
            Ok((row.get(0)?, user, row.get::<_, i64>(3)? as u64))
        };
        query.query_map([], session)?.collect()
    }

    pub(crate) fn rooms(&self) -> rusqlite::Result<Vec<StoredRoom>> {
        let reader = self.reader();
        let mut query = reader.prepare("SELECT id, name, last FROM rooms ORDER BY name")?;
        query.query_map([], room)?.collect()
    }

    pub(crate) fn room(&self, name: &str) -> rusqlite::Result<Option<StoredRoom>> {
        let reader = self.reader();
        let mut query = reader.prepare("SELECT id, name, last FROM rooms WHERE name = ?1")?;
        query.query_row([name], room).optional()
    }

    /// Returns false if the name is taken.
    pub(crate) fn add_room(&self, name: &str) -> rusqlite::Result<bool> {
        let added = self.writer().execute("INSERT INTO rooms (name) VALUES (?1)", [name]);
        Ok(none_if_taken(added)?.is_some())
    }

    /// Assigns a number and stores the message in one transaction. A message that is already stored keeps its number.
    pub(crate) fn send(&self, room: i64, author: i64, id: &[u8], body: &Body) -> rusqlite::Result<Sent> {
        let (text, file) = match body {
            Body::Text(text) => (Some(text), None),
            Body::File(file) => (None, Some(file)),
        };
        let mut writer = self.writer();
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let known = transaction
            .prepare(
                "SELECT number, sent_ms, room = ?3 AND text IS ?4 AND file IS ?5 FROM messages
                 WHERE author = ?1 AND id = ?2",
            )?
            .query_row(params![author, id, room, text, file.map(|file| &file.hash)], |row| {
                Ok((row.get::<_, i64>(0)? as u64, row.get(1)?, row.get(2)?))
            })
            .optional()?;
        match known {
            Some((number, sent_ms, true)) => return Ok(Sent::Stored { number, sent_ms }),
            Some(_) => return Ok(Sent::IdIsTaken),
            None => {}
        }
        if let Some(file) = file
            && size_of(&transaction, &file.hash)? != Some(file.size)
        {
            return Ok(Sent::NoSuchFile);
        }
        let sent_ms = since_1970().as_millis() as i64;
        let sent_today: i64 = transaction
            .prepare(
                "UPDATE users SET sent_count = CASE sent_day WHEN ?2 THEN sent_count ELSE 0 END + 1, sent_day = ?2
                 WHERE id = ?1 RETURNING sent_count",
            )?
            .query_row([author, sent_ms / 1000 / DAY_S], |row| row.get(0))?;
        if sent_today > MESSAGES_A_DAY_MAX {
            return Ok(Sent::TooMany);
        }
        let number: i64 = transaction
            .prepare("UPDATE rooms SET last = last + 1 WHERE id = ?1 RETURNING last")?
            .query_row([room], |row| row.get(0))?;
        transaction
            .prepare(
                "INSERT INTO messages (room, number, author, id, sent_ms, text, file, file_name)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute(params![
                room,
                number,
                author,
                id,
                sent_ms,
                text,
                file.map(|file| &file.hash),
                file.map(|file| &file.name)
            ])?;
        transaction.commit()?;
        Ok(Sent::Stored { number: number as u64, sent_ms })
    }

    /// Returns the first `limit` messages after `number`, in order.
    pub(crate) fn messages_after(
        &self,
        room: i64,
        number: u64,
        limit: u32,
    ) -> rusqlite::Result<Vec<Message>> {
        let query = format!("{MESSAGES} AND number > ?2 ORDER BY number LIMIT ?3");
        self.messages(&query, room, number, limit)
    }

    /// Returns the last `limit` messages before `number`, in order.
    pub(crate) fn messages_before(
        &self,
        room: i64,
        number: u64,
        limit: u32,
    ) -> rusqlite::Result<Vec<Message>> {
        let query = format!("{MESSAGES} AND number < ?2 ORDER BY number DESC LIMIT ?3");
        let mut messages = self.messages(&query, room, number, limit)?;
        messages.reverse();
        Ok(messages)
    }

    pub(crate) fn message(&self, room: i64, number: u64) -> rusqlite::Result<Option<Message>> {
        let query = format!("{MESSAGES} AND number = ?2 LIMIT ?3");
        Ok(self.messages(&query, room, number, 1)?.pop())
    }

    fn messages(&self, query: &str, room: i64, number: u64, limit: u32) -> rusqlite::Result<Vec<Message>> {
        let reader = self.reader();
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        reader.prepare(query)?.query_map(params![room, number, limit], message)?.collect()
    }

    pub(crate) fn add_file(&self, hash: &[u8], size: u64, owner: i64) -> rusqlite::Result<()> {
        let added = "INSERT INTO files VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET stored_s = excluded.stored_s";
        self.writer().execute(added, params![hash, size.cast_signed(), now_s(), owner]).map(drop)
    }

    /// Returns the size of a file, if it is stored.
    pub(crate) fn file_size(&self, hash: &[u8]) -> rusqlite::Result<Option<u64>> {
        size_of(&self.reader(), hash)
    }

    /// Returns whether the file is stored; if so, sets its time to now.
    pub(crate) fn renew_file(&self, hash: &[u8], size: u64) -> rusqlite::Result<bool> {
        let renewed = "UPDATE files SET stored_s = ?3 WHERE hash = ?1 AND size = ?2";
        Ok(self.writer().execute(renewed, params![hash, size.cast_signed(), now_s()])? > 0)
    }

    /// Returns the bytes of one user's files and of all files; each file counts `each` extra bytes.
    pub(crate) fn bytes_of_files(&self, owner: i64, each: u64) -> rusqlite::Result<(u64, u64)> {
        let query =
            "SELECT coalesce(sum(size + ?2) FILTER (WHERE owner = ?1), 0), coalesce(sum(size + ?2), 0)
                     FROM files";
        let bytes = |row: &Row<'_>| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64));
        self.reader().query_row(query, [owner, each.cast_signed()], bytes)
    }

    /// Deletes files that no message carries and that are older than `unused_for`; returns their hashes.
    pub(crate) fn remove_unused_files(&self, unused_for: Duration) -> rusqlite::Result<Vec<Vec<u8>>> {
        let writer = self.writer();
        let mut query = writer.prepare(
            "DELETE FROM files WHERE stored_s < ?1 AND NOT EXISTS (SELECT 1 FROM messages WHERE file = hash)
             RETURNING hash",
        )?;
        query.query_map([now_s() - unused_for.as_secs().cast_signed()], |row| row.get(0))?.collect()
    }

    /// Poisoning is ignored: an uncommitted transaction is rolled back, so a panic leaves nothing half done.
    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn now_s() -> i64 {
    since_1970().as_secs().cast_signed()
}

fn since_1970() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Acknowledged writes survive a power cut, not only the end of the process.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "max_page_count", SIZE_MAX / PAGE_SIZE)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    Ok(connection)
}

fn create(writer: &mut Connection) -> rusqlite::Result<()> {
    let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.execute("INSERT INTO rooms (name) VALUES (?1)", [FIRST_ROOM])?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

fn size_of(connection: &Connection, hash: &[u8]) -> rusqlite::Result<Option<u64>> {
    let size = |row: &Row<'_>| row.get::<_, i64>(0).map(i64::cast_unsigned);
    connection.query_row("SELECT size FROM files WHERE hash = ?1", [hash], size).optional()
}

/// Maps a violated constraint, such as a name that exists, to `None`.
fn none_if_taken<T>(added: rusqlite::Result<T>) -> rusqlite::Result<Option<T>> {
    match added {
        Ok(added) => Ok(Some(added)),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(None),
        Err(error) => Err(error),
    }
}

fn room(row: &Row<'_>) -> rusqlite::Result<StoredRoom> {
    Ok(StoredRoom { id: row.get(0)?, name: row.get(1)?, last: row.get::<_, i64>(2)?.cast_unsigned() })
}

fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    let body = match row.get(5)? {
        Some(text) => Body::Text(text),
        None => Body::File(File { hash: row.get(6)?, name: row.get(7)?, size: row.get::<_, i64>(8)? as u64 }),
    };
    Ok(Message {
        room: row.get(0)?,
        number: row.get::<_, i64>(1)? as u64,
        id: row.get(2)?,
        author: row.get(3)?,
        sent_ms: row.get(4)?,
        body: Some(body),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Body {
        Body::Text(text.to_owned())
    }

    /// Opens the store again for each message. Checks the numbers returned and the messages left at the end.
    fn check(sends: &[(&[u8], Body)], numbers: &[Option<u64>], left: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let ada = Store::open(folder.path()).unwrap().add_user("ada", "hash").unwrap().unwrap();
        for ((id, body), expected) in sends.iter().zip(numbers) {
            let store = Store::open(folder.path()).unwrap();
            let room = store.room(FIRST_ROOM).unwrap().unwrap();
            let number = match store.send(room.id, ada.id, id, body).unwrap() {
                Sent::Stored { number, .. } => Some(number),
                Sent::IdIsTaken | Sent::NoSuchFile | Sent::TooMany => None,
            };
            assert_eq!(number, *expected, "{body:?}");
        }
        let store = Store::open(folder.path()).unwrap();
        let room = store.room(FIRST_ROOM).unwrap().unwrap();
        let messages = store.messages_after(room.id, 0, 100).unwrap();
        let texts: Vec<String> = messages
            .iter()
            .map(|message| match message.body.as_ref().unwrap() {
                Body::Text(text) => text.clone(),
                Body::File(file) => file.name.clone(),
            })
            .collect();
        assert_eq!(texts, left);
        assert_eq!(
            messages.iter().map(|message| message.number).collect::<Vec<_>>(),
            (1..=room.last).collect::<Vec<_>>()
        );
    }

    #[test]
    fn messages_are_numbered_and_deduplicated() {
        check(
            &[(b"1", text("one")), (b"2", text("two")), (b"1", text("one")), (b"3", text("three"))],
            &[Some(1), Some(2), Some(1), Some(3)],
            &["one", "two", "three"],
        );
    }

    #[test]
    fn message_id_is_unique() {
        check(&[(b"1", text("one")), (b"1", text("another"))], &[Some(1), None], &["one"]);
    }

    #[test]
    fn message_requires_a_stored_file() {
        let file = Body::File(File { hash: vec![7; 32], name: "a.txt".to_owned(), size: 3 });
        check(&[(b"1", file), (b"2", text("one"))], &[None, Some(1)], &["one"]);
    }

    #[test]
    fn daily_message_limit_is_enforced() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let ada = store.add_user("ada", "hash").unwrap().unwrap();
        let room = store.room(FIRST_ROOM).unwrap().unwrap().id;
        let send = |id: u8| store.send(room, ada.id, &[id], &text("hello")).unwrap();
        let number = |sent: Sent| match sent {
            Sent::Stored { number, .. } => number,
            sent => panic!("{sent:?}"),
        };
        assert_eq!(number(send(1)), 1);
        store.writer().execute("UPDATE users SET sent_count = ?1 - 1", [MESSAGES_A_DAY_MAX]).unwrap();
        assert_eq!(number(send(2)), 2);
        assert_eq!(send(3), Sent::TooMany);
        assert_eq!(number(send(2)), 2, "sent again");
        store.writer().execute("UPDATE users SET sent_day = sent_day - 1", []).unwrap();
        assert_eq!(number(send(3)), 3, "on the next day, and without a gap");
    }

    #[tokio::test]
    async fn full_database_rejects_writes_and_keeps_data() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(folder.path()).unwrap());
        let ada = store.add_user("ada", "hash").unwrap().unwrap();
        let room = store.room(FIRST_ROOM).unwrap().unwrap().id;
        let pages = |connection: &Connection| -> i64 {
            connection.pragma_query_value(None, "max_page_count", |row| row.get(0)).unwrap()
        };
        assert_eq!(pages(&store.writer()) * PAGE_SIZE, SIZE_MAX);
        // Limits the database to its present size.
        store.writer().pragma_update(None, "max_page_count", 1).unwrap();
        let long = "x".repeat(4_000);
        let mut sent = 0_u8;
        let status = loop {
            let body = text(&long);
            match store.run(move |store| store.send(room, ada.id, &[sent], &body)).await {
                Ok(_) => sent += 1,
                Err(status) => break status,
            }
        };
        assert_eq!(status.code(), thalweg::Code::ResourceExhausted);
        assert_eq!(store.messages_after(room, 0, 500).unwrap().len(), usize::from(sent));
    }

    #[test]
    fn pages() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let ada = store.add_user("ada", "hash").unwrap().unwrap();
        let room = store.room(FIRST_ROOM).unwrap().unwrap().id;
        for id in 1..=10_u8 {
            store.send(room, ada.id, &[id], &text(&id.to_string())).unwrap();
        }
        let numbers =
            |messages: Vec<Message>| messages.iter().map(|message| message.number).collect::<Vec<_>>();
        assert_eq!(numbers(store.messages_after(room, 7, 2).unwrap()), [8, 9]);
        assert_eq!(numbers(store.messages_after(room, 10, 2).unwrap()), Vec::<u64>::new());
        assert_eq!(numbers(store.messages_before(room, 4, 2).unwrap()), [2, 3]);
        assert_eq!(numbers(store.messages_before(room, u64::MAX, 2).unwrap()), [9, 10]);
    }

    #[test]
    fn names_are_case_insensitive() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert!(store.add_user("Ada", "hash").unwrap().is_some());
        assert!(store.add_user("aDA", "hash").unwrap().is_none());
        assert_eq!(store.users().unwrap(), 1);
        assert_eq!(store.user("ADA").unwrap().unwrap().0.name, "Ada");
        assert!(!store.add_room("LOBBY").unwrap());
    }

    #[test]
    fn sessions_per_user_are_limited() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let ada = store.add_user("ada", "hash").unwrap().unwrap();
        let ends_s = now_s() as u64 + 1000;
        assert_eq!(store.add_session([1; 32], ada.id, ends_s, 2).unwrap(), Vec::<[u8; 32]>::new());
        assert_eq!(store.add_session([2; 32], ada.id, ends_s + 1, 2).unwrap(), Vec::<[u8; 32]>::new());
        assert_eq!(store.add_session([3; 32], ada.id, ends_s + 1, 2).unwrap(), [[1; 32]]);
        assert_eq!(store.sessions().unwrap().len(), 2);
    }

    #[test]
    fn unreferenced_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let ada = store.add_user("ada", "hash").unwrap().unwrap();
        let room = store.room(FIRST_ROOM).unwrap().unwrap().id;
        for hash in [[1; 32], [2; 32]] {
            store.add_file(&hash, 3, ada.id).unwrap();
        }
        let file = File { hash: vec![1; 32], name: "a.txt".to_owned(), size: 3 };
        store.send(room, ada.id, b"1", &Body::File(file)).unwrap();
        assert_eq!(store.remove_unused_files(Duration::from_secs(60)).unwrap(), Vec::<Vec<u8>>::new());
        store.writer().execute("UPDATE files SET stored_s = stored_s - 100", []).unwrap();
        assert_eq!(store.remove_unused_files(Duration::from_secs(60)).unwrap(), [[2; 32]]);
    }
}
