"""A Ray cluster on this machine, which lasts until stdin is closed: `cluster.py TEMPORARY_FOLDER [CPUS ...]`.

CPUS are those of each worker node; without them there are two nodes of two.

It prints its address. It runs in its own process, so that pytest's never imports Ray.
"""

import os
import sys

from ray.cluster_utils import Cluster

if __name__ == "__main__":
    # where Ray notes the address of a cluster; only `ray.init` creates it
    os.makedirs(os.path.join(os.environ["RAY_TMPDIR"], "ray"), exist_ok=True)
    common = {"include_dashboard": False, "object_store_memory": 100 << 20, "memory": 4 << 30}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "temp_dir": sys.argv[1], **common})
    for cpus in sys.argv[2:] or ("2", "2"):
        cluster.add_node(num_cpus=int(cpus), **common)
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()
