//! The credentials of an application: a secret, or a token of its own platform.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use http::header::CONTENT_TYPE;
use url::Url;

use super::{AccessToken, PUBLIC_RESOURCE, TokenError, TokenSource, grant};
use crate::arm::Transport;
use crate::arm::builder::is_loopback;

/// The authority of Azure's public cloud.
const PUBLIC_AUTHORITY: &str = "https://login.microsoftonline.com";
/// The assertion type of a token of another platform (RFC 7523, section 2.2).
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// The maximum size of a token in a file, in bytes.
const LONGEST_ASSERTION: usize = 64 * 1024;

/// Client credentials (RFC 6749, section 4.4): an application of a tenant, with a secret or, as workload
/// identity, with a token that its own platform renews in a file. `Debug` shows no secret.
#[derive(Clone)]
pub struct ClientCredentials {
    transport: Arc<dyn Transport>,
    authority: String,
    tenant: String,
    client: String,
    proof: Proof,
    resource: String,
}

#[derive(Clone)]
enum Proof {
    Secret(String),
    File(PathBuf),
}

impl ClientCredentials {
    /// Creates the credentials of an application with a secret.
    pub fn with_secret(
        transport: impl Transport + 'static,
        tenant: impl Into<String>,
        client_id: impl Into<String>,
        secret: impl Into<String>,
    ) -> Self {
        Self::new(
            Arc::new(transport),
            tenant.into(),
            client_id.into(),
            Proof::Secret(secret.into()),
        )
    }

    /// Creates the credentials of an application with a platform token in a file, which is read each time
    /// (workload identity).
    pub fn with_token_file(
        transport: impl Transport + 'static,
        tenant: impl Into<String>,
        client_id: impl Into<String>,
        file: impl Into<PathBuf>,
    ) -> Self {
        Self::new(
            Arc::new(transport),
            tenant.into(),
            client_id.into(),
            Proof::File(file.into()),
        )
    }

    fn new(transport: Arc<dyn Transport>, tenant: String, client: String, proof: Proof) -> Self {
        Self {
            transport,
            authority: PUBLIC_AUTHORITY.to_owned(),
            tenant,
            client,
            proof,
            resource: PUBLIC_RESOURCE.to_owned(),
        }
    }

    /// Sets the authority that issues the tokens. Default: `https://login.microsoftonline.com`.
    #[must_use]
    pub fn authority(mut self, address: impl Into<String>) -> Self {
        self.authority = address.into();
        self
    }

    /// Sets the resource that the tokens are for. Default: [`PUBLIC_RESOURCE`].
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = resource.into();
        self
    }

    fn form(&self, assertion: Option<&str>) -> String {
        let scope = format!("{}/.default", self.resource.trim_end_matches('/'));
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials")
            .append_pair("client_id", &self.client)
            .append_pair("scope", &scope);
        if let Proof::Secret(secret) = &self.proof {
            form.append_pair("client_secret", secret);
        }
        if let Some(assertion) = assertion {
            form.append_pair("client_assertion_type", ASSERTION_TYPE)
                .append_pair("client_assertion", assertion);
        }
        form.finish()
    }

    fn address(&self) -> Result<Url, TokenError> {
        let wrong = |why: &str| {
            TokenError::new(format!(
                "the authority {:?} cannot be used: {why}",
                self.authority
            ))
        };
        let mut url = Url::parse(&self.authority).map_err(|error| wrong(&error.to_string()))?;
        // A secret over plain HTTP would be visible.
        if url.scheme() != "https" && !is_loopback(&url) {
            return Err(wrong("it must be an https address"));
        }
        let mut path = url
            .path_segments_mut()
            .map_err(|()| wrong("it must be an https address"))?;
        path.pop_if_empty()
            .push(&self.tenant)
            .extend(["oauth2", "v2.0", "token"]);
        drop(path);
        Ok(url)
    }
}

#[async_trait]
impl TokenSource for ClientCredentials {
    async fn token(&self) -> Result<AccessToken, TokenError> {
        let assertion = match &self.proof {
            Proof::Secret(_) => None,
            Proof::File(path) => Some(read(path).await?),
        };
        let form = self.form(assertion.as_deref());
        let request = Request::post(self.address()?.as_str())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Bytes::from(form))
            .map_err(|error| {
                TokenError::new("the request for a token cannot be written").with_source(error)
            })?;
        let whom = format!("{} for application {}", self.authority, self.client);
        grant::ask(&*self.transport, &whom, request, &[]).await
    }
}

async fn read(path: &Path) -> Result<String, TokenError> {
    let owned = path.to_owned();
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| {
        TokenError::new(format!("cannot read a token from {}", path.display())).with_source(source)
    };
    // File access can block.
    let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(owned)).await;
    let text = text
        .map_err(|error| failed(Box::new(error)))?
        .map_err(|error| failed(Box::new(error)))?;
    match text.trim() {
        "" => Err(failed("it is empty".into())),
        text if text.len() > LONGEST_ASSERTION => {
            Err(failed("it is too large to be a token".into()))
        }
        text => Ok(text.to_owned()),
    }
}

impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ClientCredentials");
        shown
            .field("authority", &self.authority)
            .field("tenant", &self.tenant)
            .field("client", &self.client);
        if let Proof::File(path) = &self.proof {
            shown.field("file", path);
        }
        shown.finish_non_exhaustive()
    }
}
