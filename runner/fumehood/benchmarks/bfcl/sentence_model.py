"""A sentence-transformers model with BERT's architecture, such as all-MiniLM-L6-v2, on NumPy.

Sources: Devlin et al., "BERT" (arXiv 1810.04805); Reimers and Gurevych, "Sentence-BERT" (arXiv
1908.10084): mean of the token vectors, then length 1. The format of the weights is safetensors.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fumehood.core.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

WEIGHTS = "model.safetensors"
FILES = ("config.json", "tokenizer.json", WEIGHTS)
TOKENS_MAX = 256
"""Unless ``sentence_bert_config.json`` states another limit."""
WORD_CHARACTERS_MAX = 100
"""Of a word that is split into pieces. Source: the field of ``tokenizer.json``."""
_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Abramowitz and Stegun, formula 7.1.26, with an error of at most 1.5e-7."""
_CJK = ((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2CEAF), (0xF900, 0xFAFF))


def weights_digest(folder: Path) -> str:
    """Return the SHA-256 of a model's weights, after a check of its files.

    Raises:
        InputError: The folder is not a model that can be used.
    """
    for name in FILES:
        if not (folder / name).is_file():
            raise InputError(
                f"{folder}: has no {name}; it must be the folder of a sentence-transformers model"
            )
    config = _read(folder / "config.json")
    pooling = folder / "1_Pooling" / "config.json"
    if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
        raise InputError(f"{folder}: config.json: only models of type bert with gelu are supported")
    if pooling.is_file() and not _read(pooling).get("pooling_mode_mean_tokens"):
        raise InputError(f"{folder}: {pooling.name}: only the mean of all tokens is supported")
    vocabulary = _read(folder / "tokenizer.json").get("model", {}).get("vocab")
    if not isinstance(vocabulary, dict) or not {"[CLS]", "[SEP]", "[UNK]"} <= set(vocabulary):
        raise InputError(f"{folder}: tokenizer.json: has no vocabulary of word pieces")
    missing = [name for name in _names(config) if name not in _header(folder / WEIGHTS)[0]]
    if missing:
        raise InputError(f"{folder}: {WEIGHTS}: has no {missing[0]} (and {len(missing) - 1} more)")
    with (folder / WEIGHTS).open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


class SentenceModel:
    """A model in memory."""

    def __init__(self, folder: Path) -> None:
        """Read the files of a folder that :func:`weights_digest` accepts."""
        config = _read(folder / "config.json")
        limits = folder / "sentence_bert_config.json"
        limit = _read(limits).get("max_seq_length") if limits.is_file() else None
        self._tokens_max: int = limit or TOKENS_MAX
        self._vocabulary: Mapping[str, int] = _read(folder / "tokenizer.json")["model"]["vocab"]
        self._weights = _load(folder / WEIGHTS, _names(config))
        self._layers: int = config["num_hidden_layers"]
        self._heads: int = config["num_attention_heads"]
        self._epsilon: float = config["layer_norm_eps"]

    def embed(self, text: str) -> Array:
        """Return the vector of a text."""
        import numpy as np

        hidden = self._first(self.tokens(text))
        for number in range(self._layers):
            hidden = self._layer(hidden, f"encoder.layer.{number}")
        mean = hidden.mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)

    def tokens(self, text: str) -> list[int]:
        """Return the numbers of a text's word pieces, between those of [CLS] and [SEP]."""
        words = islice(_words(text), self._tokens_max)
        pieces = [piece for word in words for piece in self._pieces(word)]
        inner = pieces[: self._tokens_max - 2]
        return [self._vocabulary["[CLS]"], *inner, self._vocabulary["[SEP]"]]

    def _pieces(self, word: str) -> Sequence[int]:
        """Return the longest known pieces, from the left."""
        unknown = [self._vocabulary["[UNK]"]]
        if len(word) > WORD_CHARACTERS_MAX:
            return unknown
        pieces, begin = [], 0
        while begin < len(word):
            prefix = "##" if begin else ""
            ends = range(len(word), begin, -1)
            known = (end for end in ends if prefix + word[begin:end] in self._vocabulary)
            end = next(known, None)
            if end is None:
                return unknown
            pieces.append(self._vocabulary[prefix + word[begin:end]])
            begin = end
        return pieces

    def _first(self, tokens: Sequence[int]) -> Array:
        embedded = (
            self._weights["embeddings.word_embeddings.weight"][tokens]
            + self._weights["embeddings.position_embeddings.weight"][: len(tokens)]
            + self._weights["embeddings.token_type_embeddings.weight"][0]
        )
        return self._norm(embedded, "embeddings.LayerNorm")

    def _layer(self, hidden: Array, name: str) -> Array:
        attended = self._dense(
            self._attend(hidden, f"{name}.attention.self"), f"{name}.attention.output.dense"
        )
        hidden = self._norm(hidden + attended, f"{name}.attention.output.LayerNorm")
        inner = _gelu(self._dense(hidden, f"{name}.intermediate.dense"))
        outer = self._dense(inner, f"{name}.output.dense")
        return self._norm(hidden + outer, f"{name}.output.LayerNorm")

    def _attend(self, hidden: Array, name: str) -> Array:
        import numpy as np

        length, size = hidden.shape
        query, key, value = (
            self._dense(hidden, f"{name}.{part}").reshape(length, self._heads, -1).swapaxes(0, 1)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / np.sqrt(size / self._heads, dtype=np.float32)
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights /= weights.sum(axis=2, keepdims=True)
        joined: Array = (weights @ value).swapaxes(0, 1).reshape(length, size)
        return joined

    def _dense(self, values: Array, name: str) -> Array:
        result: Array = values @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return result

    def _norm(self, values: Array, name: str) -> Array:
        import numpy as np

        centred = values - values.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred**2).mean(axis=1, keepdims=True) + self._epsilon)
        scale, shift = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return np.asarray(centred / spread * scale + shift, dtype=np.float32)


