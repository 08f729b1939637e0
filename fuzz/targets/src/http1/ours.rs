//! Streams as our parser reads them.

use proxy_runtime::http1::{
    ChunkTracker, Field, Framing, HeadLimits, HeadTable, Method, Progress, RawRequest, Rejection,
    RequestInfo, Status, TargetForm, parse_request, parse_response,
};

use super::{Fields, Message, sorted};

/// The end of a stream of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Between two messages; another one could follow.
    Clean,
    /// After the last possible message.
    Last,
    /// Inside a message.
    Partial,
    Rejected(Rejection),
}

fn fields(buffer: &[u8], fields: &[Field]) -> Fields {
    sorted(
        fields
            .iter()
            .map(|field| (field.name().get(buffer), field.value().get(buffer))),
    )
}

/// Reads the requests of a connection.
pub(super) fn requests(mut bytes: &[u8]) -> (Vec<Message>, End) {
    let mut table = HeadTable::new();
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let request = match parse_request(bytes, &HeadLimits::default(), &mut table) {
            Ok(Status::Complete(request)) => request,
            Ok(Status::Partial) => return (messages, End::Partial),
            Err(rejection) => return (messages, End::Rejected(rejection)),
        };
        let mut message = Message {
            start: start(bytes, &request),
            fields: fields(bytes, table.fields()),
            body: Vec::new(),
            trailers: Fields::new(),
        };
        bytes = &bytes[request.head_length()..];
        match body(bytes, request.framing(), &mut table, &mut message) {
            Ok(Some(length)) => bytes = &bytes[length..],
            Ok(None) => return (messages, End::Partial),
            Err(rejection) => return (messages, End::Rejected(rejection)),
        }
        messages.push(message);
        if !request.is_persistent() || request.method() == Method::Connect {
            return (messages, End::Last);
        }
    }
    (messages, End::Clean)
}

/// The normalized request line.
pub(super) fn start(buffer: &[u8], request: &RawRequest) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("targets are ASCII");
    let method = text(request.method_span().get(buffer));
    let path = match request.target_form() {
        // For an absolute URL in place of `*`, the other parser reports a URL.
        TargetForm::Asterisk if request.path().is_empty() => "/".to_owned(),
        TargetForm::Absolute if request.path().is_empty() => "/".to_owned(),
        _ => text(request.path().get(buffer)),
    };
    let query = request.query().map(|query| text(query.get(buffer)));
    let whole = request.target();
    let authority = match request.target_form() {
        TargetForm::Origin => None,
        _ if whole.get(buffer) == b"*" => None,
        _ => Some(text(request.authority().get(buffer))),
    };
    format!(
        "{method} {authority:?} {path} {query:?} {:?}",
        request.version()
    )
}

/// Reads the final response to a request, and its length in bytes. Returns `None` if it is
/// incomplete.
pub(super) fn response(
    mut bytes: &[u8],
    asked: RequestInfo,
) -> Result<Option<(Message, Framing)>, Rejection> {
    let mut table = HeadTable::new();
    loop {
        let limits = HeadLimits::default();
        let Status::Complete(response) = parse_response(bytes, asked, &limits, &mut table)? else {
            return Ok(None);
        };
        let mut message = Message {
            start: format!("{} {:?}", response.status(), response.version()),
            fields: fields(bytes, table.fields()),
            body: Vec::new(),
            trailers: Fields::new(),
        };
        bytes = &bytes[response.head_length()..];
        if response.is_interim() {
            continue;
        }
        let framing = response.framing();
        let ended = body(bytes, framing, &mut table, &mut message)?;
        return Ok(ended.map(|_| (message, framing)));
    }
}

/// Reads a body into `message`. Returns its length in bytes.
fn body(
    bytes: &[u8],
    framing: Framing,
    table: &mut HeadTable,
    message: &mut Message,
) -> Result<Option<usize>, Rejection> {
    match framing {
        Framing::None | Framing::Tunnel => Ok(Some(0)),
        Framing::Length(length) => {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let body = bytes.get(..length);
            message.body = body.unwrap_or_default().to_vec();
            Ok(body.map(<[u8]>::len))
        }
        Framing::UntilClose => {
            message.body = bytes.to_vec();
            Ok(Some(bytes.len()))
        }
        Framing::Chunked => {
            let mut body = Vec::new();
            let progress = chunks(bytes, bytes.len(), table, &mut body)?;
            message.body = body;
            let section = &bytes[progress.consumed..progress.consumed + progress.trailers];
            if progress.trailers > 0 {
                message.trailers = fields(section, table.fields());
            }
            Ok(progress
                .ended
                .then_some(progress.consumed + progress.trailers))
        }
    }
}

/// Decodes chunks in pieces of `piece` bytes. The result covers all pieces.
pub(super) fn chunks(
    bytes: &[u8],
    piece: usize,
    table: &mut HeadTable,
    body: &mut Vec<u8>,
) -> Result<Progress, Rejection> {
    let mut tracker = ChunkTracker::new();
    let mut all = Progress::default();
    let mut end = 0;
    while end < bytes.len() && !all.ended {
        end = (end + piece.max(1)).min(bytes.len());
        let progress = tracker.track_data(
            &bytes[all.consumed..end],
            &HeadLimits::default(),
            table,
            |data| body.extend_from_slice(data),
        )?;
        all.consumed += progress.consumed;
        all.payload += progress.payload;
        all.ended = progress.ended;
        all.trailers = progress.trailers;
    }
    assert_eq!(all.payload, body.len() as u64);
    Ok(all)
}
