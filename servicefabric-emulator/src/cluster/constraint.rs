//! Placement constraints: the nodes on which a service may be.

use super::entity::Node;
use super::error::FabricError;

/// The maximum length of an expression, in bytes.
const MAX_LENGTH: usize = 4096;

/// The maximum number of alternatives after an expression's parentheses are resolved.
const MAX_ALTERNATIVES: usize = 256;

/// The maximum nesting of parentheses.
const MAX_DEPTH: usize = 16;

/// An expression such as `NodeType == Front && Disk != Slow || NodeName == _Node_0`.
///
/// Comparisons are `==` and `!=`, between a property of the node and a text. `&&` binds tighter than `||`,
/// and parentheses come first. `NodeType`, `NodeName`, `FaultDomain` and `UpgradeDomain` are properties of
/// every node. A missing property differs from every text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constraint {
    /// The alternatives, one of which must hold. Empty: any node.
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Comparison {
    property: String,
    value: String,
    equal: bool,
}

impl Constraint {
    /// Parses an expression. An empty one is satisfied by every node.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG`, with the expected syntax.
    pub(crate) fn parse(text: &str) -> Result<Self, FabricError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        if text.len() > MAX_LENGTH {
            return Err(FabricError::invalid_argument(
                "placement constraints have at most 4096 bytes",
            ));
        }
        Ok(Self {
            alternatives: alternatives(text, 0)?,
        })
    }

    /// Returns true if a node satisfies the constraint.
    pub(crate) fn admits(&self, node: &Node) -> bool {
        let mut alternatives = self.alternatives.iter();
        self.alternatives.is_empty()
            || alternatives.any(|all| all.iter().all(|comparison| comparison.admits(node)))
    }
}

/// Returns the alternatives of an expression: lists of comparisons that must all hold.
fn alternatives(text: &str, depth: usize) -> Result<Vec<Vec<Comparison>>, FabricError> {
    let mut alternatives = Vec::new();
    for all in split(text, "||")? {
        // The parentheses are multiplied out: `combined` has every combination of their alternatives.
        let mut combined = vec![Vec::new()];
        for part in split(all, "&&")? {
            let part = part.trim();
            let inner = part
                .strip_prefix('(')
                .and_then(|rest| rest.strip_suffix(')'));
            let options = match inner {
                Some(_) if depth == MAX_DEPTH => return Err(too_complex()),
                Some(inner) => self::alternatives(inner, depth + 1)?,
                None => vec![vec![Comparison::parse(part)?]],
            };
            if combined.len() * options.len() > MAX_ALTERNATIVES {
                return Err(too_complex());
            }
            let both = |before: &Vec<Comparison>, option: &Vec<Comparison>| {
                before.iter().chain(option).cloned().collect()
            };
            let each = |before| options.iter().map(move |option| both(before, option));
            combined = combined.iter().flat_map(each).collect();
        }
        alternatives.extend(combined);
        if alternatives.len() > MAX_ALTERNATIVES {
            return Err(too_complex());
        }
    }
    Ok(alternatives)
}

/// Splits a text at an operator outside parentheses.
fn split<'a>(text: &'a str, operator: &str) -> Result<Vec<&'a str>, FabricError> {
    let (mut parts, mut begin, mut open) = (Vec::new(), 0, 0_usize);
    for (at, character) in text.char_indices() {
        match character {
            '(' => open += 1,
            ')' => open = open.checked_sub(1).ok_or_else(unbalanced)?,
            _ if open == 0 && at >= begin && text[at..].starts_with(operator) => {
                parts.push(&text[begin..at]);
                begin = at + operator.len();
            }
            _ => {}
        }
    }
    if open > 0 {
        return Err(unbalanced());
    }
    parts.push(&text[begin..]);
    Ok(parts)
}

fn unbalanced() -> FabricError {
    FabricError::invalid_argument("the parentheses of the placement constraints do not match")
}

fn too_complex() -> FabricError {
    FabricError::invalid_argument(format!(
        "placement constraints have at most {MAX_ALTERNATIVES} alternatives, and {MAX_DEPTH} parentheses inside of each other"
    ))
}

impl Comparison {
    fn parse(text: &str) -> Result<Self, FabricError> {
        let (operator, equal) = if text.contains("!=") {
            ("!=", false)
        } else {
            ("==", true)
        };
        let sides = text.split_once(operator);
        let (property, value) = sides.map_or(("", ""), |(left, right)| (left.trim(), right.trim()));
        let value = value.trim_matches(['\'', '"']);
        let odd = |side: &str| side.is_empty() || side.contains(['(', ')', '=', '<', '>', '!']);
        if odd(property) || odd(value) {
            let shown: String = text.trim().chars().take(120).collect();
            return Err(FabricError::invalid_argument(format!(
                "'{shown}' is not a comparison; write for example NodeType == Front, joined by && and ||"
            )));
        }
        Ok(Self {
            property: property.to_owned(),
            value: value.to_owned(),
            equal,
        })
    }

    fn admits(&self, node: &Node) -> bool {
        let found = match self.property.as_str() {
            "NodeType" => Some(node.node_type.as_str()),
            "NodeName" => Some(&*node.name),
            "FaultDomain" => Some(node.fault_domain.as_str()),
            "UpgradeDomain" => Some(node.upgrade_domain.as_str()),
            property => {
                let mut properties = node.properties.iter();
                let found = properties.find(|(name, _)| name == property);
                found.map(|(_, value)| value.as_str())
            }
        };
        // A property that the node lacks is unequal to every value.
        (found == Some(self.value.as_str())) == self.equal
    }
}

/// Checks that a placement constraint can be parsed.
pub(crate) fn check_constraints(text: &str) -> Result<(), FabricError> {
    Constraint::parse(text).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::testing::node;

    #[test]
    fn expressions_choose_nodes() {
        let mut front = node("_Node_0");
        front.node_type = "Front".to_owned();
        front
            .properties
            .push(("Disk".to_owned(), "Fast".to_owned()));
        for (text, expected) in [
            ("", true),
            ("NodeType == Front", true),
            ("NodeType==Back", false),
            ("NodeType != Back", true),
            ("NodeType == 'Front' && Disk == \"Fast\"", true),
            ("NodeType == Front && Disk == Slow", false),
            (
                "NodeType == Front && Disk == Slow || NodeName == _Node_0",
                true,
            ),
            ("Memory == Much", false),
            ("Memory != Much", true),
            ("(NodeType == Front)", true),
            ("((NodeType == Front) && (Disk == Slow))", false),
            ("NodeType == Front && (Disk == Slow || Disk == Fast)", true),
            (
                "(NodeType == Back || NodeName == _Node_0) && Disk == Slow",
                false,
            ),
            (
                "NodeType == Back && Disk == Fast || (NodeName == _Node_0)",
                true,
            ),
        ] {
            let constraint = Constraint::parse(text).unwrap();
            assert_eq!(constraint.admits(&front), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_comparison_is_rejected() {
        for text in [
            "NodeType",
            "NodeType ==",
            "== Front",
            "NodeType == Front &&",
            "(A == B",
            "A == B)",
            ")A == B(",
            "()",
            "(A == B) C",
            "A = B",
            "A <= B",
        ] {
            assert!(Constraint::parse(text).is_err(), "{text}");
        }
        let wide = ["(A == B || C == D)"; 9].join(" && ");
        assert!(Constraint::parse(&wide).is_err(), "512 alternatives");
        let deep = "(".repeat(17) + "A == B" + &")".repeat(17);
        assert!(Constraint::parse(&deep).is_err());
    }
}
