"""Tokenizers that never end, grow without bound or are none: given up in a process with limits."""

import contextlib
import json
import os
import shutil
import signal

import pytest

from farfield.data import tokenizing
from farfield.data.corpus import open_corpus
from farfield.data.tokenizer import byte_tokenizer, load_tokenizer
from farfield.data.tokens import tokenize

pytestmark = pytest.mark.hostile("tokenizers that never end or grow without bound")


def changed(**parts):
    """The description of the byte tokenizer with other parts."""
    return {**json.loads(byte_tokenizer().to_str()), **parts}


def replaced(pattern, content):
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def several(rules):
    return {"type": "Sequence", "normalizers": rules}


def split(pattern):
    rule = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    after = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"type": "Sequence", "pretokenizers": [rule, after]}


WORD_PIECE = {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "", "max_input_chars_per_word": 10**9}
WORD_PIECE["vocab"] = {word: number for number, word in enumerate("? abcdefghijklmnopqrstuvwxyz")}
UNBOUNDED = {
    "grows a million times a character": changed(normalizer=several([replaced(".", "x" * 100)] * 6)),
    "grows at every place": changed(normalizer=several([replaced("", "xy" * 50)] * 6)),
    "tries every end of a long word": changed(model=WORD_PIECE, pre_tokenizer=None),
    "prepends a gigabyte": changed(
        normalizer=several([{"type": "Prepend", "prepend": "x" * 1_000_000}] + [replaced(".", "x" * 9000)] * 2)
    ),
}  # fmt: skip
TEMPLATE = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 100_000}
TEMPLATE |= {"pair": [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"], "special_tokens": {}}
NO_TOKENIZER = {
    "empty": b"", "a list": b"[]", "no model": b"{}", "deep": b"[" * 100_000, "not UTF-8": b"\xff\xfe",
    "a model of no kind": json.dumps(changed(model={"type": "Magic"})).encode(),
    "merges without words": json.dumps(changed(model={"type": "BPE", "vocab": {}, "merges": ["a b"]})).encode(),
    "a word of number 10^30": json.dumps(changed(model={"type": "BPE", "vocab": {"a": 10**30}, "merges": []})).encode(),
    "a number below 0": json.dumps(changed(model={"type": "BPE", "vocab": {"a": -1}, "merges": []})).encode(),
    "an expression that is none": json.dumps(changed(pre_tokenizer=split("(((("))).encode(),
    "words are a list": json.dumps(changed(model={"type": "BPE", "vocab": [], "merges": []})).encode(),
    "half": byte_tokenizer().to_str().encode()[:1500],
}  # fmt: skip


@pytest.fixture
def impatient(monkeypatch):
    """Two seconds and 2 GB, as a minute would only be longer."""
    monkeypatch.setattr(
        tokenizing, "PROGRAM", f"{tokenizing.PROGRAM.rpartition(';')[0]}; t.SECONDS = 2; t.MEMORY = 2 << 30; t.work()"
    )


@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_tokenizer_without_bounds_is_given_up(tmp_path, impatient, name):
    (tmp_path / "tokenizer.json").write_text(json.dumps(UNBOUNDED[name]))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "train.txt").write_text("the cat sat on the mat and the dog ran " * 2000)
    with pytest.raises(ValueError, match=r"was given up|cannot be read") as error:  # when it is tried, or at the text
        tokenize(open_corpus(str(tmp_path / "text")), "train", load_tokenizer(str(tmp_path)), cache=tmp_path / "cache")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", NO_TOKENIZER)
def test_what_is_no_tokenizer_is_a_sentence_with_its_name(tmp_path, name):
    (tmp_path / "tokenizer.json").write_bytes(NO_TOKENIZER[name])
    with pytest.raises(ValueError, match=r"tokenizer\.json") as error:
        load_tokenizer(str(tmp_path))
    assert "\n" not in str(error.value)


def test_padding_and_truncation_do_not_change_a_corpus(tmp_path, corpus, attacks):
    """A tokenizer that cuts a text off after 4 tokens, and one that pads it to a hundred million."""
    plain = tokenize(open_corpus(str(corpus)), "test", byte_tokenizer(), cache=tmp_path / "plain")
    cut = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    padded = {"strategy": {"Fixed": 100_000_000}, "direction": "Right", "pad_to_multiple_of": None}
    padded |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "x"}
    for parts in ({"truncation": cut}, {"padding": padded}):
        (tmp_path / "tokenizer.json").write_text(json.dumps(changed(**parts)))
        found = tokenize(open_corpus(str(corpus)), "test", load_tokenizer(str(tmp_path)), cache=tmp_path / "cache")
        assert found.ids.tolist() == plain.ids.tolist()
        shutil.rmtree(tmp_path / "cache")
    attacks(2)


