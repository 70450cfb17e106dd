"""Config: required fields, defaults, copies, nesting, JSON."""

import json

import pytest
from emberlet.config import Config
from emberlet.errors import EmberletError, FormatError


class MyModuleConfig(Config):
    d_model: int
    d_ff: int
    dropout: float = 0.1


class Inner(Config):
    size: int = 3


class Outer(Config):
    name: str
    inner: Inner
    layers: list[Inner] = []  # noqa: RUF012
    heads: dict[str, Inner] = {}  # noqa: RUF012
    kernel: tuple[int, int] = (3, 3)
    choice: Inner | None = None
    other: Inner = Inner(9)
    anything: object = None


class Wider(MyModuleConfig):
    bias: bool = True


def test_the_books_example(tmp_path):
    config = MyModuleConfig(512, 2048)
    assert (config.d_model, config.d_ff, config.dropout) == (512, 2048, 0.1)
    changed = config.with_dropout(0.2)
    assert (changed.dropout, config.dropout) == (0.2, 0.1)
    changed.save(tmp_path / "config.json")
    assert MyModuleConfig.load(tmp_path / "config.json") == changed
    assert json.loads((tmp_path / "config.json").read_text(encoding="utf-8")) == {
        "d_model": 512,
        "d_ff": 2048,
        "dropout": 0.2,
    }


def test_fields_are_inherited_in_order():
    assert Wider(1, 2, 0.3, False).to_dict() == {"d_model": 1, "d_ff": 2, "dropout": 0.3, "bias": False}


def test_names_work_where_positions_do():
    assert MyModuleConfig(d_ff=2, d_model=1) == MyModuleConfig(1, 2)


def test_configs_are_equal_by_value_and_hashable_and_written():
    assert MyModuleConfig(1, 2) != MyModuleConfig(1, 3)
    assert Inner() != Wider(1, 2)
    assert len({MyModuleConfig(1, 2), MyModuleConfig(1, 2)}) == 1
    assert repr(MyModuleConfig(1, 2)) == "MyModuleConfig(d_model=1, d_ff=2, dropout=0.1)"


def test_several_fields_change_at_once():
    assert MyModuleConfig(1, 2).replace(d_model=3, dropout=0.0) == MyModuleConfig(3, 2, 0.0)


def full():
    return Outer("x", Inner(1), [Inner(2), Inner(3)], {"a": Inner(4)}, (5, 5), Inner(6), anything=[1, {"k": None}])


def test_nested_configs_survive_json():
    assert Outer.from_json(full().to_json()) == full()
    assert isinstance(Outer.from_json(full().to_json()).heads["a"], Inner)
    assert Outer.from_json(full().to_json()).kernel == (5, 5)
    assert Outer.from_json(Outer("x", Inner()).to_json()).choice is None


def test_defaults_are_not_shared():
    a, b = Outer("a", Inner()), Outer("b", Inner())
    a.layers.append(Inner())
    a.other.size = 1
    assert b.layers == []
    assert b.other.size == 9


def test_a_copy_owns_its_nested_values():
    a = full()
    b = a.with_name("y")
    b.layers.append(Inner())
    assert len(a.layers) == 2


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: MyModuleConfig(), "MyModuleConfig needs d_model, d_ff"),
        (lambda: MyModuleConfig(1), "MyModuleConfig needs d_ff"),
        (lambda: MyModuleConfig(1, 2, 3, 4), "takes 3 values, found 4"),
        (lambda: MyModuleConfig(1, 2, d_ff=3), "has two values for 'd_ff'"),
        (lambda: MyModuleConfig(1, 2, width=3), "has no field width; it has d_model, d_ff, dropout"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call, says):
    with pytest.raises(EmberletError, match=says):
        call()


