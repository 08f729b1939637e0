//! Lists from their pages.

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::Shared;
use super::answer::{GatewayResponse, decode};
use super::request::Call;
use crate::calls::{CallError, CallErrorKind};
use crate::model::Page;

/// A token is part of a URL, for which a gateway has 8 KiB with everything else.
const LONGEST_TOKEN: usize = 4 * 1024;

impl Shared {
    /// Returns all items of a list, after checking that none lacks its identifying member: another server
    /// than a gateway may have responded, and items missing from a list count as deleted. `lacks` names the
    /// member that an item lacks.
    pub(super) async fn whole_list<T: DeserializeOwned>(
        &self,
        call: Call,
        lacks: fn(&T) -> Option<&'static str>,
    ) -> Result<Vec<T>, CallError> {
        let items = self.list(call.clone()).await?;
        match items.iter().find_map(lacks) {
            None => Ok(items),
            Some(member) => {
                let message = format!("an item of the list has no `{member}`");
                Err(call.error(CallErrorKind::Malformed, message))
            }
        }
    }

    /// Returns all items of a list, or an error. One deadline applies to all pages.
    pub(super) async fn list<T: DeserializeOwned>(&self, call: Call) -> Result<Vec<T>, CallError> {
        let deadline = Instant::now() + self.options.budget;
        let mut collected = Collected::default();
        let mut next = call.clone();
        loop {
            let answer = self.exchange(&next, deadline).await?;
            let page = decode(&call, &answer)?;
            match collected.add(&self.options, answer.size(), page) {
                Ok(None) => return Ok(collected.items),
                Ok(Some(token)) => next = call.clone().argument("ContinuationToken", &token),
                Err(reason) => return Err(call.error(CallErrorKind::Malformed, reason)),
            }
            if Instant::now() >= deadline {
                let message = format!(
                    "the list was not complete after {} pages within {:?}",
                    collected.pages, self.options.budget
                );
                return Err(call.error(CallErrorKind::TimedOut, message));
            }
        }
    }
}

/// The pages collected so far.
struct Collected<T> {
    items: Vec<T>,
    pages: usize,
    bytes: usize,
    tokens: HashSet<String>,
}

impl<T> Default for Collected<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            pages: 0,
            bytes: 0,
            tokens: HashSet::new(),
        }
    }
}

impl<T> Collected<T> {
    /// Adds a page. Returns the token for requesting the next one, if there is one.
    fn add(
        &mut self,
        options: &super::ClientOptions,
        bytes: usize,
        page: Page<T>,
    ) -> Result<Option<String>, String> {
        self.pages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.items.extend(page.items);
        if self.items.len() > options.max_items {
            return Err(format!(
                "the list has more than {} items",
                options.max_items
            ));
        }
        if self.bytes > options.max_list_bytes {
            return Err(format!(
                "the list has more than {} bytes",
                options.max_list_bytes
            ));
        }
        let Some(token) = page.continuation_token else {
            return Ok(None);
        };
        if self.pages >= options.max_pages {
            return Err(format!(
                "the list has more than {} pages",
                options.max_pages
            ));
        }
        if token.len() > LONGEST_TOKEN {
            return Err(format!("a continuation token has {} bytes", token.len()));
        }
        if !self.tokens.insert(token.clone()) {
            return Err("a continuation token came again, so the list has no end".to_owned());
        }
        Ok(Some(token))
    }
}

impl GatewayResponse {
    fn size(&self) -> usize {
        match self {
            Self::Content(body, _) => body.len(),
            Self::NoContent => 0,
        }
    }
}
