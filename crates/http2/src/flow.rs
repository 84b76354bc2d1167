//! Flow control (RFC 9113 §5.2, §6.9): how much DATA may be sent in each direction, on each stream and on the
//! connection.
//!
//! A window is a signed number. A change of SETTINGS_INITIAL_WINDOW_SIZE moves the windows of all streams by the
//! difference, which can make them negative (§6.9.2). For example, after 60,000 of 65,535 bytes are sent, 5,535 are
//! left. If the peer then announces 16,384, the difference is -49,151 and the window is -43,616. Nothing can be sent
//! before WINDOW_UPDATEs have raised it above 0.

/// The largest window, in bytes (RFC 9113 §6.9.1).
pub(crate) const WINDOW_MAX: u32 = (1 << 31) - 1;

/// Initial size of every window in bytes; SETTINGS never change the connection's (RFC 9113 §6.9.2).
pub(crate) const WINDOW_DEFAULT: u32 = 65_535;

/// A window grew beyond [`WINDOW_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

/// More was received than the window allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded;

/// The peer's receive window as known to this endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendWindow(i32);

impl SendWindow {
    #[inline]
    pub(crate) fn new(initial: u32) -> SendWindow {
        debug_assert!(initial <= WINDOW_MAX);
        SendWindow(initial.cast_signed())
    }

    /// Returns the number of bytes that may be sent now.
    #[inline]
    pub(crate) fn available(self) -> usize {
        self.0.max(0) as usize
    }

    /// Consumes `bytes`, at most [`available`](Self::available).
    #[inline]
    pub(crate) fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.available());
        self.0 -= (bytes as u32).cast_signed();
    }

    /// Widens the window by the increment of a WINDOW_UPDATE.
    pub(crate) fn widen(&mut self, increment: u32) -> Result<(), Overflow> {
        self.shift(i64::from(increment))
    }

    /// Moves the window after a change of SETTINGS_INITIAL_WINDOW_SIZE, possibly below zero.
    pub(crate) fn shift(&mut self, difference: i64) -> Result<(), Overflow> {
        // The lower end cannot be passed. Windows start at 0 or more, only settings make them negative, and the
        // differences add up to at least -(2^31 - 1).
        self.0 = i32::try_from(i64::from(self.0) + difference).map_err(|_| Overflow)?;
        Ok(())
    }
}

/// The window that the peer may use, and the released bytes that can be announced.
///
/// Updates are sent when half the window is released, not per frame. With a window of 1,048,576, nothing is announced
/// after 524,287 released bytes; one more, and a single WINDOW_UPDATE announces 524,288.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReceiveWindow {
    /// Bytes that the peer may still send, as announced.
    open: i32,
    /// Bytes released and not yet announced.
    unannounced: u32,
    /// Size of the window when everything is released.
    size: u32,
    /// Extra window for bytes that must arrive before any can be released. Released bytes reduce it first, before
    /// anything is announced.
    extra: u32,
}

impl ReceiveWindow {
    #[inline]
    pub(crate) fn new(size: u32) -> ReceiveWindow {
        let size = size.min(WINDOW_MAX);
        ReceiveWindow { open: size.cast_signed(), unannounced: 0, size, extra: 0 }
    }

    /// Records received bytes. An empty frame needs no window (RFC 9113 §6.9), and may arrive while it is negative.
    #[inline]
    pub(crate) fn receive(&mut self, bytes: u32) -> Result<(), Exceeded> {
        if !self.takes(bytes) {
            return Err(Exceeded);
        }
        self.open -= bytes.cast_signed();
        Ok(())
    }

    /// Returns whether the peer was allowed to send this many bytes.
    #[inline]
    pub(crate) fn takes(&self, bytes: u32) -> bool {
        bytes == 0 || i64::from(bytes) <= i64::from(self.open)
    }

    /// Returns whether the announced window covers `bytes`, or at least half a window.
    #[inline]
    pub(crate) fn is_open_for(&self, bytes: u32) -> bool {
        i64::from(self.open) >= i64::from(bytes.min((self.size / 2).max(1)))
    }

