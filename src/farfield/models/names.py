"""Which position each family of models uses, with its source: so that the name of a model is not read as a formula.

A name is compared without its owner on the hub, in small letters, with hyphens for spaces, dots and underscores, and
what follows the family's name (a size, a version) is left away. The more particular family stands first. This file
imports nothing of ours: the zoo, far below this room, asks it.
"""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple

POSITIONS = {"rope": "RoPE", "alibi": "ALiBi", "learned": "learned absolute positions", "none": "no position",
             "t5": "T5's buckets", "sinusoidal": "sinusoids"}  # fmt: skip


class ModelFamily(NamedTuple):
    """A family of models, or of encodings without a formula of their own."""

    name: str  # as its authors write it
    pattern: str  # the names that belong to it, as a regular expression
    has: str  # what its layers have: a key of POSITIONS, or words
    source: str  # who says so

    @property
    def encoding(self) -> str | None:
        """The one encoding of the zoo that all its layers have; None where they differ or it has none."""
        return self.has if self.has in POSITIONS and self.has != "learned" else None

    @property
    def position(self) -> str:
        """What its layers have, in words."""
        return POSITIONS.get(self.has, self.has)


_LEARNED = "learned absolute positions, added to the token embeddings"

FAMILIES = tuple(ModelFamily(*row) for row in (
    ("Mamba and its hybrids", "(falcon-?|codestral-)?mamba|[jzb]amba|falcon-?h1|nemotron-h|kimi-linear|granite-?4"
     "|phi-4-mini-flash|recurrent-?gemma|griffin|olmo-hybrid|qwen-?3-next|qwen-?3-5",
     "a recurrent state in most layers, attention in few or none", "Gu, Dao 2023, arXiv:2312.00752, model cards"),
    ("BLOOM", "bloomz?", "alibi", "Scao et al. 2022, arXiv:2211.05100"),
    ("MPT", "mpt", "alibi", "MosaicML 2023, huggingface.co/mosaicml/mpt-7b"),
    ("Falcon-RW", "falcon-?rw", "alibi", "Penedo et al. 2023, arXiv:2306.01116"),
    ("Falcon", r"falcon-?[23]?-?\d+b", "rope", "Almazrouei et al. 2023, arXiv:2311.16867"),
    ("Falcon", "falcon", "ALiBi in Falcon-RW, RoPE in the others", "Almazrouei et al. 2023, arXiv:2311.16867"),
    ("Baichuan-13B", "baichuan-?2?-13b", "alibi", "Baichuan 2023, arXiv:2309.10305"),
    ("Baichuan-7B", "baichuan-?2?-7b", "rope", "Baichuan 2023, arXiv:2309.10305"),
    ("Baichuan", "baichuan", "RoPE in the 7B models, ALiBi in the 13B models", "Baichuan, arXiv:2309.10305"),
    ("JAIS", "jais", "alibi", "Sengupta et al. 2023, arXiv:2308.16149"),
    ("BTLM", "btlm", "alibi", "Dey et al. 2023, arXiv:2309.11568"),
    ("Replit Code", "replit(-code)?", "alibi", "Replit 2023, huggingface.co/replit/replit-code-v1-3b"),
    ("Step-1", "step-?1", "ALiBi with a square root", "StepFun 2024; use_alibi_sqrt in vLLM"),
    ("Llama 4", "llama-?4", "RoPE in chunks, and no position in every fourth layer", "Meta 2025, model card"),
    ("Llama", "(code-?|meta-?|open-?|tiny-?)*llama", "rope", "Touvron et al. 2023, arXiv:2302.13971"),
    ("Vicuna", "vicuna|alpaca|wizard-?lm|orca", "rope", "models of Llama: Touvron et al. 2023, arXiv:2302.13971"),
    ("Qwen", "(code)?qwen(?!-?[4-9])|qwq", "rope", "Bai et al. 2023, arXiv:2309.16609"),
    ("Mistral 7B v0.1", "mistral-7b(-instruct)?-v0-1", "RoPE in a window of 4096", "arXiv:2310.06825"),
    ("Mistral", "mistral", "RoPE, in version 0.1 within a window of 4096", "Jiang et al. 2023, arXiv:2310.06825"),
    ("Mixtral", "mixtral|mathstral|devstral", "rope", "Jiang et al. 2024, arXiv:2401.04088"),
    ("Gemma 2", "gemma-?2-", "RoPE; every second layer in a window of 4096; soft caps", "arXiv:2408.00118"),
    ("Gemma 3", "gemma-?3n?", "RoPE; five of six layers in a window of 1024 or less", "arXiv:2503.19786"),
    ("Gemma", "gemma-?[27]b|codegemma", "rope", "Gemma Team 2024, arXiv:2403.08295"),
    ("Gemma", "gemma", "RoPE, from Gemma 2 on with windows", "arXiv:2403.08295, 2408.00118, 2503.19786"),
    ("gpt-oss", "gpt-?oss", "RoPE; every second layer in a window of 128; sinks", "OpenAI, arXiv:2508.10925"),
    ("GPT-NeoX", "gpt-?neo-?x|pythia|dolly", "rope", "Black et al. 2022, arXiv:2204.06745"),
    ("GPT-Neo", "gpt-?neo", f"{_LEARNED}; every second layer in a window of 256", "EleutherAI 2021"),
    ("GPT-J", "gpt-?j", "rope", "Wang, Komatsuzaki 2021"),
    ("GPT-2", "(distil)?gpt-?[12]|cerebras-gpt|dialogpt", _LEARNED, "Radford et al. 2019"),
    ("GPT-3", "gpt-?3", _LEARNED, "Brown et al. 2020, arXiv:2005.14165"),
    ("GPT", "gpt|chat-?gpt|claude|gemini|grok", "positions that differ or are not published", "no source"),
    ("OPT", "opt", _LEARNED, "Zhang et al. 2022, arXiv:2205.01068"),
    ("StarCoder 2", "starcoder-?2", "RoPE in a window of 4096", "Lozhkov et al. 2024, arXiv:2402.19173"),
    ("StarCoder", "starcoder|santacoder|gpt-?big-?code", _LEARNED, "Li et al. 2023, arXiv:2305.06161"),
    ("Phi-3", "phi-?3", "RoPE, in the small models within a window of 2047", "arXiv:2404.14219"),
    ("Phi", "phi-?[124]", "rope", "Li et al. 2023, arXiv:2309.05463"),
    ("OLMo 3", "olmo-?3", "RoPE; three of four layers in a window of 4096", "Ai2 2025, model card"),
    ("OLMo", "olmoe?", "rope", "OLMo Team 2024, arXiv:2402.00838, 2501.00656"),
    ("SmolLM3", "smollm-?3", "RoPE, and no position in every fourth layer", "Hugging Face 2025, model card"),
    ("SmolLM", "smollm", "rope", "Allal et al. 2025, arXiv:2502.02737"),
    ("Command R7B and A", "c4ai-command-(r7b|a)|command-(r7b|a)|cohere-?2",
     "RoPE in windows of 4096, and no position in every fourth layer", "Cohere 2025, arXiv:2504.00698"),
    ("Command R", "(c4ai-)?command-r|cohere|aya-(23|expanse)", "rope", "Cohere 2024, model card"),
    ("EXAONE 4", "exaone-?4", "RoPE in windows of 4096; whole layers without position", "arXiv:2507.11407"),
    ("EXAONE", "exaone-?3", "rope", "LG AI Research 2024, arXiv:2412.04862"),
    ("DeepSeek", "deepseek|kimi|moonlight", "RoPE, from V2 on in part of each head", "arXiv:2405.04434"),
    ("Yi", "yi", "rope", "01.AI 2024, arXiv:2403.04652"),
    ("InternLM", "internlm", "rope", "Cai et al. 2024, arXiv:2403.17297"),
    ("GLM", "chatglm-?[23]?|glm-?4", "rope", "GLM Team 2024, arXiv:2406.12793"),
    ("StableLM", "stable-?lm", "rope", "Bellagente et al. 2024, arXiv:2402.17834"),
    ("Granite", "granite-?(code|3|7b)", "rope", "Mishra et al. 2024, arXiv:2405.04324"),
    ("Nemotron", "nemotron-?4|minitron", "rope", "Parmar et al. 2024, arXiv:2402.16819"),
    ("MiniCPM", "minicpm(?!-?[4o])", "rope", "Hu et al. 2024, arXiv:2404.06395"),
    ("PaLM", "palm", "rope", "Chowdhery et al. 2022, arXiv:2204.02311"),
    ("CodeGen", "codegen", "rope", "Nijkamp et al. 2022, arXiv:2203.13474"),
    ("DBRX", "dbrx", "rope", "Databricks 2024, model card"),
    ("T5", "(flan-?|m|by|um|long-?)*t5|ul2|flan-ul2", "t5", "arXiv:1910.10683"),
    ("BERT", "(distil|al|ro|mo?)?bert(a)?|electra|bart|roberta", _LEARNED, "arXiv:1810.04805"),
    ("Transformer-XL", "transformer-?xl|xlnet", "sinusoids of the distance times content", "arXiv:1901.02860"),
    ("Swin, ViT", "swin|vit|deit", "a table by distance in the image, or learned positions", "arXiv:2103.14030"),
    ("RWKV", "rwkv", "weights that decay with the distance, by channel", "Peng et al. 2023, arXiv:2305.13048"),
    ("RetNet", "retnet", "weights gamma**t by head, without a softmax", "Sun et al. 2023, arXiv:2307.08621"),
    ("xPos", "xpos|lex", "RoPE times a decay", "Sun et al. 2022, arXiv:2212.10554"),
    ("FoX", "fox|forgetting-transformer", "a gate of the content: the sum of log f", "arXiv:2503.02130"),
    ("CABLE", "cable", "a bias of the content, summed over the distance", "Veisi et al. 2025, arXiv:2503.08067"),
    ("FIRE", "fire", "a learned function of log(distance)/log(row)", "Li et al. 2023, arXiv:2310.04418"),
    ("CoPE", "cope", "positions counted by the content", "Golovneva et al. 2024, arXiv:2405.18719"),
    ("DAPE", "dape", "a bias corrected by the content", "Zheng et al. 2024, arXiv:2405.14722"),
    ("BiPE", "bipe", "positions within and between segments", "He et al. 2024, arXiv:2401.16421"),
    ("StreamingLLM", "streaming-?llm", "a window and the first tokens", "Xiao et al. 2023, arXiv:2309.17453"),
    ("NoPE", "nope|no-position", "none", "Haviv et al. 2022, arXiv:2203.16634"),
    ("RoPE", "rotary|ro-?former|yarn|ntk|long-?rope|pose", "rope", "Su et al. 2021, arXiv:2104.09864"),
    ("KERPLE", "kerple(?!-)", "two forms: kerple-log and kerple-power", "Chi et al. 2022, arXiv:2205.09921"),
    ("sinusoids", "sine|sinusoids?", "sinusoidal", "Vaswani et al. 2017, arXiv:1706.03762"),
))  # fmt: skip

_WORDS = sorted({re.sub(r"[^a-z0-9-]", "", f.name.lower().replace(" ", "-")) for f in FAMILIES})


def normal(name: str) -> str:
    """A name as the patterns know it: without the owner, in small letters, with hyphens."""
    last = name.strip().rstrip("/").rpartition("/")[2]
    return re.sub(r"[\s_.:]+", "-", last.lower()).strip("-")


def family_of(name: str) -> ModelFamily | None:
    """The family that a model's name belongs to, if it is known."""
    for family in FAMILIES:
        end = ".*" if family.pattern.endswith("-") else r"(?:[-\d].*)?"
        if re.fullmatch(f"(?:{family.pattern}){end}", normal(name)):
            return family
    return None


def near_family(name: str) -> str | None:
    """The family's name that a misspelt one comes closest to."""
    near = difflib.get_close_matches(normal(name)[:40], _WORDS, 1, cutoff=0.75)
    return near[0] if near else None
