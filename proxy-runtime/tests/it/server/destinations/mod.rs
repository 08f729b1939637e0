//! Destinations of both versions of HTTP that give the same answer, and what they received.

#[cfg(feature = "http2")]
mod http2;

use http::{HeaderMap, HeaderName, HeaderValue};
use testkit::raw::RawOrigin;

#[cfg(feature = "http2")]
use self::http2::Http2Origin;
use crate::server::ways::{Message, origin, received_twice};

/// A destination with one answer.
pub(crate) enum Scripted {
    Http1(RawOrigin),
    #[cfg(feature = "http2")]
    Http2(Http2Origin),
}

impl Scripted {
    /// Returns `None` if the version of HTTP has no such answer.
    pub(crate) async fn start(answer: &'static str, is_http2: bool) -> Option<Self> {
        #[cfg(feature = "http2")]
        if is_http2 {
            return Http2Origin::start(answer).await.map(Self::Http2);
        }
        (!is_http2).then(|| Self::Http1(origin(answer)))
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Self::Http1(origin) => origin.url(),
            #[cfg(feature = "http2")]
            Self::Http2(origin) => origin.url(),
        }
    }

    pub(crate) fn is_http2(&self) -> bool {
        !matches!(self, Self::Http1(_))
    }

    /// The request that came twice; empty if none came.
    pub(crate) fn received_twice(&self) -> Message {
        match self {
            Self::Http1(origin) => received_twice(origin),
            #[cfg(feature = "http2")]
            Self::Http2(origin) => origin.received_twice(),
        }
    }
}

fn map<'a>(lines: impl Iterator<Item = &'a str>) -> HeaderMap {
    let fields = lines.filter_map(|line| line.split_once(':'));
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(
            name,
            HeaderValue::from_bytes(value.trim().as_bytes()).unwrap(),
        );
    }
    map
}

/// Content and trailers of a chunked body.
fn chunks(mut body: &str) -> (String, HeaderMap) {
    let mut content = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n").unwrap();
        match usize::from_str_radix(size, 16).unwrap() {
            0 => return (content, map(rest.split("\r\n"))),
            size => {
                content.push_str(&rest[..size]);
                body = &rest[size + 2..];
            }
        }
    }
}

impl Message {
    /// The same without what depends on the version of the destination: framing, and words about the status.
    #[must_use]
    pub(crate) fn meaning(mut self) -> Self {
        const FRAMING: [&str; 4] = [
            "content-length",
            "transfer-encoding",
            "connection",
            "keep-alive",
        ];
        if self
            .fields
            .iter()
            .any(|field| field == "transfer-encoding: chunked")
            && self.start.ends_with(" HTTP/1.1")
        {
            let (content, trailers) = chunks(&self.body);
            let trailers = trailers.iter();
            self.fields.extend(trailers.map(|(name, value)| {
                format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
            }));
            self.body = content;
        }
        self.fields.retain(|field| {
            let name = field.split(':').next().unwrap_or_default();
            !FRAMING.contains(&name)
        });
        self.fields.sort_unstable();
        if !self.start.ends_with(" HTTP/1.1") {
            self.start.truncate(3);
        }
        self
    }
}
