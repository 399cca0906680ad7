//! What a recorded run costs a phone: the energy of its radio, and what was sent again.

use std::path::PathBuf;

use fontis_lab::sim::{RecordedFlow, read_flows};
use fontis_sim::analysis::energy::{RadioEnergy, RadioPower, RadioUse};
use serde_json::{Value, json};

use crate::analyse::table::{aligned, cell};
use crate::failure::Failure;

/// The energy of a phone's radio that carries a recorded run's flows, and what was sent again
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Energy {
    /// The folder of a run, as recordings/FB6/00000
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The radio: lte, 3g or wifi, with the powers that Huang and others measured (MobiSys 2012)
    #[arg(long, value_name = "NAME", default_value = "lte")]
    radio: RadioPower,
    /// The phone is the sender; else it is the receiver
    #[arg(long)]
    up: bool,
    /// Only flows whose names begin so
    #[arg(long, value_name = "NAME", default_value = "")]
    flows: String,
}

const EXAMPLES: &str = "\
Examples:
  What a phone pays for the files that it fetches over 3G, on the first of the scenario's runs:
    fontis sim FB6 && fontis analyse energy recordings/FB6/00000 --radio 3g --flows short";

pub(super) fn energy(args: &Energy) -> Result<(Value, Vec<String>), Failure> {
    let flows = read_flows(&args.folder).map_err(|error| {
        let folder = args.folder.display();
        Failure::Usage(format!(
            "{folder}: {error}; it must be the folder of a run, with flow.parquet"
        ))
    })?;
    let flows: Vec<RecordedFlow> =
        flows.into_iter().filter(|flow| flow.name.starts_with(&args.flows)).collect();
    if flows.is_empty() {
        return Err(Failure::Usage(format!("no flow's name begins with {:?}", args.flows)));
    }
    let uses: Vec<Vec<RadioUse>> = flows.iter().map(|flow| uses(flow, args.up)).collect();
    let longest = uses.iter().max_by_key(|uses| uses.len()).cloned().unwrap_or_default();
    // One phone has all of them: what they carry at a time adds up.
    let together: Vec<RadioUse> = (0..longest.len())
        .map(|at| {
            let parts = uses.iter().filter_map(|uses| uses.get(at));
            let [down, up] = [|of: &RadioUse| of.down, |of: &RadioUse| of.up]
                .map(|bits| parts.clone().map(bits).sum::<f64>());
            RadioUse { seconds: longest[at].seconds, down, up }
        })
        .collect();
    let last = |counts: &[u64]| counts.last().copied().unwrap_or(0);
    let mut rows = vec![Row {
        name: "all, one phone".to_owned(),
        bytes: flows.iter().map(|flow| last(&flow.received)).sum(),
        sent: flows.iter().map(|flow| last(&flow.sent)).sum(),
        again: flows.iter().map(|flow| last(&flow.retransmitted)).sum(),
        energy: args.radio.energy(together),
    }];
    for (flow, uses) in flows.iter().zip(uses).filter(|_| flows.len() > 1) {
        rows.push(Row {
            name: flow.name.clone(),
            bytes: last(&flow.received),
            sent: last(&flow.sent),
            again: last(&flow.retransmitted),
            energy: args.radio.energy(uses),
        });
    }
    let names = ["", "MB", "J", "J/MB", "s active", "s of tails", "woke", "sent again"];
    let mut lines = vec![names.map(str::to_owned).to_vec()];
    lines.extend(rows.iter().map(Row::cells));
    let value = json!({
        "radio": args.radio.to_string(), "up": args.up,
        "flows": rows.iter().map(Row::value).collect::<Vec<_>>(),
    });
    Ok((value, aligned(&lines)))
}

/// What a flow, or all, came to.
struct Row {
    name: String,
    bytes: u64,
    sent: u64,
    again: u64,
    energy: RadioEnergy,
}

impl Row {
    fn per_megabyte(&self) -> f64 {
        self.energy.joules / (self.bytes as f64 * 1e-6)
    }

    fn cells(&self) -> Vec<String> {
        let RadioEnergy { joules, active, tails, promotions } = self.energy;
        let percent = 100.0 * self.again as f64 / self.sent.max(1) as f64;
        vec![
            self.name.clone(),
            cell(self.bytes as f64 * 1e-6),
            cell(joules),
            if self.bytes == 0 { "-".to_owned() } else { cell(self.per_megabyte()) },
            cell(active),
            cell(tails),
            promotions.to_string(),
            format!("{} ({percent:.1} %)", self.again),
        ]
    }

    fn value(&self) -> Value {
        let RadioEnergy { joules, active, tails, promotions } = self.energy;
        let per_megabyte = (self.bytes > 0).then(|| self.per_megabyte());
        json!({
            "name": self.name, "bytes": self.bytes, "joules": joules,
            "joules_per_megabyte": per_megabyte, "active_s": active, "tails_s": tails,
            "promotions": promotions, "packets": self.sent, "retransmitted": self.again,
        })
    }
}

/// What the radio carries from sample to sample. A sender's packets are as large as the useful
/// bytes are for each packet that is no copy; what was lost on the way cost the sender too.
fn uses(flow: &RecordedFlow, up: bool) -> Vec<RadioUse> {
    let last = |counts: &[u64]| counts.last().copied().unwrap_or(0) as f64;
    let originals = last(&flow.sent) - last(&flow.retransmitted);
    let packet = last(&flow.received) / originals.max(1.0);
    let mut before = (0.0, 0, 0);
    let samples = flow.times.iter().zip(&flow.received).zip(&flow.sent);
    samples
        .map(|((time, received), sent)| {
            let (begin, old_received, old_sent) = before;
            before = (*time, *received, *sent);
            let bytes = match up {
                false => received.saturating_sub(old_received) as f64,
                true => sent.saturating_sub(old_sent) as f64 * packet,
            };
            let (down, up) = if up { (0.0, 8.0 * bytes) } else { (8.0 * bytes, 0.0) };
            RadioUse { seconds: time - begin, down, up }
        })
        .collect()
}
