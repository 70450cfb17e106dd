"""Runs a plan on a device: one command encoder, one compute pass, one submission."""


def encode(device, encoder, plan, gpu_buffers, groups=None):
    """Record every step of the plan into one compute pass. gpu_buffers: per buffer number the GPU buffer; groups: a
    list that keeps the bind groups, when it is the same for every run."""
    run = encoder.begin_compute_pass()
    current = None
    for i in range(len(plan.steps)):
        step = plan.steps[i]
        name, source = plan.kernels[step.kernel]
        pipeline, layout = device.pipeline(name, source)
        if pipeline is not current:
            run.set_pipeline(pipeline)
            current = pipeline
        if groups is not None and len(groups) > i:
            group = groups[i]
        else:
            group = device.bind(layout, [gpu_buffers[b] for b in step.buffers])
            if groups is not None:
                groups.append(group)
        run.set_bind_group(0, group)
        run.dispatch_workgroups(step.groups[0], step.groups[1], step.groups[2])
    run.end()


def run(device, plan, externals):
    """Run once with the Allocations of the externals; returns the Allocations of the plan's outputs."""
    allocations = {}
    for i in range(len(externals)):
        allocations[plan.externals[i]] = externals[i]
    for i in range(len(plan.buffers)):
        if i not in allocations:
            allocations[i] = device.allocate(plan.buffers[i].nbytes)
    if plan.steps:
        encoder = device.raw.create_command_encoder()
        encode(device, encoder, plan, [allocations[i].gpu for i in range(len(plan.buffers))])
        device.queue.submit([encoder.finish()])
    return [allocations[b] for b in plan.outputs]
