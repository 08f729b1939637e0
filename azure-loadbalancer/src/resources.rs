//! The resources of Azure's resource manager that are read and written.
