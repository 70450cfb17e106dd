// {{ name }}: one invocation computes {{ rows }} × {{ columns }} results.

{{ bindings }}

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    {{ first }}let t = {{ flat }};
    if (t >= {{ count }}u) {
        return;
    }
    {{ body }}
}
{{ range }}
