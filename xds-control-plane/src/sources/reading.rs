use std::sync::Arc;

use discovery_core::Timestamp;

/// A service of a source that is not served in its current form.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The source's name of it, or its position in the source if it has none.
    pub service: String,
    /// All reasons.
    pub reasons: Vec<String>,
    /// True if its last known good form is served meanwhile.
    pub serves_last_known_good: bool,
}

impl LeftOut {
    pub(crate) fn new(
        service: impl Into<String>,
        reasons: Vec<String>,
        serves_last_known_good: bool,
    ) -> Self {
        Self {
            service: service.into(),
            reasons,
            serves_last_known_good,
        }
    }
}

/// The state of a source: the last known good result, and the problems since then.
#[derive(Debug)]
pub struct Reading<T> {
    /// The last result. `None` if there was none yet.
    pub value: Option<Arc<T>>,
    /// The reason why the result is not the newest: the source cannot be read at the moment.
    pub failure: Option<Arc<str>>,
    /// True if that is an error, and not only a first read or a retry in progress.
    pub has_failed: bool,
    /// Problems of parts of the content, which have another effect than intended.
    pub problems: Arc<[String]>,
    /// The services that are left out, or that stay in an earlier form.
    pub left_out: Arc<[LeftOut]>,
    /// The time of the last successful read.
    pub last_ok: Option<Timestamp>,
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self {
            value: None,
            failure: None,
            has_failed: false,
            problems: Arc::default(),
            left_out: Arc::default(),
            last_ok: None,
        }
    }
}

impl<T> Clone for Reading<T> {
    fn clone(&self) -> Self {
        Self {
            value: self.value.clone(),
            failure: self.failure.clone(),
            has_failed: self.has_failed,
            problems: Arc::clone(&self.problems),
            left_out: Arc::clone(&self.left_out),
            last_ok: self.last_ok,
        }
    }
}

impl<T: PartialEq> Reading<T> {
    /// Records a result. Returns true if it should be published.
    pub(crate) fn read(&mut self, value: T, problems: Vec<String>) -> bool {
        let was_good = self.failure.take().is_none();
        let is_same = self.value.as_deref() == Some(&value) && *self.problems == problems;
        self.last_ok = Some(Timestamp::now());
        self.has_failed = false;
        if !is_same {
            self.value = Some(Arc::new(value));
            self.problems = problems.into();
        }
        !(is_same && was_good)
    }

    /// Records a result with left-out services.
    pub(crate) fn read_in_part(
        &mut self,
        value: T,
        problems: Vec<String>,
        left_out: Vec<LeftOut>,
    ) -> bool {
        let is_same = *self.left_out == left_out;
        if !is_same {
            self.left_out = left_out.into();
        }
        self.read(value, problems) || !is_same
    }

    /// Records a failed read.
    pub(crate) fn failed(&mut self, failure: impl Into<Arc<str>>) -> bool {
        let failure = failure.into();
        let is_news = self.failure.as_ref() != Some(&failure) || !self.has_failed;
        self.failure = Some(failure);
        self.has_failed = true;
        is_news
    }

    /// Records why the source does not count as read yet.
    pub(crate) fn waits(&mut self, reason: impl Into<Arc<str>>) -> bool {
        let reason = reason.into();
        let is_news = self.failure.as_ref() != Some(&reason) || self.has_failed;
        self.failure = Some(reason);
        self.has_failed = false;
        is_news
    }
}
