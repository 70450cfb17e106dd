// {{ name }}: {{ split }} invocations attend with {{ rows }} queries, each to a part of the keys.

{{ bindings }}

// Per query: the largest score with the sum of the weights, and the weighted values.
var<workgroup> pairs: array<vec2<f32>, {{ pairs }}>;
var<workgroup> parts: array<vec4<f32>, {{ vectors }}>;

@compute @workgroup_size({{ workgroup }})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let place = {{ flat }};
    // All invocations have to reach the barriers: those beyond the last query compute it once more.
    let t = min(place, {{ count }}u - 1u);
    let slice = lane / {{ tiles }}u;
    {{ body }}
}
