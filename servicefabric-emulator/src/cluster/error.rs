//! The error of a cluster that rejects a request.

use std::fmt;

/// The reason for a rejection, as Service Fabric reports it: a code for programs and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
#[non_exhaustive]
pub struct FabricError {
    /// The code, e.g. `FABRIC_E_APPLICATION_NOT_FOUND`.
    pub code: ErrorCode,
    /// The message: the error, and the entity that it concerns.
    pub message: String,
}

impl FabricError {
    /// Creates an error with this code and message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Creates an `E_INVALIDARG`: the request itself is wrong.
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidArgument, message)
    }
}

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $status:literal;)*) => {
        /// The error codes of the cluster.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the code as text, e.g. `FABRIC_E_TIMEOUT`.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// Returns the HTTP status of the REST gateway.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }
        }
    };
}

error_codes! {
    /// The request is malformed, or has an invalid value.
    InvalidArgument = "E_INVALIDARG", 400;
    /// The partition key does not fit the scheme of the service.
    InvalidPartitionKey = "FABRIC_E_INVALID_PARTITION_KEY", 400;
    /// The name is not a `fabric:` URI.
    InvalidNameUri = "FABRIC_E_INVALID_NAME_URI", 400;
    /// The address cannot be used.
    InvalidAddress = "FABRIC_E_INVALID_ADDRESS", 400;
    /// The application's type does not declare the service type.
    ServiceTypeNotRegistered = "FABRIC_E_SERVICE_TYPE_NOT_REGISTERED", 400;
    /// A required value is empty.
    ValueEmpty = "FABRIC_E_VALUE_EMPTY", 400;
    /// The operation exists for stateful services only.
    InvalidForStatelessServices = "FABRIC_E_INVALID_FOR_STATELESS_SERVICES", 400;
    /// The operation exists for stateless services only.
    InvalidForStatefulServices = "FABRIC_E_INVALID_FOR_STATEFUL_SERVICES", 400;
    /// The node is up, and must be down for the operation.
    NodeIsUp = "FABRIC_E_NODE_IS_UP", 400;
    /// No node of this name exists.
    NodeNotFound = "FABRIC_E_NODE_NOT_FOUND", 404;
    /// No application type of this name and version exists.
    ApplicationTypeNotFound = "FABRIC_E_APPLICATION_TYPE_NOT_FOUND", 404;
    /// No application of this name exists.
    ApplicationNotFound = "FABRIC_E_APPLICATION_NOT_FOUND", 404;
    /// The application type has no such service type.
    ServiceTypeNotFound = "FABRIC_E_SERVICE_TYPE_NOT_FOUND", 404;
    /// No service of this name exists.
    ServiceDoesNotExist = "FABRIC_E_SERVICE_DOES_NOT_EXIST", 404;
    /// No partition of this id exists.
    PartitionNotFound = "FABRIC_E_PARTITION_NOT_FOUND", 404;
    /// The partition has no such replica.
    ReplicaDoesNotExist = "FABRIC_E_REPLICA_DOES_NOT_EXIST", 404;
    /// The naming service has no such name.
    NameDoesNotExist = "FABRIC_E_NAME_DOES_NOT_EXIST", 404;
    /// The name has no such property.
    PropertyDoesNotExist = "FABRIC_E_PROPERTY_DOES_NOT_EXIST", 404;
    /// The application type has no such service manifest.
    ServiceManifestNotFound = "FABRIC_E_SERVICE_MANIFEST_NOT_FOUND", 404;
    /// The image store has no such file.
    FileNotFound = "FABRIC_E_FILE_NOT_FOUND", 404;
    /// The health store has no entity of this name or id.
    HealthEntityNotFound = "FABRIC_E_HEALTH_ENTITY_NOT_FOUND", 404;
    /// No such code package is deployed on the node.
    CodePackageNotFound = "FABRIC_E_CODE_PACKAGE_NOT_FOUND", 404;
    /// An application of this name already exists.
    ApplicationAlreadyExists = "FABRIC_E_APPLICATION_ALREADY_EXISTS", 409;
    /// The application is being upgraded already.
    ApplicationUpgradeInProgress = "FABRIC_E_APPLICATION_UPGRADE_IN_PROGRESS", 409;
    /// No upgrade of the application is in progress.
    ApplicationNotUpgrading = "FABRIC_E_APPLICATION_NOT_UPGRADING", 400;
    /// The application already has the version and parameters of the upgrade.
    ApplicationAlreadyInTargetVersion = "FABRIC_E_APPLICATION_ALREADY_IN_TARGET_VERSION", 409;
    /// A service of this name already exists.
    ServiceAlreadyExists = "FABRIC_E_SERVICE_ALREADY_EXISTS", 409;
    /// The type is provisioned in this version already.
    ApplicationTypeAlreadyExists = "FABRIC_E_APPLICATION_TYPE_ALREADY_EXISTS", 409;
    /// An application uses the type in this version.
    ApplicationTypeInUse = "FABRIC_E_APPLICATION_TYPE_IN_USE", 409;
    /// The naming service already has this name.
    NameAlreadyExists = "FABRIC_E_NAME_ALREADY_EXISTS", 409;
    /// The name has names or properties below it, or is that of a service or an application.
    NameNotEmpty = "FABRIC_E_NAME_NOT_EMPTY", 409;
    /// A condition of a batch of property operations failed.
    PropertyCheckFailed = "FABRIC_E_PROPERTY_CHECK_FAILED", 409;
    /// The report is older than the one in the health store.
    HealthStaleReport = "FABRIC_E_HEALTH_STALE_REPORT", 409;
    /// Too many health reports.
    HealthMaxReportsReached = "FABRIC_E_HEALTH_MAX_REPORTS_REACHED", 409;
    /// The request names another instance than the one that runs.
    InstanceIdMismatch = "FABRIC_E_INSTANCE_ID_MISMATCH", 409;
    /// The value exceeds its limit.
    ValueTooLarge = "FABRIC_E_VALUE_TOO_LARGE", 413;
    /// Any other failure.
    Fail = "E_FAIL", 500;
    /// The emulator lacks this part of a cluster.
    NotImplemented = "E_NOTIMPL", 501;
    /// Too few replicas are up for a write.
    NoWriteQuorum = "FABRIC_E_NO_WRITE_QUORUM", 503;
    /// The replica is not the primary.
    NotPrimary = "FABRIC_E_NOT_PRIMARY", 503;
    /// The partition is not ready yet.
    NotReady = "FABRIC_E_NOT_READY", 503;
    /// The partition is electing a new primary.
    ReconfigurationPending = "FABRIC_E_RECONFIGURATION_PENDING", 503;
    /// No endpoint of the service is known.
    ServiceOffline = "FABRIC_E_SERVICE_OFFLINE", 503;
    /// The operation was aborted.
    Abort = "E_ABORT", 503;
    /// The operation timed out.
    Timeout = "FABRIC_E_TIMEOUT", 504;
    /// Another part of the cluster could not be reached.
    CommunicationError = "FABRIC_E_COMMUNICATION_ERROR", 504;
    /// The operation is not complete yet.
    OperationNotComplete = "FABRIC_E_OPERATION_NOT_COMPLETE", 504;
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
