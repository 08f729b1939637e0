//! The sources of tokens.

mod cache;
mod client_credentials;
mod grant;
mod managed_identity;

use std::error::Error;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

pub(super) use self::cache::TokenCache;
pub use self::client_credentials::ClientCredentials;
pub use self::managed_identity::ManagedIdentity;

/// The resource that tokens are for in Azure's public cloud.
pub const PUBLIC_RESOURCE: &str = "https://management.azure.com";

/// A source of tokens. It is called for the first token, and again before the last one expires, never twice
/// at a time.
///
/// # Cancel safety
///
/// The future may be dropped. The source is then called again.
#[async_trait]
pub trait TokenSource: Send + Sync {
    /// Returns a token that is valid now.
    ///
    /// # Errors
    ///
    /// No token is available. The error contains no secret.
    async fn token(&self) -> Result<AccessToken, TokenError>;
}

/// A token and its lifetime. `Debug` does not show it.
#[derive(Clone)]
pub struct AccessToken {
    text: String,
    lifetime: Duration,
}

/// The reason why no token is available.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct TokenError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
    nature: Nature,
}

/// The nature of a [`TokenError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    /// Neither of the others.
    Other,
    /// A token may be available soon.
    Transient,
    /// The authority rejects the credentials.
    Rejected,
}

impl AccessToken {
    /// Creates a token with this lifetime.
    pub fn new(text: impl Into<String>, lifetime: Duration) -> Self {
        Self {
            text: text.into(),
            lifetime,
        }
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken")
            .field("lifetime", &self.lifetime)
            .finish_non_exhaustive()
    }
}

impl TokenError {
    /// Creates an error with a message for the operator.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
            nature: Nature::Other,
        }
    }

    /// Marks the error as transient: a token may be available soon, and the call that needs it is retried, as
    /// [`RetryPolicy`](crate::arm::RetryPolicy) defines.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.nature = Nature::Transient;
        self
    }

    /// Marks the error as a rejection: the authority has answered, and does not accept the credentials. An operator has
    /// to correct them.
    #[must_use]
    pub fn rejected(mut self) -> Self {
        self.nature = Nature::Rejected;
        self
    }

    /// Returns true if a token may be available soon.
    pub fn is_transient(&self) -> bool {
        self.nature == Nature::Transient
    }

    /// Returns true if the authority rejects the credentials.
    pub fn is_rejected(&self) -> bool {
        self.nature == Nature::Rejected
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }
}

/// A fixed token, as `az account get-access-token` prints it.
#[derive(Clone, Debug)]
pub struct StaticToken(AccessToken);

impl StaticToken {
    /// Creates a source that always returns this token.
    pub fn new(text: impl Into<String>) -> Self {
        // Far beyond the life of a process, so it is never renewed.
        const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3_600);
        Self(AccessToken::new(text, FOREVER))
    }
}

#[async_trait]
impl TokenSource for StaticToken {
    async fn token(&self) -> Result<AccessToken, TokenError> {
        Ok(self.0.clone())
    }
}

#[async_trait]
impl TokenSource for std::sync::Arc<dyn TokenSource> {
    async fn token(&self) -> Result<AccessToken, TokenError> {
        (**self).token().await
    }
}
