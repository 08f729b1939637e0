//! Frames that are wrong, and settings (RFC 7540, sections 3, 4 and 6).

use testkit::raw::frame::{self, Frame};

use super::{
    CANCEL, COMPRESSION, Case, FIELDS, FLOW_CONTROL, FRAME_SIZE, INITIAL_WINDOW, PING, PROTOCOL,
    STREAM_CLOSED, Step, Wanted, case, more_fields, post,
};

const MOST_OF_WINDOW: u32 = 0x7fff_ffff;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = begin();
    cases.extend(continuations());
    cases.extend(of_streams());
    cases.extend(settings());
    cases.extend(of_connections());
    cases.extend(windows());
    cases
}

fn begin() -> Vec<Case> {
    let mut preface = case("http2/3.5", "a client connection preface")
        .raw(frame::PREFACE)
        .settings(&[(INITIAL_WINDOW, 65_535)])
        .wants(Wanted::Settings);
    preface.is_open = false;
    let mut other = case("http2/3.5", "another preface")
        .raw(b"INVALID CONNECTION PREFACE\r\n\r\n")
        .wants(Wanted::ConnectionError(&[PROTOCOL]));
    other.is_open = false;
    let mut reserved = Frame::new(frame::PING, 0x16, 0, *PING).encode();
    reserved[5] |= 0x80;
    let long: String = "x".repeat(4_000);
    let many = ["a", "b", "c", "d", "e"].map(|name| (name, &*long));
    vec![
        preface,
        other,
        case("http2/4.1", "a frame of an unknown type")
            .of(0x16, 0, 0, &[0; 8])
            .ping()
            .wants(Wanted::Pong),
        case("http2/4.1", "a frame with a flag that is not defined")
            .of(frame::PING, 0x16, 0, PING)
            .wants(Wanted::Pong),
        case("http2/4.1", "a frame with the reserved bit")
            .raw(&reserved)
            .wants(Wanted::Pong),
        case("http2/4.2", "DATA of 2^14 bytes")
            .post(1)
            .data(1, &[b'x'; 1 << 14], true)
            .wants(Wanted::Answer(1)),
        case("http2/4.2", "DATA that is too long")
            .post(1)
            .data(1, &[b'x'; (1 << 14) + 1], true)
            .wants(Wanted::StreamError(&[FRAME_SIZE])),
        case("http2/4.2", "HEADERS that are too long")
            .get_with(&many)
            .wants(Wanted::ConnectionError(&[FRAME_SIZE])),
        case("http2/4.3", "a header block that is none")
            .of(frame::HEADERS, 5, 1, &[0x40])
            .wants(Wanted::ConnectionError(&[COMPRESSION])),
    ]
}

fn continuations() -> Vec<Case> {
    let block = frame::header_block(&FIELDS);
    let more = &*more_fields();
    let rejected = Wanted::ConnectionError(&[PROTOCOL]);
    let begin = |at, what| case(at, what).of(frame::HEADERS, frame::END_STREAM, 1, &block);
    let begin_post = |at, what| {
        let block = frame::header_block(&post());
        case(at, what).of(frame::HEADERS, 0, 1, &block)
    };
    let end = |case: Case| case.of(frame::CONTINUATION, frame::END_HEADERS, 1, more);
    let mut cases = Vec::new();
    for at in ["http2/4.3", "http2/6.2"] {
        cases.push(end(
            begin(at, "PRIORITY within a header block").priority(1, 0, 255)
        ));
        cases.push(end(begin(
            at,
            "HEADERS of another stream within a header block",
        )
        .get(3)));
    }
    cases
        .push(begin("http2/5.5", "an unknown frame within a header block").of(0x16, 0, 0, &[0; 8]));
    let at = "http2/6.10";
    cases.push(
        begin_post(at, "another frame behind CONTINUATION")
            .of(frame::CONTINUATION, 0, 1, more)
            .data(1, b"test", true),
    );
    cases.push(begin(at, "CONTINUATION of stream 0").of(
        frame::CONTINUATION,
        frame::END_HEADERS,
        0,
        more,
    ));
    cases.push(end(case(at, "CONTINUATION behind whole HEADERS").get(1)));
    cases.push(end(end(begin(
        at,
        "CONTINUATION behind the last CONTINUATION",
    ))));
    cases.push(end(
        begin_post(at, "CONTINUATION behind DATA").data(1, b"test", true)
    ));
    let mut cases: Vec<_> = cases.into_iter().map(|case| case.wants(rejected)).collect();
    cases.push(
        end(begin(at, "HEADERS and several frames of CONTINUATION").of(
            frame::CONTINUATION,
            0,
            1,
            more,
        ))
        .wants(Wanted::Answer(1)),
    );
    cases
}

