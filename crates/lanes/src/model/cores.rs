//! A machine: cores, and the queue of tasks that they take from.

use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// A poll of a connection's task.
    Lane(u16),
    /// So many callers, one after the other.
    Callers(u16),
}

/// Cores are busy, awake with nothing to do (for an instant: they look for a task and then sleep), being woken, or
/// asleep. A task that becomes ready wakes a core, but whoever is awake first takes it, as the workers of a runtime do.
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

    /// A core has woken.
    pub(super) fn awake(&mut self) {
        self.waking -= 1;
        self.awake += 1;
    }

    /// A core has done its task.
    pub(super) fn release(&mut self) {
        self.awake += 1;
    }

    /// A task for a core that is awake; when there is none, such cores fall asleep.
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

    /// How many cores are to be woken for the tasks that wait: one for each, as far as there are any.
    pub(super) fn wake(&mut self) -> usize {
        let woken = self.queue.len().saturating_sub(self.waking).min(self.asleep);
        self.asleep -= woken;
        self.waking += woken;
        woken
    }
}