def test_with_of_an_unknown_field_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'with_width'"):
        MyModuleConfig(1, 2).with_width(3)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", r"expected an object, found \[\]"),
        ("{}", "the field 'name' is missing"),
        ('{"name": 1, "inner": {}}', "Outer.name: expected str, found 1"),
        ('{"name": "x", "inner": 3}', "Outer.inner: expected an object, found 3"),
        ('{"name": "x", "inner": {"size": true}}', "Outer.inner.size: expected int, found True"),
        ('{"name": "x", "inner": {}, "layers": [{"size": "3"}]}', r"Outer.layers\[0\].size: expected int"),
        ('{"name": "x", "inner": {}, "layers": 3}', "Outer.layers: expected an array, found 3"),
        ('{"name": "x", "inner": {}, "heads": []}', "Outer.heads: expected an object"),
        ('{"name": "x", "inner": {}, "kernel": [1]}', "Outer.kernel: expected 2 values, found 1"),
        ('{"name": "x", "inner": {}, "choice": 3}', "Outer.choice: expected an object, found 3"),
        ('{"name": "x", "inner": {}, "width": 3}', "Outer: there is no field 'width'; there are name"),
    ],
)
def test_json_that_does_not_fit_is_refused_by_its_path(text, says):
    with pytest.raises(FormatError, match=says):
        Outer.from_json(text)


def test_a_whole_number_may_stand_for_a_float():
    assert MyModuleConfig.from_json('{"d_model": 1, "d_ff": 2, "dropout": 0}').dropout == 0.0


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_file_saved_by_any_editor_is_read(tmp_path, mark, end):
    config = Outer("größe", inner=Inner(5))
    config.save(tmp_path / "c.json")
    (tmp_path / "c.json").write_bytes(mark + (tmp_path / "c.json").read_bytes().replace(b"\n", end))
    assert Outer.load(tmp_path / "c.json") == config


def test_the_file_is_named(tmp_path):
    (tmp_path / "c.json").write_bytes(b"\xff")
    with pytest.raises(FormatError, match=r"c\.json: not UTF-8"):
        MyModuleConfig.load(tmp_path / "c.json")


def test_a_failing_save_leaves_the_old_file(tmp_path, monkeypatch):
    config = MyModuleConfig(1, 2)
    config.save(tmp_path / "c.json")

    def fail(descriptor):
        raise OSError("the disk is full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        config.with_d_ff(3).save(tmp_path / "c.json")
    assert MyModuleConfig.load(tmp_path / "c.json") == config
    assert [p.name for p in tmp_path.iterdir()] == ["c.json"]


def test_a_config_with_named_fields_runs_on_micropython(unix_port, tmp_path):
    script = """
from emberlet.config import Config

class Inner(Config):
    FIELDS = ("size",)
    size = 3

class Outer(Config):
    FIELDS = ("width", "inner", "rate")
    NESTED = {"inner": Inner}
    inner = Inner()
    rate = 0.5

config = Outer(7).with_rate(0.25).with_inner(Inner(4))
config.save(PATH)
with open(PATH, "rb") as file:
    data = file.read()
with open(PATH, "wb") as file:  # as some editors save it
    file.write(b"\\xef\\xbb\\xbf" + data.replace(b"\\n", b"\\r\\n"))
print(Outer.load(PATH) == config, config.inner.size, Outer.load(PATH).inner.size)
try:
    Outer()
except Exception as error:
    print(error)
""".replace("PATH", repr(str(tmp_path / "c.json")))
    assert unix_port.run(script).check().stdout == "True 4 4\nOuter needs width\n"


@pytest.mark.parametrize("name", ["SgdConfig", "AdamConfig", "AdaGradConfig", "RmsPropConfig", "LionConfig"])
def test_a_nested_config_may_be_left_out_of_a_saved_one(name):
    from emberlet import optim

    config = getattr(optim, name)()
    assert type(config).from_json(config.to_json()) == config


class Generic(Config):
    pair: tuple[int, float]
    many: tuple[int, ...] = ()
    plain: tuple = ()
    items: list = []  # noqa: RUF012


def test_tuples_and_lists_come_back_from_json_and_are_each_configs_own() -> None:
    config = Generic((1, 2.5), (3, 4), (1, "x"), [{"k": (1, 2)}])
    assert config.to_dict() == {"pair": [1, 2.5], "many": [3, 4], "plain": [1, "x"], "items": [{"k": [1, 2]}]}
    back = Generic.from_json(config.to_json())
    assert back == config and (back.pair, back.many, back.plain) == ((1, 2.5), (3, 4), (1, "x"))
    assert Generic((1, 2.0)).items is not Generic((1, 2.0)).items
