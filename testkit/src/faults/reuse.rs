use super::ANSWER;
use crate::raw::{RawConnection, RawOrigin};

/// Serves one request on a seemingly persistent connection, and closes it at once (FIN): a pool
/// finds it closed, or notices at the next use.
#[track_caller]
pub fn closes_after_answer() -> RawOrigin {
    RawOrigin::answering_once(ANSWER)
}

/// Serves the first request on each connection, and closes (FIN) when it has read the head of the
/// second one: the race between reuse and an idle timeout of the server, always lost.
#[track_caller]
pub fn closes_at_next_request() -> RawOrigin {
    RawOrigin::script(|mut connection| async move { one_answer(&mut connection).await })
}

/// Like [`closes_at_next_request`], with a reset.
#[track_caller]
pub fn resets_at_next_request() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        one_answer(&mut connection).await?;
        connection.reset();
        Ok(())
    })
}

/// Serves one request and reads the next one.
async fn one_answer(connection: &mut RawConnection) -> std::io::Result<()> {
    connection.read_whole_request().await?;
    connection.write_all(ANSWER).await?;
    connection.read_whole_request().await.map(drop)
}
