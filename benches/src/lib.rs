//! What the benchmarks of this family share: configurations of every size, and requests with the answers they must get.
//!
//! ```sh
//! cargo xtask bench                                    # everything, as measured in RESULTS.md
//! cargo xtask bench routing -- --quick host            # some of it, less exactly
//! cargo test -p benches                                # checks the answers only, on small set-ups
//! ```
//!
//! Every benchmark first asserts that what it is about to measure gives the right answer. Run by `cargo test` it does
//! nothing else: [`Scale`] keeps that quick without optimisation.

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
