/// How a subscriber asks. Clusters and listeners say where their endpoints and routes come from, and that has to be the way
/// by which they came themselves, so their bytes differ from subscription to subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subscription {
    /// One aggregated stream (`AggregatedDiscoveryService`), SotW or delta.
    Aggregated,
    /// A stream, or unary calls, of the service of each type.
    Separate,
    /// Polls over HTTP with JSON.
    Rest,
}

impl Subscription {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Aggregated, Self::Separate, Self::Rest];
}
