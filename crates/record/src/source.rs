//! What a workload of a server sends, where that is more than the same request again and again.

use serde::{Deserialize, Serialize};

use crate::{RequestOrder, RequestTemplate, RowOrder};

/// Several requests, a file of them, or requests whose fields are filled in anew each time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedSource {
    /// The requests, one by one; empty: those of `file`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<PlannedRequest>,
    /// The file of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<SourceFile>,
    /// Its format: `urls`, `json-lines`, `vegeta`, `curl`, `har` or `access-log`; empty without it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format: String,
    /// Files whose contents are bodies of its requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<SourceFile>,
    /// Headers that are added to each request of `file`, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Requests that differ; of an access log those that do.
    pub count: u64,
    /// In which order they are sent.
    pub order: RequestOrder,
    /// The CSV file whose columns are fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<SourceFile>,
    /// Which row a request gets.
    #[serde(default)]
    pub data_order: RowOrder,
    /// `NAME:PASSWORD` of basic authentication, `{env:NAME}` not filled in; empty: none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Token of bearer authentication, likewise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bearer: String,
    /// Whether each connection keeps the cookies that the server sets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cookies: bool,
    /// Absolute folder that the paths of the files count from. It is where this machine has them, and no part of what is
    /// asked.
    pub dir: String,
}

/// One request of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedRequest {
    /// The request, its fields not filled in.
    #[serde(flatten)]
    pub request: RequestTemplate,
    /// How often it is drawn beside the others, where the order is random; 0: as 1.
    #[serde(default)]
    pub weight: u32,
}

/// A file that says what is sent.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
pub struct SourceFile {
    /// Its path as the experiment, or the file that names it, has it.
    pub path: String,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}
