//! The answers of the origin, rendered once.

use std::fmt::Write as _;

/// A resource: the last path segment, so that routes of a proxy can precede it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    Empty,
    Bytes128,
    Kilobyte,
    Kilobytes64,
    Megabyte,
    /// 16 chunks of 1 KiB, which leave the origin in one write.
    Chunks16,
    /// Accepts a request body of any length and answers 2 bytes.
    Sink,
}

impl Resource {
    pub(crate) const ALL: [Self; 7] = [
        Self::Empty,
        Self::Bytes128,
        Self::Kilobyte,
        Self::Kilobytes64,
        Self::Megabyte,
        Self::Chunks16,
        Self::Sink,
    ];

    pub(crate) fn segment(self) -> &'static str {
        match self {
            Self::Empty => "0",
            Self::Bytes128 => "128",
            Self::Kilobyte => "1k",
            Self::Kilobytes64 => "64k",
            Self::Megabyte => "1m",
            Self::Chunks16 => "chunks",
            Self::Sink => "sink",
        }
    }

    /// Length of the answer's body in bytes.
    pub(crate) fn len(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Bytes128 => 128,
            Self::Kilobyte => 1 << 10,
            Self::Kilobytes64 => 64 << 10,
            Self::Megabyte => 1 << 20,
            Self::Chunks16 => 16 << 10,
            Self::Sink => 2,
        }
    }

    /// The answer's body.
    pub(super) fn body(self) -> Vec<u8> {
        vec![b'x'; usize::try_from(self.len()).expect("a megabyte at most")]
    }

    pub(super) fn from_path(path: &str) -> Option<Self> {
        let segment = path.rsplit('/').next()?;
        Self::ALL
            .into_iter()
            .find(|resource| resource.segment() == segment)
    }
}

/// The rendered answers of all resources.
pub(super) struct Replies {
    rendered: Vec<Vec<u8>>,
    missing: Vec<u8>,
}

/// Index of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice(usize);

impl Replies {
    pub(super) fn new() -> Self {
        Self {
            rendered: Resource::ALL.into_iter().map(render).collect(),
            missing: head(404, "Content-Length: 0"),
        }
    }

    pub(super) fn choose(&self, path: &str) -> Choice {
        let found = Resource::from_path(path);
        let place = found.and_then(|found| Resource::ALL.iter().position(|each| *each == found));
        Choice(place.unwrap_or(self.rendered.len()))
    }

    pub(super) fn bytes(&self, choice: Choice) -> &[u8] {
        self.rendered.get(choice.0).unwrap_or(&self.missing)
    }

    /// The request itself as the proxy sent it: for checks, not for measurements.
    pub(super) fn echo(request: &[u8]) -> Vec<u8> {
        let mut echo = head(200, &format!("Content-Length: {}", request.len()));
        echo.extend_from_slice(request);
        echo
    }
}

fn render(resource: Resource) -> Vec<u8> {
    let body = resource.body();
    let length = body.len();
    if resource == Resource::Chunks16 {
        let mut reply = head(200, "Transfer-Encoding: chunked");
        for chunk in body.chunks(length / 16) {
            reply.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            reply.extend_from_slice(chunk);
            reply.extend_from_slice(b"\r\n");
        }
        reply.extend_from_slice(b"0\r\n\r\n");
        return reply;
    }
    let mut reply = head(200, &format!("Content-Length: {length}"));
    reply.extend_from_slice(&body);
    reply
}

/// Renders a head with four fields, the least an application sends.
fn head(status: u16, framing: &str) -> Vec<u8> {
    let mut head = String::new();
    let reason = if status == 200 { "OK" } else { "Not Found" };
    write!(
        head,
        "HTTP/1.1 {status} {reason}\r\nServer: origin\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\
         Content-Type: application/octet-stream\r\n{framing}\r\n\r\n"
    )
    .expect("writing to a String cannot fail");
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_segment_says_what_is_asked_for() {
        for resource in Resource::ALL {
            let path = format!("/r617/{}", resource.segment());
            assert_eq!(Resource::from_path(&path), Some(resource));
        }
        assert_eq!(Resource::from_path("/128/x"), None);
        let replies = Replies::new();
        assert!(
            replies
                .bytes(replies.choose("/nothing"))
                .starts_with(b"HTTP/1.1 404 ")
        );
    }

    #[test]
    fn sixteen_chunks_are_sixteen_chunks() {
        let reply = render(Resource::Chunks16);
        let text = String::from_utf8(reply).expect("it is ASCII");
        assert_eq!(text.matches("400\r\n").count(), 16);
        assert!(text.ends_with("0\r\n\r\n"));
    }
}
