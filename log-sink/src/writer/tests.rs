use std::io::{ErrorKind, Write};
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;

use super::*;

/// A guard against hanging.
const LONG: Duration = Duration::from_secs(60);

/// A disk that takes this number of bytes and is full then.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

impl Disk {
    fn with_room(room: usize) -> Self {
        Self(Arc::new(Mutex::new((Vec::new(), room))))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().0.clone()).unwrap()
    }

    fn make_room(&self) {
        self.0.lock().1 = usize::MAX;
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut disk = self.0.lock();
        let taken = bytes.len().min(disk.1);
        if taken == 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        disk.1 -= taken;
        disk.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An output that reports each write, and waits for permission.
struct Gate {
    entered: Sender<()>,
    open: Receiver<()>,
    disk: Disk,
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The receiver is gone when the test is over.
        let _ = self.entered.send(());
        // Disconnected: open for good.
        let _ = self.open.recv();
        self.disk.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The events of a log, as text.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    fn sink(&self) -> impl FnMut(Event<'_>) + Send + use<> {
        let events = self.clone();
        move |event| {
            let text = match event {
                Event::Failed(error) => format!("failed: {:?}", error.kind()),
                Event::Recovered => "recovered".to_owned(),
                Event::Dropped(lines) => format!("dropped {lines}"),
                Event::Reopened => "reopened".to_owned(),
                Event::NotReopened(error) => format!("not reopened: {:?}", error.kind()),
            };
            events.0.lock().push(text);
        }
    }
}

fn log(output: Output, events: &Events) -> LogWriter {
    LogWriter::start("a test", output, Capacity::default(), events.sink()).unwrap()
}

#[test]
fn lines_are_written_in_order() {
    let (disk, events) = (Disk::with_room(usize::MAX), Events::default());
    let log = log(Output::stream(disk.clone()), &events);
    for line in [&b"one\n"[..], b"two\n", b"three\n"] {
        assert!(log.write(line));
    }
    assert!(log.flush(LONG));
    assert_eq!(disk.text(), "one\ntwo\nthree\n");
    assert_eq!(events.all(), <[String; 0]>::default());
}

#[test]
fn a_blocked_output_costs_lines_and_no_time() {
    let (entered, writing) = channel();
    let (open, gate) = channel();
    let disk = Disk::with_room(usize::MAX);
    let gate = Gate {
        entered,
        open: gate,
        disk: disk.clone(),
    };
    let events = Events::default();
    let capacity = Capacity {
        lines: 2,
        bytes: 10,
    };
    let output = Output::stream(gate);
    let log = LogWriter::start("a test", output, capacity, events.sink()).unwrap();
    assert!(log.write(*b"1\n"));
    writing.recv().unwrap();
    // The thread has the first line. Two more may wait.
    let taken = [log.write(*b"2\n"), log.write(*b"3\n"), log.write(*b"4\n")];
    assert_eq!(taken, [true, true, false]);
    assert!(!log.flush(Duration::from_millis(10)), "it cannot be done");
    assert_eq!(log.dropped(), 1);

    drop(open);
    assert!(log.flush(LONG));
    assert_eq!(disk.text(), "1\n2\n3\n");
    assert_eq!(events.all(), ["dropped 1"]);
}

#[test]
fn lines_have_a_limit_in_bytes() {
    let (entered, writing) = channel();
    let (_open, gate) = channel();
    let gate = Gate {
        entered,
        open: gate,
        disk: Disk::default(),
    };
    let capacity = Capacity {
        lines: 100,
        bytes: 10,
    };
    let output = Output::stream(gate);
    let log = LogWriter::start("a test", output, capacity, |_| {}).unwrap();
    log.write(*b"1\n");
    writing.recv().unwrap();
    let taken = [
        log.write(*b"longer than all may be\n"),
        log.write(*b"2\n"),
        log.write(*b"3\n"),
    ];
    assert_eq!(taken, [true, false, false]);
}

#[test]
fn a_full_disk_is_reported_once_and_tears_no_line() {
    let (disk, events) = (Disk::with_room(7), Events::default());
    let log = log(Output::stream(disk.clone()), &events);
    for line in [&b"one\n"[..], b"two two\n", b"three\n", b"four\n"] {
        log.write(line);
        assert_eq!(log.flush(LONG), line == b"one\n");
    }
    assert_eq!(disk.text(), "one\ntwo");
    assert_eq!(events.all(), ["failed: StorageFull"]);
    assert_eq!(log.dropped(), 2, "the torn line is not lost");

    disk.make_room();
    log.write(*b"five\n");
    assert!(log.flush(LONG));
    assert_eq!(disk.text(), "one\ntwo two\nfive\n");
    assert_eq!(
        events.all(),
        ["failed: StorageFull", "recovered", "dropped 2"]
    );
}

#[test]
fn a_file_that_is_truncated_does_not_begin_inside_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let output = Output::file(&path).unwrap();
    std::fs::write(&path, "one\ntwo").unwrap();
    let queue = Arc::new(Queue::new(Capacity::default()));
    let mut writing = Writing::new(output, queue, |_| {});
    writing.tear(b" two\n");
    std::fs::write(&path, "").unwrap();
    writing.write_lines([(*b"three\n").into()].into());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");

    std::fs::write(&path, "one\ntwo").unwrap();
    writing.tear(b" two\n");
    writing.write_lines([(*b"three\n").into()].into());
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "one\ntwo two\nthree\n"
    );
}

#[test]
fn a_file_is_appended_to_and_opened_again_under_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let rotated = folder.path().join("log.1");
    std::fs::write(&path, "before\n").unwrap();
    let events = Events::default();
    let log = log(Output::file(&path).unwrap(), &events);
    log.write(*b"one\n");
    assert!(log.flush(LONG));

    std::fs::rename(&path, &rotated).unwrap();
    log.reopen();
    log.write(*b"two\n");
    assert!(log.flush(LONG));
    assert_eq!(std::fs::read_to_string(&rotated).unwrap(), "before\none\n");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
    assert_eq!(events.all(), ["reopened"]);

    // Copied and truncated.
    std::fs::write(&path, "").unwrap();
    log.write(*b"three\n");
    assert!(log.flush(LONG));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
}

#[test]
fn a_file_that_cannot_be_opened_again_is_written_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let rotated = folder.path().join("log.1");
    let events = Events::default();
    let log = log(Output::file(&path).unwrap(), &events);
    std::fs::rename(&path, &rotated).unwrap();
    std::fs::create_dir(&path).unwrap();
    log.reopen();
    log.write(*b"one\n");
    assert!(log.flush(LONG));
    assert_eq!(std::fs::read_to_string(&rotated).unwrap(), "one\n");
    assert_eq!(events.all(), ["not reopened: IsADirectory"]);
}
