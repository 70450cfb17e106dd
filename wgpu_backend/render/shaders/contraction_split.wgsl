// {{ name }}: {{ split }} invocations compute {{ rows }} × {{ columns }} results, each with a part of the inner steps.

{{ bindings }}

var<workgroup> partial: array<{{ type }}, {{ partials }}>;

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    {{ first }}let place = {{ flat }};
    // All invocations have to reach the barrier: those beyond the last tile compute it once more.
    let t = min(place, {{ count }}u - 1u);
    let slice = lane / {{ tiles }}u;
    {{ body }}
}
{{ range }}
