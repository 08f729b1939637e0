//! A registry behind a URL.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use discovery_http::tls::{client_config, provider, system_verifier};
use discovery_http::{ReqwestTransport, TransportOptions};
use http::StatusCode;
use http::header::{AUTHORIZATION, ETAG, HeaderValue, IF_NONE_MATCH};
use tokio::time::{Instant, sleep};

use super::{ParsedRegistry, Registry, RegistryError, parse_registry};
use crate::sources::file::read_text;

/// The largest document that is read.
const MOST_BYTES: usize = 16 << 20;

/// The time limit for connecting and responding, in addition to a requested wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// The least time between two requests, for any behaviour of the server.
const LEAST_GAP: Duration = Duration::from_millis(200);

/// A registry that responds to `GET` with a [document](parse_registry).
///
/// The response's `ETag` is sent back in `If-None-Match`, and `304 Not Modified` means that nothing has
/// changed. With [`RegistryMode::Blocking`] the request has `Prefer: wait=<seconds>` ([RFC
/// 7240](https://www.rfc-editor.org/rfc/rfc7240), section 4.3) too: a server that supports it responds when
/// there is a change, or when the time is over.
pub struct HttpRegistry {
    options: HttpRegistryOptions,
    transport: ReqwestTransport,
    etag: Option<HeaderValue>,
    /// The last returned result, for servers without an `ETag`.
    seen: Option<ParsedRegistry>,
    asked_at: Option<Instant>,
}

/// The options of a registry over HTTP.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpRegistryOptions {
    /// The registry's URL.
    pub url: url::Url,
    /// The way to receive changes. Default: polling every 5 s.
    pub mode: RegistryMode,
    /// File with a token to send as `Authorization: Bearer`. It is read for each request, so it may change.
    /// Default: none.
    pub token_file: Option<PathBuf>,
}

/// The way to receive changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryMode {
    /// Polls, with this wait after the last response.
    Poll(Duration),
    /// Requests that wait this long for a change.
    Blocking(Duration),
}

impl HttpRegistryOptions {
    /// Creates options that poll this URL every 5 s.
    #[must_use]
    pub fn new(url: url::Url) -> Self {
        Self {
            url,
            mode: RegistryMode::Poll(Duration::from_secs(5)),
            token_file: None,
        }
    }
}

impl HttpRegistry {
    /// Creates a registry, without a request yet.
    ///
    /// # Errors
    ///
    /// Returns an error if TLS cannot be set up, or if the URL is neither of `http` nor of `https`.
    pub fn new(options: HttpRegistryOptions) -> Result<Self, RegistryError> {
        if !matches!(options.url.scheme(), "http" | "https") {
            return Err(RegistryError::new(
                "the registry's URL begins with http:// or https://",
            ));
        }
        let transport = transport()
            .map_err(|error| RegistryError::new(format!("TLS cannot be set up: {error}")))?;
        Ok(Self {
            options,
            transport,
            etag: None,
            seen: None,
            asked_at: None,
        })
    }

    fn fail(&self, why: impl fmt::Display) -> RegistryError {
        let mut shown = self.options.url.clone();
        // What may be secret is not shown.
        let _ = shown.set_password(None);
        let _ = shown.set_username("");
        shown.set_query(None);
        RegistryError::new(format!("{shown}: {why}"))
    }

