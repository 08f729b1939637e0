//! The limit of open files, from which the server derives the maximum number of clients.

/// Raises the soft limit to the hard limit, and logs that. It needs no privilege, and the soft limit is only
/// low for programs that use `select`.
#[cfg(target_os = "linux")]
pub(crate) fn raise_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    const TARGET: &str = "proxy::server";

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    let [from, to] = [current, maximum].map(|limit| limit.unwrap_or(u64::MAX));
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::info!(target: TARGET, from, to, "the limit of open files is raised"),
        Err(error) => {
            tracing::warn!(target: TARGET, from, to, %error, "the limit of open files cannot be raised")
        }
    }
}

/// Leaves the limit as it is.
#[cfg(not(target_os = "linux"))]
pub(crate) fn raise_limit() {}
