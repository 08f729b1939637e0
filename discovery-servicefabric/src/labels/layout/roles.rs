//! Roles: which requests only read.

use proxy_model::config::RouteConfig;

use crate::labels::read::Roles;
use crate::labels::replicas::Pool;

/// The suffix of the id of a route for reads.
pub(super) const READS: &str = "reads";

/// The safe methods of HTTP (RFC 9110 section 9.2.1). TRACE counts as a write, since its response contains
/// the request itself.
const SAFE: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// A route, or one of the two that it becomes, with the replicas that it goes to.
pub(super) struct Split {
    pub(super) pool: Pool,
    /// True if this is the route for reads beside another one.
    pub(super) is_reads: bool,
    pub(super) route: RouteConfig,
}

/// Returns the routes that a route becomes. The one for reads has one more condition than the one for all
/// other requests, so it comes first (methods before hosts before headers). The other one keeps its rank.
pub(super) fn split(route: &RouteConfig, roles: &Roles, pools: &[Pool]) -> Vec<Split> {
    let mut reads = route.clone();
    let mut writes = Some(route.clone());
    match roles {
        Roles::Alike(_) => {
            return pools
                .iter()
                .map(|&pool| Split {
                    pool,
                    is_reads: false,
                    route: route.clone(),
                })
                .collect();
        }
        Roles::ByHeader(header) => {
            let headers = reads.r#match.headers.get_or_insert_default();
            headers.push(header.clone());
        }
        Roles::ByMethod => {
            let written = route.r#match.methods.clone().unwrap_or_default();
            let (safe, others): (Vec<String>, Vec<String>) =
                written.into_iter().partition(|method| is_safe(method));
            match (safe.is_empty(), others.is_empty()) {
                // A route without methods takes all: safe ones are reads, and the second route takes the rest.
                (true, true) => reads.r#match.methods = Some(SAFE.map(str::to_owned).into()),
                (true, false) => {
                    return vec![Split {
                        pool: Pool::Writes,
                        is_reads: false,
                        route: route.clone(),
                    }];
                }
                (false, no_others) => {
                    reads.r#match.methods = Some(safe);
                    writes = writes.filter(|_| !no_others).map(|mut writes| {
                        writes.r#match.methods = Some(others);
                        writes
                    });
                }
            }
        }
    }
    let reads = Split {
        pool: Pool::Reads,
        is_reads: true,
        route: reads,
    };
    let writes = writes.map(|route| Split {
        pool: Pool::Writes,
        is_reads: false,
        route,
    });
    [reads].into_iter().chain(writes).collect()
}

/// Returns true if a request with this method only reads.
pub(super) fn is_safe(method: &str) -> bool {
    SAFE.iter().any(|safe| safe.eq_ignore_ascii_case(method))
}
