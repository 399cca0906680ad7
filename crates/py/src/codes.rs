use bytes::Bytes;
use fontis_codes::{BlockDecoder, BlockEncoder, BlockShape, Code, Decoded};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{failed, usage};

fn code(name: &str) -> PyResult<Code> {
    name.parse().map_err(usage)
}

fn shape(name: &str, len: usize, symbol_size: u16) -> PyResult<BlockShape> {
    let len =
        u32::try_from(len).map_err(|_| usage(format!("{len} bytes are too many for a block")))?;
    BlockShape::new(code(name)?, len, symbol_size).map_err(usage)
}

/// The names of the codes.
#[pyfunction]
pub(crate) fn codes() -> Vec<&'static str> {
    Code::ALL.iter().map(|code| code.name()).collect()
}

/// The probability that a block of k source symbols cannot be decoded from k + extra.
#[pyfunction]
pub(crate) fn failure_probability(code: &str, symbols: u32, extra: u32) -> PyResult<f64> {
    Ok(self::code(code)?.failure_probability(symbols, extra))
}

/// Makes symbols of a block of bytes.
#[pyclass(frozen, module = "fontis.codes")]
pub(crate) struct Encoder(BlockEncoder);

#[pymethods]
impl Encoder {
    #[new]
    #[pyo3(signature = (data, *, code="raptorq", symbol_size=1280))]
    fn new(py: Python<'_>, data: &[u8], code: &str, symbol_size: u16) -> PyResult<Self> {
        let shape = shape(code, data.len(), symbol_size)?;
        let data =
            if shape.code().carries_bytes() { Bytes::copy_from_slice(data) } else { Bytes::new() };
        Ok(Self(py.detach(|| {
            let mut encoder = BlockEncoder::new(shape, data);
            let repair = encoder.repair_job().run();
            encoder.set_repair(repair);
            encoder
        })))
    }

    /// k: how many source symbols the block has.
    #[getter]
    fn source_symbols(&self) -> u32 {
        self.0.shape().source_symbols()
    }

    /// Encoding symbol identifiers lie below this.
    #[getter]
    fn esi_limit(&self) -> u32 {
        self.0.shape().esi_limit()
    }

    /// The symbol with this identifier: below k a source symbol, from k on a repair symbol.
    fn symbol<'py>(&self, py: Python<'py>, esi: u32) -> PyResult<Bound<'py, PyBytes>> {
        let symbol = self.0.symbol(esi).ok_or_else(|| {
            usage(format!("there is no symbol {esi}: identifiers lie below {}", self.esi_limit()))
        })?;
        Ok(PyBytes::new(py, &symbol))
    }
}

/// Rebuilds a block from its symbols.
#[pyclass(module = "fontis.codes")]
pub(crate) struct Decoder {
    /// Gone once the block is there.
    decoder: Option<BlockDecoder>,
    block: Option<Bytes>,
}

#[pymethods]
impl Decoder {
    #[new]
    #[pyo3(signature = (length, *, code="raptorq", symbol_size=1280))]
    fn new(length: usize, code: &str, symbol_size: u16) -> PyResult<Self> {
        Ok(Self {
            decoder: Some(BlockDecoder::new(shape(code, length, symbol_size)?)),
            block: None,
        })
    }

    /// Takes a symbol; false if it was there already.
    fn add(&mut self, esi: u32, symbol: &[u8]) -> PyResult<bool> {
        match &mut self.decoder {
            Some(decoder) => decoder.add(esi, symbol).map_err(usage),
            None => Ok(false),
        }
    }

    /// How many more symbols it takes before decoding is worth a try.
    #[getter]
    fn needed(&self) -> u32 {
        self.decoder.as_ref().map_or(0, BlockDecoder::needed)
    }

    /// Does what can be done of the decoding with the symbols that came, so that less is left to do
    /// when the last one comes. It changes no result, and pays only where there is time between
    /// symbols.
    fn advance(&mut self, py: Python<'_>) {
        if let Some(decoder) = &mut self.decoder {
            py.detach(|| decoder.advance());
        }
    }

    /// The block, or None if the symbols do not suffice yet.
    fn decode<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if let Some(decoder) = self.decoder.take() {
            if decoder.needed() > 0 {
                self.decoder = Some(decoder);
                return Ok(None);
            }
            match py.detach(|| decoder.decode_job().run()) {
                Decoded::Block(block) => self.block = Some(block),
                Decoded::Failed(decoder) => {
                    self.decoder = Some(decoder);
                    return Ok(None);
                }
            }
        }
        let block =
            self.block.as_ref().ok_or_else(|| failed("an earlier decoding was interrupted"))?;
        Ok(Some(PyBytes::new(py, block)))
    }
}
