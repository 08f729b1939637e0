//! The memory limit derived from the machine.

use std::fs;
use std::path::Path;

const MIB: u64 = 1024 * 1024;

/// The limit if the size of the memory cannot be read.
const UNKNOWN: u64 = 256 * MIB;

/// The smallest default, however small the machine is.
const LEAST: u64 = 32 * MIB;

/// The default for [`Limits::memory_bytes`](crate::server::Limits::memory_bytes).
pub(crate) fn default_memory() -> u64 {
    let read = |path: &str| fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo").and_then(|text| total(&text));
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let group = limit(&groups, Path::new("/sys/fs/cgroup"));
    // The limit of a control group may exceed the memory of the machine.
    match machine.into_iter().chain(group).min() {
        Some(memory) => share(memory),
        None => UNKNOWN,
    }
}

/// A quarter: connections need more than is counted, and the process has other memory as well.
fn share(memory: u64) -> u64 {
    (memory / 4).max(LEAST)
}

/// The size of the machine's memory in bytes, from the text of `/proc/meminfo`.
fn total(meminfo: &str) -> Option<u64> {
    let rest = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let number = rest.split_whitespace().next()?;
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// The smallest limit of the process' control groups, from the text of `/proc/self/cgroup`; see
/// cgroups(7).
fn limit(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let (root, file) = match controllers {
            // The empty list of controllers is that of version 2.
            "" => (root.to_owned(), "memory.max"),
            // Version 1 has a hierarchy for each controller.
            _ if controllers.split(',').any(|one| one == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let path = root.join(path.trim_start_matches('/'));
        // A container may see its own group as the root, but the path of the machine.
        let own = path.ancestors().take_while(|path| path.starts_with(&root));
        own.filter_map(|group| {
            let text = fs::read_to_string(group.join(file)).ok()?;
            // "max" is no number and means no limit; in version 1 the largest number of pages means
            // the same.
            text.trim().parse::<u64>().ok()
        })
        .min()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_machine_is_read() {
        assert_eq!(
            total("MemTotal:        1024 kB\nMemFree: 5 kB\n"),
            Some(MIB)
        );
        assert_eq!(total("MemFree: 5 kB\n"), None);
        assert_eq!(share(4096 * MIB), 1024 * MIB);
        assert_eq!(share(0), LEAST);
    }

    #[test]
    fn the_narrowest_group_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("pod/box/memory.max", "max\n");
        write("pod/memory.max", "3000\n");
        write("memory/old/memory.limit_in_bytes", "2000\n");
        let limit = |groups| limit(groups, root.path());
        assert_eq!(limit("0::/pod/box\n"), Some(3000));
        assert_eq!(limit("0::/elsewhere\n"), None);
        assert_eq!(
            limit("5:cpu:/x\n4:hugetlb,memory:/old\n0::/pod\n"),
            Some(2000)
        );
        assert_eq!(limit(""), None);
    }
}
