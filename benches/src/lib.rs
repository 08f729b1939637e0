//! The shared parts of benchmarks: configurations of every size, and requests with their expected
//! results.
//!
//! ```sh
//! cargo xtask bench                                    # everything, as measured in RESULTS.md
//! cargo xtask bench routing -- --quick host            # some of it, less exactly
//! cargo test -p benches                                # checks the answers only, on small set-ups
//! ```
//!
//! Every benchmark first asserts a correct result. `cargo test` runs only that: [`Scale`] keeps it
//! quick without optimisation.

mod clusters;
mod head;
mod pick;
mod routes;
mod scale;

pub use self::clusters::{cluster, clusters, moved};
pub use self::head::Head;
pub use self::pick::Picks;
pub use self::routes::{RouteSet, compiled};
pub use self::scale::Scale;
