use http::StatusCode;
use serde::Serialize;

use super::{Answer, ApiError, ApiVersion, Arguments};
use crate::cluster::{FabricError, Page, PageRequest};

/// The maximum size of the items of a response: three quarters of the largest message of 4 MiB.
const MESSAGE: usize = 3 * 1024 * 1024;
/// The token of an empty page at the beginning of a list: the next page starts at the beginning.
const BEGINNING: &str = "^";

/// The paging of a list.
#[derive(Clone, Debug)]
pub(crate) struct Paging {
    version: ApiVersion,
    /// The continuation token of the caller.
    token: Option<String>,
    limit: Option<usize>,
    repeat_token: bool,
}

/// The injected faults of paging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageFaults {
    /// The maximum number of items of a page.
    pub(crate) at_most: Option<usize>,
    /// True if a page that was requested with a token returns the same token.
    pub(crate) repeat_token: bool,
}

/// A page in JSON.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// The items, separated by commas.
    items: Vec<u8>,
    /// The token as JSON.
    token: String,
}

impl Paging {
    /// Reads the paging from the arguments: `ContinuationToken`, and `MaxResults` if the call honours it.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG` for a bad `MaxResults`.
    pub(crate) fn of(
        version: ApiVersion,
        arguments: &Arguments,
        max_results: bool,
        faults: PageFaults,
    ) -> Result<Self, ApiError> {
        let asked = arguments.max_results()?.filter(|_| max_results);
        Ok(Self {
            version,
            token: arguments.given("ContinuationToken").map(str::to_owned),
            limit: asked.into_iter().chain(faults.at_most).min(),
            repeat_token: faults.repeat_token,
        })
    }

    /// Returns the page as `{"ContinuationToken","Items"}`. Before version 2.0, a plain array of all items.
    ///
    /// # Errors
    ///
    /// Those of `fetch`.
    pub(crate) fn answer<T, S: Serialize>(
        &self,
        fetch: impl Fn(&PageRequest) -> Result<Page<T>, FabricError>,
        shape: impl Fn(&T) -> S,
    ) -> Result<Answer, ApiError> {
        if self.version < ApiVersion::PAGED {
            let page = fetch(&PageRequest::default())?;
            let all: Vec<S> = page.items.iter().map(shape).collect();
            return Answer::json(&all);
        }
        Ok(self.render(fetch, shape)?.wrapped("", "Items"))
    }

    /// Returns the parts of the page, for callers with another wrapper.
    ///
    /// # Errors
    ///
    /// Those of `fetch`.
    pub(crate) fn render<T, S: Serialize>(
        &self,
        fetch: impl Fn(&PageRequest) -> Result<Page<T>, FabricError>,
        shape: impl Fn(&T) -> S,
    ) -> Result<Rendered, ApiError> {
        let token = self.token.as_deref().filter(|token| *token != BEGINNING);
        let mut request = PageRequest::first(self.limit.unwrap_or(0));
        if let Some(token) = token {
            request = request.after(token);
        }
        if self.limit == Some(0) {
            // Checks that the list exists, and continues at the same place.
            fetch(&request)?;
            return Ok(Rendered::new(Vec::new(), token.unwrap_or(BEGINNING)));
        }
        let mut page = fetch(&request)?;
        let (mut items, fitting) = write(&page.items, &shape)?;
        if fitting < page.items.len() {
            request.max_results = fitting;
            page = fetch(&request)?;
            (items, _) = write(&page.items, &shape)?;
        }
        let next = match token {
            Some(token) if self.repeat_token => token,
            _ => &page.continuation_token,
        };
        Ok(Rendered::new(items, next))
    }
}

/// Writes as many items as fit, at least one. Returns their number.
fn write<T, S: Serialize>(
    items: &[T],
    shape: impl Fn(&T) -> S,
) -> Result<(Vec<u8>, usize), ApiError> {
    let mut written = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let end = written.len();
        if at > 0 {
            written.push(b',');
        }
        serde_json::to_writer(&mut written, &shape(item))
            .map_err(|error| ApiError::unwritable(&error))?;
        if at > 0 && written.len() > MESSAGE {
            written.truncate(end);
            return Ok((written, at));
        }
    }
    Ok((written, items.len()))
}

impl Rendered {
    fn new(items: Vec<u8>, token: &str) -> Self {
        Self {
            items,
            token: serde_json::to_string(token).expect("a text is always JSON"),
        }
    }

    /// Returns the response, with further members (`"IsConsistent":true,`) before the items.
    pub(crate) fn wrapped(mut self, members: &str, key: &str) -> Answer {
        let token = &self.token;
        let mut body = format!("{{\"ContinuationToken\":{token},{members}\"{key}\":[").into_bytes();
        body.append(&mut self.items);
        body.extend_from_slice(b"]}");
        Answer::raw_json(StatusCode::OK, body)
    }
}
