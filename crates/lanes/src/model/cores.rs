//! A machine: cores and their task queue.

use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// A poll of a connection's task.
    Lane(u16),
    /// This many callers, one after the other.
    Callers(u16),
}

/// Cores are busy, awake and idle, waking up, or asleep. An idle core looks for a task and then sleeps. A ready task
/// wakes a core, but whichever core is awake first takes it, as with a runtime's workers.
#[derive(Debug)]
pub(super) struct Cores {
    asleep: usize,
    waking: usize,
    awake: usize,
    queue: VecDeque<Task>,
}

impl Cores {
    pub(super) fn new(cores: usize) -> Self {
        Self { asleep: cores, waking: 0, awake: 0, queue: VecDeque::new() }
    }

    pub(super) fn ready(&mut self, task: Task) {
        self.queue.push_back(task);
    }

    /// A core has woken up.
    pub(super) fn awake(&mut self) {
        self.waking -= 1;
        self.awake += 1;
    }

    /// A core has finished its task.
    pub(super) fn release(&mut self) {
        self.awake += 1;
    }

    /// Returns a task for an awake core. If there is none, awake cores fall asleep.
    pub(super) fn take(&mut self) -> Option<Task> {
        if self.awake == 0 {
            return None;
        }
        let task = self.queue.pop_front();
        if task.is_some() {
            self.awake -= 1;
        } else {
            self.asleep += std::mem::take(&mut self.awake);
        }
        task
    }

    /// Wakes a core for each waiting task, as far as possible, and returns their number.
    pub(super) fn wake(&mut self) -> usize {
        let woken = self.queue.len().saturating_sub(self.waking).min(self.asleep);
        self.asleep -= woken;
        self.waking += woken;
        woken
    }
}
