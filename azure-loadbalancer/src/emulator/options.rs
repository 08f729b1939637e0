//! The options of an emulator.

/// The options of an emulator. Every counter starts from the same value each time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmulatorOptions {
    /// The number of further requests until a write completes. 0: it completes with its own response.
    /// Default: 1.
    pub operation_requests: u64,
    /// The `Retry-After` of pending writes, in seconds. Default: 0.
    pub retry_after: u32,
    /// The number of resources of a page; the rest is behind `nextLink`. Default: 1,000.
    pub page_size: usize,
    /// The seed for random letter case of ids in references. Default: ids as written.
    pub id_casing_seed: Option<u64>,
    /// The required bearer token. Default: any, or none.
    pub token: Option<String>,
    /// The maximum number of resources. Default: 20,000.
    pub max_resources: usize,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        Self {
            operation_requests: 1,
            retry_after: 0,
            page_size: 1_000,
            id_casing_seed: None,
            token: None,
            max_resources: 20_000,
        }
    }
}

impl EmulatorOptions {
    /// Sets the number of further requests until a write completes.
    #[must_use]
    pub fn operation_requests(mut self, requests: u64) -> Self {
        self.operation_requests = requests;
        self
    }

    /// Sets the `Retry-After` of pending writes, in seconds.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = seconds;
        self
    }

    /// Sets the number of resources of a page, at least one.
    #[must_use]
    pub fn page_size(mut self, resources: usize) -> Self {
        self.page_size = resources.max(1);
        self
    }

    /// Sets the seed for random letter case of ids in references.
    #[must_use]
    pub fn id_casing_seed(mut self, seed: u64) -> Self {
        self.id_casing_seed = Some(seed);
        self
    }

    /// Sets the required bearer token.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }
}
