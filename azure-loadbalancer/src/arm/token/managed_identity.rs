//! Tokens of a machine's identity.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use url::Url;

use super::{AccessToken, PUBLIC_RESOURCE, TokenError, TokenSource, grant};
use crate::arm::Transport;

/// The URL of the instance metadata service, which only the machine itself reaches.
const ENDPOINT: &str = "http://169.254.169.254";
const API_VERSION: &str = "2018-02-01";
/// HTTP statuses that the identity endpoint returns while it starts or is being updated; a retry can succeed
/// ("Retry guidance" in Azure's documentation of managed identities).
const WHILE_IT_STARTS: [u16; 2] = [404, 410];

/// The identity of the machine that the program runs on, by the instance metadata service (IMDS).
#[derive(Clone)]
pub struct ManagedIdentity {
    transport: Arc<dyn Transport>,
    endpoint: String,
    client: Option<String>,
    resource: String,
}

impl ManagedIdentity {
    /// Creates a source for the machine's own identity, or for the only one assigned to it.
    pub fn new(transport: impl Transport + 'static) -> Self {
        Self {
            transport: Arc::new(transport),
            endpoint: ENDPOINT.to_owned(),
            client: None,
            resource: PUBLIC_RESOURCE.to_owned(),
        }
    }

    /// Selects one of several assigned identities by its client id.
    #[must_use]
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.client = Some(id.into());
        self
    }

    /// Sets the URL of the metadata service. Default: `http://169.254.169.254`.
    #[must_use]
    pub fn endpoint(mut self, address: impl Into<String>) -> Self {
        self.endpoint = address.into();
        self
    }

    /// Sets the resource that the tokens are for. Default: [`PUBLIC_RESOURCE`].
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = resource.into();
        self
    }
}

#[async_trait]
impl TokenSource for ManagedIdentity {
    async fn token(&self) -> Result<AccessToken, TokenError> {
        let mut url = Url::parse(&self.endpoint)
            .and_then(|url| url.join("/metadata/identity/oauth2/token"))
            .map_err(|error| {
                TokenError::new(format!(
                    "the metadata service {:?} cannot be used",
                    self.endpoint
                ))
                .with_source(error)
            })?;
        url.query_pairs_mut()
            .append_pair("api-version", API_VERSION)
            .append_pair("resource", &self.resource);
        if let Some(client) = &self.client {
            url.query_pairs_mut().append_pair("client_id", client);
        }
        let request = Request::get(url.as_str())
            // The header keeps out attackers who can only make a machine fetch a URL.
            .header("Metadata", "true")
            .body(Bytes::new())
            .map_err(|error| {
                TokenError::new("the request for a token cannot be written").with_source(error)
            })?;
        let whom = "the instance metadata service";
        grant::ask(&*self.transport, whom, request, &WHILE_IT_STARTS).await
    }
}

impl fmt::Debug for ManagedIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagedIdentity")
            .field("endpoint", &self.endpoint)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}
