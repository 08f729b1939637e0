//! Problems of the members of a service, limited in number.

use proxy_model::{Problem, Problems, pointer_to};

use super::shown::shown;
use super::tags::TagError;
use crate::member::Member;

/// Maximum number of problems of one service. A template that all its nodes share can be wrong on all of
/// them.
const MOST: usize = 100;

/// Names of nodes are not cut off in pointers up to here.
const LONGEST_NAME: usize = 256;

/// Collects problems.
#[derive(Debug, Default)]
pub(super) struct CollectedProblems {
    problems: Vec<Problem>,
    more: usize,
}

impl CollectedProblems {
    /// Adds a problem of a member's tag.
    pub(super) fn tag(&mut self, member: &Member, tag: &str, code: &'static str, message: &str) {
        let pointer = pointer_to(&pointer_to(&pointer_of(member), "tags"), tag);
        self.push(Problem::warning(pointer, code, about(member, message)));
    }

    /// Adds a problem of the value of a member's tag, and its effect.
    pub(super) fn value(&mut self, member: &Member, error: &TagError, outcome: &str) {
        let pointer = pointer_to(&pointer_to(&pointer_of(member), "tags"), error.tag());
        let message = about(member, &format!("{error}; {outcome}"));
        let mut problem = Problem::warning(pointer, error.code(), message);
        problem.suggestion = error.suggestion().map(str::to_owned);
        self.push(problem);
    }

    /// Adds a problem of a member's address.
    pub(super) fn address(&mut self, member: &Member, code: &'static str, message: &str) {
        let pointer = pointer_to(&pointer_of(member), "address");
        self.push(Problem::warning(pointer, code, about(member, message)));
    }

    pub(super) fn push(&mut self, problem: Problem) {
        if self.problems.len() < MOST {
            self.problems.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// Returns all problems, with the number of further ones.
    pub(super) fn into_problems(self) -> Problems {
        let mut problems = Problems::from(self.problems);
        if self.more > 0 {
            let message = format!("{} more problems are not shown", self.more);
            problems.push(Problem::warning("", "too_many_problems", message));
        }
        problems
    }
}

fn pointer_of(member: &Member) -> String {
    let name = &*member.name;
    if name.len() <= LONGEST_NAME {
        return pointer_to("/members", name);
    }
    let mut end = LONGEST_NAME;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    pointer_to("/members", &format!("{}…", &name[..end]))
}

fn about(member: &Member, message: &str) -> String {
    format!("node `{}`: {message}", shown(member.name.as_bytes()))
}
