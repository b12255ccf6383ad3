"""Corpora, tokenizers, token files and batches."""

import contextlib
import gzip
import json
import lzma
import os
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from farfield.data import corpus as corpora
from farfield.data import textfiles
from farfield.data import tokens as data
from farfield.data.corpus import CorpusError, open_corpus
from farfield.data.durable import sha256_of
from farfield.data.tokenizer import (
    byte_tokenizer,
    for_transformers,
    load_tokenizer,
    make_tokenizer,
    tokenizer_digest,
    train_bpe,
    vocabulary_size,
)
from farfield.data.tokens import tokenize

LINES = "".join(f"line {i} says something about {i * i}.\n" for i in range(4000))


def text_of(corpus: corpora.Corpus, split: str) -> str:
    return "".join(passage.text for passage in corpus.passages(split))


def folder(path: Path, **splits: str) -> Path:
    path.mkdir(exist_ok=True)
    for split, text in splits.items():
        (path / f"{split}.txt").write_text(text)
    return path


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The hub is not asked and has kept nothing; the variable HF_HUB_OFFLINE counts only before the first import."""
    cache = str(tmp_path_factory.mktemp("hub"))
    for module in ("huggingface_hub.constants", "datasets.config"):
        pytest.importorskip(module.split(".")[0])
        monkeypatch.setattr(f"{module}.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", cache)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", cache)


# --- text -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_text_is_the_same_however_it_is_compressed(tmp_path: Path, suffix: str) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.ZstdCompressor().compress}[suffix]
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.txt{suffix}").write_bytes(pack(f"{split} äöü\n{LINES}".encode()))
    corpus = open_corpus(str(tmp_path))
    assert text_of(corpus, "valid") == f"valid äöü\n{LINES}"


def test_jsonl_gives_one_document_for_each_line(tmp_path: Path) -> None:
    records = [{"text": "one"}, {"text": ""}, {"content": "two\nlines"}]
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress("\n".join(map(json.dumps, records)).encode()))
    assert list(open_corpus(str(tmp_path)).passages("train")) == [("one", True), ("two\nlines", True)]


@pytest.mark.parametrize("name", ["wiki.train.txt", "train-00001.txt", "train/part.txt", "Train.txt"])
def test_a_split_is_recognised_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("here")
    (tmp_path / "README.txt").write_text("not this")
    assert text_of(open_corpus(str(tmp_path)), "train") == "here"


def test_a_file_is_cut_by_a_seed_without_loss_or_overlap(tmp_path: Path) -> None:
    (tmp_path / "all.txt").write_text(LINES)
    corpus = open_corpus(str(tmp_path / "all.txt"), split_seed=3)
    splits = {split: text_of(corpus, split) for split in corpora.SPLITS}
    assert sorted("".join(splits.values()).splitlines()) == sorted(LINES.splitlines())
    assert 0.8 < len(splits["train"]) / len(LINES) < 0.95
    assert min(map(len, splits.values())) > 0
    other = open_corpus(str(tmp_path / "all.txt"), split_seed=4)
    assert text_of(other, "valid") != splits["valid"]
    assert text_of(open_corpus(str(tmp_path / "all.txt"), split_seed=3), "valid") == splits["valid"]


def test_many_files_are_split_by_file(tmp_path: Path) -> None:
    for i in range(40):
        (tmp_path / f"{i:02}.txt").write_text(f"file {i}\n" * 3)
    corpus = open_corpus(str(tmp_path))
    found = {split: set(text_of(corpus, split).splitlines()) for split in corpora.SPLITS}
    assert [len(found[split]) for split in corpora.SPLITS] == [36, 2, 2]
    assert len(set.union(*found.values())) == 40


@given(st.integers(0, 2**40), st.integers(0, 10**6))
def test_of_every_20_documents_one_is_for_valid_and_one_for_test(seed: int, group: int) -> None:
    splits = [corpora.assigned_split(20 * group + i, seed) for i in range(20)]
    assert (splits.count("train"), splits.count("valid"), splits.count("test")) == (18, 1, 1)


def test_the_python_corpus_is_on_this_machine() -> None:
    corpus = open_corpus("python", limit=50_000)
    train, valid = text_of(corpus, "train"), text_of(corpus, "valid")
    assert len(train.encode()) == 50_000
    assert len(valid.encode()) == 5_000
    assert "import" in train
    assert corpus.digest("train") != corpus.digest("valid")


def test_the_digest_follows_the_text_the_seed_and_the_limit(tmp_path: Path) -> None:
    folder(tmp_path, train="a b c\n", valid="d\n", test="e\n")
    before = open_corpus(str(tmp_path)).digest("train")
    assert open_corpus(str(tmp_path), limit=3).digest("train") != before
    (tmp_path / "valid.txt").write_text("changed")
    assert open_corpus(str(tmp_path)).digest("train") == before
    (tmp_path / "train.txt").write_text("a b d\n")
    assert open_corpus(str(tmp_path)).digest("train") != before


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [0, 10, (1 << 20) - 2, 3 << 20])
@pytest.mark.parametrize("bad", [b"\xff", b"\xe2\x82", b"\xc3("])
def test_invalid_utf8_is_named_by_file_line_and_byte(tmp_path: Path, before: int, bad: bytes) -> None:
    content = (b"0123456\n" * (before // 8 + 1))[:before] + bad
    (tmp_path / "train.txt").write_bytes(content + b"\nmore")
    with pytest.raises(CorpusError) as error:
        text_of(open_corpus(str(tmp_path)), "train")
    line = content[:before].count(b"\n") + 1
    assert f"at byte {before} (line {line})" in str(error.value)
    assert "train.txt" in str(error.value)
    assert "--errors replace" in str(error.value)
    assert "�" in text_of(open_corpus(str(tmp_path), errors="replace"), "train")


def test_a_character_cut_off_at_the_end_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_bytes(b"ab\n\xe2\x82")
    with pytest.raises(CorpusError, match=r"at byte 3 \(line 2\)"):
        text_of(open_corpus(str(tmp_path)), "train")


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_compressed_bomb_is_not_read(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textfiles, "FREE_EXPANSION", 1 << 20)
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.ZstdCompressor().compress}[suffix]
    path = tmp_path / f"train.txt{suffix}"
    path.write_bytes(pack(b"\0" * (1 << 25)))
    with pytest.raises(CorpusError, match="expands to more than 200 times what was read of it"):
        text_of(open_corpus(str(tmp_path)), "train")


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_broken_archive_is_one_sentence(tmp_path: Path, suffix: str) -> None:
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.ZstdCompressor().compress}[suffix]
    path = tmp_path / f"train.txt{suffix}"
    path.write_bytes(pack(LINES.encode())[:-40])
    if suffix != ".zst":  # a stream of zstd that stops early ends, which is all that can be known of it
        with pytest.raises(CorpusError, match="cannot be read"):
            text_of(open_corpus(str(tmp_path)), "train")
    path.write_bytes(b"this is no archive")
    with pytest.raises(CorpusError, match="cannot be read"):
        text_of(open_corpus(str(tmp_path)), "train")


def test_each_mistake_about_a_corpus_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="There is no corpus 'nowhere'"):
        open_corpus("nowhere")
    with pytest.raises(CorpusError, match="holds no text"):
        open_corpus(str(tmp_path))
    folder(tmp_path, train="x")
    with pytest.raises(CorpusError, match=r"has no valid split.*found train"):
        text_of(open_corpus(str(tmp_path)), "valid")
    with pytest.raises(CorpusError, match="no split 'dev'"):
        text_of(open_corpus(str(tmp_path)), "dev")
    with pytest.raises(CorpusError, match="errors is 'ignore'"):
        open_corpus("python", errors="ignore")  # type: ignore[arg-type]
    with pytest.raises(CorpusError, match="at least 1"):
        open_corpus("python", limit=0)
    for content, expected in [
        ("{", "Line 1 .* is not JSON"),
        ('{"a": 1}', "Line 1 .* has no text"),
        ("[1]", "no text"),
    ]:
        (tmp_path / "test.jsonl").write_text(content)
        with pytest.raises(CorpusError, match=expected):
            text_of(open_corpus(str(tmp_path)), "test")


def test_empty_text_is_refused(tmp_path: Path) -> None:
    folder(tmp_path, train="")
    with pytest.raises(CorpusError, match=r"train split .* is empty"):
        tokenize(open_corpus(str(tmp_path)), "train", byte_tokenizer(), cache=tmp_path)
    assert not list((tmp_path / "tokens").iterdir())


# --- the hub ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default")
def test_a_data_set_is_streamed_through_datasets(tmp_path: Path, offline: None) -> None:
    for split in ("train", "validation"):
        rows = "\n".join(json.dumps({"text": f"{split} {i}"}) for i in range(5))
        (tmp_path / f"{split}.jsonl").write_text(rows)
    corpus = open_corpus(f"hub:{tmp_path}")
    assert text_of(corpus, "valid") == "".join(f"validation {i}" for i in range(5))
    with pytest.raises(CorpusError, match="no test split"):
        text_of(corpus, "test")


@pytest.mark.filterwarnings("default")
def test_a_data_set_without_splits_is_cut_by_the_seed(tmp_path: Path, offline: None) -> None:
    (tmp_path / "train.jsonl").write_text("\n".join(json.dumps({"content": f"{i};"}) for i in range(40)))
    corpus = open_corpus(f"hub:{tmp_path}")
    found = {split: text_of(corpus, split).split(";")[:-1] for split in corpora.SPLITS}
    assert [len(found[split]) for split in corpora.SPLITS] == [36, 2, 2]


@pytest.mark.filterwarnings("default")
def test_without_the_hub_a_name_fails_with_one_sentence(offline: None) -> None:
    with pytest.raises(CorpusError, match=r"'Salesforce/wikitext' cannot be read from the Hugging Face hub") as error:
        text_of(open_corpus("wikitext-103"), "train")
    assert "\n" not in str(error.value)


# --- tokens -----------------------------------------------------------------------------------------------------------


def test_bytes_are_tokens_and_come_back(tmp_path: Path) -> None:
    tokenizer = byte_tokenizer()
    text = "naïve\n\tx = 1  # ∑ \U0001f600"
    ids = tokenizer.encode(text).ids
    assert ids == list(text.encode())
    assert tokenizer.decode(ids) == text
    assert vocabulary_size(tokenizer) == 257


def test_bpe_is_the_same_each_time_and_is_kept(tmp_path: Path) -> None:
    corpus = open_corpus(str(folder(tmp_path / "text", train=LINES)))
    one = make_tokenizer("bpe", corpus, 300, tmp_path / "cache")
    two = train_bpe(corpus, 300)
    assert tokenizer_digest(one) == tokenizer_digest(two)
    assert vocabulary_size(one) == 300
    assert one.decode(one.encode(LINES[:1000]).ids) == LINES[:1000]
    kept = next((tmp_path / "cache" / "tokenizers").iterdir())
    kept.write_text("damaged")
    again = make_tokenizer("bpe", corpus, 300, tmp_path / "cache")
    assert tokenizer_digest(again) == tokenizer_digest(one)
    with pytest.raises(CorpusError, match="at least 257"):
        train_bpe(corpus, 256)


def test_a_tokenizer_can_be_given_by_path(tmp_path: Path, offline: None) -> None:
    path = tmp_path / "tokenizer.json"
    byte_tokenizer().save(str(path))
    for name in (path, tmp_path):
        assert tokenizer_digest(load_tokenizer(str(name))) == tokenizer_digest(byte_tokenizer())
    path.write_text("{}")
    with pytest.raises(CorpusError, match="not a tokenizer"):
        load_tokenizer(str(path))
    with pytest.raises(CorpusError, match="There is no tokenizer 'no/such'"):
        load_tokenizer("no/such")


def test_tokens_are_made_once_and_damage_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = open_corpus(str(folder(tmp_path / "text", train=LINES, valid="v")))
    tokenizer = byte_tokenizer()
    tokens = tokenize(corpus, "train", tokenizer, cache=tmp_path)
    assert tokens.ids.tolist() == [*LINES.encode(), 256]
    assert isinstance(tokens.ids, np.memmap)
    assert sha256_of(tokens.path) == tokens.sha256
    with monkeypatch.context() as patch:
        patch.setattr(data, "_write_tokens", lambda *_: pytest.fail("the tokens were made again"))
        assert tokenize(corpus, "train", tokenizer, cache=tmp_path).sha256 == tokens.sha256
    with tokens.path.open("r+b") as file:
        file.write(b"\xff")
    assert tokenize(corpus, "train", tokenizer, cache=tmp_path).ids.tolist() == [*LINES.encode(), 256]
    os.truncate(tokens.path, 100)
    assert tokenize(corpus, "train", tokenizer, cache=tmp_path).ids.tolist() == [*LINES.encode(), 256]
    assert [p.name for p in (tmp_path / "tokens").iterdir()] == [tokens.path.parent.name]


@pytest.mark.parametrize("limit", [None, 3000])
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.xz", ".txt.zst", ".jsonl"])
@pytest.mark.parametrize("moment", ["hashed", "opened", "read"])
def test_a_save_in_between_stores_nothing_under_another_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, limit: int | None, moment: str
) -> None:
    """A file is saved after it was hashed, once it is open, or while it is read; both contents are then asked for.

    Blocks of 4 KB, so that a save while reading is seen in part: such a mixture is neither's text.
    """
    monkeypatch.setattr(textfiles, "BLOCK", 4096)
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.ZstdCompressor().compress}
    draw = np.random.default_rng(5)

    def packed(word: str) -> bytes:
        lines = [f"{word} {number}" for number in draw.integers(10**9, size=2000)]
        text = "".join(json.dumps({"text": line}) + "\n" if suffix == ".jsonl" else line + "\n" for line in lines)
        return pack.get(path.suffix, bytes)(text.encode())

    path = tmp_path / "text" / f"train{suffix}"
    contents = [packed("first"), packed("other")]
    path.parent.mkdir()
    path.write_bytes(contents[0])
    corpus, tokenizer, saves = open_corpus(str(path.parent), limit=limit), byte_tokenizer(), []

    def save() -> None:
        if not saves:
            saves.append(path.write_bytes(contents[1]))

    class Watched(textfiles.HashedFile):
        def __init__(self, path: Path) -> None:
            super().__init__(path)
            if moment == "opened":
                save()

        def readinto(self, buffer: object) -> int:
            count = super().readinto(buffer)
            if moment == "read":
                save()
            return count

    def hashed(path: Path) -> str:
        value = sha256_of(path)
        if moment == "hashed":
            save()
        return value

    with monkeypatch.context() as patch:
        patch.setattr(textfiles, "HashedFile", Watched)
        patch.setattr(corpora, "sha256_of", hashed)
        with contextlib.suppress(CorpusError):  # half an archive with another's end
            tokenize(corpus, "train", tokenizer, cache=tmp_path)
        assert saves
        saves.clear()
        path.write_bytes(contents[0])
        with contextlib.suppress(CorpusError):
            make_tokenizer("bpe", corpus, 300, tmp_path)
        assert saves
    for number, content in enumerate(contents):
        path.write_bytes(content)
        fresh = tmp_path / f"fresh{number}"
        assert tokenize(corpus, "train", tokenizer, cache=tmp_path).ids.tolist() == (
            tokenize(corpus, "train", tokenizer, cache=fresh).ids.tolist()
        )
        assert tokenizer_digest(make_tokenizer("bpe", corpus, 300, tmp_path)) == (
            tokenizer_digest(train_bpe(corpus, 300))
        )


def test_a_file_that_is_read_in_part_has_the_key_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So tokens that a limit cut off are found again, and are not made twice."""
    monkeypatch.setattr(textfiles, "BLOCK", 4096)
    corpus = open_corpus(str(folder(tmp_path / "text", train=LINES)), limit=100)
    files = textfiles.FilesRead()
    assert sum(len(passage.text) for passage in corpus.passages("train", files)) == 100
    assert corpus.digest("train", files) == corpus.digest("train")
    (tmp_path / "text" / "train.txt").write_text("other")
    assert corpus.digest("train", files) != corpus.digest("train")


def test_what_is_added_to_a_file_after_its_end_was_read_is_not_in_the_key(tmp_path: Path) -> None:
    corpus, files = open_corpus(str(folder(tmp_path / "text", train=LINES))), textfiles.FilesRead()
    before = corpus.digest("train")
    assert "".join(passage.text for passage in corpus.passages("train", files)) == LINES
    (tmp_path / "text" / "train.txt").write_text(LINES + "more")
    assert corpus.digest("train", files) == before != corpus.digest("train")


def test_a_document_ends_with_the_end_token(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"text": "a"}\n{"text": "bc"}')
    tokens = tokenize(open_corpus(str(tmp_path)), "train", byte_tokenizer(), cache=tmp_path)
    assert tokens.ids.tolist() == [97, 256, 98, 99, 256]


def test_transformers_reads_our_tokenizer(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    for_transformers(byte_tokenizer()).save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert loaded("a\n é")["input_ids"] == list("a\n é".encode())
    assert loaded.decode(loaded("a\n é , b")["input_ids"]) == "a\n é , b"
    assert loaded.eos_token_id == 256
