//! Whether a connection on which nothing moves goes on looking for what comes before it sleeps, and for how long.
//!
//! The driver does not spin: after each try it gives way to the other tasks of its thread, which may be the very ones
//! that would make the next call.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};

use super::give_way::give_way;
use super::load::nanoseconds;
use super::looks::Looks;
use super::thread_looks;
use crate::net;

/// What a connection on which nothing moves does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Sleeps,
    /// Looks for so long, always.
    Looks(Duration),
    /// Looks for up to [`LOOK_MAX`] where that has paid: see [`Looks`].
    AsItPays,
}

/// Busy polling of one connection.
#[derive(Debug)]
pub(super) struct BusyPoll {
    waiting: Waiting,
    pace: Pace,
    /// Of looks at its own socket; of those for the thread it is the thread's.
    looks: Looks,
    /// Bytes read and written since nothing moved, and the most that there were lately.
    moved_len: usize,
    moved_len_lately: usize,
    /// The look that has found nothing so far.
    look: Option<Look>,
    tries: u32,
    /// After how many tries the runtime polls everything else; 0 until its kind is known.
    tries_per_runtime_poll: u32,
}

/// A look that has found nothing so far. Time of the machine, even where a test has stopped tokio's: what is spent is a
/// processor.
#[derive(Clone, Copy, Debug)]
struct Look {
    since: Instant,
    tried_at: Instant,
    place: Place,
}

/// Where it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At its own socket.
    Socket,
    /// At all sockets of the thread, by the runtime, for all connections that the thread drives.
    Thread,
}

impl Look {
    /// Whether what has come now was found by it. What the first try of a thread finds was there before.
    fn is_find(self) -> bool {
        self.place == Place::Socket || self.tried_at > self.since
    }
}

/// How long a look takes that finds nothing: about what it takes to fall asleep and to be woken.
const LOOK_MAX: Duration = Duration::from_micros(30);
/// So many bytes are small messages. Larger ones come in pieces, and who looks sooner finds smaller ones.
const MOVED_LEN_MAX: usize = 24 * 1024;
/// What the rest of a large message counts as that is still to come.
const LARGE_LEN: usize = 64 * 1024;
/// By so much of itself what moved lately is less each time that nothing moves.
const LATELY_SHARE: usize = 8;
/// What comes closer to what came before is worth waiting for.
const GAP_MAX: Duration = Duration::from_micros(150);
/// So many reads are of a new connection, which may not have more than them.
const NEW_READS: u32 = 8;

/// Whether what a connection reads comes closely ([`GAP_MAX`]), and has come for some time: a new one does not look.
#[derive(Debug, Default)]
struct Pace {
    /// When something was last read, and whether that was close to what was read before.
    read_at: Option<tokio::time::Instant>,
    is_close: bool,
    /// So many polls have read something.
    reads: u32,
}

impl Pace {
    #[inline]
    fn note_read(&mut self, polled_at: tokio::time::Instant) {
        if self.read_at != Some(polled_at) {
            let before = self.read_at.replace(polled_at);
            self.is_close =
                before.is_some_and(|before| polled_at.saturating_duration_since(before) < GAP_MAX);
            self.reads = self.reads.saturating_add(1);
        }
    }

    fn is_close(&self) -> bool {
        self.is_close && self.reads > NEW_READS
    }
}

/// A poll by the runtime of timers, other sockets and the future of `block_on` costs about a microsecond, four
/// times what a try costs, so not every try is followed by one. By itself it would poll after 61 tasks, which here are
/// one task 61 times.
const TRIES_PER_RUNTIME_POLL: u32 = 8;

impl BusyPoll {
    /// Looks for `asked`; without it, where that pays.
    pub(super) fn new(asked: Option<Duration>) -> Self {
        let waiting = match asked {
            None => Waiting::AsItPays,
            Some(Duration::ZERO) => Waiting::Sleeps,
            Some(duration) => Waiting::Looks(duration),
        };
        Self {
            waiting,
            pace: Pace::default(),
            looks: Looks::NEW,
            moved_len: 0,
            moved_len_lately: 0,
            look: None,
            tries: 0,
            tries_per_runtime_poll: 0,
        }
    }

