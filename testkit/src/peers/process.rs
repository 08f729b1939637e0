use std::process::ExitStatus;

use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::captured::Captured;
use crate::tasks::Tasks;
use crate::time::guarded;

/// Starts a command that stays.
///
/// # Panics
///
/// Outside a tokio runtime; when it cannot be started.
#[track_caller]
pub fn spawn(mut command: Command) -> PeerProcess {
    let shown = format!("{:?}", command.as_std());
    let mut group = start(&mut command);
    let captured = Captured::default();
    let tasks = Tasks::new();
    if let Some(stdout) = group.stdout() {
        tasks.spawn(captured.read(stdout));
    }
    if let Some(stderr) = group.stderr() {
        tasks.spawn(captured.read(stderr));
    }
    PeerProcess {
        shown,
        group,
        captured,
        _tasks: tasks,
    }
}

/// A running program. When this is dropped, it is killed, and all processes that it started with it.
///
/// It has a process group of its own, so that its children can be found; a Ctrl-C in the terminal does not reach it, only
/// the end of the test does.
#[derive(Debug)]
#[must_use = "the program is killed when this is dropped"]
pub struct PeerProcess {
    shown: String,
    group: Group,
    captured: Captured,
    _tasks: Tasks,
}

impl PeerProcess {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.group.id
    }

    /// What it has written so far to both of its output streams.
    pub fn output(&self) -> String {
        self.captured.text()
    }

    /// Waits until its output contains `pattern`.
    ///
    /// # Panics
    ///
    /// With all output, when it ends before that, or does not write it within [`GUARD`](crate::time::GUARD).
    pub async fn wait_for_output(&mut self, pattern: &str) {
        let captured = self.captured.clone();
        let found = guarded(format!("\"{pattern}\" from {}", self.shown), async {
            tokio::select! {
                found = captured.wait_for(pattern) => found,
                // What was written just before the end may still have to be read.
                _ = self.group.wait() => captured.wait_for(pattern).await,
            }
        });
        if !found.await {
            let status = self.wait().await;
            let (shown, output) = (&self.shown, self.output());
            panic!("{shown} ended ({status}) without \"{pattern}\":\n{output}");
        }
    }

    /// Asks it to end (SIGTERM).
    pub fn terminate(&self) {
        self.group.signal(Signal::Terminate);
    }

    /// Asks it to end as Ctrl-C does (SIGINT).
    pub fn interrupt(&self) {
        self.group.signal(Signal::Interrupt);
    }

    /// Asks it to read its configuration again, or whatever else it does on SIGHUP.
    pub fn hang_up(&self) {
        self.group.signal(Signal::HangUp);
    }

    /// Sends it SIGUSR1.
    pub fn user_defined_1(&self) {
        self.group.signal(Signal::UserDefined1);
    }

    /// Sends it SIGUSR2.
    pub fn user_defined_2(&self) {
        self.group.signal(Signal::UserDefined2);
    }

    /// Sends it SIGALRM.
    pub fn alarm(&self) {
        self.group.signal(Signal::Alarm);
    }

    /// Freezes it (SIGSTOP): its connections stay, and nothing answers.
    pub fn suspend(&self) {
        self.group.signal(Signal::Suspend);
    }

    /// Lets it go on after [`suspend`](Self::suspend) (SIGCONT).
    pub fn resume(&self) {
        self.group.signal(Signal::Resume);
    }

    /// Kills it and its children (SIGKILL) and waits for its end.
    pub async fn kill(&mut self) {
        self.group.kill_all();
        self.wait().await;
    }

    /// Waits for its end; panics after [`GUARD`](crate::time::GUARD).
    ///
    /// Cancel safety: may be called again.
    #[track_caller]
    pub fn wait(&mut self) -> impl Future<Output = ExitStatus> {
        let what = format!("the end of {}", self.shown);
        guarded(what, self.group.wait())
    }

    /// As [`wait`](Self::wait), and returns all that it has written.
    #[track_caller]
    pub fn wait_with_output(&mut self) -> impl Future<Output = (ExitStatus, String)> {
        let what = format!("the end of {}", self.shown);
        guarded(what, async {
            let status = self.group.wait().await;
            (status, self.captured.whole().await)
        })
    }
}

/// A child and whatever it started.
#[derive(Debug)]
pub(super) struct Group {
    child: Child,
    id: u32,
    /// Whether the program was waited for and the rest of its group killed: its id may belong to somebody else by now.
    gone: bool,
}

/// Starts a command in a process group of its own.
#[track_caller]
pub(super) fn start(command: &mut Command) -> Group {
    #[cfg(unix)]
    command.process_group(0);
    match command.spawn() {
        Ok(child) => {
            let id = child.id().expect("it was not waited for yet");
            Group {
                child,
                id,
                gone: false,
            }
        }
        Err(error) => panic!("cannot start {:?}: {error}", command.as_std()),
    }
}

impl Group {
    pub(super) fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    pub(super) fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    pub(super) async fn wait(&mut self) -> ExitStatus {
        let ended = self.child.wait().await;
        // What it started and left behind may hold its output open.
        self.kill_all();
        self.gone = true;
        ended.expect("nobody else waits for this child")
    }

    /// Signals the program itself, not its children: what they are told is its own affair.
    #[cfg(unix)]
    fn signal(&self, signal: Signal) {
        if !self.gone {
            let _ = rustix::process::kill_process(self.unix_id(), signal.unix());
        }
    }

    #[cfg(not(unix))]
    fn signal(&self, signal: Signal) {
        panic!("{signal:?} exists on Unix only");
    }

    #[cfg(unix)]
    fn kill_all(&mut self) {
        if !self.gone {
            // An error means that nobody is left.
            let _ =
                rustix::process::kill_process_group(self.unix_id(), rustix::process::Signal::KILL);
        }
    }

    #[cfg(not(unix))]
    fn kill_all(&mut self) {
        let _ = self.child.start_kill();
    }

    #[cfg(unix)]
    fn unix_id(&self) -> rustix::process::Pid {
        i32::try_from(self.id)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .expect("the kernel gave this id")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill_all();
    }
}

#[derive(Clone, Copy, Debug)]
enum Signal {
    Terminate,
    Interrupt,
    HangUp,
    UserDefined1,
    UserDefined2,
    Alarm,
    Suspend,
    Resume,
}

#[cfg(unix)]
impl Signal {
    fn unix(self) -> rustix::process::Signal {
        match self {
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Interrupt => rustix::process::Signal::INT,
            Self::HangUp => rustix::process::Signal::HUP,
            Self::UserDefined1 => rustix::process::Signal::USR1,
            Self::UserDefined2 => rustix::process::Signal::USR2,
            Self::Alarm => rustix::process::Signal::ALARM,
            Self::Suspend => rustix::process::Signal::STOP,
            Self::Resume => rustix::process::Signal::CONT,
        }
    }
}
