use std::sync::Arc;

use discovery_core::Moment;

/// A service that a source names and that is not served as the source has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The source's name of it, or its place in the source if it has none.
    pub service: String,
    /// All that is wrong.
    pub reasons: Vec<String>,
    /// Whether its last good form is served meanwhile.
    pub serves_last_good: bool,
}

impl LeftOut {
    pub(crate) fn new(
        service: impl Into<String>,
        reasons: Vec<String>,
        serves_last_good: bool,
    ) -> Self {
        Self {
            service: service.into(),
            reasons,
            serves_last_good,
        }
    }
}

/// What a source has read: the last good, and what is wrong since.
#[derive(Debug)]
pub struct Reading<T> {
    /// What was read last. `None`: nothing yet.
    pub value: Option<Arc<T>>,
    /// Why that is not the newest: the source cannot be read at the moment.
    pub failure: Option<Arc<str>>,
    /// Whether that is an error, and not only that it is still being read or asked again.
    pub has_failed: bool,
    /// What is wrong with some of it, which counts otherwise than it was meant.
    pub problems: Arc<[String]>,
    /// The services that are left out of it, or are as they were before.
    pub left_out: Arc<[LeftOut]>,
    /// When it was last read.
    pub last_ok: Option<Moment>,
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
    /// Takes what was read, and says whether anybody has to know.
    pub(crate) fn read(&mut self, value: T, problems: Vec<String>) -> bool {
        let was_good = self.failure.take().is_none();
        let is_same = self.value.as_deref() == Some(&value) && *self.problems == problems;
        self.last_ok = Some(Moment::now());
        self.has_failed = false;
        if !is_same {
            self.value = Some(Arc::new(value));
            self.problems = problems.into();
        }
        !(is_same && was_good)
    }

    /// The same, where services are left out.
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

    /// Notes that it could not be read.
    pub(crate) fn failed(&mut self, failure: impl Into<Arc<str>>) -> bool {
        let failure = failure.into();
        let is_news = self.failure.as_ref() != Some(&failure) || !self.has_failed;
        self.failure = Some(failure);
        self.has_failed = true;
        is_news
    }

    /// Notes what is waited for before it counts as read.
    pub(crate) fn waits(&mut self, reason: impl Into<Arc<str>>) -> bool {
        let reason = reason.into();
        let is_news = self.failure.as_ref() != Some(&reason) || self.has_failed;
        self.failure = Some(reason);
        self.has_failed = false;
        is_news
    }
}