    /// Whether it looks: this poll of its driver is not because something has come.
    #[inline]
    pub(super) fn is_looking(&self) -> bool {
        self.look.is_some()
    }

    /// A poll of the driver begins: whether its first read is a try.
    #[inline]
    pub(super) fn begin_poll(&self) {
        if self.look.is_some_and(|look| look.place == Place::Socket) {
            net::set_looking(true);
        }
    }

    /// It ends.
    #[inline]
    pub(super) fn end_poll(&self) {
        if self.look.is_some() {
            net::set_looking(false);
        }
    }

    /// Something was written: the next try that finds nothing is the first.
    #[inline]
    pub(super) fn note_wrote(&mut self, written: usize) {
        self.moved_len += written;
        self.end_look();
    }

    /// Something was read in the poll that began at `polled_at`.
    #[inline]
    pub(super) fn note_read(&mut self, read: usize, polled_at: tokio::time::Instant) {
        self.moved_len += read;
        if let Some(look) = self.end_look()
            && look.is_find()
        {
            self.with_looks(look.place, Looks::note_found);
        }
        if self.waiting == Waiting::AsItPays {
            self.pace.note_read(polled_at);
            thread_looks::note_read();
        }
    }

    /// The one that ends, if any.
    #[inline]
    fn end_look(&mut self) -> Option<Look> {
        let look = self.look.take()?;
        net::set_looking(false);
        Some(look)
    }

    /// Nothing moved on the connection of this `identity`: whether to try again. `is_amid`: the rest of a large message
    /// is still to come. `is_alone`: the thread has no other connection. `may_pay`: something is expected.
    #[inline]
    pub(super) fn goes_on(
        &mut self,
        identity: usize,
        is_amid: bool,
        is_alone: bool,
        may_pay: impl FnOnce() -> bool,
    ) -> bool {
        let (duration, place) = match (self.waiting, self.look) {
            (Waiting::Sleeps, _) => return false,
            (Waiting::Looks(duration), _) => (duration, Place::Socket),
            (Waiting::AsItPays, Some(look)) => (LOOK_MAX, look.place),
            (Waiting::AsItPays, None) => {
                let before = self.moved_len_lately - self.moved_len_lately / LATELY_SHARE;
                let amid = if is_amid { LARGE_LEN } else { 0 };
                self.moved_len_lately = std::mem::take(&mut self.moved_len).max(before).max(amid);
                let place = if is_alone { Place::Socket } else { Place::Thread };
                if self.moved_len_lately > MOVED_LEN_MAX
                    || !self.pace.is_close()
                    || !may_pay()
                    || !self.with_looks(place, Looks::is_due)
                {
                    return false;
                }
                (LOOK_MAX, place)
            }
        };
        self.tries_on(identity, duration, place)
    }

    /// Stops looking, without a judgement whether it has paid.
    pub(super) fn stop(&mut self) {
        if self.end_look().is_some_and(|look| look.place == Place::Thread) {
            thread_looks::end();
        }
    }

    fn tries_on(&mut self, identity: usize, duration: Duration, place: Place) -> bool {
        let now = Instant::now();
        let begun = Look { since: now, tried_at: now, place };
        let read = match place {
            Place::Socket => Some(false),
            Place::Thread => thread_looks::go_on(identity, self.look.is_none(), now),
        };
        let Some(has_read) = read else {
            // Another one looks for the thread.
            self.look = None;
            return false;
        };
        let Some(look) = &mut self.look else {
            self.look = Some(begun);
            return true;
        };
        if has_read {
            if std::mem::replace(look, begun).is_find() {
                self.with_looks(place, Looks::note_found);
            }
            return true;
        }
        net::add_in_vain(nanoseconds(look.tried_at.into(), now.into()));
        look.tried_at = now;
        if now - look.since < duration {
            return true;
        }
        if place == Place::Thread {
            thread_looks::end();
        }
        self.end_look();
        self.with_looks(place, Looks::note_in_vain);
        false
    }

