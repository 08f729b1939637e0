//! Frames and requests that every server of HTTP/2 accepts, and compression of fields (RFC 7541).

use testkit::raw::frame::{self, Frame};

use super::{CANCEL, COMPRESSION, Case, FIELDS, Step, Wanted, case, post};

const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = begin();
    cases.extend(frames());
    cases.extend(messages());
    cases.extend(fields());
    cases
}

fn begin() -> Vec<Case> {
    let mut preface = case("generic/1", "a client connection preface")
        .raw(frame::PREFACE)
        .settings(&[(super::INITIAL_WINDOW, 65_535)])
        .wants(Wanted::Settings);
    preface.is_open = false;
    let no_window = [(super::INITIAL_WINDOW, 0)];
    vec![
        preface,
        case("generic/2", "PRIORITY on an idle stream")
            .priority(1, 0, 255)
            .ping()
            .wants(Wanted::Pong),
        case("generic/2", "WINDOW_UPDATE on a half-closed stream")
            .settings(&no_window)
            .get(1)
            .window(1, 1)
            .wants(Wanted::Data(1)),
        case("generic/2", "PRIORITY on a half-closed stream")
            .settings(&no_window)
            .get(1)
            .priority(1, 0, 255)
            .window(1, 1)
            .wants(Wanted::Data(1)),
        case("generic/2", "RST_STREAM on a half-closed stream")
            .get(1)
            .frame(&Frame::reset(1, CANCEL))
            .ping()
            .wants(Wanted::PongOrClose),
        case("generic/2", "PRIORITY on a closed stream")
            .get(1)
            .step(Step::Ended(1))
            .priority(1, 0, 255)
            .ping()
            .wants(Wanted::Pong),
    ]
}

fn frames() -> Vec<Case> {
    let block = frame::header_block(&FIELDS);
    let padded_data = [&[8][..], b"test", &[0; 8]].concat();
    let padded_head = [&[8][..], &block, &[0; 8]].concat();
    let first_head = [&[0, 0, 0, 0, 255][..], &block].concat();
    let all_settings = [
        (1, 4096),
        (2, 1),
        (3, 100),
        (4, 65_535),
        (5, 16_384),
        (6, 100),
    ];
    let end = frame::END_HEADERS | frame::END_STREAM;
    vec![
        case("generic/3.1", "DATA")
            .post(1)
            .data(1, b"test", true)
            .wants(Wanted::Answer(1)),
        case("generic/3.1", "several frames of DATA")
            .post(1)
            .data(1, b"test", false)
            .data(1, b"test", true)
            .wants(Wanted::Answer(1)),
        case("generic/3.1", "DATA with padding")
            .post(1)
            .of(frame::DATA, frame::END_STREAM | PADDED, 1, &padded_data)
            .wants(Wanted::Answer(1)),
        case("generic/3.2", "HEADERS")
            .get(1)
            .wants(Wanted::Answer(1)),
        case("generic/3.2", "HEADERS with padding")
            .of(frame::HEADERS, end | PADDED, 1, &padded_head)
            .wants(Wanted::Answer(1)),
        case("generic/3.2", "HEADERS with priority")
            .of(frame::HEADERS, end | PRIORITY, 1, &first_head)
            .wants(Wanted::Answer(1)),
        case("generic/3.3", "PRIORITY 1")
            .priority(1, 0, 0)
            .get(1)
            .wants(Wanted::Answer(1)),
        case("generic/3.3", "PRIORITY 256")
            .priority(1, 0, 255)
            .get(1)
            .wants(Wanted::Answer(1)),
        case("generic/3.3", "PRIORITY with a dependency")
            .priority(3, 1, 0)
            .get(1)
            .wants(Wanted::Answer(1)),
        case("generic/3.3", "PRIORITY with an exclusive one")
            .priority(1, 1 << 31, 0)
            .get(1)
            .wants(Wanted::Answer(1)),
        case(
            "generic/3.3",
            "PRIORITY of an idle stream, HEADERS on a lower one",
        )
        .priority(3, 0, 255)
        .get(1)
        .wants(Wanted::Answer(1)),
        case("generic/3.4", "RST_STREAM")
            .get(1)
            .frame(&Frame::reset(1, CANCEL))
            .ping()
            .wants(Wanted::PongOrClose),
        case("generic/3.5", "SETTINGS")
            .settings(&all_settings)
            .wants(Wanted::Settled),
        case("generic/3.7", "PING").ping().wants(Wanted::Pong),
        case("generic/3.8", "GOAWAY")
            .frame(&Frame::goaway(0, frame::NO_ERROR))
            .ping()
            .wants(Wanted::PongOrClose),
        case("generic/3.9", "WINDOW_UPDATE of the connection")
            .window(0, 1)
            .ping()
            .wants(Wanted::Pong),
        case("generic/3.9", "WINDOW_UPDATE of a stream")
            .get(1)
            .window(1, 1)
            .wants(Wanted::Answer(1)),
        case("generic/3.10", "CONTINUATION")
            .of(frame::HEADERS, frame::END_STREAM, 1, &block[..5])
            .of(frame::CONTINUATION, frame::END_HEADERS, 1, &block[5..])
            .wants(Wanted::Answer(1)),
        case("generic/3.10", "several frames of CONTINUATION")
            .of(frame::HEADERS, frame::END_STREAM, 1, &block[..5])
            .of(frame::CONTINUATION, 0, 1, &block[5..10])
            .of(frame::CONTINUATION, frame::END_HEADERS, 1, &block[10..])
            .wants(Wanted::Answer(1)),
    ]
}

