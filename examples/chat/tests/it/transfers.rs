//! Messages and files in flight when the connection is lost or the server is killed.

use std::fs;
use std::num::NonZeroU64;
use std::path::Path;
use std::thread;
use std::time::Duration;

use thalweg_link::{Address, Cut, Link, LinkOptions, Rate, Stats};

use crate::server::Server;
use crate::terminal::Terminal;

const SIZE: u64 = 16_000_000;
/// Bytes transferred before the server is killed.
const BEFORE: u64 = 6_000_000;
/// Maximum number of bytes over the link, including TLS and the bytes in flight at the kill. A transfer that restarted
/// from zero would need more than `SIZE + BEFORE`.
const PASSED_MAX: u64 = SIZE + BEFORE / 2;
/// Bytes per second. The rest after `BEFORE` takes seconds, so the kill falls into the transfer on any machine.
const SLOW: Rate = Rate::from_bytes_per_second(NonZeroU64::new(2_000_000).unwrap());

struct World {
    server: Server,
    link: Link,
    data: tempfile::TempDir,
}

impl World {
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let server = Server::start(data.path(), 0);
        let listen: Address = "127.0.0.1:0".parse().unwrap();
        let to: Address = format!("127.0.0.1:{}", server.port).parse().unwrap();
        let link = Link::start(LinkOptions::new(listen, to)).unwrap();
        let bytes: Vec<u8> = (0..SIZE).map(|at| (at.wrapping_mul(at) >> 7) as u8).collect();
        fs::write(data.path().join("large.raw"), bytes).unwrap();
        Self { server, link, data }
    }

    fn terminal(&self) -> Terminal {
        let port = self.link.address().to_string().rsplit_once(':').unwrap().1.parse().unwrap();
        Terminal::start(port, self.data.path(), &self.data.path().join("downloads"))
    }

    /// Kills the server during a transfer, passes its data folder to `look`, and restarts it.
    fn kill_in_the_middle(&mut self, passed: impl Fn(Stats) -> u64, look: impl FnOnce(&Path)) {
        while passed(self.link.stats()) < BEFORE {
            thread::sleep(Duration::from_millis(10));
        }
        self.server.kill();
        look(self.data.path());
        self.link.set_rate(None);
        self.server = Server::start(self.data.path(), self.server.port);
    }

    fn is_as_sent(&self, path: &Path) -> bool {
        fs::read(path).unwrap() == fs::read(self.data.path().join("large.raw")).unwrap()
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn message_is_resent_after_a_lost_response() {
    let world = World::start();
    let ada = world.terminal();
    ada.enter("ada", "correct horse", "\x12");
    ada.wait_for("here: 1");
    ada.line("first");
    ada.wait_for("ada: first");
    world.link.stall();
    ada.line("on its way");
    ada.wait_for("... sending ada: on its way");
    // Leaves time for the call to start; it gets no response.
    thread::sleep(Duration::from_millis(300));
    world.link.cut(Cut::Reset);
    world.link.resume();
    ada.wait("an answer", |screen| screen.contains("2 ") && !screen.contains("... sending"));
    let messages: Vec<_> = ada.messages().into_iter().map(|(number, _, text)| (number, text)).collect();
    assert_eq!(messages, [(1, "first".to_owned()), (2, "on its way".to_owned())]);
}

#[test]
fn upload_resumes_after_server_kill() {
    let mut world = World::start();
    let ada = world.terminal();
    ada.enter("ada", "correct horse", "\x12");
    ada.wait_for("here: 1");
    world.link.set_rate(Some(SLOW));
    world.link.reset_stats();
    ada.line("/send large.raw");
    world.kill_in_the_middle(
        |stats| stats.up.bytes,
        |data| {
            assert_eq!(names(&data.join("files")), ["partial"]);
            assert_eq!(names(&data.join("files/partial")).len(), 1);
        },
    );
    ada.wait_for("[file large.raw, 16.0 MB: /save 1]");
    let passed = world.link.stats().up.bytes;
    assert!((SIZE..PASSED_MAX).contains(&passed), "{passed} bytes went up");
    let files = world.data.path().join("files");
    assert_eq!(names(&files.join("partial")), [""; 0]);
    let stored = names(&files).into_iter().find(|name| name != "partial").unwrap();
    assert!(world.is_as_sent(&files.join(stored)));
}

#[test]
fn download_resumes_after_server_kill() {
    let mut world = World::start();
    let ada = world.terminal();
    ada.enter("ada", "correct horse", "\x12");
    ada.wait_for("here: 1");
    ada.line("/send large.raw");
    ada.wait_for("[file large.raw, 16.0 MB: /save 1]");
    world.link.set_rate(Some(SLOW));
    world.link.reset_stats();
    ada.line("/save 1");
    world.kill_in_the_middle(
        |stats| stats.down.bytes,
        |data| {
            let names = names(&data.join("downloads"));
            assert!(names.iter().all(|name| name.starts_with(".chat-download-")), "{names:?}");
        },
    );
    let downloads = world.data.path().join("downloads");
    ada.wait_for(&format!("saved {}", downloads.join("large.raw").display()));
    let passed = world.link.stats().down.bytes;
    assert!((SIZE..PASSED_MAX).contains(&passed), "{passed} bytes came down");
    assert_eq!(names(&downloads), ["large.raw"]);
    assert!(world.is_as_sent(&downloads.join("large.raw")));
}

#[test]
fn transfer_resumes_after_client_kill() {
    let world = World::start();
    let check = |line: &str, passed: &dyn Fn(Stats) -> u64, done: &str| {
        world.link.set_rate(Some(SLOW));
        world.link.reset_stats();
        for time in ["first", "second"] {
            let ada = world.terminal();
            ada.enter("ada", "correct horse", "\r");
            ada.wait_for("here: 1");
            ada.line(line);
            if time == "first" {
                while passed(world.link.stats()) < BEFORE {
                    thread::sleep(Duration::from_millis(10));
                }
                // Dropping the terminal kills the client.
            } else {
                world.link.set_rate(None);
                ada.wait_for(done);
            }
        }
        let passed = passed(world.link.stats());
        assert!((SIZE..PASSED_MAX).contains(&passed), "{passed} bytes for {line}");
    };
    {
        let ada = world.terminal();
        ada.enter("ada", "correct horse", "\x12");
        ada.wait_for("here: 1");
    }
    check("/send large.raw", &|stats| stats.up.bytes, "[file large.raw, 16.0 MB: /save 1]");
    let downloads = world.data.path().join("downloads");
    let saved = format!("saved {}", downloads.join("large.raw").display());
    check("/save 1", &|stats| stats.down.bytes, &saved);
    assert_eq!(names(&downloads), ["large.raw"]);
    assert!(world.is_as_sent(&downloads.join("large.raw")));
}

#[test]
fn corrupted_file_is_not_saved() {
    let world = World::start();
    let ada = world.terminal();
    fs::write(world.data.path().join("small.txt"), "as it was sent").unwrap();
    ada.enter("ada", "correct horse", "\x12");
    ada.wait_for("here: 1");
    ada.line("/send small.txt");
    ada.wait_for("/save 1]");
    let files = world.data.path().join("files");
    let stored = names(&files).into_iter().find(|name| name != "partial").unwrap();
    fs::write(files.join(stored), "as it was SENT").unwrap();
    ada.line("/save 1");
    ada.wait_for("its SHA-256 differs");
    assert_eq!(names(&world.data.path().join("downloads")), [""; 0]);
}