    fn with_looks<R>(&mut self, place: Place, change: impl FnOnce(&mut Looks) -> R) -> R {
        match place {
            Place::Socket => change(&mut self.looks),
            Place::Thread => thread_looks::with_looks(change),
        }
    }

    /// Lets the other tasks of the thread run, and the runtime poll from time to time, before the task is polled again.
    pub(super) fn give_way(&mut self, cx: &mut Context<'_>) {
        if self.tries_per_runtime_poll == 0 {
            self.tries_per_runtime_poll = match Handle::try_current().map(|runtime| runtime.runtime_flavor())
            {
                Ok(RuntimeFlavor::CurrentThread) => TRIES_PER_RUNTIME_POLL,
                // A task that wakes itself makes one of several threads wake another to share the work: it must not.
                _ => 1,
            };
        }
        self.tries = self.tries.wrapping_add(1);
        let is_at_thread = self.look.is_some_and(|look| look.place == Place::Thread);
        if is_at_thread || self.tries.is_multiple_of(self.tries_per_runtime_poll) {
            let _: Poll<()> = give_way(cx);
        } else {
            cx.waker().wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of `sleeps` sleeps had a look before them, where something comes after each `gap`, and a look finds it
    /// if `finds` says so.
    fn looks(gap: Duration, sleeps: u32, finds: impl Fn(u32) -> bool) -> u32 {
        let mut busy_poll = BusyPoll::new(None);
        let begin = tokio::time::Instant::now();
        let mut looks = 0;
        for sleep in 0..sleeps {
            busy_poll.note_read(40, begin + gap * sleep);
            if busy_poll.goes_on(1, false, true, || true) {
                looks += 1;
                if !finds(sleep) {
                    busy_poll.look.as_mut().expect("it looks").since -= LOOK_MAX;
                    assert!(!busy_poll.goes_on(1, false, true, || true));
                }
            }
        }
        looks
    }

    const CLOSE: Duration = Duration::from_micros(50);

    #[test]
    fn who_finds_something_goes_on_looking() {
        assert_eq!(looks(CLOSE, 1000, |_| true), 1000 - NEW_READS);
        assert!(looks(CLOSE, 1000, |sleep| sleep % 4 != 0) > 200, "one in four finds nothing");
    }

    #[test]
    fn who_finds_nothing_looks_seldom() {
        assert!((5..40).contains(&looks(CLOSE, 100_000, |_| false)));
        assert_eq!(looks(Duration::from_millis(1), 1000, |_| true), 0, "what comes is far apart");
    }

    /// One that has read so often that it would look, and when it did so last.
    fn reads_closely() -> (BusyPoll, tokio::time::Instant) {
        let mut busy_poll = BusyPoll::new(None);
        let begin = tokio::time::Instant::now();
        for read in 0..=NEW_READS {
            busy_poll.note_read(40, begin + CLOSE * read);
        }
        (busy_poll, begin + CLOSE * NEW_READS)
    }

    #[test]
    fn what_is_new_does_not_look() {
        let mut busy_poll = BusyPoll::new(None);
        let now = tokio::time::Instant::now();
        for read in 0..NEW_READS {
            busy_poll.note_read(40, now + CLOSE * read);
            // The second read of a poll is none of its own.
            busy_poll.note_read(40, now + CLOSE * read);
            assert!(!busy_poll.goes_on(1, false, true, || true));
        }
        busy_poll.note_read(40, now + CLOSE * NEW_READS);
        assert!(!busy_poll.goes_on(1, false, true, || false), "there are others");
        assert!(busy_poll.goes_on(1, false, true, || true));
    }

    #[test]
    fn large_messages_are_not_looked_for() {
        let (mut busy_poll, now) = reads_closely();
        busy_poll.note_wrote(64 * 1024);
        assert!(!busy_poll.goes_on(1, false, true, || true));
        for round in 0..4 {
            busy_poll.note_read(40, now + (1 + round) * CLOSE);
            assert!(
                !busy_poll.goes_on(1, false, true, || true),
                "there was a large one {round} small ones ago"
            );
        }
        for round in 4..20 {
            busy_poll.note_read(40, now + (1 + round) * CLOSE);
            busy_poll.goes_on(1, false, true, || true);
        }
        assert!(busy_poll.is_looking(), "the large one is forgotten");
    }

    #[test]
    fn what_was_written_is_no_find_and_not_in_vain() {
        let (mut busy_poll, now) = reads_closely();
        busy_poll.looks.to_skip = 8;
        assert!(busy_poll.goes_on(1, false, true, || true));
        busy_poll.note_wrote(40);
        assert_eq!((busy_poll.looks.to_skip, busy_poll.looks.skipped), (8, 0));
        assert!(busy_poll.goes_on(1, false, true, || true));
        busy_poll.note_read(40, now + CLOSE);
        assert_eq!(busy_poll.looks.to_skip, 4);
    }

    /// Two of them, on a thread that has not looked yet.
    fn two_beside_others() -> (BusyPoll, BusyPoll) {
        thread_looks::end();
        thread_looks::with_looks(|looks| *looks = Looks::NEW);
        (reads_closely().0, reads_closely().0)
    }

    fn to_skip_of_thread() -> u32 {
        thread_looks::with_looks(|looks| looks.to_skip)
    }

    impl BusyPoll {
        fn goes_on_beside_others(&mut self, identity: usize) -> bool {
            self.goes_on(identity, false, false, || true)
        }

        fn look_is_over(&mut self) {
            self.look.as_mut().expect("it looks").since -= LOOK_MAX;
        }
    }

    #[test]
    fn one_looks_for_the_thread() {
        let (mut one, mut other) = two_beside_others();
        assert!(one.goes_on_beside_others(1));
        assert!(!other.goes_on_beside_others(2), "another one looks");
        assert!(one.goes_on_beside_others(1));

        // What the other has read is what it looked for, and it goes on.
        thread_looks::with_looks(|looks| looks.to_skip = 8);
        one.look_is_over();
        other.note_read(40, tokio::time::Instant::now());
        assert!(one.goes_on_beside_others(1));
        assert_eq!(to_skip_of_thread(), 4);

        one.look_is_over();
        assert!(!one.goes_on_beside_others(1), "nothing has come");
        assert_eq!(to_skip_of_thread(), 8);
        // What was in vain for one was so for all, also for those to come.
        for _ in 0..8 {
            assert!(!other.goes_on_beside_others(2));
        }
        assert!(reads_closely().0.goes_on_beside_others(3), "nobody else does now");
    }

    #[test]
    fn what_was_there_when_it_began_is_no_find() {
        let (mut one, mut other) = two_beside_others();
        thread_looks::with_looks(|looks| looks.to_skip = 8);
        assert!(one.goes_on_beside_others(1));
        other.note_read(40, tokio::time::Instant::now());
        assert!(one.goes_on_beside_others(1));
        assert_eq!(to_skip_of_thread(), 8);
    }

    #[test]
    fn a_thread_is_not_left_without_one_that_looks() {
        let (mut gone, mut other) = two_beside_others();
        assert!(gone.goes_on_beside_others(1));
        // It has moved to another thread, or is over.
        std::thread::sleep(Duration::from_millis(2));
        assert!(other.goes_on_beside_others(2));
        assert!(!gone.goes_on_beside_others(1), "it has come back");
        assert!(other.goes_on_beside_others(2));
    }

    #[test]
    fn what_is_asked_for_is_done() {
        let mut never = BusyPoll::new(Some(Duration::ZERO));
        let now = tokio::time::Instant::now();
        never.note_read(40, now);
        never.note_read(40, now + CLOSE);
        assert!(!never.goes_on(1, false, true, || true));
        let mut always = BusyPoll::new(Some(Duration::from_secs(3600)));
        assert!(always.goes_on(1, false, true, || false) && always.goes_on(1, false, true, || false));
    }
}
