//! The client of the resource manager.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::Transport;
use super::builder::ArmClientBuilder;
use super::call::{ArmCall, Precondition};
use super::call_log::{CallClass, CallCounts, CallLog, CallRecord};
use super::error::{ArmError, ArmErrorKind};
use super::options::ArmOptions;
use super::throttle::Gates;
use super::token::TokenCache;
use crate::resources::{ArmId, Resource};

/// A client of Azure's resource manager. Cheap to clone; clones share tokens, gates and the log of calls.
///
/// Calls are retried after 408, 429, a status of 500 to 599, or no response, as
/// [`RetryPolicy`](super::RetryPolicy) defines. After a 429 no call of the same class, reads or writes, is
/// sent before the time that the resource manager requests. Writes return when they have completed, within
/// [`ArmOptions::operation_timeout`].
///
/// # Cancel safety
///
/// If the future of a call is dropped, the call may have been carried out. Read again before you write again.
#[derive(Clone)]
pub struct ArmClient {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) transport: Arc<dyn Transport>,
    pub(super) endpoint: Url,
    pub(super) tokens: Option<TokenCache>,
    pub(super) options: ArmOptions,
    pub(super) gates: Gates,
    pub(super) log: CallLog,
}

impl ArmClient {
    /// Returns a builder of a client with this transport.
    pub fn builder(transport: impl Transport + 'static) -> ArmClientBuilder {
        ArmClientBuilder::new(Arc::new(transport))
    }

