//! Clients that leave, that stop, and that send or take too much or too little.

use std::time::Duration;

use super::scene::Content::{Chunked, Length, None};
use super::scene::Step::{Asks, Breaks, Ends, Fills, Leaves, Says, Sends, Vanishes, Waits};
use super::scene::{Expected, Scene};
use crate::error::{Cause, ForwardErrorKind as Kind};
use crate::server::{DataRate, Outcome};

/// The beginning of a response whose body continues.
const BEGIN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nno";

const UNAUTHORIZED: &str = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno";

/// The limit of the route.
const SHORT: &str = r#","MaxRequestBodySize":8"#;

/// The time for a whole response.
const WHOLE_SOON: &str = r#","Timeout":"00:00:04","TimeoutIncludesBody":true"#;

/// Clients that send another body than they have declared.
pub(super) fn sending() -> Vec<Scene> {
    let rejected = || {
        Expected::own(413, Kind::RequestBodyClient)
            .sent(6)
            .uploaded(12)
    };
    vec![
        Scene::new(
            "a client that stops",
            Length(8),
            [Asks, Sends(4)],
            Expected::own(408, Kind::RequestBodyClient)
                .sent(4)
                .after(10),
        ),
        Scene::new(
            "a client that stops behind a head until the time is over",
            Length(8),
            [Asks, Sends(4), Says(BEGIN)],
            Expected::cut(Kind::RequestBodyClient, 2)
                .because(Cause::ClientTooSlow)
                .sent(4)
                .after(4),
        )
        .route(WHOLE_SOON),
        Scene::new(
            "a client that stops in chunks",
            Chunked,
            [Asks, Sends(4)],
            Expected::own(408, Kind::RequestBodyClient)
                .sent(4)
                .after(10),
        ),
        Scene::new(
            "a client that sends bit by bit",
            Length(100),
            [
                Asks,
                Sends(4),
                Waits(8),
                Sends(4),
                Waits(8),
                Sends(4),
                Waits(8),
                Sends(4),
            ],
            Expected::own(408, Kind::RequestBodyClient)
                .sent(16)
                .after(6)
                .server("refused slow"),
        ),
        Scene::new(
            "more than the route allows",
            Chunked,
            [Asks, Sends(6), Sends(6)],
            rejected(),
        )
        .route(SHORT),
        Scene::new(
            "more than the server allows",
            Chunked,
            [Asks, Sends(6), Sends(6)],
            rejected().server("refused"),
        )
        .limits(|limits| limits.body_bytes = Some(8)),
        Scene::new(
            "more than the route allows, behind a head",
            Chunked,
            [Asks, Sends(6), Says(BEGIN), Sends(6)],
            Expected::cut(Kind::RequestBodyClient, 2)
                .sent(6)
                .uploaded(12),
        )
        .route(SHORT),
        Scene::new(
            "more than the server allows, behind a head",
            Chunked,
            [Asks, Sends(6), Says(BEGIN), Sends(6)],
            Expected::cut(Kind::RequestBodyClient, 2)
                .sent(6)
                .uploaded(12),
        )
        .limits(|limits| limits.body_bytes = Some(8)),
        Scene::new(
            "what is no chunk",
            Chunked,
            [Asks, Sends(4), Breaks],
            Expected::own(400, Kind::RequestBodyClient)
                .sent(4)
                .server("malformed"),
        )
        .only_http1(),
        Scene::new(
            "what is no chunk, behind a head",
            Chunked,
            [Asks, Sends(4), Says(BEGIN), Breaks],
            Expected::cut(Kind::RequestBodyClient, 2)
                .sent(4)
                .server("malformed"),
        )
        .only_http1(),
        Scene::new(
            "less than was said",
            Length(8),
            [Asks, Sends(4), Ends(0)],
            Expected::reset(Kind::RequestCanceled).sent(4),
        )
        .only_http2(),
        Scene::new(
            "too many trailers",
            Chunked,
            [Asks, Sends(4), Ends(9)],
            Expected::own(431, Kind::RequestBodyClient)
                .sent(4)
                .saw("4 bytes, broken")
                .server("refused"),
        )
        .limits(|limits| limits.header_fields = 8),
    ]
}

