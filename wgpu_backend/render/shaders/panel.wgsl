// {{ name }}: a workgroup computes {{ rows }} × {{ columns }} results, {{ width }} columns an invocation.
//
// A panel of the right operand, {{ depth }} inner steps deep, stays in registers while the rows pass by; what a row came
// to in the panels before is read back from where it was stored.

{{ bindings }}

@compute @workgroup_size(4)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin({{ lane }}) lane: u32) {
    let t = {{ flat }};
    if (t >= {{ count }}u) {
        return;
    }
    {{ body }}
}