    pub(super) fn new(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Returns the numbers of calls of this client and its clones.
    pub fn counts(&self) -> CallCounts {
        self.inner.log.counts()
    }

    /// Returns the last calls, the newest last; at most 256.
    pub fn last_calls(&self) -> Vec<CallRecord> {
        self.inner.log.last()
    }

    /// Returns the options of the client.
    pub fn options(&self) -> &ArmOptions {
        &self.inner.options
    }

    /// Reads a resource. `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// The call fails, or its response is malformed.
    pub async fn get<T: DeserializeOwned>(&self, id: &ArmId) -> Result<Option<T>, ArmError> {
        let call = self.call(Method::GET, CallClass::Read, id.as_str())?;
        match self.send(&call).await {
            Ok(answer) => answer.read(&call.name).map(Some),
            Err(error) if error.kind() == ArmErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a resource, like [`get`](Self::get). A response without an id is none: written back it would lose
    /// everything.
    pub(crate) async fn get_resource<P>(&self, id: &ArmId) -> Result<Option<Resource<P>>, ArmError>
    where
        P: Default + DeserializeOwned,
    {
        let found: Option<Resource<P>> = self.get(id).await?;
        if found.as_ref().is_some_and(|resource| resource.id.is_none()) {
            let call = self.call(Method::GET, CallClass::Read, id.as_str())?;
            let message = "the response is no resource: it has no id";
            return Err(ArmError::new(ArmErrorKind::Malformed, &call.name, message));
        }
        Ok(found)
    }

    /// Reads all pages of the list at `path`. The list of a missing resource group is empty.
    ///
    /// # Errors
    ///
    /// The call fails, a page is malformed, or the list exceeds [`ArmOptions::max_items`],
    /// [`ArmOptions::max_pages`] or [`ArmOptions::max_list_bytes`].
    pub async fn list<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, ArmError> {
        let mut call = self.call(Method::GET, CallClass::Read, path)?;
        let name = call.name.clone();
        let too_much = |what: &str, limit: usize| {
            // A truncated list would look like deleted resources, so exceeding a limit is an error.
            let message = format!("the list has more than {limit} {what}");
            ArmError::new(ArmErrorKind::Malformed, &name, message)
        };
        let options = &self.inner.options;
        let (mut items, mut bytes) = (Vec::new(), 0_usize);
        // Pages could link to each other in a circle without any items.
        for _ in 0..options.max_pages {
            let answer = match self.send(&call).await {
                Ok(answer) => answer,
                Err(error) if error.has_code("ResourceGroupNotFound") => return Ok(items),
                Err(error) => return Err(error),
            };
            bytes = bytes.saturating_add(answer.body.len());
            if bytes > options.max_list_bytes {
                return Err(too_much("bytes", options.max_list_bytes));
            }
            let page = answer.read::<Page<T>>(&call.name)?;
            items.extend(page.value);
            if items.len() > options.max_items {
                return Err(too_much("items", options.max_items));
            }
            match page.next_link.filter(|link| !link.is_empty()) {
                Some(link) => {
                    let next = self.inner.same_origin(&call.name, &link)?;
                    if next == call.url {
                        let message = "a page of the list leads to itself";
                        return Err(ArmError::new(ArmErrorKind::Malformed, &call.name, message));
                    }
                    call.url = next;
                }
                None => return Ok(items),
            }
        }
        Err(too_much("pages", options.max_pages))
    }

    /// Creates or replaces a resource, and waits for completion. Returns the resource of the response, which
    /// can have less than a later [`get`](Self::get): addresses are assigned late.
    ///
    /// # Errors
    ///
    /// The precondition fails, the write is rejected, or it fails later.
    pub async fn put<R: DeserializeOwned>(
        &self,
        id: &ArmId,
        resource: &impl Serialize,
        precondition: Precondition<'_>,
    ) -> Result<R, ArmError> {
        let mut call = self.call(Method::PUT, CallClass::Write, id.as_str())?;
        call.body = body(&call.name, resource)?;
        call.precondition = precondition;
        let answer = self.send(&call).await?;
        self.finish(&call, &answer).await?;
        answer.read(&call.name)
    }

    /// Deletes a resource, and waits for completion. A missing resource counts as deleted.
    ///
    /// # Errors
    ///
    /// The precondition fails, the deletion is rejected, or it fails later.
    pub async fn delete(&self, id: &ArmId, precondition: Precondition<'_>) -> Result<(), ArmError> {
        let mut call = self.call(Method::DELETE, CallClass::Write, id.as_str())?;
        call.precondition = precondition;
        match self.send(&call).await {
            Ok(answer) => self.finish(&call, &answer).await,
            Err(error) if error.kind() == ArmErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Calls an action of a resource, such as `manualupgrade`, and waits for completion.
    ///
    /// # Errors
    ///
    /// The action is rejected, or fails later.
    pub async fn post(
        &self,
        id: &ArmId,
        action: &str,
        request: &impl Serialize,
    ) -> Result<(), ArmError> {
        let path = format!("{id}/{action}");
        let mut call = self.call(Method::POST, CallClass::Write, &path)?;
        call.body = body(&call.name, request)?;
        let answer = self.send(&call).await?;
        self.finish(&call, &answer).await
    }

    /// Creates a call of a path.
    pub(super) fn call(
        &self,
        method: Method,
        class: CallClass,
        path: &str,
    ) -> Result<ArmCall<'static>, ArmError> {
        // The name has only the last segments, which suffice for an error message.
        let mut parts = path.rsplit('/').take(2).collect::<Vec<_>>();
        parts.reverse();
        let name = format!("{method} {}", parts.join("/"));
        // Segments such as `..` or a tab would change the path, since URL parsers remove them.
        let is_segment =
            |text: &str| !matches!(text, "" | "." | "..") && !text.contains(char::is_control);
        let wrong = || {
            let message = format!("{path:?} is not a path of the resource manager");
            ArmError::new(ArmErrorKind::Rejected, &name, message)
        };
        let segments = path.strip_prefix('/').ok_or_else(wrong)?.split('/');
        if !segments.clone().all(is_segment) {
            return Err(wrong());
        }
        let options = &self.inner.options;
        let is_compute = path
            .to_ascii_lowercase()
            .contains("/providers/microsoft.compute/");
        let version = if is_compute {
            &options.compute_api_version
        } else {
            &options.network_api_version
        };
        let mut url = self.inner.endpoint.clone();
        // Each segment is added separately, so that none counts as several: `%`, `?`, `#` and `\\` are
        // escaped.
        url.path_segments_mut()
            .map_err(|()| wrong())?
            .clear()
            .extend(segments);
        url.query_pairs_mut().append_pair("api-version", version);
        Ok(ArmCall {
            method,
            class,
            url,
            name,
            body: Bytes::new(),
            precondition: Precondition::None,
        })
    }
}

impl fmt::Debug for ArmClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArmClient")
            .field("endpoint", &self.inner.endpoint.as_str())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

#[derive(serde::Deserialize)]
struct Page<T> {
    #[serde(default = "Vec::new")]
    value: Vec<T>,
    #[serde(default, rename = "nextLink")]
    next_link: Option<String>,
}

fn body(call: &str, resource: &impl Serialize) -> Result<Bytes, ArmError> {
    let bytes = serde_json::to_vec(resource).map_err(|error| {
        ArmError::new(
            ArmErrorKind::Rejected,
            call,
            "the request cannot be written as JSON",
        )
        .with_source(error)
    })?;
    Ok(bytes.into())
}
