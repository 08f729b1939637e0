//! The cached responses of one kind of call.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The key of a cached response: the arguments of a call, at most three.
pub(super) type Question<'a> = [&'a str; 3];

/// The cached responses of one kind of call, by its arguments.
#[derive(Debug)]
pub(super) struct Answers<T> {
    by_question: HashMap<[Box<str>; 3], CachedResponse<T>>,
}

#[derive(Debug)]
struct CachedResponse<T> {
    items: Arc<[T]>,
    /// The time at which the cluster returned it.
    at: Instant,
    /// The time of the last request for it, successful or not.
    used: Instant,
}

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self {
            by_question: HashMap::new(),
        }
    }
}

impl<T> Answers<T> {
    pub(super) fn len(&self) -> usize {
        self.by_question.len()
    }

    pub(super) fn keep(&mut self, question: &Question<'_>, items: Arc<[T]>, now: Instant) {
        let answer = CachedResponse {
            items,
            at: now,
            used: now,
        };
        self.by_question.insert(owned(question), answer);
    }

    pub(super) fn forget(&mut self, question: &Question<'_>) {
        self.by_question.remove(&owned(question));
    }

    /// Returns the response and its time, if it is no older than `oldest`.
    pub(super) fn find(
        &mut self,
        question: &Question<'_>,
        now: Instant,
        oldest: Duration,
    ) -> Option<(Arc<[T]>, Instant)> {
        let key = owned(question);
        let answer = self.by_question.get_mut(&key)?;
        if now.duration_since(answer.at) > oldest {
            self.by_question.remove(&key);
            return None;
        }
        answer.used = now;
        Some((Arc::clone(&answer.items), answer.at))
    }

    /// Removes responses that are older than `oldest` or were not requested within `unused`.
    pub(super) fn evict(&mut self, now: Instant, (oldest, unused): (Duration, Duration)) {
        self.by_question.retain(|_, answer| {
            now.duration_since(answer.at) <= oldest && now.duration_since(answer.used) <= unused
        });
        // A burst must not occupy memory forever.
        if self.by_question.capacity() / 4 > self.by_question.len() {
            self.by_question.shrink_to_fit();
        }
    }
}

fn owned(question: &Question<'_>) -> [Box<str>; 3] {
    question.map(Box::from)
}