fn of_streams() -> Vec<Case> {
    let rejected = Wanted::ConnectionError(&[PROTOCOL]);
    let block = frame::header_block(&FIELDS);
    let pad = u8::try_from(block.len() + 2).expect("it is short");
    let padded = [&[pad][..], &block].concat();
    let end = frame::END_HEADERS | frame::END_STREAM;
    let with_length = [&post()[..], &[("content-length", "4")]].concat();
    vec![
        case("http2/6.1", "DATA of stream 0")
            .data(0, b"test", true)
            .wants(rejected),
        case("http2/6.1", "DATA of a stream that is closed to it")
            .get(1)
            .data(1, b"test", true)
            .wants(Wanted::StreamError(&[STREAM_CLOSED, PROTOCOL])),
        case("http2/6.1", "DATA with more padding than it has")
            .frame(&Frame::headers(1, &with_length, false))
            .of(frame::DATA, 9, 1, b"\x06Test")
            .wants(rejected),
        case("http2/6.2", "HEADERS of stream 0")
            .get(0)
            .wants(rejected),
        case("http2/6.2", "HEADERS with more padding than they have")
            .of(frame::HEADERS, end | 8, 1, &padded)
            .wants(Wanted::StreamError(&[PROTOCOL])),
        case("http2/6.3", "PRIORITY of stream 0")
            .priority(0, 0, 255)
            .wants(rejected),
        case("http2/6.3", "PRIORITY of 4 bytes")
            .get(1)
            .of(frame::PRIORITY, 0, 1, b"\x80\0\0\x01")
            .wants(Wanted::StreamError(&[FRAME_SIZE])),
        case("http2/6.4", "RST_STREAM of stream 0")
            .frame(&Frame::reset(0, CANCEL))
            .wants(rejected),
        case("http2/6.4", "RST_STREAM of an idle stream")
            .frame(&Frame::reset(1, CANCEL))
            .wants(rejected),
        case("http2/6.4", "RST_STREAM of 3 bytes")
            .get(1)
            .of(frame::RST_STREAM, 0, 1, &[0; 3])
            .wants(Wanted::StreamError(&[FRAME_SIZE])),
    ]
}

fn settings() -> Vec<Case> {
    let rejected = Wanted::ConnectionError(&[PROTOCOL]);
    let at = "http2/6.5.2";
    vec![
        case("http2/6.5", "an acknowledgement with a payload")
            .of(frame::SETTINGS, frame::ACK, 0, &[0])
            .wants(Wanted::ConnectionError(&[FRAME_SIZE])),
        case("http2/6.5", "SETTINGS of a stream")
            .of(frame::SETTINGS, 0, 1, &[0, 3, 0, 0, 0, 100])
            .wants(rejected),
        case("http2/6.5", "SETTINGS of 3 bytes")
            .of(frame::SETTINGS, 0, 0, &[0, 3, 0])
            .wants(Wanted::StreamError(&[PROTOCOL, FRAME_SIZE])),
        case(at, "ENABLE_PUSH of 2")
            .settings(&[(2, 2)])
            .wants(rejected),
        case(at, "INITIAL_WINDOW_SIZE of 2^31")
            .settings(&[(INITIAL_WINDOW, 1 << 31)])
            .wants(Wanted::ConnectionError(&[FLOW_CONTROL])),
        case(at, "MAX_FRAME_SIZE of 2^14 - 1")
            .settings(&[(5, 16_383)])
            .wants(rejected),
        case(at, "MAX_FRAME_SIZE of 2^24")
            .settings(&[(5, 1 << 24)])
            .wants(rejected),
        case(at, "an unknown setting")
            .settings(&[(0xff, 1)])
            .ping()
            .wants(Wanted::Pong),
        case("http2/6.5.3", "two values of INITIAL_WINDOW_SIZE")
            .settings(&[(INITIAL_WINDOW, 100), (INITIAL_WINDOW, 1)])
            .step(Step::Settled)
            .get(1)
            .wants(Wanted::Data(1)),
        case("http2/6.5.3", "SETTINGS without ACK")
            .settings(&[(2, 0)])
            .wants(Wanted::Settled),
    ]
}

