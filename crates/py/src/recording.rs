use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, PrimitiveArray, RecordBatch, RecordBatchIterator,
    StringArray, UInt64Array,
};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Field, Schema};
use fontis_sim::recording::table::Column;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::error::failed;

/// A table of a recording, in Arrow's layout.
///
/// Whatever reads Arrow takes it as it is, without a copy: pyarrow.table(t), polars.DataFrame(t),
/// duckdb, pandas.
#[pyclass(frozen, module = "fontis")]
pub(crate) struct Table(RecordBatch);

/// What was recorded of a run: the tables flow, queue, event and summary.
#[pyclass(frozen, module = "fontis")]
pub(crate) struct Recording {
    tables: [(&'static str, Py<Table>); 6],
    metrics: BTreeMap<(String, String), f64>,
    /// Events that the simulator processed.
    #[pyo3(get)]
    events: u64,
    /// Packets that left the bottlenecks.
    #[pyo3(get)]
    packets: u64,
    /// On the testbed, JSON that says on which machine it was made.
    #[pyo3(get)]
    environment: Option<String>,
}

impl Table {
    /// Takes the columns over: numbers are not copied, and of texts only the different ones.
    fn new(table: fontis_sim::recording::table::Table) -> Result<Self, ArrowError> {
        let schema = table.schema();
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (about, column) in schema.iter().zip(table.into_columns()) {
            let array: ArrayRef = match column {
                Column::Integer(values) => Arc::new(UInt64Array::from(values)),
                Column::Real(values) => Arc::new(Float64Array::from(values)),
                Column::Text(texts) => {
                    let (keys, values) = texts.into_parts();
                    // pandas takes signed keys only; there are never so many that the sign matters.
                    let rows = keys.len();
                    let keys = ScalarBuffer::<i32>::new(Buffer::from_vec(keys), 0, rows);
                    let keys = PrimitiveArray::<Int32Type>::new(keys, None);
                    Arc::new(DictionaryArray::try_new(
                        keys,
                        Arc::new(StringArray::from_iter_values(&values)),
                    )?)
                }
            };
            let notes = [("unit", about.unit), ("meaning", about.meaning)];
            let notes = notes.map(|(name, text)| (name.to_owned(), text.to_owned()));
            let field = Field::new(about.name, array.data_type().clone(), false);
            fields.push(field.with_metadata(HashMap::from(notes)));
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(Self)
    }
}

#[pymethods]
impl Table {
    /// How many rows there are.
    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<fontis.Table: {} rows of {}>", self.0.num_rows(), self.column_names().join(", "))
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.0.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The same as a pyarrow.Table, which shares its memory.
    fn to_arrow<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// The same as a pandas.DataFrame, whose columns of numbers share its memory.
    fn to_pandas<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let options = PyDict::new(slf.py());
        // Columns that lie together would have to be copied there.
        options.set_item("split_blocks", true)?;
        Self::to_arrow(slf)?.call_method("to_pandas", (), Some(&options))
    }

    /// The same as a polars.DataFrame, which shares its memory.
    fn to_polars<'py>(slf: Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// What Arrow's readers call: the schema, as a PyCapsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&**self.0.schema_ref()).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// What Arrow's readers call: the rows, as a PyCapsule. They are shared, not copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A reader that wants another layout converts by itself: the interface leaves that open.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

impl Recording {
    pub(crate) fn new(
        py: Python<'_>,
        recording: fontis_sim::Recording,
        environment: Option<String>,
    ) -> PyResult<Self> {
        let metrics = recording.metrics();
        let (events, packets) = (recording.events, recording.packets);
        let table = |table| Py::new(py, Table::new(table).map_err(failed)?);
        let tables = [
            ("flow", table(recording.flow)?),
            ("queue", table(recording.queue)?),
            ("event", table(recording.event)?),
            ("message", table(recording.message)?),
            ("transfer", table(recording.transfer)?),
            ("summary", table(recording.summary)?),
        ];
        Ok(Self { tables, metrics, events, packets, environment })
    }

    fn table(&self, py: Python<'_>, wanted: &str) -> Option<Py<Table>> {
        let found = self.tables.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, table)| table.clone_ref(py))
    }
}

#[pymethods]
impl Recording {
    /// Counters of each flow at fixed intervals.
    #[getter]
    fn flow(&self, py: Python<'_>) -> Option<Py<Table>> {
        self.table(py, "flow")
    }

    /// Counters of each bottleneck at fixed intervals.
    #[getter]
    fn queue(&self, py: Python<'_>) -> Option<Py<Table>> {
        self.table(py, "queue")
    }

    /// What happened when.
    #[getter]
    fn event(&self, py: Python<'_>) -> Option<Py<Table>> {
        self.table(py, "event")
    }

    /// The messages of flows that send messages: when each was made, and its delay.
    #[getter]
    fn message(&self, py: Python<'_>) -> Option<Py<Table>> {
        self.table(py, "message")
    }

    /// The blocks of a swarm: who sent each to whom, and when.
    #[getter]
    fn transfer(&self, py: Python<'_>) -> Option<Py<Table>> {
        self.table(py, "transfer")
    }

    /// One number for each metric and subject, over the measurement window.
    #[getter]
    fn summary(&self, py: Python<'_>) -> Option<Py<Table>> {
        self.table(py, "summary")
    }

    /// All metrics: (metric, subject) to value.
    #[getter]
    fn metrics(&self) -> BTreeMap<(String, String), f64> {
        self.metrics.clone()
    }

    /// A metric's value for a subject; KeyError says what there is.
    #[pyo3(signature = (metric, subject="all"))]
    fn metric(&self, metric: &str, subject: &str) -> PyResult<f64> {
        let found = self.metrics.get(&(metric.to_owned(), subject.to_owned()));
        found.copied().ok_or_else(|| {
            let of = self.metrics.keys().filter(|(name, _)| name == metric);
            let subjects: Vec<&str> = of.map(|(_, subject)| &**subject).collect();
            let text = if subjects.is_empty() {
                format!("nothing called {metric:?} was measured; docs/recording.md lists metrics")
            } else {
                format!("there is no {metric} of {subject:?}; there is of {}", subjects.join(", "))
            };
            pyo3::exceptions::PyKeyError::new_err(text)
        })
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let rows = |(name, table): &(&str, Py<Table>)| format!("{name} {}", table.get().__len__());
        let _ = py;
        format!("<fontis.Recording: rows of {}>", self.tables.each_ref().map(rows).join(", "))
    }
}
