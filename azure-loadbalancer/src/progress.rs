//! Progress of slow calls: a line of the log for each further 5 s.

use std::time::Duration;

use tokio::time::{Instant, timeout};

/// The time without a response after which a wait is logged. Until the end of the wait it is logged again each time
/// that it has doubled.
pub const SILENCE: Duration = Duration::from_secs(5);

/// Awaits a call, and logs while there is no response: after [`SILENCE`], and then after twice, four times and eight
/// times that time.
///
/// # Cancel safety
///
/// That of `work`.
pub async fn logged_while_silent<T>(call: &str, work: impl Future<Output = T>) -> T {
    while_silent(work, |waited| {
        tracing::warn!(call, ?waited, "no answer yet")
    })
    .await
}

/// Awaits the end of a write that the server has accepted, and logs like [`logged_while_silent`] until then.
pub(crate) async fn logged_while_under_way<T>(call: &str, work: impl Future<Output = T>) -> T {
    while_silent(work, |waited| {
        tracing::warn!(call, ?waited, "accepted, but not done yet");
    })
    .await
}

async fn while_silent<T>(work: impl Future<Output = T>, mut report: impl FnMut(Duration)) -> T {
    tokio::pin!(work);
    let began = Instant::now();
    let mut silence = SILENCE;
    loop {
        if let Ok(done) = timeout(silence, &mut work).await {
            return done;
        }
        let waited = began.elapsed();
        report(waited);
        // The wait doubles, so the log of a call that never ends stays short.
        silence = waited;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// Returns the seconds after which a wait for a response was reported, and the response.
    async fn reported(response_after: Duration) -> (Vec<u64>, &'static str) {
        let mut reported = Vec::new();
        let work = async {
            sleep(response_after).await;
            "the response"
        };
        let response = while_silent(work, |waited| reported.push(waited.as_secs())).await;
        (reported, response)
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_reported_after_five_seconds_and_each_time_that_it_has_doubled() {
        for (response_after, expected) in [
            (Duration::ZERO, &[][..]),
            (Duration::from_millis(4_990), &[]),
            (Duration::from_millis(5_010), &[5]),
            (Duration::from_secs(30), &[5, 10, 20]),
            (Duration::from_secs(60), &[5, 10, 20, 40]),
        ] {
            let (reported, response) = reported(response_after).await;
            assert_eq!(reported, expected, "{response_after:?}");
            assert_eq!(response, "the response");
        }
    }
}
