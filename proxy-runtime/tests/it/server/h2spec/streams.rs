//! States of streams, and requests that are malformed (RFC 7540, sections 5 and 8).

use testkit::raw::frame::{self, Frame};

use super::{
    CANCEL, Case, FIELDS, PROTOCOL, REJECTED, STREAM_CLOSED, Step, Wanted, case, more_fields, post,
};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = states();
    cases.extend(identifiers());
    cases.extend(malformed());
    cases
}

fn states() -> Vec<Case> {
    let rejected = Wanted::ConnectionError(&[PROTOCOL]);
    // h2spec asks for STREAM_CLOSED, and accepts any code when the connection ends. By RFC 9113, section 5.1.1, HEADERS
    // with a number that is not new are a PROTOCOL_ERROR; DATA is one while the stream is not forgotten.
    let closed_or_wrong = Wanted::StreamError(&[STREAM_CLOSED, PROTOCOL]);
    let at = "http2/5.1";
    let more = &*more_fields();
    let end = |case: Case| case.of(frame::CONTINUATION, frame::END_HEADERS, 1, more);
    let reset = |what| case(at, what).post(1).frame(&Frame::reset(1, CANCEL));
    let ended = |what| case(at, what).get(1).step(Step::Ended(1));
    vec![
        case(at, "idle: DATA")
            .data(1, b"test", true)
            .wants(Wanted::StreamError(&[PROTOCOL, STREAM_CLOSED])),
        case(at, "idle: RST_STREAM")
            .frame(&Frame::reset(1, CANCEL))
            .wants(rejected),
        case(at, "idle: WINDOW_UPDATE")
            .window(1, 100)
            .wants(rejected),
        end(case(at, "idle: CONTINUATION")).wants(rejected),
        case(at, "half closed: DATA")
            .get(1)
            .data(1, b"test", true)
            .wants(closed_or_wrong),
        case(at, "half closed: HEADERS")
            .get(1)
            .get(1)
            .wants(closed_or_wrong),
        end(case(at, "half closed: CONTINUATION").get(1)).wants(closed_or_wrong),
        reset("reset: DATA")
            .data(1, b"test", true)
            .wants(closed_or_wrong),
        reset("reset: HEADERS").get(1).wants(closed_or_wrong),
        end(reset("reset: CONTINUATION")).wants(closed_or_wrong),
        ended("closed: DATA")
            .data(1, b"test", true)
            .wants(closed_or_wrong),
        ended("closed: HEADERS")
            .get(1)
            .wants(Wanted::ConnectionError(&[STREAM_CLOSED, PROTOCOL])),
        end(ended("closed: CONTINUATION"))
            .wants(Wanted::ConnectionError(&[STREAM_CLOSED, PROTOCOL])),
    ]
}

fn identifiers() -> Vec<Case> {
    let rejected = Wanted::ConnectionError(&[PROTOCOL]);
    let block = frame::header_block(&FIELDS);
    let own_parent = [&[0, 0, 0, 1, 255][..], &block].concat();
    let end = frame::END_HEADERS | frame::END_STREAM;
    let no_window = [(super::INITIAL_WINDOW, 0)];
    let many = case("http2/5.1.2", "more streams than are allowed").settings(&no_window);
    let many = (0..=100).fold(many, |case, n| case.get(2 * n + 1));
    vec![
        case("http2/5.1.1", "an even stream").get(2).wants(rejected),
        case("http2/5.1.1", "a stream that is smaller than one before")
            .get(5)
            .get(3)
            .wants(rejected),
        many.wants(Wanted::StreamError(&[PROTOCOL, REJECTED])),
        case("http2/5.3.1", "HEADERS that depend on themselves")
            .of(frame::HEADERS, end | 0x20, 1, &own_parent)
            .wants(Wanted::StreamError(&[PROTOCOL])),
        case("http2/5.3.1", "PRIORITY that depends on itself")
            .priority(1, 1, 255)
            .wants(Wanted::StreamError(&[PROTOCOL])),
    ]
}

fn malformed() -> Vec<Case> {
    let [method, scheme, path, authority] = FIELDS;
    let with = |more: &[(&'static str, &'static str)]| [&FIELDS[..], more].concat();
    let posted = |more: &[(&'static str, &'static str)]| [&post()[..], more].concat();
    let heads = [
        (
            "http2/8.1.2",
            "a name in upper case",
            with(&[("X-TEST", "ok")]),
        ),
        (
            "http2/8.1.2.1",
            "an unknown pseudo-header field",
            with(&[(":test", "ok")]),
        ),
        (
            "http2/8.1.2.1",
            "a field of responses",
            with(&[(":status", "200")]),
        ),
        (
            "http2/8.1.2.1",
            "a pseudo-header field behind another field",
            [&[("x-test", "ok")][..], &FIELDS].concat(),
        ),
        (
            "http2/8.1.2.2",
            "a field of the connection",
            with(&[("connection", "keep-alive")]),
        ),
        (
            "http2/8.1.2.2",
            "TE with more than trailers",
            with(&[("trailers", "test"), ("te", "trailers, deflate")]),
        ),
        (
            "http2/8.1.2.3",
            "an empty path",
            vec![method, scheme, (":path", ""), authority],
        ),
        ("http2/8.1.2.3", "no method", vec![scheme, path, authority]),
        ("http2/8.1.2.3", "no scheme", vec![method, path, authority]),
        ("http2/8.1.2.3", "no path", vec![method, scheme, authority]),
        ("http2/8.1.2.3", "two methods", with(&[method])),
        ("http2/8.1.2.3", "two schemes", with(&[scheme])),
        ("http2/8.1.2.3", "two paths", with(&[path])),
    ];
    let heads = heads
        .into_iter()
        .map(|(at, what, fields)| case(at, what).frame(&Frame::headers(1, &fields, true)));
    let too_short = || Frame::headers(1, &posted(&[("content-length", "1")]), false);
    let bodies = [
        case("http2/8.1", "second HEADERS without the end")
            .post(1)
            .data(1, b"test", false)
            .frame(&Frame::headers(1, &[("x-test", "ok")], false)),
        case("http2/8.1.2.1", "a pseudo-header field among trailers")
            .post(1)
            .data(1, b"test", false)
            .frame(&Frame::headers(1, &[(":method", "POST")], true)),
        case("http2/8.1.2.6", "another length than DATA has")
            .frame(&too_short())
            .data(1, b"test", true),
        case("http2/8.1.2.6", "another length than all DATA has")
            .frame(&too_short())
            .data(1, b"test", false)
            .data(1, b"test", true),
    ];
    let rejected = heads.chain(bodies);
    let mut cases: Vec<_> = rejected
        .map(|case| case.wants(Wanted::StreamError(&[PROTOCOL])))
        .collect();
    let promised = [&[0, 0, 0, 2][..], &frame::header_block(&FIELDS)].concat();
    cases.push(
        case("http2/8.2", "PUSH_PROMISE")
            .of(frame::PUSH_PROMISE, frame::END_HEADERS, 1, &promised)
            .wants(Wanted::ConnectionError(&[PROTOCOL])),
    );
    cases
}
