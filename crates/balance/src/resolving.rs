//! When to resolve a name again (stub).

use std::time::{Duration, Instant};

/// When to resolve next.
pub enum NextResolution {
    /// Now; the result is reported by [`Schedule::on_result`].
    Now,
    /// At this time.
    At(Instant),
    /// When something changes.
    Idle,
}

/// When a name is resolved.
#[derive(Debug)]
pub struct Schedule {
    min: Duration,
    refresh: Option<Duration>,
    last: Option<Instant>,
    is_running: bool,
    is_requested: bool,
    is_changed: bool,
    failures: u32,
    retry_at: Option<Instant>,
}

impl Schedule {
    /// Creates a schedule whose first resolution is due.
    pub fn new(min: Duration, refresh: Option<Duration>) -> Self {
        Self {
            min,
            refresh,
            last: None,
            is_running: false,
            is_requested: true,
            is_changed: true,
            failures: 0,
            retry_at: None,
        }
    }

    /// Requests a resolution.
    pub fn request(&mut self) {
        self.is_requested = true;
    }

    /// Requests a resolution at once: the resolver has news.
    pub fn changed(&mut self) {
        self.is_changed = true;
    }

    /// Forgets the running resolution.
    pub fn interrupted(&mut self) {
        if std::mem::take(&mut self.is_running) {
            self.is_changed = true;
        }
    }

    /// Returns what to do.
    pub fn poll(&mut self, now: Instant) -> NextResolution {
        if self.is_running {
            return NextResolution::Idle;
        }
        let at = if self.is_changed {
            Some(now)
        } else if let Some(at) = self.retry_at {
            Some(at)
        } else {
            let last = self.last.unwrap_or(now);
            let requested = self.is_requested.then_some(last + self.min);
            let refresh = self.refresh.map(|period| last + period);
            [requested, refresh].into_iter().flatten().min()
        };
        match at {
            Some(at) if at <= now => {
                self.is_running = true;
                self.is_changed = false;
                self.is_requested = false;
                self.retry_at = None;
                NextResolution::Now
            }
            Some(at) => NextResolution::At(at),
            None => NextResolution::Idle,
        }
    }

    /// Notes a result.
    pub fn on_result(&mut self, ok: bool, now: Instant, _unit: f64) {
        self.is_running = false;
        self.last = Some(now);
        self.failures = if ok { 0 } else { self.failures + 1 };
        self.retry_at = (!ok).then(|| now + Duration::from_secs(1));
    }
}