def _gelu(values: Array) -> Array:
    import numpy as np

    size = np.abs(values) / np.sqrt(2)
    step = 1 / (1 + 0.3275911 * size)
    polynomial = sum(factor * step ** (power + 1) for power, factor in enumerate(_ERF))
    erf = np.sign(values) * (1 - polynomial * np.exp(-(size**2)))
    return np.asarray(values * (1 + erf) / 2, dtype=np.float32)


def _words(text: str) -> Iterator[str]:
    """Yield the words and punctuation marks of a text, in lower case and without accents."""
    word = ""
    for character in unicodedata.normalize("NFD", text.lower()):
        category = unicodedata.category(character)
        is_control = category in ("Cc", "Cf", "Co", "Cs", "Cn") and character not in "\t\n\r"
        if category == "Mn" or is_control:
            continue
        is_space = character.isspace()
        is_mark = not is_space and (
            category.startswith("P") or (character.isascii() and not character.isalnum())
        )
        if is_space or is_mark or _is_cjk(character):
            if word:
                yield word
            word = ""
            if not is_space:
                yield character
        else:
            word += character
    if word:
        yield word


def _is_cjk(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _CJK)


def _names(config: Mapping[str, Any]) -> list[str]:
    """Return the names of all weights."""
    embeddings = [
        f"embeddings.{kind}_embeddings.weight" for kind in ("word", "position", "token_type")
    ]
    inner = (
        *(f"attention.self.{part}" for part in ("query", "key", "value")),
        *("attention.output.dense", "attention.output.LayerNorm", "intermediate.dense"),
        *("output.dense", "output.LayerNorm"),
    )
    layers = range(int(config.get("num_hidden_layers", 0)))
    pairs = [
        "embeddings.LayerNorm",
        *(f"encoder.layer.{n}.{part}" for n in layers for part in inner),
    ]
    return [*embeddings, *(f"{name}.{end}" for name in pairs for end in ("weight", "bias"))]


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the table of tensors, and the offset of their bytes."""
    with path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        try:
            table = json.loads(stream.read(min(size, path.stat().st_size)))
        except (ValueError, RecursionError):
            table = None
    if not isinstance(table, dict):
        raise InputError(f"{path}: is not a file in the format safetensors")
    return table, 8 + size


def _load(path: Path, names: Sequence[str]) -> dict[str, Array]:
    import numpy as np

    table, offset = _header(path)
    content = np.fromfile(path, dtype=np.uint8, offset=offset)
    weights = {}
    for name in names:
        entry = table[name]
        begin, end = entry["data_offsets"]
        if entry["dtype"] != "F32":
            raise InputError(f"{path}: {name}: must be of type F32")
        weights[name] = np.array(content[begin:end].view(np.float32)).reshape(entry["shape"])
    return weights


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {error}") from None
    return value if isinstance(value, dict) else {}
