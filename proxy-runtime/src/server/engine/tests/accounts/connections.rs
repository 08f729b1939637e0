//! Connections to destinations, which go well or are not there any more.

use super::scene::Content::{Chunked, Length, None};
use super::scene::Step::{Asks, Closes, Ends, Says, Sends, Waits};
use super::scene::{Expected, Scene};
use crate::error::ForwardErrorKind as Kind;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Connections without faults.
pub(super) fn well() -> Vec<Scene> {
    vec![
        Scene::new(
            "nothing is wrong",
            None,
            [Asks, Says(OK)],
            Expected::whole(200).received(2).kept(),
        ),
        Scene::new(
            "nothing is wrong with a body",
            Length(4),
            [Asks, Sends(4), Says(OK)],
            Expected::whole(200).received(2).sent(4).kept(),
        ),
        Scene::new(
            "nothing is wrong with trailers",
            Chunked,
            [
                Asks,
                Sends(4),
                Ends(1),
                Says("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"),
                Says("0\r\nX: 1\r\n\r\n"),
            ],
            Expected::whole(200).received(2).sent(4).kept(),
        ),
        Scene::new(
            "nobody listens at another destination",
            None,
            [Asks, Says(OK)],
            Expected::whole(200).received(2).rejected("Request").kept(),
        )
        .behind_refusing(),
    ]
}

/// Idle connections that were closed.
pub(super) fn stale() -> Vec<Scene> {
    vec![
        Scene::new(
            "a stale connection of a request that has a body",
            Length(8),
            [Asks, Sends(4), Closes],
            Expected::own(502, Kind::RequestBodyDestination).sent(4),
        )
        .reused(),
        Scene::new(
            "a stale connection of a request that may do harm",
            None,
            [Asks, Closes],
            Expected::own(502, Kind::Request),
        )
        .reused(),
        Scene::new(
            "a stale connection",
            None,
            [Asks, Closes],
            Expected::whole(200).received(2),
        )
        .again((0, OK)),
        Scene::new(
            "a stale connection, and another",
            None,
            [Asks, Closes],
            Expected::own(502, Kind::Request),
        )
        .again((0, "")),
        Scene::new(
            "a connection that is stale after a while",
            None,
            [Asks, Waits(8), Closes],
            Expected::whole(200).received(2).after(6),
        )
        .again((6, OK)),
    ]
}
