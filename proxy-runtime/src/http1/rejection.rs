//! The reasons to reject a message, with status and text.

use std::error::Error;
use std::fmt;

use http::StatusCode;

/// The reason to reject a message.
///
/// The handling is always the same: respond with [`status`](Self::status) if no response has begun,
/// close the connection of the message, and pass nothing further of it on. The end or the content
/// of the message is ambiguous, so the next bytes on that connection may be no message of their own
/// (RFC 9112 section 11.2). The few unambiguous cases, such as [`Expectation`](Self::Expectation),
/// close it as well, since reading the body is not worth while.
///
/// A rejected *response* becomes a 502, whatever [`status`](Self::status) is, since the client is
/// not at fault.
///
/// Texts are fixed: they contain nothing of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rejection {
    /// The start line lacks a part, or has other white space than one space between parts (RFC 9112
    /// sections 3 and 4). 400.
    StartLine,
    /// The method is not a token (RFC 9110 section 9.1). 400.
    Method,
    /// The method is longer than any in use: 64 bytes (RFC 9112 section 3). 501.
    MethodTooLong,
    /// The target has an invalid byte: a control character, a space, `#`, or one that must be
    /// percent-encoded (RFC 9112 section 3.2). 400.
    TargetByte,
    /// The target has no form that its method allows (RFC 9112 section 3.2). 400.
    TargetForm,
    /// The target of `CONNECT` is no authority (RFC 9112 section 3.2.3). 405, as for every CONNECT.
    ConnectTarget,
    /// The authority of an absolute target is no host and port (RFC 9110 section 7.2). 400.
    TargetAuthority,
    /// Method and target are longer than the limit (RFC 9112 section 3). 414.
    TargetTooLong,
    /// The version is invalid (RFC 9112 section 2.3). 400.
    Version,
    /// The version is neither HTTP/1.0 nor HTTP/1.1 (RFC 9110 section 15.6.6). 505.
    VersionNotSupported,
    /// The status is not three digits, at least 100 (RFC 9112 section 4). 400.
    StatusCode,
    /// The reason phrase has a control character (RFC 9112 section 4). 400.
    Reason,
    /// A line ends in a line feed alone, which RFC 9112 section 2.2 allows to accept. 400.
    BareLineFeed,
    /// A carriage return ends no line (RFC 9112 section 2.2). 400.
    BareCarriageReturn,
    /// The name of a field is empty, no token, or not followed by a colon (RFC 9112 section 5.1).
    /// 400.
    FieldName,
    /// The value of a field has a control character (RFC 9110 section 5.5). 400.
    FieldValue,
    /// A line begins with a space or a tab: folding, or white space before the first field (RFC
    /// 9112 sections 2.2 and 5.2). 400.
    Folded,
    /// A field name that some programs map to one that frames, routes or attributes messages, because they read `_`
    /// as `-` (RFC 3875 section 4.1.18), such as `X_Forwarded_For`. 400.
    Imitation,
    /// The head is larger than the limit (RFC 6585 section 5). 431.
    HeadTooLarge,
    /// The head has more fields than the limit (RFC 6585 section 5). 431.
    TooManyFields,
    /// `Host` is missing in HTTP/1.1 (RFC 9112 section 3.2). 400.
    HostMissing,
    /// `Host` has several lines, even if equal (RFC 9112 section 3.2). 400.
    HostRepeated,
    /// `Host` is empty or no host and port (RFC 9112 section 3.2, RFC 9110 section 7.2). 400.
    HostInvalid,
    /// `Content-Length` is not decimal digits only, or beyond 2⁶³ − 1 (RFC 9110 section 8.6). 400.
    LengthInvalid,
    /// `Content-Length` has several lines or values, even if equal (RFC 9112 section 6.3). 400.
    LengthRepeated,
    /// `Transfer-Encoding` and `Content-Length` are both present (RFC 9112 section 6.1). 400.
    LengthAndCoding,
    /// `Transfer-Encoding` does not end in `chunked`, has it twice, or is invalid (RFC 9112 section
    /// 6.1). 400.
    CodingInvalid,
    /// `Transfer-Encoding` has several lines (RFC 9112 section 6.1 would join them). 400.
    CodingRepeated,
    /// A transfer coding other than `chunked` (RFC 9112 section 6.1). 501.
    CodingUnknown,
    /// `Transfer-Encoding` in HTTP/1.0, where it has no meaning (RFC 9112 section 6.1). 400.
    CodingInHttp10,
    /// An element of `Connection` is not a token (RFC 9110 section 7.6.1). 400.
    ConnectionOption,
    /// `Connection` has more than 32 elements, including empty ones. 431.
    TooManyConnectionOptions,
    /// An expectation other than `100-continue` (RFC 9110 section 10.1.1). 417.
    Expectation,
    /// A WebSocket request with a body, which some programs take for the first bytes of the tunnel
    /// (RFC 6455 section 4.1, RFC 9110 section 7.8). 400.
    UpgradeWithBody,
    /// A 101 without a request for it (RFC 9110 section 15.2.2).
    UnexpectedSwitch,
    /// An interim response that declares a body (RFC 9112 section 6.1, RFC 9110 section 8.6).
    InterimWithBody,
    /// The size of a chunk is not 1 to 16 hexadecimal digits, or beyond 2⁶³ − 1 (RFC 9112 section
    /// 7.1). 400.
    ChunkSize,
    /// The extensions of a chunk violate RFC 9112 section 7.1.1, or have spaces. 400.
    ChunkExtension,
    /// The extensions of all chunks together exceed the limit (RFC 9112 section 7.1.1). 400.
    ChunkExtensionsTooLong,
    /// The data of a chunk is not followed by a line end (RFC 9112 section 7.1). 400.
    ChunkEnd,
    /// A trailer field that frames or routes a message (RFC 9110 section 6.5.1). 400.
    Trailer,
}

