// The gradient of max(x, 0): the gradient of its result where that is above zero, 0 elsewhere. One invocation an element.

@group(0) @binding(0) var<storage, read> gradient: array<{{ elem }}>;
@group(0) @binding(1) var<storage, read> result: array<{{ elem }}>;
@group(0) @binding(2) var<storage, read_write> output: array<{{ elem }}>;

@compute @workgroup_size({{ workgroup_size }}, 1, 1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&output)) {
        output[id.x] = select({{ elem }}(0), gradient[id.x], result[id.x] > {{ elem }}(0));
    }
}
