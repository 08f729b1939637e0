use std::process::ExitStatus;

use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::captured::Captured;
use crate::tasks::Tasks;
use crate::time::guarded;

/// Starts a command that keeps running.
///
/// # Panics
///
/// Panics outside a tokio runtime, or if it cannot be started.
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

/// A running program. Dropping it kills it and all processes that it started.
///
/// It has its own process group, so that its children can be found. A Ctrl-C in the terminal does
/// not reach it; the end of the test does.
#[derive(Debug)]
#[must_use = "the program is killed when this is dropped"]
pub struct PeerProcess {
    shown: String,
    group: Group,
    captured: Captured,
    _tasks: Tasks,
}

impl PeerProcess {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.group.id
    }

    /// The output so far, of both streams.
    pub fn output(&self) -> String {
        self.captured.text()
    }

    /// Waits until its output contains `pattern`.
    ///
    /// # Panics
    ///
    /// Panics with all output if it ends before that, or does not write it within
    /// [`GUARD`](crate::time::GUARD).
    pub async fn wait_for_output(&mut self, pattern: &str) {
        let captured = self.captured.clone();
        let found = guarded(format!("\"{pattern}\" from {}", self.shown), async {
            tokio::select! {
                found = captured.wait_for(pattern) => found,
                // Output written just before the end may still have to be read.
                _ = self.group.wait() => captured.wait_for(pattern).await,
            }
        });
        if !found.await {
            let status = self.wait().await;
            let (shown, output) = (&self.shown, self.output());
            panic!("{shown} ended ({status}) without \"{pattern}\":\n{output}");
        }
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.group.signal(Signal::Terminate);
    }

    /// Sends SIGINT, like Ctrl-C.
    pub fn interrupt(&self) {
        self.group.signal(Signal::Interrupt);
    }

    /// Sends SIGHUP, which reloads the configuration in many programs.
    pub fn hang_up(&self) {
        self.group.signal(Signal::HangUp);
    }

    /// Sends SIGUSR1.
    pub fn user_defined_1(&self) {
        self.group.signal(Signal::UserDefined1);
    }

    /// Sends SIGUSR2.
    pub fn user_defined_2(&self) {
        self.group.signal(Signal::UserDefined2);
    }

    /// Sends SIGALRM.
    pub fn alarm(&self) {
        self.group.signal(Signal::Alarm);
    }

    /// Suspends the process (SIGSTOP): its connections stay, and it does not respond.
    pub fn suspend(&self) {
        self.group.signal(Signal::Suspend);
    }

    /// Resumes the process after [`suspend`](Self::suspend) (SIGCONT).
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

    /// Like [`wait`](Self::wait), and returns the whole output.
    #[track_caller]
    pub fn wait_with_output(&mut self) -> impl Future<Output = (ExitStatus, String)> {
        let what = format!("the end of {}", self.shown);
        guarded(what, async {
            let status = self.group.wait().await;
            (status, self.captured.whole().await)
        })
    }
}

/// A child and its descendants.
#[derive(Debug)]
pub(super) struct Group {
    child: Child,
    id: u32,
    /// True once the program was waited for and the rest of its group killed: the id may be reused.
    gone: bool,
}

/// Starts a command in its own process group.
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
        // Remaining descendants may hold its output open.
        self.kill_all();
        self.gone = true;
        ended.expect("nobody else waits for this child")
    }

    /// Signals the program itself, not its children, which it manages itself.
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
            // An error means that no process is left.
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
