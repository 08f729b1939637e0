//! The allocator of the program: mimalloc, which gives memory back to the system.
//!
//! After a wave of slow clients the C library's allocator keeps their memory: long-lived blocks lie between
//! the freed ones.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
    use std::thread;
    use std::time::Duration;

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
