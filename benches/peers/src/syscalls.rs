//! System calls of a proxy, counted by `strace` over an exact number of requests.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time limit for attaching.
const ATTACH: Duration = Duration::from_secs(20);

const LOOK: Duration = Duration::from_millis(5);

/// System calls by name: their number, and the number of failed ones (mostly with EAGAIN).
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Calls(pub(crate) BTreeMap<String, (f64, f64)>);

impl Calls {
    /// Parses the table of `strace -c`.
    fn of_table(table: &str) -> Self {
        let calls = table.lines().filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let (calls, errors, name) = match words[..] {
                [_, _, _, calls, name] => (calls, "0", name),
                [_, _, _, calls, errors, name] => (calls, errors, name),
                _ => return None,
            };
            if name == "total" {
                return None;
            }
            Some((name.to_owned(), (calls.parse().ok()?, errors.parse().ok()?)))
        });
        Self(calls.collect())
    }

    pub(crate) fn per_request(mut self, requests: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a count of ten thousand")]
        let requests = requests as f64;
        for (calls, errors) in self.0.values_mut() {
            *calls /= requests;
            *errors /= requests;
        }
        self
    }

    pub(crate) fn total(&self) -> f64 {
        self.0.values().map(|(calls, _)| calls).sum()
    }

    pub(crate) fn failed(&self) -> f64 {
        self.0.values().map(|(_, errors)| errors).sum()
    }
}

impl fmt::Display for Calls {
    /// The total, and each call made at least once in a hundred requests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2} system calls per request, {:.2} of them in vain",
            self.total(),
            self.failed()
        )?;
        let mut often: Vec<_> = self
            .0
            .iter()
            .filter(|(_, (calls, _))| *calls >= 0.01)
            .collect();
        often.sort_by(|(_, (a, _)), (_, (b, _))| b.total_cmp(a));
        for (number, (name, (calls, _))) in often.into_iter().enumerate() {
            let before = if number == 0 { ": " } else { ", " };
            write!(f, "{before}{name} {calls:.2}")?;
        }
        Ok(())
    }
}

/// An attached tracer. Dropping it detaches.
pub(crate) struct Trace {
    strace: Child,
    table: PathBuf,
}

impl Trace {
    /// Attaches to all threads of these processes, and returns when all of them are counted.
    pub(crate) fn begin(
        strace: &Path,
        processes: &[u32],
        directory: &Path,
    ) -> Result<Self, String> {
        let table = directory.join("strace.txt");
        let mut command = Command::new(strace);
        command.args(["-c", "-f", "-qq", "-o"]).arg(&table);
        for id in processes {
            command.args(["-p", &id.to_string()]);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let strace = command
            .spawn()
            .map_err(|error| format!("strace: {error}"))?;
        let mut trace = Self { strace, table };
        let start = Instant::now();
        while !processes.iter().all(|id| is_traced(*id)) {
            if let Ok(Some(status)) = trace.strace.try_wait() {
                return Err(format!("strace has ended ({status}): may it trace?"));
            }
            if start.elapsed() > ATTACH {
                return Err("strace does not attach".to_owned());
            }
            thread::park_timeout(LOOK);
        }
        Ok(trace)
    }

    /// Detaches, and returns the counts.
    pub(crate) fn end(mut self) -> Result<Calls, String> {
        self.interrupt();
        let _ = self.strace.wait();
        let table =
            fs::read_to_string(&self.table).map_err(|error| format!("strace's table: {error}"))?;
        Ok(Calls::of_table(&table))
    }

    fn interrupt(&self) {
        if let Some(id) = i32::try_from(self.strace.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(id, Signal::INT);
        }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if matches!(self.strace.try_wait(), Ok(None)) {
            self.interrupt();
            let _ = self.strace.wait();
        }
    }
}

/// Returns true if every thread of a process has a tracer.
fn is_traced(process: u32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else {
        return false;
    };
    tasks.flatten().all(|task| {
        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
        let tracer = status
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|tracer| tracer.trim() != "0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_with_and_without_errors() {
        let table = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.012000           1     20000           sendto
 35.00    0.007000           1     30000     10000 recvfrom
  5.00    0.001000           2       600           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.020000           1     50600     10000 total
";
        let calls = Calls::of_table(table).per_request(10_000);
        assert_eq!(calls.0.len(), 3);
        assert!((calls.total() - 5.06).abs() < 1e-9);
        assert!((calls.failed() - 1.0).abs() < 1e-9);
        assert_eq!(
            calls.to_string(),
            "5.06 system calls per request, 1.00 of them in vain: recvfrom 3.00, sendto 2.00, epoll_wait 0.06"
        );
    }
}
