//! The issuer and audience of the tokens that a cluster accepts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use discovery_core::text::shortened;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;

use super::request::Call;
use super::token::BearerToken;
use super::{Client, Shared};
use crate::calls::{CallError, CallErrorKind};

/// The tokens that a cluster accepts, by its own metadata. Texts that it leaves out are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AadMetadata {
    /// The issuer of tokens: a URL with the tenant.
    pub authority: String,
    /// The application that requests a token on behalf of a person.
    pub client: String,
    /// The application that the token must be for: the resource, or audience.
    pub cluster: String,
    /// The host to log in at.
    pub login: String,
    /// The URL to redirect to after the login.
    pub redirect: String,
    /// The directory.
    pub tenant: String,
}

impl fmt::Display for AadMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (what, value) in [
            ("authority", &self.authority),
            ("tenant", &self.tenant),
            ("resource", &self.cluster),
        ] {
            if !value.is_empty() {
                write!(f, "{separator}{what} {}", shortened(value, 200))?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

impl AadMetadata {
    /// Returns the metadata for a message, without the token, in case the gateway repeats it.
    fn without(&self, token: &BearerToken) -> Self {
        Self {
            authority: token.removed_from(&self.authority),
            tenant: token.removed_from(&self.tenant),
            cluster: token.removed_from(&self.cluster),
            ..Self::default()
        }
    }
}

/// The response of the gateway.
#[derive(Deserialize)]
struct AadResponse {
    metadata: Option<AadMetadata>,
}

/// A cache of the metadata, so that not every rejected call fetches it.
#[derive(Debug, Default)]
pub(super) struct AadMemory(Mutex<Option<(Instant, Option<Arc<AadMetadata>>)>>);

/// The time for which the metadata is kept.
const BELIEVED: Duration = Duration::from_secs(60);

impl Client {
    /// Returns the issuer and audience of the tokens that the cluster accepts. `None` if the cluster does
    /// not accept tokens. The call is made without a credential.
    ///
    /// # Errors
    ///
    /// The errors of every call.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time.
    pub async fn aad_metadata(&self) -> Result<Option<AadMetadata>, CallError> {
        let deadline = Instant::now() + self.shared.options.budget;
        self.shared.aad_metadata(deadline).await
    }
}

impl Shared {
    async fn aad_metadata(&self, deadline: Instant) -> Result<Option<AadMetadata>, CallError> {
        let call = Call::get("6.0").at("/$/GetAadMetadata").anonymous();
        let answer: AadResponse = self.read(&call, deadline).await?;
        Ok(answer
            .metadata
            .filter(|metadata| *metadata != AadMetadata::default()))
    }

    /// Adds the required issuer and audience to the error of a rejected token. `sent` is the token.
    pub(super) async fn explained(
        &self,
        error: CallError,
        sent: Option<&BearerToken>,
        deadline: Instant,
    ) -> CallError {
        const PATIENCE: Duration = Duration::from_secs(5);
        if error.kind() != CallErrorKind::Denied || error.status() != Some(401) {
            return error;
        }
        let now = Instant::now();
        let known = self.aad.get(now);
        let metadata = match known {
            Some(known) => known,
            None => {
                let asked = self.aad_metadata(deadline.min(now + PATIENCE)).await;
                let metadata = asked.ok().flatten().map(Arc::new);
                self.aad.set(now, metadata.clone());
                metadata
            }
        };
        let Some(metadata) = metadata else {
            return error;
        };
        let shown = match sent {
            Some(token) => metadata.without(token),
            None => AadMetadata::clone(&metadata),
        };
        error.with_hint(&format!("the cluster requires a token with {shown}"))
    }
}

impl AadMemory {
    fn get(&self, now: Instant) -> Option<Option<Arc<AadMetadata>>> {
        let memory = self.0.lock();
        let (when, metadata) = memory.as_ref()?;
        (now.duration_since(*when) < BELIEVED).then(|| metadata.clone())
    }

    fn set(&self, now: Instant, metadata: Option<Arc<AadMetadata>>) {
        *self.0.lock() = Some((now, metadata));
    }
}
