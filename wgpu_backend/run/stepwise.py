"""Times each dispatch of a Program by the host's clock, for pages without GPU timestamps."""


async def measure(program, clock, runs=3):
    """A list of (name of the kernel, workgroups, time) in the plan's order.

    Each time is the shortest of `runs`, less that of an empty submission. clock(): the time, in the unit of the
    results.
    """
    await program.prepare_async()
    device = program.device
    device.enter()
    try:
        empty = await _timed(device, None, clock)
        best = [None] * len(program.steps)
        for _ in range(runs):
            empty = min(empty, await _timed(device, None, clock))
            for i in range(len(best)):
                spent = await _timed(device, program.steps[i], clock)
                if best[i] is None or spent < best[i]:
                    best[i] = spent
    except Exception as error:
        raise device.failure("measuring kernels", error)
    finally:
        device.leave()
    found = []
    for i in range(len(best)):
        step = program.plan.steps[program.dispatched[i] if hasattr(program, "dispatched") else i]
        found.append((program.plan.kernels[step.kernel][0], list(program.steps[i][2:]), max(0, best[i] - empty)))
    return found


async def _timed(device, step, clock):
    encoder = device.raw.create_command_encoder()
    run = encoder.begin_compute_pass()
    if step:
        pipeline, group, x, y, z = step
        run.set_pipeline(pipeline)
        run.set_bind_group(0, group)
        run.dispatch_workgroups(x, y, z)
    run.end()
    commands = encoder.finish()
    begin = clock()
    device.queue.submit([commands])
    await device.queue.on_submitted_work_done_async()
    return clock() - begin