    /// Returns the window missing for the peer to send `bytes` more.
    pub(crate) fn missing(&self, bytes: u32) -> u32 {
        (i64::from(bytes) - i64::from(self.open)).clamp(0, i64::from(WINDOW_MAX) - i64::from(self.open))
            as u32
    }

    /// Widens the window by a [`missing`](Self::missing) amount, which the caller announces.
    pub(crate) fn widen_temporarily(&mut self, missing: u32) {
        self.open += missing.cast_signed();
        // Includes released bytes that were not announced.
        let announced = missing.min(self.unannounced);
        self.unannounced -= announced;
        self.extra += missing - announced;
    }

    /// Returns whether the window is wider than its own size.
    pub(crate) fn is_widened(&self) -> bool {
        self.extra > 0
    }

    /// Returns the buffered bytes, and those that may arrive because the window was widened.
    pub(crate) fn committed(&self) -> u32 {
        self.outstanding() + if self.extra > 0 { self.open.max(0).cast_unsigned() } else { 0 }
    }

    /// Releases received bytes. Returns the increment to announce, if it is worth a frame.
    #[inline]
    pub(crate) fn release(&mut self, bytes: u32) -> Option<u32> {
        // Releasing more than was received must not widen the window.
        let bytes = bytes.min(self.outstanding());
        let narrowed = bytes.min(self.extra);
        self.extra -= narrowed;
        self.unannounced += bytes - narrowed;
        self.announce()
    }

    /// Receives and releases bytes in one step; see [`receive`](Self::receive) and [`release`](Self::release).
    #[inline]
    pub(crate) fn receive_and_release(&mut self, bytes: u32) -> Result<Option<u32>, Exceeded> {
        self.receive(bytes)?;
        self.unannounced += bytes;
        Ok(self.announce())
    }

    /// Takes back an increment from [`receive_and_release`](Self::receive_and_release), to be announced later.
    pub(crate) fn withhold(&mut self, increment: u32) {
        self.open -= increment.cast_signed();
        self.unannounced += increment;
    }

    /// Returns the increment to announce, if it is worth a frame.
    #[inline]
    pub(crate) fn announce(&mut self) -> Option<u32> {
        if self.unannounced < self.size / 2 || self.unannounced == 0 {
            return None;
        }
        let increment = self.unannounced;
        self.open += increment.cast_signed();
        self.unannounced = 0;
        Some(increment)
    }

    /// Returns the bytes that the peer may still send, as announced.
    pub(crate) fn open(&self) -> i32 {
        self.open
    }

    /// Returns the bytes received and not released.
    pub(crate) fn outstanding(&self) -> u32 {
        let total = i64::from(self.size) + i64::from(self.extra);
        (total - i64::from(self.open) - i64::from(self.unannounced)).max(0) as u32
    }

    /// Returns the same without the bytes that the window was widened for.
    pub(crate) fn outstanding_without_extra(&self) -> u32 {
        self.outstanding().saturating_sub(self.extra)
    }

    /// Returns the bytes released and not yet worth a frame.
    #[cfg(test)]
    pub(crate) fn unannounced(&self) -> u32 {
        self.unannounced
    }

