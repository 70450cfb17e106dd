// Copies words into a strided region. numbers: how many, the first one's place, then lengths and strides of five axes.

@group(0) @binding(0) var<storage, read> numbers: array<u32>;
@group(0) @binding(1) var<storage, read> values: array<u32>;
@group(0) @binding(2) var<storage, read_write> region: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {
    let i = (group.x + group.y * groups.x) * 64u + lane;
    if (i >= numbers[0]) {
        return;
    }
    var rest = i;
    var place = numbers[1];
    for (var axis = 5u; axis > 0u; axis--) {
        let length = numbers[1u + axis];
        place += (rest % length) * numbers[6u + axis];
        rest /= length;
    }
    region[place] = values[i];
}
