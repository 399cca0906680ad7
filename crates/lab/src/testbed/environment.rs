use std::fs;

use serde_json::{Value, json};

use super::error::TestbedError;
use super::namespace::Namespace;

/// The machine that a run was made on.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The kernel: its release and version.
    kernel: String,
    processors: usize,
    mtu: u32,
    /// Parameters of the kernel that matter, as they were in the namespaces.
    parameters: Vec<(&'static str, String)>,
    /// Parameters that could not be set.
    pub(super) refused: Vec<&'static str>,
    /// Settings of the scenario that the kernel does not follow.
    pub(super) ignored: Vec<&'static str>,
    /// How late packets were released, towards the receivers and back.
    pub(super) lateness: Vec<Lateness>,
    /// Packets that the system did not take.
    pub(super) unsent: u64,
    /// Packets of no flow.
    pub(super) strangers: u64,
}

/// Microseconds, as they are recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lateness {
    median: u64,
    p99: u64,
    max: u64,
}

impl From<crate::lateness::Lateness> for Lateness {
    fn from(late: crate::lateness::Lateness) -> Self {
        Self {
            median: late.median.as_micros(),
            p99: late.p99.as_micros(),
            max: late.max.as_micros(),
        }
    }
}

const PARAMETERS: [&str; 13] = [
    "net/ipv4/tcp_no_metrics_save",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_ecn",
    "net/ipv4/tcp_recovery",
    "net/ipv4/tcp_early_retrans",
    "net/ipv4/tcp_slow_start_after_idle",
    "net/ipv4/tcp_limit_output_bytes",
    "net/ipv4/tcp_available_congestion_control",
    "net/core/rmem_max",
    "net/core/wmem_max",
];

impl Environment {
    pub(super) fn read(namespace: &Namespace, mtu: u32) -> Result<Self, TestbedError> {
        let text = |path: String| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let parameters = namespace.run(|| {
            let read = |name| (name, text(format!("/proc/sys/{name}")).replace('\t', " "));
            Ok(PARAMETERS.map(read).to_vec())
        })?;
        let kernel = ["ostype", "osrelease", "version"];
        Ok(Self {
            kernel: kernel.map(|name| text(format!("/proc/sys/kernel/{name}"))).join(" "),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            mtu,
            parameters,
            refused: Vec::new(),
            ignored: Vec::new(),
            lateness: Default::default(),
            unsent: 0,
            strangers: 0,
        })
    }

    /// The form in the recording.
    pub fn as_json(&self) -> Value {
        let parameters: serde_json::Map<String, Value> = self
            .parameters
            .iter()
            .map(|(name, value)| (name.replace('/', "."), json!(value)))
            .collect();
        let late =
            |late: Lateness| json!({ "median": late.median, "p99": late.p99, "max": late.max });
        json!({
            "kernel": self.kernel,
            "processors": self.processors,
            "parameters": parameters,
            "not_set": self.refused,
            "not_followed": self.ignored,
            "mtu": self.mtu,
            "offloads": "checksums, TCP and UDP segmentation at the interfaces; packets cut before rated or faulty links",
            "lateness_us": self.lateness.iter().copied().map(late).collect::<Vec<_>>(),
            "unsent": self.unsent,
            "strangers": self.strangers,
        })
    }
}
