// {{ name }}: one workgroup folds {{ extent }} elements into one result.

{{ bindings }}

var<workgroup> shared_acc: array<{{ type }}, {{ workgroup }}>;

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    {{ start }}let g = {{ flat }};
    if (g >= {{ count }}u) {
        return;
    }
    var acc: {{ type }} = {{ identity }};
    {{ fold }}
    shared_acc[lane] = acc;
    for (var half = {{ workgroup }}u / 2u; half > 0u; half = half / 2u) {
        workgroupBarrier();
        if (lane < half) {
            let other = shared_acc[lane + half];
            acc = {{ combine }};
            shared_acc[lane] = acc;
        }
    }
    if (lane == 0u) {
        {{ body }}
    }
}
{{ range }}
