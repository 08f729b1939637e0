use super::ANSWER;
use crate::raw::{RawConnection, RawOrigin};

/// Answers one request as if the connection were to be kept, and closes it at once (FIN): who keeps it in a pool finds it
/// closed, or learns of it in the moment of use.
#[track_caller]
pub fn closes_after_answer() -> RawOrigin {
    RawOrigin::answering_once(ANSWER)
}

/// Answers the first request on each connection, and closes (FIN) when it has read the head of the second one: the race
/// between reuse and an idle time-out of the server, always lost.
#[track_caller]
pub fn closes_at_next_request() -> RawOrigin {
    RawOrigin::script(|mut connection| async move { one_answer(&mut connection).await })
}

/// As [`closes_at_next_request`], but with a reset.
#[track_caller]
pub fn resets_at_next_request() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        one_answer(&mut connection).await?;
        connection.reset();
        Ok(())
    })
}

/// Answers one request and reads the next one.
async fn one_answer(connection: &mut RawConnection) -> std::io::Result<()> {
    connection.read_whole_request().await?;
    connection.write_all(ANSWER).await?;
    connection.read_whole_request().await.map(drop)
}
