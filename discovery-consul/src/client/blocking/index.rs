//! The index of the next blocking query.

use crate::client::ConsulError;

/// The index of the next blocking query, following Consul's documentation and the actual behaviour of its
/// servers.
///
/// The type is pure: it receives the result of each query, and returns the index of the next. Each query
/// and datacenter needs its own; an index has no meaning for another query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockingIndex(u64);

/// The meaning of a response's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Moved {
    /// A change, though maybe not in this response.
    Forward,
    /// No change before the end of the wait.
    Not,
    /// Another history than before: a snapshot was restored, or the servers were replaced. The next query
    /// reads everything again.
    Backward,
    /// No index, so the query cannot block: poll it instead.
    Unknown,
}

impl BlockingIndex {
    /// Creates an index for a first query.
    pub fn new() -> Self {
        Self::default()
    }

    /// The index of the next query. With 0 it does not block.
    pub fn get(&self) -> u64 {
        self.0
    }

    /// Records a good response with this index: a status of 2xx, or 404 for a missing key.
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

    /// Records a failed query. The index in error responses (usually 1) has no meaning.
    ///
    /// Without a response, or after a server error (5xx), the next query reads everything again: the next
    /// server may have another history, and waiting on an index above its own would block for the full
    /// time. After a rejection (4xx), nothing has changed.
    pub fn failed(&mut self, error: &ConsulError) {
        let is_rejection = error
            .status()
            .is_some_and(|status| status.is_client_error());
        if !is_rejection {
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
                "a rejection changes nothing",
                &[
                    (Answer(Some(7), Moved::Forward), 7),
                    (Status(400), 7),
                    (Status(403), 7),
                    (Status(429), 7),
                    (Answer(Some(7), Moved::Not), 7),
                ],
            ),
            (
                "without an answer it starts again from the beginning",
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
