use std::io;

use super::stream::invalid;

/// The head of a response, strictly parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// `HTTP/1.0` or `HTTP/1.1`.
    pub version: String,
    /// The reason phrase; may be empty.
    pub reason: String,
    /// Fields in their order on the wire; names keep their case, values are ISO 8859-1 without
    /// outer spaces.
    pub headers: Vec<(String, String)>,
    /// The whole head, with the empty line.
    pub bytes: Vec<u8>,
}

impl ResponseHead {
    /// The first value of a field, ignoring the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.header_values(name).first().copied()
    }

    /// All values of a field in the order of the wire, ignoring the case of its name.
    pub fn header_values(&self, name: &str) -> Vec<&str> {
        values(&self.headers, name)
    }

    /// Parses strictly by RFC 9112 4 and 5: no bare CR or LF, no folding, no space before a colon,
    /// only token characters in names, no control characters in values.
    pub(super) fn strict(bytes: Vec<u8>) -> io::Result<Self> {
        let inner = bytes
            .strip_suffix(b"\r\n\r\n")
            .expect("read up to the empty line");
        let mut lines = lines(inner)?.into_iter();
        let first = lines.next().unwrap_or_default();
        let (version, status, reason) =
            status_line(first).ok_or_else(|| invalid("malformed status line", first))?;
        let headers = lines.map(field).collect::<io::Result<_>>()?;
        Ok(Self {
            status,
            version,
            reason,
            headers,
            bytes,
        })
    }

    /// The framing of the body in the response to a request with this method (RFC 9112 6.3).
    pub(super) fn framing(&self, method: &str) -> io::Result<Framing> {
        let codings = self.header_values("transfer-encoding");
        let lengths = self.header_values("content-length");
        let reject = |what| Err(invalid(what, &self.bytes));
        if !codings.is_empty() && !lengths.is_empty() {
            return reject("both Transfer-Encoding and Content-Length");
        }
        let bodiless = method == "HEAD" || matches!(self.status, 100..=199 | 204 | 304);
        if bodiless {
            return Ok(Framing::None);
        }
        match (codings[..].first(), lengths[..].first()) {
            (Some(coding), _) if codings.len() == 1 && coding.eq_ignore_ascii_case("chunked") => {
                Ok(Framing::Chunked)
            }
            (Some(_), _) => reject("Transfer-Encoding other than chunked"),
            (None, Some(length)) => {
                let plain = lengths.len() == 1 && length.bytes().all(|byte| byte.is_ascii_digit());
                match length.parse() {
                    Ok(length) if plain => Ok(Framing::Length(length)),
                    _ => reject("malformed Content-Length"),
                }
            }
            (None, None) => Ok(Framing::UntilClose),
        }
    }
}

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body: status 1xx, 204 or 304, or the response to HEAD.
    None,
    /// `Content-Length`.
    Length(u64),
    /// `Transfer-Encoding: chunked`.
    Chunked,
    /// The body ends with the connection.
    UntilClose,
}

/// A complete response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawResponse {
    /// Interim responses (1xx other than 101) before it.
    pub interim: Vec<ResponseHead>,
    /// The final head.
    pub head: ResponseHead,
    /// The framing of the body.
    pub framing: Framing,
    /// The content, without chunk framing.
    pub body: Vec<u8>,
    /// Trailer fields.
    pub trailers: Vec<(String, String)>,
}

impl RawResponse {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The first value of a header field, ignoring the case of its name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// The body as ISO 8859-1 text.
    pub fn text(&self) -> String {
        crate::latin1(&self.body)
    }
}

/// Splits at CRLF; a CR or LF anywhere else is an error.
fn lines(bytes: &[u8]) -> io::Result<Vec<&[u8]>> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        if !rest[at..].starts_with(b"\r\n") {
            return Err(invalid("bare CR or LF", rest));
        }
        lines.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    lines.push(rest);
    Ok(lines)
}

fn status_line(line: &[u8]) -> Option<(String, u16, String)> {
    let text = crate::latin1(line);
    let (version, rest) = text.split_once(' ')?;
    // The space after the code is required even without a reason (RFC 9112 4).
    let (status, reason) = rest.split_once(' ')?;
    let valid = matches!(version, "HTTP/1.0" | "HTTP/1.1")
        && status.len() == 3
        && status.bytes().all(|byte| byte.is_ascii_digit())
        && !reason.bytes().any(is_forbidden);
    let status: u16 = status.parse().ok()?;
    (valid && (100..=599).contains(&status))
        .then(|| (version.to_owned(), status, reason.to_owned()))
}

/// Parses one field line.
pub(super) fn field(line: impl AsRef<[u8]>) -> io::Result<(String, String)> {
    let line = line.as_ref();
    let malformed = || invalid("malformed field line", line);
    let colon = line
        .iter()
        .position(|byte| *byte == b':')
        .ok_or_else(malformed)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty()
        || !name.iter().all(|byte| is_token(*byte))
        || value.iter().copied().any(is_forbidden)
    {
        return Err(malformed());
    }
    let value = crate::latin1(value);
    Ok((
        crate::latin1(name),
        value.trim_matches([' ', '\t']).to_owned(),
    ))
}

pub(super) fn values<'a>(headers: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    headers
        .iter()
        .filter(|(other, _)| other.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
        .collect()
}

/// `tchar` of RFC 9110 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// True for control characters other than tab, which values must not contain (RFC 9110 5.5).
fn is_forbidden(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}
