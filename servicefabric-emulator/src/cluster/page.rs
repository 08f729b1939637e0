//! Paging of lists.

/// A request for one page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    /// The continuation token of the previous page. `None` or empty for the first page.
    pub continuation_token: Option<String>,
    /// The maximum number of items. 0: as many as fit.
    pub max_results: usize,
}

impl PageRequest {
    /// Requests the first page, of at most `max_results` items. 0: as many as fit.
    pub fn first(max_results: usize) -> Self {
        Self {
            continuation_token: None,
            max_results,
        }
    }

    /// Requests the page after the one with this token.
    #[must_use]
    pub fn after(mut self, continuation_token: impl Into<String>) -> Self {
        self.continuation_token = Some(continuation_token.into());
        self
    }

    /// Returns the key after which the page begins.
    pub(crate) fn lower_bound(&self) -> Option<&str> {
        self.continuation_token
            .as_deref()
            .filter(|token| !token.is_empty())
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page<T> {
    /// The items of the page.
    pub items: Vec<T>,
    /// The token to request the next page with: the key of the last item. Empty on the last page.
    pub continuation_token: String,
}

impl<T> Page<T> {
    /// Returns a page of items after the lower bound. The items must be ordered by key.
    pub(crate) fn take(
        items: impl Iterator<Item = T>,
        request: &PageRequest,
        key: impl Fn(&T) -> String,
    ) -> Self {
        let limit = if request.max_results == 0 {
            usize::MAX
        } else {
            request.max_results
        };
        let mut items = items.peekable();
        let mut page = Vec::new();
        while page.len() < limit {
            let Some(item) = items.next() else {
                break;
            };
            page.push(item);
        }
        let more = items.peek().is_some();
        let token = page.last().filter(|_| more).map(key);
        Self {
            items: page,
            continuation_token: token.unwrap_or_default(),
        }
    }
}
