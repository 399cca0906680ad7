/// What the nodes of a network are told of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowFacts {
    /// Its weight p, if it has one of its own.
    pub weight: Option<f64>,
}