impl Rejection {
    /// The status of the response to a rejected request.
    pub fn status(self) -> StatusCode {
        match self {
            Self::ConnectTarget => StatusCode::METHOD_NOT_ALLOWED,
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::Expectation => StatusCode::EXPECTATION_FAILED,
            Self::HeadTooLarge | Self::TooManyFields | Self::TooManyConnectionOptions => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::MethodTooLong | Self::CodingUnknown => StatusCode::NOT_IMPLEMENTED,
            Self::VersionNotSupported => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// Returns true if the message only exceeds a limit, and is otherwise valid as far as it was
    /// read.
    #[cfg(feature = "server")]
    pub(crate) fn is_of_limit(self) -> bool {
        self.status() == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
    }

    /// The reason as a fixed text.
    pub fn reason(self) -> &'static str {
        match self {
            Self::StartLine => "the start line does not have its parts",
            Self::Method => "the method is not a token",
            Self::MethodTooLong => "the method is not known",
            Self::TargetByte => "the target has a byte that must be encoded",
            Self::TargetForm => "the target's form does not suit its method",
            Self::ConnectTarget => "the target of CONNECT is not an authority",
            Self::TargetAuthority => "the target's authority is not a host",
            Self::TargetTooLong => "the target is too long",
            Self::Version => "the version cannot be read",
            Self::VersionNotSupported => "the version is not supported",
            Self::StatusCode => "the status code cannot be read",
            Self::Reason => "the reason phrase has a control character",
            Self::BareLineFeed => "a line ends without a carriage return",
            Self::BareCarriageReturn => "a carriage return does not end a line",
            Self::FieldName => "the name of a field cannot be read",
            Self::FieldValue => "the value of a field has a control character",
            Self::Folded => "a field line is folded",
            Self::Imitation => "a field's name imitates one that the proxy relies on",
            Self::HeadTooLarge => "the head is too large",
            Self::TooManyFields => "the head has too many fields",
            Self::HostMissing => "the request has no Host field",
            Self::HostRepeated => "the request has more than one Host field",
            Self::HostInvalid => "the Host field is not a host",
            Self::LengthInvalid => "the Content-Length is not a number",
            Self::LengthRepeated => "the Content-Length is given more than once",
            Self::LengthAndCoding => "the message has a Transfer-Encoding and a Content-Length",
            Self::CodingInvalid => "the Transfer-Encoding cannot be read",
            Self::CodingRepeated => "the Transfer-Encoding is given more than once",
            Self::CodingUnknown => "the transfer coding is not known",
            Self::CodingInHttp10 => "an HTTP/1.0 message has a Transfer-Encoding",
            Self::ConnectionOption => "the Connection field cannot be read",
            Self::TooManyConnectionOptions => "the Connection field has too many elements",
            Self::Expectation => "the expectation is not known",
            Self::UpgradeWithBody => "the request asks for a WebSocket and has a body",
            Self::UnexpectedSwitch => "the response switches protocols and was not asked to",
            Self::InterimWithBody => "an interim response has a body",
            Self::ChunkSize => "the size of a chunk cannot be read",
            Self::ChunkExtension => "the extensions of a chunk cannot be read",
            Self::ChunkExtensionsTooLong => "the extensions of chunks are too long",
            Self::ChunkEnd => "a chunk is longer than it says",
            Self::Trailer => "a trailer field belongs into the head",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl Error for Rejection {}