    /// Applies our own SETTINGS_INITIAL_WINDOW_SIZE: moves the window by the difference (RFC 9113 §6.9.2). Returns the
    /// increment to announce, because released bytes too few for the old window may be all of the new one.
    pub(crate) fn resize(&mut self, size: u32) -> Option<u32> {
        let size = size.min(WINDOW_MAX);
        self.open = (i64::from(self.open) + i64::from(size) - i64::from(self.size)) as i32;
        self.size = size;
        self.announce()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_can_make_a_send_window_negative() {
        let mut window = SendWindow::new(65_535);
        window.consume(60_000);
        window.shift(16_384 - 65_535).unwrap();
        assert_eq!(window, SendWindow(-43_616));
        assert_eq!(window.available(), 0);
        window.widen(43_617).unwrap();
        assert_eq!(window.available(), 1);
    }

    #[test]
    fn send_window_ends_at_two_to_the_31() {
        let mut window = SendWindow::new(1);
        assert_eq!(window.widen(WINDOW_MAX - 1), Ok(()));
        assert_eq!(window.widen(1), Err(Overflow));
        assert_eq!(window.available(), WINDOW_MAX as usize);
        let mut shrunk = SendWindow::new(0);
        assert_eq!(shrunk.shift(-i64::from(WINDOW_MAX)), Ok(()));
        assert_eq!(shrunk.widen(WINDOW_MAX), Ok(()));
        assert_eq!(shrunk, SendWindow(0));
    }

    #[test]
    fn window_update_is_due_when_half_is_released() {
        let mut window = ReceiveWindow::new(1 << 20);
        window.receive(1 << 20).unwrap();
        assert_eq!(window.receive(1), Err(Exceeded));
        assert_eq!(window.release(524_287), None);
        assert_eq!(window.release(1), Some(524_288));
        assert_eq!(window.receive(524_288), Ok(()));
        assert_eq!(window.outstanding(), 1 << 20);
    }

    #[test]
    fn releasing_more_than_received_does_not_widen() {
        let mut window = ReceiveWindow::new(100);
        window.receive(60).unwrap();
        assert_eq!(window.release(1000), Some(60));
        assert_eq!(window, ReceiveWindow::new(100));
        assert_eq!(window.release(1000), None);
    }

    #[test]
    fn zero_window_announces_nothing() {
        let mut window = ReceiveWindow::new(0);
        assert_eq!(window.release(1), None);
        assert_eq!(window.receive(1), Err(Exceeded));
        assert_eq!(window.receive(0), Ok(()));
    }

    #[test]
    fn receive_window_shrinks_below_zero_and_recovers() {
        let mut window = ReceiveWindow::new(65_535);
        window.receive(65_535).unwrap();
        assert_eq!(window.resize(1000), None);
        assert_eq!(window.receive(1), Err(Exceeded));
        assert_eq!(window.receive(0), Ok(()));
        assert_eq!(window.release(65_535), Some(65_535));
        assert_eq!(window, ReceiveWindow::new(1000));
    }

    #[test]
    fn temporary_extra_is_removed_by_releases() {
        let mut window = ReceiveWindow::new(100);
        window.receive(80).unwrap();
        assert!(!window.is_open_for(200));
        assert_eq!(window.missing(200), 180);
        window.widen_temporarily(180);
        assert!(window.is_open_for(200));
        assert_eq!((window.outstanding(), window.committed()), (80, 280));
        window.receive(200).unwrap();
        assert_eq!(window.receive(1), Err(Exceeded));
        assert_eq!((window.outstanding(), window.committed()), (280, 280));
        assert_eq!(window.release(180), None);
        assert_eq!(window.release(100), Some(100));
        assert_eq!(window, ReceiveWindow::new(100));
    }

    #[test]
    fn temporary_widening_announces_released_bytes_first() {
        let mut window = ReceiveWindow::new(100);
        window.receive(100).unwrap();
        assert_eq!(window.release(40), None);
        window.widen_temporarily(window.missing(30));
        assert_eq!((window.outstanding(), window.extra, window.unannounced), (60, 0, 10));
        assert_eq!(window.release(60), Some(70));
        assert_eq!(window, ReceiveWindow::new(100));
    }

    #[test]
    fn withheld_increment_is_announced_later() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.receive_and_release(60), Ok(Some(60)));
        window.withhold(60);
        assert_eq!(window.receive(41), Err(Exceeded));
        assert_eq!(window.announce(), Some(60));
        assert_eq!(window, ReceiveWindow::new(100));
    }

    #[test]
    fn shrinking_a_window_announces_released_bytes() {
        let mut window = ReceiveWindow::new(65_535);
        window.receive(60).unwrap();
        assert_eq!(window.release(60), None);
        assert_eq!(window.resize(5), Some(60));
        assert_eq!(window, ReceiveWindow::new(5));
    }
}
