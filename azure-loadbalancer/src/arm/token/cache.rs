//! The cache of the current token, which is renewed before it expires.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::{AccessToken, Nature, TokenError, TokenSource};
use crate::progress::logged_while_silent;

/// The remaining lifetime at which a token is renewed, unless half of its life is shorter.
const AHEAD: Duration = Duration::from_secs(5 * 60);
/// The pause after a failed renewal, while the old token is still valid.
const PAUSE: Duration = Duration::from_secs(30);
/// The time for which a failure is shared: callers that have waited for the same response do not each request
/// a token again.
const SHARED: Duration = Duration::from_secs(1);
/// The time limit for a source.
const PATIENCE: Duration = Duration::from_secs(30);

pub(in crate::arm) struct TokenCache {
    source: Arc<dyn TokenSource>,
    state: Mutex<TokenState>,
}

#[derive(Default)]
struct TokenState {
    held: Option<Held>,
    /// The last failure: its time, message and nature.
    failed: Option<(Instant, String, Nature)>,
}

struct Held {
    header: HeaderValue,
    renew: Instant,
    ends: Instant,
}

impl TokenCache {
    pub(in crate::arm) fn new(source: Arc<dyn TokenSource>) -> Self {
        Self {
            source,
            state: Mutex::default(),
        }
    }

    /// Returns the value of `Authorization`. Concurrent callers wait for the same token.
    pub(in crate::arm) async fn header(&self) -> Result<HeaderValue, TokenError> {
        let mut state = self.state.lock().await;
        let now = Instant::now();
        if let Some(held) = &state.held
            && now < held.renew
        {
            return Ok(held.header.clone());
        }
        if let Some((at, why, nature)) = &state.failed
            && now < *at + SHARED
        {
            let mut error = TokenError::new(why.clone());
            error.nature = *nature;
            return Err(error);
        }
        // The first caller logs the wait for all, since the others wait for the lock.
        let asked = timeout(PATIENCE, self.source.token());
        let asked = logged_while_silent("token", asked).await;
        let asked = asked.unwrap_or_else(|_| {
            let message = format!("there was no token within {PATIENCE:?}");
            Err(TokenError::new(message).transient())
        });
        match asked.and_then(|token| Held::new(&token, Instant::now())) {
            Ok(new) => {
                state.failed = None;
                Ok(state.held.insert(new).header.clone())
            }
            Err(error) => match &mut state.held {
                Some(old) if Instant::now() < old.ends => {
                    tracing::warn!(%error, "a token is not renewed yet; the old one is still good");
                    old.renew = Instant::now() + PAUSE;
                    Ok(old.header.clone())
                }
                _ => {
                    let cause = error.source.as_ref().map(|cause| format!(": {cause}"));
                    let why = error.to_string() + &cause.unwrap_or_default();
                    state.failed = Some((Instant::now(), why, error.nature));
                    Err(error)
                }
            },
        }
    }

    /// Forgets a rejected token.
    pub(in crate::arm) async fn forget(&self, header: &HeaderValue) {
        let mut state = self.state.lock().await;
        // Another call may have got a new token meanwhile.
        state.held.take_if(|held| held.header == *header);
    }
}

impl Held {
    fn new(token: &AccessToken, now: Instant) -> Result<Self, TokenError> {
        let mut header =
            HeaderValue::from_str(&format!("Bearer {}", token.text)).map_err(|_| {
                TokenError::new(
                    "the response has no valid token: it has characters that a header cannot have",
                )
            })?;
        header.set_sensitive(true);
        let ahead = AHEAD.min(token.lifetime / 2);
        Ok(Self {
            header,
            renew: now + (token.lifetime - ahead),
            ends: now + token.lifetime,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use tokio::time::advance;

    use super::*;

    /// A source that gives `t1`, `t2`, …, each for an hour, and fails while `fails` is set.
    #[derive(Default)]
    struct Counting {
        given: AtomicU32,
        fails: std::sync::atomic::AtomicBool,
    }

    #[async_trait]
    impl TokenSource for Arc<Counting> {
        async fn token(&self) -> Result<AccessToken, TokenError> {
            if self.fails.load(Ordering::Relaxed) {
                return Err(TokenError::new("not now"));
            }
            let number = self.given.fetch_add(1, Ordering::Relaxed) + 1;
            Ok(AccessToken::new(
                format!("t{number}"),
                Duration::from_secs(3_600),
            ))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_renewed_before_it_ends_and_kept_while_there_is_no_other() {
        let source = Arc::new(Counting::default());
        let cache = TokenCache::new(Arc::new(Arc::clone(&source)));
        assert_eq!(cache.header().await.unwrap(), "Bearer t1");
        advance(Duration::from_secs(3_600 - 301)).await;
        assert_eq!(cache.header().await.unwrap(), "Bearer t1");
        advance(Duration::from_secs(2)).await;
        source.fails.store(true, Ordering::Relaxed);
        assert_eq!(cache.header().await.unwrap(), "Bearer t1");
        source.fails.store(false, Ordering::Relaxed);
        assert_eq!(
            cache.header().await.unwrap(),
            "Bearer t1",
            "not asked again at once"
        );
        advance(PAUSE).await;
        assert_eq!(cache.header().await.unwrap(), "Bearer t2");

        source.fails.store(true, Ordering::Relaxed);
        advance(Duration::from_secs(3_601)).await;
        let error = cache.header().await.unwrap_err();
        assert_eq!(error.to_string(), "not now");
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_rejected_token_is_forgotten() {
        let cache = TokenCache::new(Arc::new(Arc::new(Counting::default())));
        let first = cache.header().await.unwrap();
        cache.forget(&HeaderValue::from_static("Bearer t0")).await;
        assert_eq!(cache.header().await.unwrap(), first);
        cache.forget(&first).await;
        assert_eq!(cache.header().await.unwrap(), "Bearer t2");
    }

    /// A source that never responds.
    struct Silent;

    #[async_trait]
    impl TokenSource for Silent {
        async fn token(&self) -> Result<AccessToken, TokenError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_source_that_hangs_waits_once() {
        let cache = TokenCache::new(Arc::new(Silent));
        let began = Instant::now();
        let (one, two, three) = tokio::join!(cache.header(), cache.header(), cache.header());
        for result in [one, two, three] {
            let error = result.unwrap_err().to_string();
            assert!(error.contains("no token within"), "{error}");
        }
        assert_eq!(began.elapsed(), PATIENCE);
        // After a while the source is called again.
        advance(SHARED).await;
        cache.header().await.unwrap_err();
        assert_eq!(began.elapsed(), PATIENCE * 2 + SHARED);
    }

    #[test]
    fn secrets_are_not_shown() {
        let token = AccessToken::new("secret", Duration::from_secs(1));
        assert!(!format!("{token:?}").contains("secret"));
        let held = Held::new(&token, Instant::now()).unwrap();
        assert!(!format!("{:?}", held.header).contains("secret"));
        assert!(Held::new(&AccessToken::new("a\nb", Duration::ZERO), Instant::now()).is_err());
    }
}
