//! The allocator of the program: mimalloc, which gives memory back to the system.
//!
//! After a wave of slow clients the C library's allocator keeps their memory: long-lived blocks lie between
//! the freed ones.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Time for which an idle thread for blocking work is kept. No other thread can use memory that it has freed, and the
/// next configuration is compiled on another thread. 100 ms.
pub(crate) const IDLE_THREADS: Duration = Duration::from_millis(100);

/// Interval between two looks for freed memory. 1 s.
const EVERY: Duration = Duration::from_secs(1);

/// A size above the threshold at which the allocator returns memory at once.
const LARGE: usize = 32 << 20;

/// Gives freed memory back to the system. The allocator does so one second after it was freed, but it looks for such
/// memory only on a large allocation, or when a thread needs another page: an idle program would keep what its last
/// requests needed.
pub(crate) async fn give_back() -> Infallible {
    loop {
        tokio::time::sleep(EVERY).await;
        look();
    }
}

/// Triggers the allocator's check by an allocation that is never touched.
fn look() {
    let mut large = Vec::<u8>::new();
    // Where there is not so much, nothing is lost.
    let _ = black_box(large.try_reserve_exact(LARGE));
    drop(black_box(large));
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
    use std::thread;

    use super::*;

    /// Resident memory of the process in KiB.
    fn resident() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.unwrap().split_whitespace().nth(1);
        number.unwrap().parse().unwrap()
    }

    fn pause(millis: u64) {
        thread::park_timeout(Duration::from_millis(millis));
    }

    /// Allocates like clients that do not read: buffers of 64 KiB, others of all sizes beside them, and few
    /// that stay.
    fn wave(kept: &mut Vec<Vec<u8>>, peak: &AtomicU64) {
        let mut held = Vec::new();
        for _ in 0..300 {
            for _ in 0..8 {
                held.push(vec![1_u8; fastrand::usize(64..2000)]);
            }
            held.push(vec![1; fastrand::usize(8192..16_384)]);
            held.push(vec![1; 64 * 1024]);
            if fastrand::u8(..) < 12 {
                kept.push(vec![2; fastrand::usize(100..700)]);
            }
        }
        peak.fetch_max(resident(), SeqCst);
        drop(black_box(held));
    }

    /// Idle threads allocate nothing, so they give nothing back by themselves.
    #[test]
    fn what_idle_threads_have_freed_is_given_back() {
        const THREADS: usize = 4;
        let begin = resident();
        let (busy, peak) = (AtomicUsize::new(THREADS), AtomicU64::new(0));
        let left = thread::scope(|scope| {
            let idle: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        wave(&mut Vec::new(), &peak);
                        busy.fetch_sub(1, SeqCst);
                        while busy.load(SeqCst) < THREADS {
                            thread::park();
                        }
                    })
                })
                .collect();
            while busy.load(SeqCst) > 0 {
                pause(10);
            }
            let enough = begin + (peak.load(SeqCst) - begin) / 2;
            for _ in 0..300 {
                look();
                if resident() < enough {
                    break;
                }
                pause(100);
            }
            let left = resident();
            busy.store(THREADS, SeqCst);
            for thread in idle {
                thread.thread().unpark();
            }
            left
        });
        let (taken, left) = (peak.into_inner() - begin, left.saturating_sub(begin));
        assert!(left * 2 < taken, "{left} of {taken} KiB are left");
    }

    #[test]
    fn memory_is_given_back_after_waves_of_slow_clients() {
        const THREADS: usize = 4;
        let begin = resident();
        let (busy, peak) = (AtomicUsize::new(THREADS), AtomicU64::new(0));
        let left = thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let mut kept = Vec::new();
                    for _ in 0..10 {
                        wave(&mut kept, &peak);
                        pause(20);
                    }
                    busy.fetch_sub(1, SeqCst);
                    // A worker then continues with little.
                    while busy.load(SeqCst) < THREADS {
                        drop(black_box(vec![1_u8; fastrand::usize(64..9000)]));
                        pause(10);
                    }
                });
            }
            while busy.load(SeqCst) > 0 {
                pause(10);
            }
            // The allocator waits for a second, and for the threads to allocate enough.
            let enough = begin + (peak.load(SeqCst) - begin) / 2;
            for _ in 0..400 {
                if resident() < enough {
                    break;
                }
                pause(100);
            }
            let left = resident();
            busy.store(THREADS, SeqCst);
            left
        });
        let (taken, left) = (peak.into_inner() - begin, left.saturating_sub(begin));
        assert!(left * 2 < taken, "{left} of {taken} KiB are left");
    }
}
