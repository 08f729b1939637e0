//! The execution of a script.

use super::outcome::{Entry, Rejected, State, Timeline};
use super::script::{Script, Step};
use crate::hosting::{Node, Timestamp};

/// The maximum number of lines of a log. A script that exceeds it is stopped.
const MAX_LOG: usize = 100_000;
/// The maximum number of timers that may fire.
const MAX_STEPS: u32 = 1_000_000;

impl Script {
    /// Runs the script from 0 to its end, in virtual time. The same script gives the same timeline, byte for
    /// byte.
    ///
    /// A rejected instruction (such as closing an unknown replica) is part of the log. A script that leads to
    /// more than 100,000 events, or a million timers, is cut off, and the timeline records that.
    pub fn run(&self) -> Timeline {
        let mut run = Run {
            node: self.node(),
            timeline: Timeline::new(self),
            steps: 0,
        };
        let mut steps = self.steps.iter().peekable();
        let mut show = self.show.iter().copied().peekable();
        loop {
            let step_at = steps.peek().map(|step| step.at);
            let show_at = show.peek().copied();
            // Events at the time of a show are part of it.
            let done = match (step_at, show_at) {
                (Some(at), shown) if shown.is_none_or(|shown| at <= shown) => {
                    let step = steps.next().expect("it was peeked at");
                    run.pass(at).and_then(|()| run.instruct(step))
                }
                (_, Some(at)) => {
                    show.next();
                    run.pass(at)
                        .map(|()| run.timeline.states.push(State::of(&run.node)))
                }
                _ => break,
            };
            if done.is_none() {
                return run.timeline;
            }
        }
        let _ = run.pass(self.until);
        run.timeline
    }
}

struct Run {
    node: Node,
    timeline: Timeline,
    steps: u32,
}

impl Run {
    /// Advances the time. `None`: too many timers have fired.
    fn pass(&mut self, to: Timestamp) -> Option<()> {
        while self.node.step(to) {
            self.steps += 1;
            self.take_events()?;
            if self.steps > MAX_STEPS {
                return self.cut_off();
            }
        }
        Some(())
    }

    fn instruct(&mut self, step: &Step) -> Option<()> {
        if let Err(error) = step.instruction.apply(&mut self.node) {
            self.timeline.log.push(Entry::Rejected(Rejected {
                at: step.at,
                rejected: error.to_string(),
            }));
        }
        self.take_events()
    }

    fn take_events(&mut self) -> Option<()> {
        let log = &mut self.timeline.log;
        log.extend(self.node.take_events().into_iter().map(Entry::Event));
        if log.len() > MAX_LOG {
            log.truncate(MAX_LOG);
            return self.cut_off();
        }
        Some(())
    }

    fn cut_off(&mut self) -> Option<()> {
        self.timeline.cut_off_at = Some(self.node.now());
        None
    }
}
