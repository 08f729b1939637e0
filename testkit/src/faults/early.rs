use super::ANSWER;
use crate::raw::RawOrigin;

/// Responds as soon as it has the head, and then reads and drops the body. The connection stays
/// usable.
#[track_caller]
pub fn answers_early() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        loop {
            let head = connection.read_request().await?;
            connection.write_all(ANSWER).await?;
            connection.read_body(&head).await?;
        }
    })
}

/// Responds as soon as it has the head, waits for the first byte of the body, and resets: the
/// upload fails after a complete response. For a request without body, it waits for the next bytes.
#[track_caller]
pub fn answers_early_and_resets() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection.write_all(ANSWER).await?;
        connection.read_some().await?;
        connection.reset();
        Ok(())
    })
}

/// Responds only when the client has closed its sending side (FIN), like old servers that read to
/// the end of input.
#[track_caller]
pub fn answers_after_half_close() -> RawOrigin {
    RawOrigin::script(|mut connection| async move {
        connection.read_request().await?;
        connection.read_to_end().await?;
        connection.write_all(ANSWER).await
    })
}
