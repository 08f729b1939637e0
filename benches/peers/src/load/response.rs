//! Follows a response of HTTP/1.1 to its end and says whether it is the one that was expected.

use crate::framing::{Body, Framing};

/// Fields of a response at most.
const FIELDS: usize = 64;

/// A head at most.
const HEAD: usize = 64 << 10;

/// A response that is arriving.
#[derive(Debug)]
pub(super) struct Response {
    /// Bytes of body that it has to have.
    expected: u64,
    /// The beginning of a head whose end has not come.
    partial: Vec<u8>,
    body: Option<Body>,
}

impl Response {
    pub(super) fn new(expected: u64) -> Self {
        Self {
            expected,
            partial: Vec::new(),
            body: None,
        }
    }

    /// Makes ready for the next response of the same kind.
    pub(super) fn reset(&mut self) {
        self.partial.clear();
        self.body = None;
    }

    /// Takes bytes in; `true` when the response is complete. An error is for people.
    pub(super) fn consume(&mut self, bytes: &[u8]) -> Result<bool, String> {
        if self.partial.is_empty() {
            return self.follow(bytes);
        }
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        self.follow(&all)
    }

    /// The connection has ended; `true` if that completes the response.
    pub(super) fn end(&self) -> Result<bool, String> {
        match self.body {
            Some(body) if body.ends_with_connection() => self.complete(body),
            _ => Err("the connection ended within a response".to_owned()),
        }
    }

    fn follow(&mut self, mut bytes: &[u8]) -> Result<bool, String> {
        while self.body.is_none() {
            let mut fields = [httparse::EMPTY_HEADER; FIELDS];
            let mut head = httparse::Response::new(&mut fields);
            match head
                .parse(bytes)
                .map_err(|error| format!("the head: {error}"))?
            {
                httparse::Status::Partial if bytes.len() > HEAD => {
                    return Err("the head is too long".to_owned());
                }
                httparse::Status::Partial => {
                    self.partial.extend_from_slice(bytes);
                    return Ok(false);
                }
                httparse::Status::Complete(length) => {
                    bytes = &bytes[length..];
                    match head.code {
                        Some(100..=199) => continue,
                        Some(200) => {}
                        status => return Err(format!("status {}", status.unwrap_or_default())),
                    }
                    let framing = Framing::of_fields(head.headers)?.unwrap_or(Framing::UntilClose);
                    self.body = Some(Body::new(framing));
                }
            }
        }
        let body = self.body.as_mut().expect("it was set by the loop above");
        let taken = body.consume(bytes)?;
        if !body.has_ended() {
            return Ok(false);
        }
        if taken < bytes.len() {
            return Err("more bytes than the response has".to_owned());
        }
        self.complete(*self.body.as_ref().expect("it is still there"))
    }

    fn complete(&self, body: Body) -> Result<bool, String> {
        if body.payload() == self.expected {
            Ok(true)
        } else {
            Err(format!(
                "a body of {} bytes instead of {}",
                body.payload(),
                self.expected
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_at_once(expected: u64, text: &str) -> Result<bool, String> {
        Response::new(expected).consume(text.as_bytes())
    }

    #[test]
    fn a_response_is_complete_however_it_is_cut() {
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
        for piece in 1..text.len() {
            let mut response = Response::new(5);
            for _ in 0..2 {
                let pieces: Vec<_> = text
                    .as_bytes()
                    .chunks(piece)
                    .map(|bytes| response.consume(bytes))
                    .collect();
                let (last, before) = pieces.split_last().unwrap();
                assert_eq!(*last, Ok(true), "{piece}");
                assert!(before.iter().all(|each| *each == Ok(false)), "{piece}");
                response.reset();
            }
        }
    }

    #[test]
    fn what_differs_from_the_expected_is_an_error() {
        for (text, why) in [
            (
                "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n",
                "status 502",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd",
                "a body of 4 bytes instead of 5",
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcdeHTTP",
                "more bytes than the response has",
            ),
            ("nonsense\r\n\r\n", "the head: invalid HTTP version"),
        ] {
            assert_eq!(all_at_once(5, text), Err(why.to_owned()));
        }
    }

    #[test]
    fn the_end_of_the_connection_completes_what_has_no_length() {
        let mut response = Response::new(3);
        assert_eq!(response.consume(b"HTTP/1.1 200 OK\r\n\r\nabc"), Ok(false));
        assert_eq!(response.end(), Ok(true));
        let mut cut = Response::new(3);
        assert_eq!(
            cut.consume(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"),
            Ok(false)
        );
        assert!(cut.end().is_err());
        assert!(Response::new(3).end().is_err());
    }
}
