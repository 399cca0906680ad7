use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use fontis_sim::recording::table::{Column, ColumnKind, Table};
use parquet::basic::{Compression, ConvertedType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// Writes a table as a Parquet file; columns carry their unit and meaning in the file's metadata.
///
/// The same table gives the same bytes.
pub fn write(path: &Path, table: &Table) -> Result<(), ParquetError> {
    let fields: Result<Vec<_>, ParquetError> = table
        .schema()
        .iter()
        .map(|column| {
            let (physical, converted) = match column.kind {
                ColumnKind::Integer => (PhysicalType::INT64, ConvertedType::UINT_64),
                ColumnKind::Real => (PhysicalType::DOUBLE, ConvertedType::NONE),
                ColumnKind::Text => (PhysicalType::BYTE_ARRAY, ConvertedType::UTF8),
            };
            Type::primitive_type_builder(column.name, physical)
                .with_converted_type(converted)
                .with_repetition(Repetition::REQUIRED)
                .build()
                .map(Arc::new)
        })
        .collect();
    let schema = Arc::new(Type::group_type_builder("table").with_fields(fields?).build()?);
    let notes = table.schema().iter().flat_map(|column| {
        let note = |what: &str, text: &str| {
            KeyValue::new(format!("{}.{what}", column.name), text.to_owned())
        };
        [note("unit", column.unit), note("meaning", column.meaning)]
    });
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(notes.collect()))
        .set_created_by(concat!("fontis ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer = SerializedFileWriter::new(File::create(path)?, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in table.columns() {
        let Some(mut out) = group.next_column()? else { break };
        match column {
            Column::Integer(values) => {
                // The physical type is signed; readers are told that the values are not.
                let values: Vec<i64> = values.iter().map(|value| *value as i64).collect();
                out.typed::<Int64Type>().write_batch(&values, None, None)?;
            }
            Column::Real(values) => {
                out.typed::<DoubleType>().write_batch(values, None, None)?;
            }
            Column::Text(values) => {
                let values: Vec<ByteArray> = values.iter().map(ByteArray::from).collect();
                out.typed::<ByteArrayType>().write_batch(&values, None, None)?;
            }
        }
        out.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}
