//! Destinations that say nothing, or what they should not.

use super::scene::Content::{Chunked, Length, None};
use super::scene::Step::{Asks, Closes, Ends, Fills, Says, SaysAndCloses, Sends, Waits};
use super::scene::{Expected, Scene};
use crate::error::{Cause, ForwardErrorKind as Kind};

/// The beginning of a response whose end does not come.
const HALF: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nno";

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

const GARBAGE: &str = "no HTTP\r\n\r\n";

const SWITCH: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";

/// One more than is passed on.
const INTERIM: &str = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
    HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
    HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
    HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
    HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n\
    HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n";

/// Within the time for which nothing may happen.
const TIMEOUT: &str = r#","Timeout":"00:00:05""#;

/// The same for a whole response.
const WHOLE: &str = r#","Timeout":"00:00:05","TimeoutIncludesBody":true"#;

/// More than a destination that does not read takes.
const LONG: usize = 4000;

/// Destinations that are silent for too long.
pub(super) fn idle() -> Vec<Scene> {
    vec![
        Scene::new(
            "silence",
            None,
            [Asks],
            Expected::own(504, Kind::RequestTimedOut).after(10),
        ),
        Scene::new(
            "silence behind a body",
            Length(4),
            [Asks, Sends(4)],
            Expected::own(504, Kind::RequestTimedOut).sent(4).after(10),
        ),
        Scene::new(
            "silence behind a chunked body",
            Chunked,
            [Asks, Sends(4), Ends(0)],
            Expected::own(504, Kind::RequestTimedOut).sent(4).after(10),
        ),
        Scene::new(
            "silence in a head",
            None,
            [Asks, Says("HTTP/1.1 200 OK\r\nX: ")],
            Expected::own(504, Kind::RequestTimedOut).after(10),
        ),
        Scene::new(
            "silence behind an interim response",
            None,
            [Asks, Waits(6), Says("HTTP/1.1 102 Processing\r\n\r\n")],
            Expected::own(504, Kind::RequestTimedOut).after(10),
        ),
        Scene::new(
            "no connection to be had",
            None,
            [Asks],
            Expected::own(504, Kind::RequestTimedOut.because(Cause::ConnectionLimit))
                .because(Cause::ConnectionLimit)
                .after(15)
                .saw("nothing"),
        )
        .taken(),
        Scene::new(
            "a body that is not taken",
            Length(LONG),
            [Asks, Sends(LONG)],
            Expected::own(504, Kind::RequestBodyDestination)
                .after(10)
                .uploaded(LONG as u64)
                .saw("in part"),
        )
        .unacknowledged(),
        Scene::new(
            "a chunked body that is not taken",
            Chunked,
            [Asks, Sends(LONG), Ends(0)],
            Expected::own(504, Kind::RequestBodyDestination)
                .after(10)
                .uploaded(LONG as u64)
                .saw("in part"),
        )
        .unacknowledged(),
        Scene::new(
            "silence in a response",
            None,
            [Asks, Says(HALF)],
            Expected::cut(Kind::ResponseBodyDestination, 2).after(10),
        ),
        Scene::new(
            "silence in a response while the client is waited for",
            Length(8),
            [Asks, Sends(4), Says(HALF)],
            Expected::cut(Kind::RequestBodyClient, 2).sent(4).after(10),
        ),
        Scene::new(
            "silence in a response while the body is not taken",
            Length(LONG),
            [Asks, Sends(LONG), Says(HALF)],
            Expected::cut(Kind::ResponseBodyDestination, 2)
                .after(10)
                .uploaded(LONG as u64)
                .saw("in part"),
        )
        .unacknowledged(),
    ]
}

/// Destinations that exceed the route's timeout.
pub(super) fn late() -> Vec<Scene> {
    let late = || Expected::own(504, Kind::RequestTimedOut).after(5);
    // The client withholds the rest, which is not the destination's fault.
    let withheld = Kind::RequestTimedOut.because(Cause::ClientTooSlow);
    let withheld = Expected::own(504, withheld).after(5);
    vec![
        Scene::new("late", None, [Asks], late()).route(TIMEOUT),
        Scene::new(
            "late with the rest of a response",
            None,
            [Asks, Says(HALF)],
            Expected::cut(Kind::ResponseBodyDestination, 2)
                .because(Cause::BodyTimeout)
                .after(5),
        )
        .route(WHOLE),
        Scene::new(
            "late while the client is waited for",
            Length(8),
            [Asks, Sends(4)],
            withheld.sent(4),
        )
        .route(TIMEOUT),
        Scene::new(
            "late while the body is not taken",
            Length(LONG),
            [Asks, Sends(LONG)],
            late().uploaded(LONG as u64).saw("in part"),
        )
        .unacknowledged()
        .route(TIMEOUT),
        Scene::new(
            "late before there is a connection",
            None,
            [Asks],
            Expected::own(504, Kind::RequestTimedOut.because(Cause::ConnectionLimit))
                .because(Cause::ConnectionLimit)
                .after(5)
                .saw("nothing"),
        )
        .taken()
        .route(TIMEOUT),
        Scene::new(
            "late with the body of the response",
            None,
            [
                Asks,
                Says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"),
                Waits(8),
                Says("ok"),
            ],
            Expected::whole(200).received(2).kept(),
        )
        .route(TIMEOUT),
    ]
}

