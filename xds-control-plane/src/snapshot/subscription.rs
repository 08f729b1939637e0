/// The kind of a subscription. Clusters and listeners name the source of their endpoints and routes, which
/// must be the same kind, so their bytes differ by subscription.
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
    /// All subscriptions.
    pub const ALL: [Self; 3] = [Self::Aggregated, Self::Separate, Self::Rest];
}
