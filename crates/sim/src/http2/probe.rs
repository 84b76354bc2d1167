//! Whether the windows of a world that has come to rest are whole: what the wire says can be sent, and not a byte more.

use thalweg_http2::Config;

use super::Side;
use super::peer::{Phase, Scene};
use super::world::World;

impl World {
    /// Opens one more stream and fills the connection's windows with it, in both directions.
    pub(super) fn probe(&mut self, scene: &mut Scene<'_>) {
        let alive = Side::BOTH.iter().all(|&side| self.peers[side].phase == Phase::Open);
        if !alive || !self.peers[Side::Client].connection.can_open() {
            return;
        }
        self.peers[Side::Server].expect_probe();
        let stream = self.peers[Side::Client].open_probe(scene);
        self.run_until_quiet(scene);
        if scene.ledger.is_over(Side::Client, stream) {
            return;
        }
        self.peers[Side::Server].answer_probe(stream, scene);
        for side in Side::BOTH {
            self.fill_window(side, stream, scene);
            self.run_until_quiet(scene);
            if scene.ledger.is_over(side, stream) {
                // The link broke meanwhile.
                return;
            }
        }
        for side in Side::BOTH {
            self.peers[side].end(stream, scene);
        }
        self.run_until_quiet(scene);
    }

    fn fill_window(&mut self, side: Side, stream: u32, scene: &mut Scene<'_>) {
        let window = self.monitor.window(side);
        let receiver = &self.peers[side.other()];
        let config = receiver.config();
        if u64::from(config.stream_window) < window || config.held_max < Config::default().held_max {
            // The stream's window would end first, or is narrowed while much is held.
            return;
        }
        let before = self.monitor.sent(side);
        scene.note(side, "probe", stream, window as usize);
        self.peers[side].say(stream, window as usize + 1, false, scene);
        self.write_all(side, scene);
        assert_eq!(self.monitor.sent(side) - before, window, "{side:?} sends another amount than its window");
    }
}