    async fn authorization(&self) -> Result<Option<HeaderValue>, RegistryError> {
        let Some(path) = self.options.token_file.clone() else {
            return Ok(None);
        };
        let shown = path.display().to_string();
        let read = tokio::task::spawn_blocking(move || read_text(&path)).await;
        let text = read
            .map_err(|_| self.fail("the runtime is shutting down"))?
            .map_err(|error| self.fail(format!("{shown}: {error}")))?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", text.trim()))
            .map_err(|_| self.fail(format!("{shown}: it is no token")))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    /// Makes one request. Returns `None` if nothing has changed.
    async fn ask(&mut self) -> Result<Option<ParsedRegistry>, RegistryError> {
        let parsed = self.ask_with(self.etag.clone(), true).await?;
        let before = self.seen.clone();
        let news = parsed.filter(|parsed| before.as_ref() != Some(parsed));
        if let Some(news) = &news {
            self.seen = Some(news.clone());
        }
        Ok(news)
    }

    /// Makes one request with this tag. Returns `None` if nothing else is available.
    async fn ask_with(
        &mut self,
        etag: Option<HeaderValue>,
        may_wait: bool,
    ) -> Result<Option<ParsedRegistry>, RegistryError> {
        let mut request = self.transport.client().get(self.options.url.clone());
        let has_tag = etag.is_some();
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some(authorization) = self.authorization().await? {
            request = request.header(AUTHORIZATION, authorization);
        }
        let wait = match self.options.mode {
            RegistryMode::Blocking(wait) if may_wait && self.seen.is_some() => {
                request = request.header("prefer", format!("wait={}", wait.as_secs()));
                wait
            }
            _ => Duration::ZERO,
        };
        let sent = request.timeout(wait + PATIENCE).send().await;
        let mut response = sent.map_err(|error| self.fail(caused(&error.without_url())))?;
        match response.status() {
            StatusCode::NOT_MODIFIED if has_tag => return Ok(None),
            StatusCode::OK => {}
            status => return Err(self.fail(format!("it answered {status}"))),
        }
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.fail(caused(&error.without_url())))?
        {
            if body.len() + chunk.len() > MOST_BYTES {
                return Err(self.fail(format!("it answered more than {MOST_BYTES} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        let text = String::from_utf8(body).map_err(|_| self.fail("the answer is not UTF-8"))?;
        let parsed = parse_registry(&text).map_err(|problems| self.fail(problems))?;
        self.etag = response.headers().get(ETAG).cloned();
        Ok(Some(parsed))
    }

    /// Makes the next good response count as a change, even if it is the same.
    fn forget(&mut self) {
        self.etag = None;
        self.seen = None;
    }
}

#[async_trait]
impl Registry for HttpRegistry {
    async fn next(&mut self) -> Result<ParsedRegistry, RegistryError> {
        loop {
            if let Some(asked_at) = self.asked_at {
                let gap = match self.options.mode {
                    RegistryMode::Poll(interval) => interval.max(LEAST_GAP),
                    RegistryMode::Blocking(_) => LEAST_GAP,
                };
                sleep(gap.saturating_sub(asked_at.elapsed())).await;
            }
            let asked = self.ask().await;
            self.asked_at = Some(Instant::now());
            match asked {
                Ok(None) => {}
                Ok(Some(parsed)) => return Ok(parsed),
                Err(error) => {
                    self.forget();
                    return Err(error);
                }
            }
        }
    }

    async fn again(&mut self) -> Result<ParsedRegistry, RegistryError> {
        let asked = self.ask_with(None, false).await;
        self.asked_at = Some(Instant::now());
        match asked {
            Ok(Some(parsed)) => {
                self.seen = Some(parsed.clone());
                Ok(parsed)
            }
            Ok(None) => Err(self.fail("it answered 304 to a request without a tag")),
            Err(error) => {
                self.forget();
                Err(error)
            }
        }
    }
}

impl fmt::Debug for HttpRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRegistry")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The transport: TLS trusts the authorities of the operating system.
fn transport() -> Result<ReqwestTransport, Box<dyn Error + Send + Sync>> {
    let provider = provider();
    let verifier = system_verifier(&provider)?;
    let tls = client_config(provider, verifier, None)?;
    let mut options = TransportOptions::new(concat!(
        env!("CARGO_PKG_NAME"),
        "/",
        env!("CARGO_PKG_VERSION")
    ));
    options.connect_timeout = PATIENCE;
    ReqwestTransport::new(tls, &options).map_err(discovery_http::SetupError::into_source)
}

/// Returns an error with its causes, which are more specific.
fn caused(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    discovery_core::text::shortened(&text, 300)
}
