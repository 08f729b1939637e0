//! Streams as parsed by this crate, in the form of llhttp's output.

use proxy_runtime::http1::{
    ChunkTracker, Field, FieldClass, Framing, HeadLimits, HeadTable, Method, RequestInfo, Status,
    Version, parse_request, parse_response,
};

/// A message. Bytes are one character each, and trailers follow the fields.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) start: String,
    pub(crate) target: String,
    pub(crate) version: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: String,
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

fn version(version: Version) -> String {
    match version {
        Version::Http10 => "1.0".to_owned(),
        Version::Http11 => "1.1".to_owned(),
    }
}

fn fields(buffer: &[u8], table: &HeadTable) -> Vec<(String, String)> {
    let pair = |field: &Field| {
        (
            latin1(field.name().get(buffer)),
            latin1(field.value().get(buffer)),
        )
    };
    table.fields().iter().map(pair).collect()
}

/// The complete requests.
pub(crate) fn requests(mut bytes: &[u8]) -> Vec<Message> {
    let mut table = HeadTable::new();
    let mut messages = Vec::new();
    loop {
        let read = parse_request(bytes, &HeadLimits::default(), &mut table);
        let Ok(Status::Complete(head)) = read else {
            return messages;
        };
        // llhttp rejects unregistered methods, such as one with the rest of a body in front of it.
        if head.method() == Method::Other {
            return messages;
        }
        let mut message = Message {
            start: latin1(head.method_span().get(bytes)),
            target: latin1(head.target().get(bytes)),
            version: version(head.version()),
            fields: fields(bytes, &table),
            body: String::new(),
        };
        let may_upgrade = table.classes().contains(FieldClass::Upgrade);
        // Such a request may have a body, as `h2c` had. llhttp leaves the body to another parser.
        if may_upgrade && !head.framing().is_empty() {
            return messages;
        }
        bytes = &bytes[head.head_length()..];
        let Some(length) = body(bytes, head.framing(), &mut table, &mut message) else {
            return messages;
        };
        bytes = &bytes[length..];
        messages.push(message);
        // llhttp leaves data after a possible upgrade to another parser.
        if !head.is_persistent() || may_upgrade {
            return messages;
        }
    }
}

/// The complete responses to a GET, including interim ones.
pub(crate) fn responses(mut bytes: &[u8]) -> Vec<Message> {
    let mut table = HeadTable::new();
    let mut messages = Vec::new();
    loop {
        let asked = RequestInfo::default();
        let read = parse_response(bytes, asked, &HeadLimits::default(), &mut table);
        let Ok(Status::Complete(head)) = read else {
            return messages;
        };
        let mut message = Message {
            start: head.status().to_string(),
            target: String::new(),
            version: version(head.version()),
            fields: fields(bytes, &table),
            body: String::new(),
        };
        bytes = &bytes[head.head_length()..];
        let Some(length) = body(bytes, head.framing(), &mut table, &mut message) else {
            return messages;
        };
        bytes = &bytes[length..];
        messages.push(message);
        if !head.is_persistent() {
            return messages;
        }
    }
}

/// The length of the body; `None` if it is incomplete or invalid.
fn body(
    bytes: &[u8],
    framing: Framing,
    table: &mut HeadTable,
    message: &mut Message,
) -> Option<usize> {
    match framing {
        Framing::None | Framing::Tunnel => Some(0),
        Framing::UntilClose => {
            message.body = latin1(bytes);
            Some(bytes.len())
        }
        Framing::Length(length) => {
            let body = bytes.get(..usize::try_from(length).ok()?)?;
            message.body = latin1(body);
            Some(body.len())
        }
        Framing::Chunked => {
            let mut content = Vec::new();
            let mut tracker = ChunkTracker::new();
            let track = tracker.track_data(bytes, &HeadLimits::default(), table, |data| {
                content.extend_from_slice(data);
            });
            let progress = track.ok().filter(|progress| progress.ended)?;
            message.body = latin1(&content);
            if progress.trailers > 0 {
                let section = &bytes[progress.consumed..];
                message.fields.extend(fields(section, table));
            }
            Some(progress.consumed + progress.trailers)
        }
    }
}