/// Destinations that send an invalid response.
pub(super) fn meaningless() -> Vec<Scene> {
    let no_response = || Expected::own(502, Kind::Request);
    vec![
        Scene::new("garbage", None, [Asks, Says(GARBAGE)], no_response()),
        Scene::new(
            "garbage while the client is waited for",
            Length(8),
            [Asks, Sends(4), Says(GARBAGE)],
            no_response().sent(4),
        ),
        Scene::new(
            "a switch that nobody asked for",
            None,
            [Asks, Says(SWITCH)],
            no_response(),
        ),
        Scene::new(
            "a switch while the client is waited for",
            Length(8),
            [Asks, Sends(4), Says(SWITCH)],
            no_response().sent(4),
        ),
        Scene::new(
            "too many interim responses",
            None,
            [Asks, Says(INTERIM)],
            no_response(),
        ),
        Scene::new(
            "too long a head",
            None,
            [Asks, Says("HTTP/1.1 200 OK\r\nX: "), Fills(70_000)],
            no_response(),
        ),
        Scene::new(
            "no chunk",
            None,
            [
                Asks,
                Says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n"),
                Says("no chunk\r\n"),
            ],
            Expected::cut(Kind::ResponseBodyDestination, 2).because(Cause::MalformedResponse),
        ),
        Scene::new(
            "no chunk behind the head",
            None,
            [
                Asks,
                Says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n"),
            ],
            Expected::own(502, Kind::ResponseBodyDestination).answered(200),
        ),
        Scene::new(
            "more than was said",
            None,
            [Asks, Says(OK), Says("more")],
            Expected::whole(200).received(2),
        ),
        Scene::new(
            "more than was said, at once",
            None,
            [
                Asks,
                Says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokmore"),
            ],
            Expected::whole(200).received(2),
        ),
    ]
}

/// Destinations that close the connection.
pub(super) fn closing() -> Vec<Scene> {
    vec![
        Scene::new(
            "an end instead of a response",
            None,
            [Asks, Closes],
            Expected::own(502, Kind::Request),
        ),
        Scene::new(
            "an end behind a body",
            Length(4),
            [Asks, Sends(4), Closes],
            Expected::own(502, Kind::Request).sent(4),
        ),
        Scene::new(
            "an end while the client is waited for",
            Length(8),
            [Asks, Sends(4), Closes],
            Expected::own(502, Kind::RequestBodyDestination).sent(4),
        ),
        Scene::new(
            "an end while the client is waited for, chunked",
            Chunked,
            [Asks, Sends(4), Closes],
            Expected::own(502, Kind::RequestBodyDestination).sent(4),
        ),
        Scene::new(
            "an end while the body is not taken",
            Length(LONG),
            [Asks, Sends(LONG), Closes],
            Expected::own(502, Kind::RequestBodyDestination)
                .uploaded(LONG as u64)
                .saw("nothing"),
        )
        .unacknowledged(),
        Scene::new(
            "an end in a head",
            None,
            [Asks, SaysAndCloses("HTTP/1.1 200 OK\r\nX: ")],
            Expected::own(502, Kind::Request),
        ),
        Scene::new(
            "an end behind an interim response",
            None,
            [Asks, Says("HTTP/1.1 102 Processing\r\n\r\n"), Closes],
            Expected::own(502, Kind::Request),
        ),
        Scene::new(
            "an end in a response",
            None,
            [Asks, Says(HALF), Closes],
            Expected::cut(Kind::ResponseBodyDestination, 2),
        ),
        Scene::new(
            "an end in a response while the client is waited for",
            Length(8),
            [Asks, Sends(4), Says(HALF), Closes],
            Expected::cut(Kind::ResponseBodyDestination, 2).sent(4),
        ),
        Scene::new(
            "an end in a chunked response",
            None,
            [
                Asks,
                Says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n"),
                Closes,
            ],
            Expected::cut(Kind::ResponseBodyDestination, 2),
        ),
        Scene::new(
            "an end behind the head",
            None,
            [
                Asks,
                SaysAndCloses("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"),
            ],
            Expected::own(502, Kind::ResponseBodyDestination).answered(200),
        ),
        Scene::new(
            "an end for which the response waits",
            None,
            [
                Asks,
                Says("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"),
                Fills(5000),
                Closes,
            ],
            Expected::whole(200).received(5000),
        ),
    ]
}