fn messages() -> Vec<Case> {
    let [_, others @ ..] = FIELDS;
    let head = [&[(":method", "HEAD")][..], &others].concat();
    let with_trailer = [&post()[..], &[("trailer", "x-test")]].concat();
    vec![
        case("generic/4", "GET").get(1).wants(Wanted::Answer(1)),
        case("generic/4", "HEAD")
            .frame(&Frame::headers(1, &head, true))
            .wants(Wanted::Answer(1)),
        case("generic/4", "POST")
            .post(1)
            .data(1, b"test", true)
            .wants(Wanted::Answer(1)),
        case("generic/4", "POST with trailers")
            .frame(&Frame::headers(1, &with_trailer, false))
            .data(1, b"test", false)
            .frame(&Frame::headers(1, &[("x-test", "ok")], true))
            .wants(Wanted::Answer(1)),
    ]
}

/// A request whose block begins and ends with these bytes.
fn block(case: Case, before: &[u8], after: &[u8]) -> Case {
    let block = [before, &frame::header_block(&FIELDS), after].concat();
    let end = frame::END_HEADERS | frame::END_STREAM;
    case.of(frame::HEADERS, end, 1, &block)
}

fn fields() -> Vec<Case> {
    const USER_AGENT: &[u8] = b"\x0auser-agent\x06h2spec";
    const USER_AGENT_CODED: &[u8] = b"\x87\xb5\x05\xb1\x61\xcc\x5a\x93\x84\x9c\x48\xac\xa4";
    const TEST: &[u8] = b"\x06x-test\x06h2spec";
    const TEST_CODED: &[u8] = b"\x85\xf2\xb2\x4a\x84\xff\x84\x9c\x48\xac\xa4";
    let mut cases = vec![("an indexed field", vec![0xba])];
    for (kind, name) in [
        (
            0x40,
            [
                "an indexed literal",
                "an indexed literal, coded",
                "an indexed literal with a new name",
                "an indexed literal with a new name, coded",
            ],
        ),
        (
            0x00,
            [
                "a literal",
                "a literal, coded",
                "a literal with a new name",
                "a literal with a new name, coded",
            ],
        ),
        (
            0x10,
            [
                "a literal that is never indexed",
                "a literal that is never indexed, coded",
                "a literal that is never indexed with a new name",
                "a literal that is never indexed with a new name, coded",
            ],
        ),
    ] {
        let texts = [USER_AGENT, USER_AGENT_CODED, TEST, TEST_CODED];
        for (name, text) in name.into_iter().zip(texts) {
            cases.push((name, [&[kind][..], text].concat()));
        }
    }
    let mut cases: Vec<_> = cases
        .into_iter()
        .map(|(what, bytes)| block(case("generic/5", what), &[], &bytes))
        .collect();
    cases.push(block(
        case("generic/5", "a new size of the table"),
        b"\x3f\xe1\x1f",
        &[],
    ));
    let twice = b"\x3f\x61\x3f\xe1\x1f";
    cases.push(block(
        case("generic/5", "two new sizes of the table"),
        twice,
        &[],
    ));
    let answered = cases.into_iter().map(|case| case.wants(Wanted::Answer(1)));
    answered.collect()
}

pub(super) fn hpack() -> Vec<Case> {
    let cases: [(&str, &str, &[u8], &[u8]); 8] = [
        (
            "hpack/2.3.3",
            "an indexed field that there is not",
            b"",
            b"\xc6",
        ),
        (
            "hpack/2.3.3",
            "a literal whose name there is not",
            b"",
            b"\x7f\x07\x00",
        ),
        (
            "hpack/4.2",
            "a new size of the table at the end",
            b"",
            b"\x21",
        ),
        (
            "hpack/5.2",
            "a coded text with padding of more than 7 bits",
            b"",
            b"\x00\x85\xf2\xb2\x4a\x84\xff\x84\x49\x50\x9f\xff",
        ),
        (
            "hpack/5.2",
            "a coded text padded by zero",
            b"",
            b"\x00\x85\xf2\xb2\x4a\x84\xff\x83\x49\x50\x90",
        ),
        (
            "hpack/5.2",
            "a coded text with the symbol of its end",
            b"",
            b"\x00\x85\xf2\xb2\x4a\x84\xff\x87\x49\x51\xff\xff\xff\xfa\x7f",
        ),
        ("hpack/6.1", "the indexed field 0", b"", b"\x80"),
        // 4,097 are more than the server allows.
        (
            "hpack/6.3",
            "too large a size of the table",
            b"\x3f\xe2\x1f",
            b"",
        ),
    ];
    let rejected = cases.into_iter().map(|(at, what, before, after)| {
        block(case(at, what), before, after).wants(Wanted::ConnectionError(&[COMPRESSION]))
    });
    rejected.collect()
}
