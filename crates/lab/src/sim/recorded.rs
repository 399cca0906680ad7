use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use parquet::schema::types::Type;

/// A flow's counters as a run recorded them, at each of its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedFlow {
    /// Its name.
    pub name: String,
    /// Seconds since the run began.
    pub times: Vec<f64>,
    /// Useful bytes that had reached the application.
    pub received: Vec<u64>,
    /// Packets that its sender had sent.
    pub sent: Vec<u64>,
    /// Copies among them; of DFCP repair symbols.
    pub retransmitted: Vec<u64>,
}

/// The columns that are read, in this order.
const COLUMNS: [&str; 6] = ["time", "flow", "name", "received", "sent", "retransmitted"];

/// The flows of a run, from `flow.parquet` in its folder.
pub fn read_flows(folder: &Path) -> Result<Vec<RecordedFlow>, ParquetError> {
    let reader = SerializedFileReader::new(File::open(folder.join("flow.parquet"))?)?;
    let schema = reader.metadata().file_metadata().schema();
    let field = |name: &&str| {
        let field = schema.get_fields().iter().find(|field| field.name() == *name);
        field
            .map(Arc::clone)
            .ok_or_else(|| ParquetError::General(format!("flow.parquet has no column {name:?}")))
    };
    let fields = COLUMNS.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let wanted = Type::group_type_builder(schema.name()).with_fields(fields).build()?;
    let mut flows: BTreeMap<u64, RecordedFlow> = BTreeMap::new();
    for row in reader.get_row_iter(Some(wanted))? {
        let row = row?;
        // Rows have the columns in the order of the file.
        let place = |name: &str| {
            let found = row.get_column_iter().position(|(column, _)| column == name);
            found.ok_or_else(|| ParquetError::General(format!("a row has no {name:?}")))
        };
        let flow = flows.entry(row.get_ulong(place("flow")?)?).or_default();
        if flow.name.is_empty() {
            flow.name.clone_from(row.get_string(place("name")?)?);
        }
        flow.times.push(row.get_double(place("time")?)?);
        flow.received.push(row.get_ulong(place("received")?)?);
        flow.sent.push(row.get_ulong(place("sent")?)?);
        flow.retransmitted.push(row.get_ulong(place("retransmitted")?)?);
    }
    Ok(flows.into_values().collect())
}
