use serde::Serialize;

/// What is kept from being served, as the maker of the snapshots knows it.
pub trait Quarantine: Send + Sync + 'static {
    /// The services that are not served as they want to be.
    fn entries(&self) -> Vec<QuarantineEntry>;

    /// The sources without which nothing is served, and that have not been read yet.
    fn waiting_for(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A service that is not served as it wants to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuarantineEntry {
    /// Whose it is: the source, and what it calls the service.
    pub owner: String,
    /// All that is wrong, and how it can be mended.
    pub reasons: Vec<String>,
    /// Whether its last good form is served meanwhile.
    pub serves_last_good: bool,
}
