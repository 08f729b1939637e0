//! The schedule of reading services. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use indexmap::IndexSet;
use tokio::time::Instant;

/// The schedule of reading services: first the touched ones in their order, then every service that is due.
#[derive(Debug, Default)]
pub(super) struct ReadSchedule {
    waiting: IndexSet<Arc<str>>,
    /// Services that are due without a known change.
    overdue: IndexSet<Arc<str>>,
    reading: HashSet<Arc<str>>,
    /// Services that were touched while being read: the result may be older than the change.
    again: HashSet<Arc<str>>,
    /// Services that were touched and have not been read since.
    news: HashSet<Arc<str>>,
    due: BTreeSet<(Instant, Arc<str>)>,
    due_of: HashMap<Arc<str>, Instant>,
}

impl ReadSchedule {
    /// Marks a service as changed, so that it is read soon.
    pub(super) fn touch(&mut self, name: Arc<str>) {
        self.news.insert(Arc::clone(&name));
        self.overdue.shift_remove(&name);
        match self.reading.contains(&name) {
            true => self.again.insert(name),
            false => self.waiting.insert(name),
        };
    }

    /// Returns the next service to read, unless `most` are being read already.
    pub(super) fn take(&mut self, most: usize) -> Option<Arc<str>> {
        if self.reading.len() >= most {
            return None;
        }
        let touched = self.waiting.shift_remove_index(0);
        let name = touched.or_else(|| self.overdue.shift_remove_index(0))?;
        self.reading.insert(Arc::clone(&name));
        Some(name)
    }

    /// Records the end of a service's read. It is read again at `next`, if not before; with `None` only
    /// after a change.
    pub(super) fn finished(&mut self, name: &Arc<str>, next: Option<Instant>) {
        self.reading.remove(name);
        match self.again.remove(name) {
            true => {
                self.waiting.insert(Arc::clone(name));
            }
            false => {
                self.news.remove(name);
            }
        }
        if let Some(old) = self.due_of.remove(name) {
            self.due.remove(&(old, Arc::clone(name)));
        }
        if let Some(next) = next {
            self.due_of.insert(Arc::clone(name), next);
            self.due.insert((next, Arc::clone(name)));
        }
    }

    /// Queues the services whose time to be read again has come.
    pub(super) fn wake(&mut self, now: Instant) {
        while let Some((due, _)) = self.due.first()
            && *due <= now
            && let Some((_, name)) = self.due.pop_first()
        {
            self.due_of.remove(&name);
            if !self.reading.contains(&name) && !self.waiting.contains(&name) {
                self.overdue.insert(name);
            }
        }
    }

    /// The time at which the next service is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Returns true if every service with a change was read, or its read was tried. Periodic reads do not
    /// count: among thousands of services one is always due.
    pub(super) fn is_settled(&self) -> bool {
        self.news.is_empty()
    }

    /// Returns the services with changes that have not been read since.
    pub(super) fn unsettled(&self) -> impl Iterator<Item = &Arc<str>> {
        self.news.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn services_are_read_in_turn_and_once_more_if_touched_meanwhile() {
        let mut schedule = ReadSchedule::default();
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        for name in [&a, &b, &a] {
            schedule.touch(Arc::clone(name));
        }
        assert_eq!(schedule.take(1), Some(Arc::clone(&a)));
        assert_eq!(schedule.take(1), None, "one at a time");
        schedule.touch(Arc::clone(&a));
        schedule.touch(Arc::clone(&a));
        schedule.finished(&a, None);
        assert_eq!(schedule.take(1), Some(Arc::clone(&b)));
        schedule.finished(&b, None);
        assert_eq!(schedule.take(1), Some(Arc::clone(&a)));
        assert!(!schedule.is_settled());
        schedule.finished(&a, None);
        assert!(schedule.is_settled());
    }

    #[tokio::test(start_paused = true)]
    async fn every_service_has_its_time() {
        let mut schedule = ReadSchedule::default();
        let name: Arc<str> = "a".into();
        let now = Instant::now();
        let soon = now + Duration::from_secs(1);
        schedule.finished(&name, Some(now + Duration::from_secs(9)));
        schedule.finished(&name, Some(soon));
        assert_eq!(schedule.next_due(), Some(soon));
        schedule.wake(now);
        assert!(schedule.is_settled());
        schedule.wake(soon);
        assert!(
            schedule.is_settled(),
            "it is read, and there is no news of it"
        );
        let news: Arc<str> = "b".into();
        schedule.touch(Arc::clone(&news));
        assert_eq!(schedule.take(2), Some(Arc::clone(&news)), "news come first");
        assert_eq!(schedule.take(2), Some(name));
        schedule.finished(&news, None);
        assert!(schedule.is_settled(), "what only makes sure is no matter");
        assert_eq!(schedule.next_due(), None);
    }
}
