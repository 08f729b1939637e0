use std::future::pending;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::{eventually, guarded, within};

#[tokio::test]
async fn ready_future_passes_through() {
    assert_eq!(within(Duration::from_secs(60), async { 7 }).await, Ok(7));
    assert_eq!(guarded("seven", async { 7 }).await, 7);
}

#[tokio::test]
async fn pending_future_is_cut_off_in_real_time() {
    let limit = Duration::from_millis(20);
    let before = std::time::Instant::now();
    let cut = within(limit, pending::<()>()).await;
    assert_eq!(cut.unwrap_err().to_string(), "still pending after 20ms");
    assert!(before.elapsed() >= limit);
}

#[tokio::test(start_paused = true)]
async fn wall_clock_limit_does_not_move_a_paused_clock() {
    let before = tokio::time::Instant::now();
    within(Duration::from_millis(20), pending::<()>())
        .await
        .unwrap_err();
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn virtual_hours_pass_inside_a_guard() {
    guarded(
        "three virtual hours",
        tokio::time::sleep(Duration::from_secs(3 * 3600)),
    )
    .await;
}

#[tokio::test]
async fn several_limits_fire_each_at_its_own_time() {
    let short = within(Duration::from_millis(10), pending::<()>());
    let long = within(Duration::from_millis(40), pending::<()>());
    let before = std::time::Instant::now();
    let (long, short) = tokio::join!(long, async {
        let cut = short.await;
        (cut, before.elapsed())
    });
    long.unwrap_err();
    short.0.unwrap_err();
    assert!(before.elapsed() >= Duration::from_millis(40));
    assert!(short.1 <= before.elapsed());
}

#[tokio::test(start_paused = true)]
async fn eventually_asks_until_the_condition_holds() {
    let asked = AtomicU32::new(0);
    eventually("asked five times", || async {
        asked.fetch_add(1, Ordering::Relaxed) == 4
    })
    .await;
    assert_eq!(asked.into_inner(), 5);
}
