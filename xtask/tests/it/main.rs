//! The integration tests, in one program: each links the whole of the crate and its dependencies.

mod dependency_direction;
mod dependency_policy;
mod module_direction;
mod publishable;
mod source_policy;
mod yarp_cases;
