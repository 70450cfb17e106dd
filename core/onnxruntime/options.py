"""SessionOptions and RunOptions. Options about memory and logging are accepted and have no effect."""

from __future__ import annotations

from enum import IntEnum


class GraphOptimizationLevel(IntEnum):
    """Accepted; the same passes run at every level."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Accepted; operators run one after the other."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(IntEnum):
    """Accepted; operators run in the order of the file."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class SessionOptions:
    """The options of a session. Only dimension overrides and `intra_op_num_threads` have an effect. The latter limits
    the threads of the session's model in WebAssembly, to 8 or fewer; 0 means the page's number."""

    def __init__(self) -> None:
        self.enable_cpu_mem_arena = True
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_profiling = False
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.inter_op_num_threads = 0
        self.intra_op_num_threads = 0
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.optimized_model_filepath = ""
        self.profile_file_prefix = "onnxruntime_profile_"
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self._entries: dict[str, str] = {}
        self._fixed: dict[str, int] = {}
        self._fixed_by_denotation: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep an entry; none has an effect."""
        self._entries[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added. Raises RuntimeError if there is none."""
        if key not in self._entries:
            raise RuntimeError(f"SessionOptions does not have configuration with key: {key}")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix the size of every dimension of the model's inputs that has this name."""
        self._fixed[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix the size of every dimension of the model's inputs that has this denotation."""
        self._fixed_by_denotation[denotation] = int(size)

    def register_custom_ops_library(self, path: str) -> None:
        """Raises NotImplemented: shared libraries cannot be loaded here."""

        raise NotImplementedError(f"{path}: custom operators of a shared library are not supported")


class RunOptions:
    """The options of a run. `terminate` stops a run before it begins; the others are accepted and have no effect."""

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep an entry; none has an effect."""
        self._entries[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """An entry that was added. Raises RuntimeError if there is none."""
        if key not in self._entries:
            raise RuntimeError(f"RunOptions does not have configuration with key: {key}")
        return self._entries[key]
