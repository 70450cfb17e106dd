"""Regular expressions: our own matcher agrees with RE2, and neither takes long whatever the pattern."""

import random

import emberlet
import pytest
from emberlet import functional as F
from emberlet.errors import ArgumentError
from emberlet.functional.onnx_ml import patterns
from emberlet.functional.onnx_ml.nfa import Matcher
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rows import every

PATTERNS = [
    "", "a", "abc", "a|ab", "a*", "a+b?", "(a|b)*c", "(?:ab){2}", "a{2,3}", "a{0}", "a{2,}", "a{,2}", "a{", "x{1}y",
    "[a-c]+", "[^a-c]+", "[]a]", "[^]a]", "[a-]", r"[\d\-]+", r"\d+", r"\D+", r"\w+\s\W", r"\bab\b", r"a\Bb", "^a$",
    "(?m)^a$", "a.b", "(?s)a.b", "(?i)aBc", "(?i:a)b", "a(?i)b|c", "(?-s:.)", r"\x41", r"\x{e9}+", "é+",
    r"[[:alpha:]]+", "[[:^digit:]]", "()*", "(a*)*", "(a*)+b", r"\Qa.b\E+", r"\.\*", r"\07", r"\n", "(?P<x>a)b",
    "(?<y>a)", "a??", "a+?b", "(|a)+", "$^", r"\Aa\z", "[a-c-e]", "(?i)[k-m]", "(?i)[^k]",
]  # fmt: skip
WRONG = [
    "(",
    ")",
    "[",
    "a**",
    "*",
    "a{1001}",
    "a{3,2}",
    "[b-a]",
    r"\1",
    "(?=a)",
    "(?!a)",
    "(?<=a)",
    r"\Z",
    "(?x)",
    "[[:no:]]",
    "\\",
]
TEXTS = ["", "a", "ab", "abab", "aab c", "AbC", "a\nb", "a.b", "éé", "12-3", "]", "ba\nab", "kK", "aaa", "c_d e"]


def re2():
    return pytest.importorskip("re2", reason="google-re2 is not installed")


@every("pattern", PATTERNS)
def test_our_matcher_agrees_with_re2(pattern):
    theirs, ours = patterns._RE2(re2(), pattern), Matcher(pattern)
    for text in TEXTS:
        assert ours.fullmatch(text) == theirs.fullmatch(text), text
        assert [s for s in ours.spans(text) if s[0] < s[1]] == [s for s in theirs.spans(text) if s[0] < s[1]], text


@pytest.mark.parametrize("pattern", WRONG)
def test_what_re2_refuses_is_refused(pattern):
    for make in (Matcher, lambda pattern: patterns._RE2(re2(), pattern)):
        with pytest.raises(ValueError):
            make(pattern)
    with pytest.raises(ArgumentError, match="is not a regular expression"):
        patterns.matcher(pattern)


@settings(max_examples=300)
@given(st.text("ab()[]|*+?.^${},2\\dw-i:", max_size=12), st.text("ab2- \n", max_size=8))
def test_drawn_patterns_agree_with_re2(pattern, text):
    try:
        theirs = patterns._RE2(re2(), pattern)
    except ValueError:
        theirs = None
    try:
        ours = Matcher(pattern)
    except ValueError:
        ours = None
    assert (ours is None) == (theirs is None)
    if ours and theirs:
        assert ours.fullmatch(text) == theirs.fullmatch(text)
        assert [s for s in ours.spans(text) if s[0] < s[1]] == [s for s in theirs.spans(text) if s[0] < s[1]]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(a*)*b", "(a?){200}a{200}", "(.*)(.*)(.*)(.*)x"])
@pytest.mark.parametrize("engine", ["RE2", "our own"])
def test_no_pattern_takes_exponential_time(pattern, engine):
    made = Matcher(pattern) if engine == "our own" else patterns._RE2(re2(), pattern)
    made.fullmatch("a" * 100 + "b")


def test_our_matcher_ends_with_an_error_that_names_the_remedy(monkeypatch):
    monkeypatch.setattr("emberlet.functional.onnx_ml.nfa.WORK", 10_000)
    with pytest.raises(ArgumentError, match="pip install google-re2"):
        Matcher("(a?){100}").fullmatch("a" * 1000)
    with pytest.raises(ValueError, match="more than 10000 steps"):
        Matcher("((a{100}){100}){100}")


def test_without_re2_the_functions_use_our_matcher(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "re2", None)
    monkeypatch.setattr(patterns, "_known", {})
    x = emberlet.asarray(["aab", "b", ""])
    assert F.regex_full_match(x, "a*b").tolist() == [True, True, False]
    assert F.tokenize(x, "#", expression="a|aa").tolist() == [["aa"], ["#"], ["#"]]
    assert isinstance(patterns.matcher("a*b"), Matcher)


def test_random_texts_of_many_characters_take_a_moment():
    text = "".join(random.Random(0).choices("ab ", k=20_000))
    assert [text[a:b] for a, b in Matcher("[ab]+").spans(text)] == text.split()