/// Clients that leave.
pub(super) fn leaving() -> Vec<Scene> {
    let mut scenes = Vec::new();
    for (leaves, how) in [(Leaves, 0), (Vanishes, 1)] {
        let name = |names: [&'static str; 2]| names[how];
        scenes.extend([
            Scene::new(
                name([
                    "a client that leaves before there is a connection",
                    "a client that vanishes before there is a connection",
                ]),
                None,
                [Asks, leaves],
                Expected::left(Kind::RequestCanceled).saw("nothing"),
            )
            .taken(),
            Scene::new(
                name([
                    "a client that leaves before there is a second connection",
                    "a client that vanishes before there is a second connection",
                ]),
                None,
                [Asks, leaves],
                Expected::left(Kind::RequestCanceled)
                    .saw("nothing")
                    .rejected("Request"),
            )
            .taken()
            .behind_refusing(),
            Scene::new(
                name(["a client that leaves", "a client that vanishes"]),
                None,
                [Asks, leaves],
                Expected::left(Kind::RequestCanceled),
            ),
            Scene::new(
                name([
                    "a client that leaves in its body",
                    "a client that vanishes in its body",
                ]),
                Length(8),
                [Asks, Sends(4), leaves],
                // In HTTP/1.1 it may wait for an answer all the same.
                Expected::left(Kind::RequestBodyClient)
                    .told(400)
                    .sent(4)
                    .logged(Outcome::Aborted, Some(Kind::RequestBodyClient)),
            )
            .over_http2(|_| Expected::left(Kind::RequestCanceled).sent(4)),
            Scene::new(
                name([
                    "a client that leaves behind its body",
                    "a client that vanishes behind its body",
                ]),
                Length(4),
                [Asks, Sends(4), leaves],
                Expected::left(Kind::RequestCanceled).sent(4),
            ),
            Scene::new(
                name([
                    "a client that leaves in its response",
                    "a client that vanishes in its response",
                ]),
                None,
                [Asks, Says(BEGIN), leaves],
                Expected::left_behind(Kind::ResponseBodyCanceled, 2),
            ),
            Scene::new(
                name([
                    "a client that leaves in its body and its response",
                    "a client that vanishes in its body and its response",
                ]),
                Length(8),
                [Asks, Sends(4), Says(BEGIN), leaves],
                Expected::left_behind(Kind::RequestBodyClient, 2)
                    .sent(4)
                    .logged(Outcome::Failed, Some(Kind::RequestBodyClient)),
            )
            .over_http2(|_| Expected::left_behind(Kind::ResponseBodyCanceled, 2).sent(4)),
        ]);
    }
    scenes
}

/// Clients that do not take their response, or get it before they have sent the whole request.
pub(super) fn taking() -> Vec<Scene> {
    // More than there is room for on the way.
    const MUCH: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
    vec![
        Scene::new(
            "a client that takes nothing",
            None,
            [Asks, Says(MUCH), Fills(1_000_000)],
            Expected::dropped(Kind::ResponseBodyCanceled)
                .because(Cause::ClientTooSlow)
                .after(7)
                .server("slow"),
        )
        .unsent_response()
        .limits(|limits| limits.data_rate = Some(DataRate::new(1000, Duration::from_secs(7)))),
        Scene::new(
            "a client that takes nothing, without a rate",
            None,
            [Asks, Says(MUCH), Fills(1_000_000)],
            Expected::dropped(Kind::ResponseBodyCanceled)
                .because(Cause::ClientTooSlow)
                .after(10),
        )
        .unsent_response()
        .limits(|limits| limits.data_rate = Option::None),
        Scene::new(
            "a client that takes nothing until the time is over",
            None,
            [Asks, Says(MUCH), Fills(1_000_000)],
            Expected::dropped(Kind::ResponseBodyCanceled)
                .because(Cause::ClientTooSlow)
                .after(4),
        )
        .unsent_response()
        .route(WHOLE_SOON),
        Scene::new(
            "a client that takes nothing until the time is over, without a rate",
            None,
            [Asks, Says(MUCH), Fills(1_000_000)],
            Expected::dropped(Kind::ResponseBodyCanceled)
                .because(Cause::ClientTooSlow)
                .after(4),
        )
        .unsent_response()
        .route(WHOLE_SOON)
        .limits(|limits| limits.data_rate = Option::None),
        Scene::new(
            "a client that takes nothing where only the head has a time",
            None,
            [Asks, Says(MUCH), Fills(1_000_000)],
            Expected::dropped(Kind::ResponseBodyCanceled)
                .because(Cause::ClientTooSlow)
                .after(10),
        )
        .unsent_response()
        .route(r#","Timeout":"00:00:04""#)
        .limits(|limits| limits.data_rate = Option::None),
        Scene::new(
            "an early rejection",
            Length(12),
            [Asks, Sends(4), Says(UNAUTHORIZED), Sends(8)],
            Expected::whole(401).received(2).sent(12).uploaded(4),
        ),
        Scene::new(
            "an early rejection of what does not come",
            Length(12),
            [Asks, Sends(4), Says(UNAUTHORIZED)],
            Expected::whole(401).received(2).sent(4),
        ),
        Scene::new(
            "an early rejection of who leaves",
            Length(12),
            [Asks, Sends(4), Says(UNAUTHORIZED), Leaves],
            Expected::whole(401)
                .told(401)
                .received(2)
                .sent(4)
                .logged(Outcome::Complete, Option::None),
        ),
        Scene::new(
            "an early rejection of what is not taken",
            Length(4000),
            [Asks, Sends(4000), Says(UNAUTHORIZED)],
            Expected::whole(401)
                .received(2)
                .uploaded(4000)
                .saw("in part"),
        )
        .unacknowledged(),
        Scene::new(
            "an early rejection of what is too long",
            Chunked,
            [Asks, Sends(6), Says(UNAUTHORIZED), Sends(6)],
            Expected::whole(401).received(2).sent(6),
        )
        .route(SHORT),
    ]
}