fn of_connections() -> Vec<Case> {
    let rejected = Wanted::ConnectionError(&[PROTOCOL]);
    let wrong_ping = |at, what| case(at, what).of(frame::PING, 0, 3, &[0; 8]);
    vec![
        wrong_ping("http2/5.4.1", "a wrong PING, which closes the connection").wants(Wanted::Close),
        wrong_ping("http2/5.4.1", "a wrong PING, which is told").wants(Wanted::Goaway(PROTOCOL)),
        case("http2/5.5", "a frame of an extension")
            .of(0x16, 0, 0, &[0; 8])
            .ping()
            .wants(Wanted::Pong),
        case("http2/6.7", "PING").ping().wants(Wanted::Pong),
        case("http2/6.7", "PING with ACK")
            .of(frame::PING, frame::ACK, 0, b"unwanted")
            .ping()
            .wants(Wanted::Pong),
        case("http2/6.7", "PING of a stream")
            .of(frame::PING, 0, 1, &[0; 8])
            .wants(rejected),
        case("http2/6.7", "PING of 6 bytes")
            .of(frame::PING, 0, 0, &[0; 6])
            .wants(Wanted::ConnectionError(&[FRAME_SIZE])),
        case("http2/6.8", "GOAWAY of a stream")
            .of(frame::GOAWAY, 0, 1, &[0; 8])
            .wants(rejected),
        case("http2/7", "GOAWAY with an unknown code")
            .frame(&Frame::goaway(0, 0xff))
            .ping()
            .wants(Wanted::PongOrClose),
        case("http2/7", "RST_STREAM with an unknown code")
            .post(1)
            .frame(&Frame::reset(1, 0xff))
            .ping()
            .wants(Wanted::PongOrClose),
    ]
}

fn windows() -> Vec<Case> {
    vec![
        case("http2/6.9", "WINDOW_UPDATE of 0")
            .window(0, 0)
            .wants(Wanted::ConnectionError(&[PROTOCOL])),
        case("http2/6.9", "WINDOW_UPDATE of 0 on a stream")
            .post(1)
            .window(1, 0)
            .wants(Wanted::StreamError(&[PROTOCOL])),
        case("http2/6.9", "WINDOW_UPDATE of 3 bytes")
            .of(frame::WINDOW_UPDATE, 0, 0, &[0, 0, 1])
            .wants(Wanted::ConnectionError(&[FRAME_SIZE])),
        case("http2/6.9.1", "a window of 1")
            .settings(&[(INITIAL_WINDOW, 1)])
            .step(Step::Settled)
            .get(1)
            .wants(Wanted::Data(1)),
        case("http2/6.9.1", "more than 2^31 - 1")
            .window(0, MOST_OF_WINDOW)
            .window(0, MOST_OF_WINDOW)
            .wants(Wanted::Goaway(FLOW_CONTROL)),
        case("http2/6.9.1", "more than 2^31 - 1 on a stream")
            .post(1)
            .window(1, MOST_OF_WINDOW)
            .window(1, MOST_OF_WINDOW)
            .wants(Wanted::StreamError(&[FLOW_CONTROL])),
        case("http2/6.9.2", "another INITIAL_WINDOW_SIZE behind HEADERS")
            .settings(&[(INITIAL_WINDOW, 0)])
            .step(Step::Settled)
            .get(1)
            .settings(&[(INITIAL_WINDOW, 1)])
            .wants(Wanted::Data(1)),
        case("http2/6.9.2", "a window that gets negative")
            .settings(&[(INITIAL_WINDOW, 3)])
            .step(Step::Settled)
            .get(1)
            .step(Step::Data)
            .settings(&[(INITIAL_WINDOW, 2)])
            .step(Step::Settled)
            .window(1, 2)
            .wants(Wanted::Data(1)),
        case("http2/6.9.2", "INITIAL_WINDOW_SIZE of 2^31")
            .settings(&[(INITIAL_WINDOW, 1 << 31)])
            .wants(Wanted::ConnectionError(&[FLOW_CONTROL])),
    ]
}
