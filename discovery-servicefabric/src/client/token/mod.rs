//! Bearer tokens.

mod file;

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderValue;

pub use self::file::TokenFile;

/// Provides the token that is sent with every call: `Authorization: Bearer …`.
///
/// Clusters with Microsoft Entra ID require one. [`AadMetadata`](super::AadMetadata) contains its issuer
/// and audience; how it is obtained is up to the implementation. [`StaticToken`], [`TokenFile`] and
/// [`token_fn`] are ready-made.
///
/// # Cancel safety
///
/// The future is dropped together with the call that waits for it.
#[async_trait]
pub trait TokenSource: Send + Sync {
    /// Returns the token to send now. Called for every request, so an implementation caches its token.
    ///
    /// `rejected` is the token that the gateway has just rejected, so that another one is needed. Several
    /// concurrent calls may pass the same. The call fails if the same token is returned again.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no token. The call then fails as
    /// [`Denied`](crate::CallErrorKind::Denied).
    async fn token(&self, rejected: Option<&BearerToken>) -> Result<BearerToken, TokenError>;
}

#[async_trait]
impl<T: TokenSource + ?Sized> TokenSource for Arc<T> {
    async fn token(&self, rejected: Option<&BearerToken>) -> Result<BearerToken, TokenError> {
        (**self).token(rejected).await
    }
}

/// A token. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken(Arc<str>);

impl BearerToken {
    /// Creates a token. White space around it is ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if the token is empty, is longer than 64 KiB, or has characters that a token does
    /// not have (RFC 6750, section 2.1).
    pub fn new(token: &str) -> Result<Self, InvalidToken> {
        const LONGEST: usize = 64 * 1024;
        let token = token.trim();
        let body = token.trim_end_matches('=');
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
        if body.is_empty() || token.len() > LONGEST || !body.bytes().all(allowed) {
            return Err(InvalidToken);
        }
        Ok(Self(token.into()))
    }

    pub(super) fn header(&self) -> HeaderValue {
        // The gateway looks for `Bearer` in exactly this case.
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.0))
            .expect("all characters of a token may be in a header");
        value.set_sensitive(true);
        value
    }

    /// A text without the token, should it be in there.
    pub(super) fn removed_from(&self, text: &str) -> String {
        text.replace(&*self.0, "[token]")
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(…)")
    }
}

/// A text is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the token is empty, too long, or has characters that no token has")]
#[non_exhaustive]
pub struct InvalidToken;

/// The reason why there is no token. The message is shown to operators, so it must not contain a secret.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TokenError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl TokenError {
    /// Creates an error whose message describes the attempt.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
        }
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// A token that does not change.
#[derive(Clone, Debug)]
pub struct StaticToken(BearerToken);

impl StaticToken {
    /// Always gives this token.
    pub fn new(token: BearerToken) -> Self {
        Self(token)
    }
}

#[async_trait]
impl TokenSource for StaticToken {
    async fn token(&self, _: Option<&BearerToken>) -> Result<BearerToken, TokenError> {
        Ok(self.0.clone())
    }
}

/// A source of tokens that calls a function; see [`token_fn`].
#[derive(Clone)]
pub struct TokenFn<F>(F);

/// Creates a source that calls `function` for every request, with the rejected token, if there is one.
///
/// ```
/// use discovery_servicefabric::client::{BearerToken, TokenError, token_fn};
///
/// let source = token_fn(|_rejected| async {
///     let text = std::env::var("CLUSTER_TOKEN");
///     let text = text.map_err(|error| TokenError::new("no CLUSTER_TOKEN").with_source(error))?;
///     BearerToken::new(&text).map_err(|error| TokenError::new("CLUSTER_TOKEN").with_source(error))
/// });
/// # let _: &dyn discovery_servicefabric::client::TokenSource = &source;
/// ```
pub fn token_fn<F, A>(function: F) -> TokenFn<F>
where
    F: Fn(Option<BearerToken>) -> A + Send + Sync,
    A: Future<Output = Result<BearerToken, TokenError>> + Send,
{
    TokenFn(function)
}

#[async_trait]
impl<F, A> TokenSource for TokenFn<F>
where
    F: Fn(Option<BearerToken>) -> A + Send + Sync,
    A: Future<Output = Result<BearerToken, TokenError>> + Send,
{
    async fn token(&self, rejected: Option<&BearerToken>) -> Result<BearerToken, TokenError> {
        (self.0)(rejected.cloned()).await
    }
}

impl<F> fmt::Debug for TokenFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFn").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_the_characters_of_tokens_and_are_not_shown() {
        for good in ["abc", " eyJ0.eyJ-_~+/.c2ln== \n", "a"] {
            let token = BearerToken::new(good).unwrap();
            assert_eq!(format!("{token:?}"), "BearerToken(…)");
            let header = token.header();
            assert!(header.is_sensitive());
            assert_eq!(header.to_str().unwrap(), format!("Bearer {}", good.trim()));
        }
        for bad in [
            "",
            " ",
            "==",
            "a b",
            "a\r\nX: y",
            "a=b",
            "tökèn",
            &"a".repeat(70_000),
        ] {
            BearerToken::new(bad).unwrap_err();
        }
    }
}
