"""emberlet compile, and the commands of other packages."""

import json

from emberlet.burnpack import Burnpack


def test_a_model_becomes_a_plan_without_a_gpu(emberlet, digits, tmp_path):
    said = emberlet("compile", digits, "--out", tmp_path / "digits.plan", "--dim", "batch=2")
    assert said.status == 0, said.err
    assert said.out.startswith(f"wrote {tmp_path / 'digits.plan'}: ")
    assert Burnpack.from_file(tmp_path / "digits.plan").tensors
    assert emberlet("inspect", tmp_path / "digits.plan").out.startswith("tensor ")


def test_a_generated_module_can_be_compiled(emberlet, digits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    emberlet("codegen", digits)
    assert emberlet("compile", "digits.py").out.startswith("wrote digits.plan: ")


def test_what_has_unknown_inputs_is_refused(emberlet, tmp_path):
    (tmp_path / "vague.py").write_text(
        "from emberlet.model import Model\n\n\nclass Vague(Model):\n    EMBEDDED = None\n\n"
        "    @classmethod\n    def default(cls, backend=None):\n        return cls()\n\n"
        "    def forward(self, x):\n        return x\n",
        encoding="utf-8",
    )
    said = emberlet("compile", tmp_path / "vague.py", "--out", tmp_path / "v.plan")
    assert (said.status, said.err) == (
        2, "emberlet: the dtype and shape of input x are not known, and a plan needs both\n"
    )  # fmt: skip
    assert not (tmp_path / "v.plan").exists()


def test_sizes_that_nobody_gave_are_told(emberlet, digits, tmp_path):
    for name in ("digits.plan", "digits.wasm"):
        said = emberlet("compile", digits, "--out", tmp_path / name)
        assert "--dim batch=1;" in said.out and "ranges" in said.out
    for way in ("batch=1", "batch=8", "batch=1..512"):
        said = emberlet("compile", digits, "--out", tmp_path / "digits.plan", "--dim", way)
        assert said.status == 0 and "leaves sizes open" not in said.out


def test_weights_can_be_stored_in_fewer_bits(emberlet, digits, tmp_path):
    sizes = []
    for weights in ("float32", "float16", "q8"):
        said = emberlet("compile", digits, "--out", tmp_path / "digits.plan", "--weights", weights)
        assert said.status == 0, said.err
        sizes.append((tmp_path / "digits.plan").stat().st_size)
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 3
    assert emberlet("compile", digits, "--weights", "int3").status == 2


def test_micro_is_passed_on(emberlet, digits, tmp_path):
    said = emberlet("micro", "build", digits, "--out", tmp_path / "dist")
    assert said.status == 0, said.err
    assert "digits: float32" in said.out


def test_a_range_of_sizes_is_left_open(emberlet, digits, tmp_path):
    said = emberlet("compile", digits, "--out", tmp_path / "digits.plan", "--dim", "batch=1..16")
    assert said.status == 0, said.err
    assert said.out.endswith(", batch 1 to 16\n")
    module = emberlet("compile", digits, "--out", tmp_path / "digits.wasm", "--dim", "batch=1..16")
    assert module.status == 0 and module.out.endswith(", batch 1 to 16\n")
    plan = json.loads(Burnpack.from_file(tmp_path / "digits.plan").metadata["emberlet.plan"])
    assert plan["sizes"]["symbols"] == [["batch", 1, 16]]
    for range_, symbol in (("image:0=1..9", ["batch", 1, 9]), ("batch=4..16:4", ["batch", 4, 16])):
        said = emberlet("compile", digits, "--out", tmp_path / "digits.plan", "--dim", range_)
        assert said.status == 0, said.err
        plan = json.loads(Burnpack.from_file(tmp_path / "digits.plan").metadata["emberlet.plan"])
        assert plan["sizes"]["symbols"] == [symbol]
    for range_, told in (
        ("image:2=1..9", "the model fixes this dimension to 8"),
        ("image:7=1..9", "no input has a dimension named 'image:7'; there are batch"),
        ("batch=4..16:0", "expected NAME=LOWEST..HIGHEST"),
        ("batch=1..x", "expected NAME=LOWEST..HIGHEST, such as batch=1..512"),
        ("batch=9..3", "expected NAME=LOWEST..HIGHEST"),
        ("rows=1..3", "no input has a dimension named 'rows'; there are batch"),
    ):
        said = emberlet("compile", digits, "--out", tmp_path / "other.plan", "--dim", range_)
        assert said.status == 2
        assert told in said.err
        assert not (tmp_path / "other.plan").exists()
