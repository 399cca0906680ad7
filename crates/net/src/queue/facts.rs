use fontis_base::Rate;

/// What the nodes of a network are told of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowFacts {
    /// Its weight p, if it has one of its own.
    pub weight: Option<f64>,
    /// Bytes that it will carry, if it has an end.
    pub length: Option<u64>,
    /// The rate of its radio in a cell, if it has one of its own.
    pub radio: Option<Rate>,
}
