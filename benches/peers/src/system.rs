//! Process information from the kernel: processor time, memory, and CPU affinity.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The ids of a process and its descendants. A program may be started by a script, and may fork
/// workers.
pub(crate) fn family(root: u32) -> Vec<u32> {
    let mut family = vec![root];
    let mut next = 0;
    while let Some(&id) = family.get(next) {
        next += 1;
        for task in tasks(id) {
            let children = fs::read_to_string(task.join("children")).unwrap_or_default();
            family.extend(
                children
                    .split_whitespace()
                    .filter_map(|child| child.parse::<u32>().ok()),
            );
        }
    }
    family
}

/// Processor time of each thread of these processes, by thread id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessorTime(BTreeMap<String, u64>);

impl ProcessorTime {
    /// The current times. Ended threads are missing.
    pub(crate) fn now(processes: &[u32]) -> Self {
        let mut threads = BTreeMap::new();
        for task in processes.iter().flat_map(|id| tasks(*id)) {
            let Ok(text) = fs::read_to_string(task.join("schedstat")) else {
                continue;
            };
            if let (Some(nanos), Some(id)) = (on_processor(&text), task.file_name()) {
                threads.insert(id.to_string_lossy().into_owned(), nanos);
            }
        }
        Self(threads)
    }

    /// The time used between `earlier` and this, including new threads.
    pub(crate) fn since(&self, earlier: &Self) -> Duration {
        let used = self.0.iter().map(|(thread, now)| {
            now.saturating_sub(earlier.0.get(thread).copied().unwrap_or_default())
        });
        Duration::from_nanos(used.sum())
    }
}

/// The first number of a `schedstat`: nanoseconds on a processor.
fn on_processor(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

fn tasks(process: u32) -> Vec<std::path::PathBuf> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/task")) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

/// The memory of these processes in KiB, with shared pages divided among them (PSS). `None` if none
/// can be read.
pub(crate) fn memory(processes: &[u32]) -> Option<u64> {
    let each = processes.iter().filter_map(|id| {
        let text = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?;
        proportional_set_size(&text)
    });
    each.reduce(|a, b| a + b)
}

fn proportional_set_size(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Raises the limit of open files to the hard limit, for this process and its children. Returns it.
pub(crate) fn raise_open_files() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        // If this fails, the lower limit stays.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    let now = getrlimit(Resource::Nofile).current;
    now.map_or(usize::MAX, |now| usize::try_from(now).unwrap_or(usize::MAX))
}

/// The assignment of cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cores {
    /// The cores of proxies, one worker on each.
    pub(crate) proxy: Vec<usize>,
    pub(crate) origin: usize,
    pub(crate) generator: usize,
}

impl Cores {
    /// Assigns cores for proxies with `workers`. Origin and generator share a core if there are too
    /// few, and share with the proxy if there is only one. `None` if the workers alone need more.
    pub(crate) fn plan(available: &[usize], workers: usize) -> Option<Self> {
        let proxy = available.get(..workers)?.to_vec();
        let rest = &available[workers..];
        let last = available.last().copied()?;
        Some(Self {
            proxy,
            origin: rest.first().copied().unwrap_or(last),
            generator: rest
                .get(1)
                .or_else(|| rest.first())
                .copied()
                .unwrap_or(last),
        })
    }

    /// Returns true if the proxy shares no core with our other threads, nor the generator with the
    /// origin.
    pub(crate) fn are_apart(&self) -> bool {
        self.origin != self.generator && !self.proxy.contains(&self.origin)
    }
}

/// The cores that this process may use, in ascending order.
pub(crate) fn available_cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU)
        .filter(|core| set.is_set(*core))
        .collect())
}

/// Restricts the calling thread, and its later children, to these cores.
pub(crate) fn pin(cores: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for core in cores {
        set.set(*core);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// The load average of the last minute: the activity of other programs on the machine.
pub(crate) fn load_average() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// The names of the processor and of the kernel's release, as far as known.
pub(crate) fn machine() -> String {
    let field = |path: &str| fs::read_to_string(Path::new(path)).unwrap_or_default();
    let cpuinfo = field("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let kernel = field("/proc/sys/kernel/osrelease");
    let cores = available_cores().map_or(0, |cores| cores.len());
    format!("{model}, {cores} cores, Linux {}", kernel.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_of_schedstat_is_time_on_a_processor() {
        assert_eq!(on_processor("123456789 42 7\n"), Some(123_456_789));
        assert_eq!(on_processor(""), None);
        assert_eq!(on_processor("x 1 2"), None);
    }

    #[test]
    fn time_is_counted_thread_by_thread() {
        let time = |threads: &[(&str, u64)]| {
            ProcessorTime(
                threads
                    .iter()
                    .map(|(id, nanos)| ((*id).to_owned(), *nanos))
                    .collect(),
            )
        };
        let before = time(&[("1", 100), ("2", 50)]);
        // Thread 2 has ended, thread 3 is new.
        let after = time(&[("1", 130), ("3", 7)]);
        assert_eq!(after.since(&before), Duration::from_nanos(37));
    }

    #[test]
    fn this_process_is_seen_to_work() {
        let me = [std::process::id()];
        let before = ProcessorTime::now(&me);
        let mut sum = 0_u64;
        // Far more than the scheduler's granularity; only a positive time is asserted.
        for number in 0..20_000_000_u64 {
            sum = std::hint::black_box(sum ^ number.wrapping_mul(31));
        }
        assert_ne!(ProcessorTime::now(&me), before, "{sum}");
        assert!(memory(&me).is_some_and(|kib| kib > 100));
        assert!(family(me[0]).contains(&me[0]));
    }

    #[test]
    fn memory_is_the_proportional_set_size() {
        let rollup = "00400000-7ffe rollup\nRss:    9000 kB\nPss:    4321 kB\nPss_Dirty: 5 kB\n";
        assert_eq!(proportional_set_size(rollup), Some(4321));
        assert_eq!(proportional_set_size("Rss: 1 kB\n"), None);
    }

    #[test]
    fn cores_are_shared_only_where_there_are_too_few() {
        let plan = |available: &[usize], workers| {
            Cores::plan(available, workers).map(|cores| {
                (
                    cores.proxy.clone(),
                    cores.origin,
                    cores.generator,
                    cores.are_apart(),
                )
            })
        };
        assert_eq!(plan(&[0], 1), Some((vec![0], 0, 0, false)));
        assert_eq!(plan(&[0, 1], 1), Some((vec![0], 1, 1, false)));
        assert_eq!(plan(&[2, 5, 7], 1), Some((vec![2], 5, 7, true)));
        assert_eq!(plan(&[0, 1, 2, 3], 2), Some((vec![0, 1], 2, 3, true)));
        assert_eq!(plan(&[0, 1], 2), Some((vec![0, 1], 1, 1, false)));
        assert_eq!(plan(&[0], 2), None);
    }
}
