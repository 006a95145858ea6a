//! What a workload of a server sends, where that is more than the same request again and again.

use serde::{Deserialize, Serialize};

use crate::{RequestOrder, RowOrder};

/// A request before its random number is put in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestTemplate {
    /// Method.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers beside `Host` and `Content-Length`, in order.
    pub headers: Vec<(String, String)>,
    /// Body; empty: none.
    pub body: String,
}

/// Several requests, a file of them, users that do steps, or requests whose fields are filled in anew each time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedSource {
    /// The requests, one by one; empty: those of `file`, or of `scenario`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<PlannedRequest>,
    /// What users do, whose steps are sent in place of requests of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<PlannedScenario>,
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
    /// Requests that differ; of an access log those that do; of a scenario its steps.
    pub count: u64,
    /// The order in which they are sent.
    pub order: RequestOrder,
    /// The CSV file whose columns are fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<SourceFile>,
    /// The row that a request gets.
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
    /// Whether answers are asked for with a content coding, and decoded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compressed: bool,
    /// Redirects that are followed in a row; 0: they are answers like others.
    #[serde(default, skip_serializing_if = "is_no_count")]
    pub follow: u32,
    /// Whether files may lie outside of `dir`, and be of any size.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub files_anywhere: bool,
    /// Absolute folder that the paths of the files count from. It is where this machine has them, and no part of what is
    /// asked.
    pub dir: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_no_count(count: &u32) -> bool {
    *count == 0
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

/// What users of a workload do, as a plan names it: the file, and its steps without what trials fill in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedScenario {
    /// Its file.
    pub file: SourceFile,
    /// What a user may do, in the order of the file.
    pub flows: Vec<PlannedFlow>,
}

/// A course of steps in a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedFlow {
    /// Its name.
    pub name: String,
    /// How often it is drawn beside the others.
    pub weight: u32,
    /// Its steps in their order.
    pub steps: Vec<PlannedStep>,
}

/// A step in a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// Its name.
    pub name: String,
    /// Method.
    pub method: String,
    /// Path and query as the file has them: neither fields nor `{env:NAME}` are filled in.
    pub path: String,
}

impl PlannedScenario {
    /// The names of all steps, each with that of its flow.
    pub fn names(&self) -> Vec<(&str, &str)> {
        let mut names = Vec::new();
        for flow in &self.flows {
            names.extend(flow.steps.iter().map(|step| (&*flow.name, &*step.name)));
        }
        names
    }
}
