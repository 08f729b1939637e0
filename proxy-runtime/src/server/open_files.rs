//! The number of connections that the process has file descriptors for.

/// The default if the limit cannot be read.
const UNKNOWN: usize = 10_000;

/// Maximum of the default.
const MOST: usize = 50_000;

/// The default for [`Limits::connections`](super::Limits::connections).
pub(crate) fn default_connections() -> usize {
    let limit = std::fs::read_to_string("/proc/self/limits")
        .ok()
        .and_then(|limits| soft_limit(&limits));
    limit.map_or(UNKNOWN, room)
}

/// Half of the descriptors is for the other side of each connection, and a fifth of the rest for
/// everything else.
fn room(open_files: usize) -> usize {
    (open_files / 2 / 5 * 4).clamp(1, MOST)
}

/// The soft limit of open files in the text of `/proc/self/limits`, see proc(5).
fn soft_limit(limits: &str) -> Option<usize> {
    let rest = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    match rest.split_whitespace().next()? {
        "unlimited" => Some(usize::MAX),
        number => number.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_is_read() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max processes             unlimited            unlimited            processes \n\
                    Max open files            1024                 524288               files     \n";
        assert_eq!(soft_limit(text), Some(1024));
        assert_eq!(
            soft_limit("Max open files unlimited unlimited files"),
            Some(usize::MAX)
        );
        assert_eq!(soft_limit("Max open files"), None);
        assert_eq!(soft_limit(""), None);
    }

    #[test]
    fn the_room_is_two_fifths_within_bounds() {
        assert_eq!(room(1024), 408);
        assert_eq!(room(usize::MAX), MOST);
        assert_eq!(room(0), 1);
    }
}
