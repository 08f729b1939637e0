//! The index that the next blocking query asks with.

use crate::client::ConsulError;

/// The index that the next blocking query asks with: what Consul documents, and what its servers do in addition.
///
/// Pure: it is told what came of each query, and says how to ask next. One for each question and datacenter; an index
/// means nothing to another question.
///
/// ```
/// use discovery_consul::client::{BlockingIndex, Moved};
///
/// let mut index = BlockingIndex::new();
/// assert_eq!(index.get(), 0, "at first there is nothing to wait for");
/// assert_eq!(index.answered(Some(14)), Moved::Forward);
/// assert_eq!(index.get(), 14);
/// assert_eq!(index.answered(Some(10)), Moved::Backward, "a server that has lost its memory");
/// assert_eq!(index.get(), 0, "so everything is read anew");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockingIndex(u64);

/// What an answer's index says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moved {
    /// Something has changed, though maybe not in this answer.
    Forward,
    /// Nothing has changed: the wait is over.
    Not,
    /// The servers have another history than before: a snapshot was restored, or they were replaced. What follows is read
    /// anew.
    Backward,
    /// There is no index, so there is nothing to wait on: ask now and then.
    Unknown,
}

impl BlockingIndex {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The index to ask with; 0: do not wait.
    pub fn get(&self) -> u64 {
        self.0
    }

    /// There was a good answer with this index: a status of 2xx, or 404 for a key that is not there.
    ///
    /// An index of 0 counts as 1: waiting on 0 would not wait at all.
    pub fn answered(&mut self, index: Option<u64>) -> Moved {
        let Some(index) = index else {
            self.0 = 0;
            return Moved::Unknown;
        };
        let index = index.max(1);
        if index < self.0 {
            self.0 = 0;
            return Moved::Backward;
        }
        let moved = index > self.0;
        self.0 = index;
        match moved {
            true => Moved::Forward,
            false => Moved::Not,
        }
    }

    /// There was an error. The index that errors carry (1, as a rule) means nothing.
    ///
    /// Without an answer, or when the servers have failed (5xx), what follows is read anew: whoever answers next may have
    /// another history, and waiting on an index above its own waits for all the time there is. After a refusal (4xx)
    /// nothing has changed.
    pub fn failed(&mut self, error: &ConsulError) {
        let is_refusal = error
            .status()
            .is_some_and(|status| status.is_client_error());
        if !is_refusal {
            self.0 = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;
    use crate::client::ConsulErrorKind;

    enum Event {
        Answer(Option<u64>, Moved),
        Status(u16),
        NoAnswer(ConsulErrorKind),
    }
    use Event::{Answer, NoAnswer, Status};

    #[test]
    fn the_index_follows_the_rules() {
        let table: &[(&str, &[(Event, u64)])] = &[
            (
                "it grows",
                &[
                    (Answer(Some(5), Moved::Forward), 5),
                    (Answer(Some(9), Moved::Forward), 9),
                ],
            ),
            (
                "the same again is no news",
                &[
                    (Answer(Some(5), Moved::Forward), 5),
                    (Answer(Some(5), Moved::Not), 5),
                ],
            ),
            (
                "back to 0 when it decreases, and then whatever comes is taken",
                &[
                    (Answer(Some(13), Moved::Forward), 13),
                    (Answer(Some(10), Moved::Backward), 0),
                    (Answer(Some(10), Moved::Forward), 10),
                ],
            ),
            (
                "0 counts as 1, over and over",
                &[
                    (Answer(Some(0), Moved::Forward), 1),
                    (Answer(Some(0), Moved::Not), 1),
                    (Answer(Some(2), Moved::Forward), 2),
                    (Answer(Some(0), Moved::Backward), 0),
                ],
            ),
            (
                "a refusal changes nothing",
                &[
                    (Answer(Some(7), Moved::Forward), 7),
                    (Status(400), 7),
                    (Status(403), 7),
                    (Status(429), 7),
                    (Answer(Some(7), Moved::Not), 7),
                ],
            ),
            (
                "without an answer it begins anew",
                &[
                    (Answer(Some(7), Moved::Forward), 7),
                    (NoAnswer(ConsulErrorKind::Unreachable), 0),
                    (NoAnswer(ConsulErrorKind::TimedOut), 0),
                    (Answer(Some(3), Moved::Forward), 3),
                ],
            ),
            (
                "nor with an error of the servers, whose index is not taken",
                &[
                    (Status(500), 0),
                    (Answer(Some(7), Moved::Forward), 7),
                    (Status(500), 0),
                    (Status(503), 0),
                    (Answer(Some(7), Moved::Forward), 7),
                ],
            ),
            (
                "what has no index cannot be waited on",
                &[
                    (Answer(None, Moved::Unknown), 0),
                    (Answer(Some(u64::MAX), Moved::Forward), u64::MAX),
                    (Answer(None, Moved::Unknown), 0),
                ],
            ),
        ];
        for (case, events) in table {
            let mut index = BlockingIndex::new();
            assert_eq!(index.get(), 0);
            for (nth, (event, then)) in events.iter().enumerate() {
                match event {
                    Answer(header, moved) => {
                        assert_eq!(index.answered(*header), *moved, "{case}, {nth}");
                    }
                    Status(status) => {
                        let status = StatusCode::from_u16(*status).unwrap();
                        index.failed(&ConsulError::of_status("GET /", status, b""));
                    }
                    NoAnswer(kind) => index.failed(&ConsulError::new(*kind, "GET /", "")),
                }
                assert_eq!(index.get(), *then, "{case}, {nth}");
            }
        }
    }
}
