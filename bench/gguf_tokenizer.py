"""The tokenizer of a GGUF model as a Hugging Face folder, so that tools which insist on one need no network: the byte-level
BPE vocabulary and merges in the file's own metadata become tokenizer.json. Left out: other tokenizer families (refused)."""

import json
import pathlib
import struct

SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
STRING, ARRAY = 8, 9
CONTROL, USER_DEFINED = 3, 4  # token types that are matched whole, before the pre-tokenizer


class Reader:
    def __init__(self, file):
        self._file = file

    def scalar(self, layout):
        return struct.unpack(layout, self._file.read(struct.calcsize(layout)))[0]

    def string(self):
        return self._file.read(self.scalar("<Q")).decode()

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            inner, count = self.scalar("<I"), self.scalar("<Q")
            return [self.value(inner) for _ in range(count)]
        return self.scalar(SCALARS[kind])


def metadata(path):
    with open(path, "rb") as file:
        reader = Reader(file)
        if file.read(4) != b"GGUF":
            raise ValueError(f"{path} is not a GGUF file")
        reader.scalar("<I")
        reader.scalar("<Q")
        return {reader.string(): reader.value(reader.scalar("<I")) for _ in range(reader.scalar("<Q"))}


def tokenizer(meta):
    tokens, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    whole = [{"id": i, "content": tokens[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": kind == CONTROL} for i, kind in enumerate(types) if kind in (CONTROL, USER_DEFINED)]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": whole, "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]},
            "post_processor": None, "decoder": byte_level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                      "fuse_unk": False, "byte_fallback": False, "vocab": {token: i for i, token in enumerate(tokens)},
                      "merges": meta["tokenizer.ggml.merges"]}}


def write(gguf, folder):
    """Writes the folder if it is not there, and returns its path."""
    folder = pathlib.Path(folder)
    if (folder / "tokenizer_config.json").exists():
        return folder
    meta = metadata(gguf)
    if meta.get("tokenizer.ggml.pre") != "smollm":
        raise ValueError(f"{gguf}: only the byte-level BPE of SmolLM2 is known here, not {meta.get('tokenizer.ggml.pre')!r}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer(meta)))
    end = meta["tokenizer.ggml.tokens"][meta["tokenizer.ggml.eos_token_id"]]
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "model_max_length": 8192, "chat_template": meta.get("tokenizer.chat_template")}))
    return folder
