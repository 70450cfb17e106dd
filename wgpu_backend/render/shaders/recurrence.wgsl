// {{ name }}: a workgroup computes all {{ steps }} steps of a sequence in one direction; its lanes share {{ hidden }} units.

{{ bindings }}

{{ scratch }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let g = {{ flat }};
    if (g >= {{ count }}u) {
        return;
    }
    {{ body }}
}
