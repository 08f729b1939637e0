use super::ANSWER;
use crate::raw::RawOrigin;

/// Sends `100 Continue` when it has the head, reads the body, and echoes it: the correct behaviour
/// for `Expect: 100-continue`.
#[track_caller]
pub fn continues() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        loop {
            let head = connection.read_request().await?;
            connection
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await?;
            let body = connection.read_body(&head).await?;
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            connection
                .write_all([head.as_bytes(), &body].concat())
                .await?;
        }
    })
}

/// Waits for the body without `100 Continue`, and then responds, like an HTTP/1.0 server. A client
/// must send the body after a while (RFC 9110 10.1.1).
#[track_caller]
pub fn never_continues() -> RawOrigin {
    RawOrigin::answering(ANSWER)
}

/// Responds with this status when it has the head, does not read the body, and closes its sending
/// side. Further bytes are read and dropped, so that the response is not lost in a reset.
#[track_caller]
pub fn rejects_expectation(status: u16) -> RawOrigin {
    RawOrigin::script(move |mut connection| async move {
        connection.read_request().await?;
        let answer =
            format!("HTTP/1.1 {status} Rejected\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        connection.write_all(answer).await?;
        connection.half_close().await?;
        connection.never_answer().await
    })
}

/// Sends `count` responses `103 Early Hints`, each with its own `Link`, and then the final one.
#[track_caller]
pub fn early_hints(count: usize) -> RawOrigin {
    let hints: String = (0..count)
        .map(|n| format!("HTTP/1.1 103 Early Hints\r\nLink: </{n}.css>; rel=preload\r\n\r\n"))
        .collect();
    RawOrigin::answering([hints.as_bytes(), ANSWER].concat())
}

/// Sends interim responses until the client disconnects, and never a final one.
#[track_caller]
pub fn endless_interim() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        let some = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n".repeat(64);
        loop {
            connection.write_all(&some).await?;
        }
    })
}

/// Sends an unrequested `101 Switching Protocols`, followed by bytes of no protocol.
#[track_caller]
pub fn switches_unasked() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        connection.read_whole_request().await?;
        let answer =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nraw";
        connection.write_all(answer).await?;
        connection.never_answer().await
    })
}
