//! Placement constraints: which nodes a service may be on.

use super::entity::Node;
use super::error::FabricError;

/// The longest expression that is read, in bytes.
const MAX_LENGTH: usize = 4096;

/// An expression such as `NodeType == Front && Disk != Slow || NodeName == _Node_0`.
///
/// Comparisons are `==` and `!=`, of a property of the node with a text; `&&` binds before `||`. There are no
/// parentheses. `NodeType`, `NodeName`, `FaultDomain` and `UpgradeDomain` are properties of every node; a node without a
/// property differs from every text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Constraint {
    /// One of these has to hold; any node fits when there is none.
    alternatives: Vec<Vec<Comparison>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Comparison {
    property: String,
    value: String,
    equal: bool,
}

impl Constraint {
    /// Reads an expression; an empty one holds for every node.
    ///
    /// # Errors
    ///
    /// `E_INVALIDARG`, with what was expected.
    pub(crate) fn parse(text: &str) -> Result<Self, FabricError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        if text.len() > MAX_LENGTH {
            return Err(FabricError::invalid_argument(
                "placement constraints have at most 4096 bytes",
            ));
        }
        let alternatives = text.split("||");
        let alternatives = alternatives.map(|all| all.split("&&").map(Comparison::parse).collect());
        Ok(Self {
            alternatives: alternatives.collect::<Result<_, _>>()?,
        })
    }

    /// Whether it holds for a node.
    pub(crate) fn admits(&self, node: &Node) -> bool {
        let mut alternatives = self.alternatives.iter();
        self.alternatives.is_empty()
            || alternatives.any(|all| all.iter().all(|comparison| comparison.admits(node)))
    }
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
        (found == Some(self.value.as_str())) == self.equal
    }
}

/// Whether an expression can be read.
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
        ] {
            let constraint = Constraint::parse(text).unwrap();
            assert_eq!(constraint.admits(&front), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_comparison_is_refused() {
        for text in [
            "NodeType",
            "NodeType ==",
            "== Front",
            "NodeType == Front &&",
            "(A == B)",
            "A = B",
            "A <= B",
        ] {
            assert!(Constraint::parse(text).is_err(), "{text}");
        }
    }
}
