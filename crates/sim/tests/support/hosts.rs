use fontis_base::FlowId;
use fontis_sim::World;
use fontis_sim::host::dfcp::DfcpHost;

/// The DFCP host at a node.
pub fn dfcp(world: &World, node: usize) -> &DfcpHost {
    let host = world.element(node).endpoint(FlowId::default()).expect("a host");
    host.as_any().downcast_ref().expect("a host of DFCP")
}
