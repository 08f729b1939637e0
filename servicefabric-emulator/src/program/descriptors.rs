use program_kit::Failure;
use servicefabric_emulator::cluster::{Cluster, NodeStatusFilter, PageRequest, ServiceScale};

/// The number of descriptors kept for connections, and for the process itself.
const RESERVE: usize = 256;

/// Returns the number of listeners that replicas may have. `None` if the system has no known limit of
/// descriptors.
pub(super) fn listeners(limit: Option<usize>) -> Option<usize> {
    limit.map(|limit| limit.saturating_sub(RESERVE))
}

/// Returns the number of file descriptors that this process may have. `None` if it is unknown.
pub(super) fn limit() -> Option<usize> {
    soft_limit(&std::fs::read_to_string("/proc/self/limits").ok()?)
}

/// Returns the soft limit in a text like `/proc/self/limits`. `None` if it has none.
fn soft_limit(limits: &str) -> Option<usize> {
    limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

/// Checks that the listeners of all replicas of the cluster fit below the limit.
///
/// # Errors
///
/// A sentence with the remedy, if they do not fit.
pub(super) fn check(cluster: &Cluster, limit: Option<usize>) -> Result<(), Failure> {
    let needed = needed(cluster);
    let (Some(limit), Some(room)) = (limit, listeners(limit)) else {
        return Ok(());
    };
    if needed <= room {
        return Ok(());
    }
    let all = needed + RESERVE;
    Err(Failure::new(format!(
        "the replicas have {needed} listeners, which takes {all} file descriptors together with those kept for connections, but the limit is {limit}: raise it with `ulimit -n {}`, or go without --services",
        all.next_power_of_two()
    )))
}

fn needed(cluster: &Cluster) -> usize {
    let page = PageRequest::default();
    let nodes = cluster.nodes(NodeStatusFilter::All, &page).items.len();
    let applications = cluster.applications(None, &page).items;
    applications
        .iter()
        .flat_map(|application| &application.services)
        .filter_map(|name| cluster.service(name))
        .map(|service| {
            let wanted = match service.scale {
                ServiceScale::Stateless { instance_count, .. } => {
                    usize::try_from(instance_count).unwrap_or(nodes)
                }
                ServiceScale::Stateful { target, .. } => target as usize,
            };
            service.partitions.len() * wanted.min(nodes) * service.listeners.len()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_found() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\n\
                    Max processes             95743                95743                processes\n\
                    Max open files            1024                 524288               files\n";
        assert_eq!(soft_limit(text), Some(1_024));
        assert_eq!(soft_limit("Max open files unlimited unlimited files"), None);
        assert_eq!(soft_limit(""), None);
    }
}
