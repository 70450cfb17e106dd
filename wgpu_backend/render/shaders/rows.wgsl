// {{ name }}: computes row by row; a row has {{ length }} elements.

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
