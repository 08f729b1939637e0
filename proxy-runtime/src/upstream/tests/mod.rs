mod scripted;
mod versions;

pub(super) use self::scripted::Scripted;