def test_one_process_answers_text_after_text_and_comes_back(impatient, attacks):
    """What needs too much ends it; so does someone who kills it; the next text is answered all the same."""
    limited = tokenizing.Limited(json.dumps(UNBOUNDED["grows a million times a character"]), "of a stranger")
    with contextlib.closing(limited):
        assert [len(ids) for ids in limited(["", ""])] == [0, 0]
        first = limited.child.pid
        assert limited([]) == []
        assert limited.child.pid == first
        with pytest.raises(tokenizing.UnboundedTokenizerError, match="of a stranger was given up"):
            limited(["the cat sat on the mat"])
        assert limited.child is None
        assert [len(ids) for ids in limited([""])] == [0]
        os.kill(limited.child.pid, signal.SIGKILL)
        limited.child.wait()
        assert [len(ids) for ids in limited([""])] == [0]
    assert limited.child is None
    attacks(2)


def test_an_answer_that_is_cut_off_is_none(monkeypatch):
    """A process that dies while it answers: no part of its tokens is taken for all."""
    died = "import os, struct; os.write(1, struct.pack('<QQQI', 0, 100, 1, 7)); os._exit(1)"
    monkeypatch.setattr(tokenizing, "PROGRAM", died)
    with pytest.raises(tokenizing.UnboundedTokenizerError), contextlib.closing(tokenizing.Limited("{}", "x")) as encode:
        encode(["a text"])


def test_a_text_a_hundred_thousand_times_over_is_not_plain():
    assert not tokenizing.is_plain(changed(post_processor=TEMPLATE))
    assert tokenizing.is_plain(changed(post_processor={**TEMPLATE, "single": TEMPLATE["single"][:1]}))


DECODERS = {  # and whether a model may write with it
    "bytes": (json.loads(byte_tokenizer().to_str())["decoder"], True),
    "of Llama": ({"type": "Sequence", "decoders": [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]}, True),
    "words": ({"type": "WordPiece", "prefix": "##", "cleanup": True}, True),
    "an expression": ({"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}, False),
    "long": ({"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 1000}, False),
    "between all": ({"type": "Replace", "pattern": {"String": ""}, "content": "a" * 1000}, False),
    "doubled": ({"type": "Sequence", "decoders": [{"type": "BPEDecoder", "suffix": ""}] * 7}, False),
    "nested": ({"type": "Sequence", "decoders": [
        {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aaa"}] * 2}] * 3,
    }, False),
    "many": ({"type": "Sequence", "decoders": [{"type": "Fuse"}] * 1000}, False),
}  # fmt: skip


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_without_bounds_is_refused(name):
    from tokenizers import Tokenizer

    decoder, bounded = DECODERS[name]
    tokenizer = Tokenizer.from_str(json.dumps(changed(decoder=decoder)))
    with contextlib.nullcontext() if bounded else pytest.raises(tokenizing.UnboundedTokenizerError, match="decoder"):
        tokenizing.refuse_growing_decoder(tokenizer, "of a stranger")


@pytest.mark.hostile("tokenizers that never end or grow without bound", 0)
def test_in_a_process_with_limits_the_tokens_are_the_same(tmp_path, corpus, monkeypatch):
    here = tokenize(open_corpus(str(corpus)), "train", byte_tokenizer(), cache=tmp_path / "here")
    monkeypatch.setattr("farfield.data.tokens.is_plain", lambda tokenizer: False)
    there = tokenize(open_corpus(str(corpus)), "train", byte_tokenizer(), cache=tmp_path / "there")
    assert here.ids.tolist() == there.ids.tolist()
