"""Which position each family of models uses, with its source: so that the name of a model is not read as a formula.

A name is compared without its owner on the hub, in small letters, with hyphens for spaces, dots and underscores, and
whatever follows the family's name (a size, a version) is left away. The more particular family stands first.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """A family of models, or of encodings without a formula of their own.

    Attributes:
        name: as its authors write it.
        pattern: the names that belong to it, as a regular expression.
        position: what its layers have, in words.
        encoding: the one encoding of the zoo that all its layers have; None where they differ or it has none.
        source: who says so.
    """

    name: str
    pattern: str
    position: str
    encoding: str | None
    source: str


def _rope(name: str, pattern: str, source: str) -> Family:
    return Family(name, pattern, "RoPE", "rope", source)


def _alibi(name: str, pattern: str, source: str) -> Family:
    return Family(name, pattern, "ALiBi", "alibi", source)


def _mixed(name: str, pattern: str, position: str, source: str) -> Family:
    return Family(name, pattern, position, None, source)


_LEARNED = "learned absolute positions, added to the token embeddings"

FAMILIES: tuple[Family, ...] = (
    _mixed(
        "Mamba and its hybrids",
        "(falcon-?|codestral-)?mamba|[jzb]amba|falcon-?h1|nemotron-h|kimi-linear|granite-?4|phi-4-mini-flash"
        "|recurrent-?gemma|griffin|olmo-hybrid|qwen-?3-next|qwen-?3-5",
        "a recurrent state in most layers, attention in few or none",
        "Gu, Dao 2023, arXiv:2312.00752, and the model cards",
    ),
    _alibi("BLOOM", "bloomz?", "Scao et al. 2022, arXiv:2211.05100"),
    _alibi("MPT", "mpt", "MosaicML 2023, huggingface.co/mosaicml/mpt-7b"),
    _alibi("Falcon-RW", "falcon-?rw", "Penedo et al. 2023, arXiv:2306.01116"),
    _rope("Falcon", r"falcon-?[23]?-?\d+b", "Almazrouei et al. 2023, arXiv:2311.16867"),
    _mixed("Falcon", "falcon", "ALiBi in Falcon-RW, RoPE in the others", "Almazrouei et al. 2023, arXiv:2311.16867"),
    _alibi("Baichuan-13B", "baichuan-?2?-13b", "Baichuan 2023, arXiv:2309.10305"),
    _rope("Baichuan-7B", "baichuan-?2?-7b", "Baichuan 2023, arXiv:2309.10305"),
    _mixed("Baichuan", "baichuan", "RoPE in the 7B models, ALiBi in the 13B models", "Baichuan, arXiv:2309.10305"),
    _alibi("JAIS", "jais", "Sengupta et al. 2023, arXiv:2308.16149"),
    _alibi("BTLM", "btlm", "Dey et al. 2023, arXiv:2309.11568"),
    _alibi("Replit Code", "replit(-code)?", "Replit 2023, huggingface.co/replit/replit-code-v1-3b"),
    _mixed("Step-1", "step-?1", "ALiBi with a square root", "StepFun 2024; use_alibi_sqrt in vLLM"),
    _mixed("Llama 4", "llama-?4", "RoPE in chunks, and no position in every fourth layer", "Meta 2025, model card"),
    _rope("Llama", "(code-?|meta-?|open-?|tiny-?)*llama", "Touvron et al. 2023, arXiv:2302.13971"),
    _rope("Vicuna", "vicuna|alpaca|wizard-?lm|orca", "models of Llama: Touvron et al. 2023, arXiv:2302.13971"),
    _rope("Qwen", "(code)?qwen(?!-?[4-9])|qwq", "Bai et al. 2023, arXiv:2309.16609"),
    _mixed("Mistral 7B v0.1", "mistral-7b(-instruct)?-v0-1", "RoPE in a window of 4096", "arXiv:2310.06825"),
    _mixed("Mistral", "mistral", "RoPE, in version 0.1 within a window of 4096", "Jiang et al. 2023, arXiv:2310.06825"),
    _rope("Mixtral", "mixtral|mathstral|devstral", "Jiang et al. 2024, arXiv:2401.04088"),
    _mixed("Gemma 2", "gemma-?2-", "RoPE; every second layer in a window of 4096; soft caps", "arXiv:2408.00118"),
    _mixed("Gemma 3", "gemma-?3n?", "RoPE; five of six layers in a window of 1024 or less", "arXiv:2503.19786"),
    _rope("Gemma", "gemma-?[27]b|codegemma", "Gemma Team 2024, arXiv:2403.08295"),
    _mixed("Gemma", "gemma", "RoPE, from Gemma 2 on with windows", "arXiv:2403.08295, 2408.00118, 2503.19786"),
    _mixed("gpt-oss", "gpt-?oss", "RoPE; every second layer in a window of 128; sinks", "OpenAI, arXiv:2508.10925"),
    _rope("GPT-NeoX", "gpt-?neo-?x|pythia|dolly", "Black et al. 2022, arXiv:2204.06745"),
    _mixed("GPT-Neo", "gpt-?neo", f"{_LEARNED}; every second layer in a window of 256", "EleutherAI 2021"),
    _rope("GPT-J", "gpt-?j", "Wang, Komatsuzaki 2021"),
    _mixed("GPT-2", "(distil)?gpt-?[12]|cerebras-gpt|dialogpt", _LEARNED, "Radford et al. 2019"),
    _mixed("GPT-3", "gpt-?3", _LEARNED, "Brown et al. 2020, arXiv:2005.14165"),
    _mixed("GPT", "gpt|chat-?gpt|claude|gemini|grok", "positions that differ or are not published", "no source"),
    _mixed("OPT", "opt", _LEARNED, "Zhang et al. 2022, arXiv:2205.01068"),
    _mixed("StarCoder 2", "starcoder-?2", "RoPE in a window of 4096", "Lozhkov et al. 2024, arXiv:2402.19173"),
    _mixed("StarCoder", "starcoder|santacoder|gpt-?big-?code", _LEARNED, "Li et al. 2023, arXiv:2305.06161"),
    _mixed("Phi-3", "phi-?3", "RoPE, in the small models within a window of 2047", "arXiv:2404.14219"),
    _rope("Phi", "phi-?[124]", "Li et al. 2023, arXiv:2309.05463"),
    _mixed("OLMo 3", "olmo-?3", "RoPE; three of four layers in a window of 4096", "Ai2 2025, model card"),
    _rope("OLMo", "olmoe?", "OLMo Team 2024, arXiv:2402.00838, 2501.00656"),
    _mixed("SmolLM3", "smollm-?3", "RoPE, and no position in every fourth layer", "Hugging Face 2025, model card"),
    _rope("SmolLM", "smollm", "Allal et al. 2025, arXiv:2502.02737"),
    _mixed(
        "Command R7B and A",
        "c4ai-command-(r7b|a)|command-(r7b|a)|cohere-?2",
        "RoPE in windows of 4096, and no position in every fourth layer",
        "Cohere 2025, arXiv:2504.00698",
    ),
    _rope("Command R", "(c4ai-)?command-r|cohere|aya-(23|expanse)", "Cohere 2024, model card"),
    _mixed("EXAONE 4", "exaone-?4", "RoPE in windows of 4096; whole layers without position", "arXiv:2507.11407"),
    _rope("EXAONE", "exaone-?3", "LG AI Research 2024, arXiv:2412.04862"),
    _mixed("DeepSeek", "deepseek|kimi|moonlight", "RoPE, from V2 on in part of each head", "arXiv:2405.04434"),
    _rope("Yi", "yi", "01.AI 2024, arXiv:2403.04652"),
    _rope("InternLM", "internlm", "Cai et al. 2024, arXiv:2403.17297"),
    _rope("GLM", "chatglm-?[23]?|glm-?4", "GLM Team 2024, arXiv:2406.12793"),
    _rope("StableLM", "stable-?lm", "Bellagente et al. 2024, arXiv:2402.17834"),
    _rope("Granite", "granite-?(code|3|7b)", "Mishra et al. 2024, arXiv:2405.04324"),
    _rope("Nemotron", "nemotron-?4|minitron", "Parmar et al. 2024, arXiv:2402.16819"),
    _rope("MiniCPM", "minicpm(?!-?[4o])", "Hu et al. 2024, arXiv:2404.06395"),
    _rope("PaLM", "palm", "Chowdhery et al. 2022, arXiv:2204.02311"),
    _rope("CodeGen", "codegen", "Nijkamp et al. 2022, arXiv:2203.13474"),
    _rope("DBRX", "dbrx", "Databricks 2024, model card"),
    Family("T5", "(flan-?|m|by|um|long-?)*t5|ul2|flan-ul2", "T5's buckets", "t5", "arXiv:1910.10683"),
    _mixed("BERT", "(distil|al|ro|mo?)?bert(a)?|electra|bart|roberta", _LEARNED, "arXiv:1810.04805"),
    _mixed("Transformer-XL", "transformer-?xl|xlnet", "sinusoids of the distance times content", "arXiv:1901.02860"),
    _mixed("Swin, ViT", "swin|vit|deit", "a table by distance in the image, or learned positions", "arXiv:2103.14030"),
    _mixed("RWKV", "rwkv", "weights that decay with the distance, by channel", "Peng et al. 2023, arXiv:2305.13048"),
    _mixed("RetNet", "retnet", "weights gamma**t by head, without a softmax", "Sun et al. 2023, arXiv:2307.08621"),
    _mixed("xPos", "xpos|lex", "RoPE times a decay", "Sun et al. 2022, arXiv:2212.10554"),
    _mixed("FoX", "fox|forgetting-transformer", "a gate of the content: the sum of log f", "arXiv:2503.02130"),
    _mixed("CABLE", "cable", "a bias of the content, summed over the distance", "Veisi et al. 2025, arXiv:2503.08067"),
    _mixed("FIRE", "fire", "a learned function of log(distance)/log(row)", "Li et al. 2023, arXiv:2310.04418"),
    _mixed("CoPE", "cope", "positions counted by the content", "Golovneva et al. 2024, arXiv:2405.18719"),
    _mixed("DAPE", "dape", "a bias corrected by the content", "Zheng et al. 2024, arXiv:2405.14722"),
    _mixed("BiPE", "bipe", "positions within and between segments", "He et al. 2024, arXiv:2401.16421"),
    _mixed("StreamingLLM", "streaming-?llm", "a window and the first tokens", "Xiao et al. 2023, arXiv:2309.17453"),
    Family("NoPE", "nope|no-position", "no position at all", "none", "Haviv et al. 2022, arXiv:2203.16634"),
    Family("RoPE", "rotary|ro-?former|yarn|ntk|long-?rope|pose", "RoPE", "rope", "Su et al. 2021, arXiv:2104.09864"),
    _mixed("KERPLE", "kerple(?!-)", "two forms: kerple-log and kerple-power", "Chi et al. 2022, arXiv:2205.09921"),
    Family("sinusoids", "sine|sinusoids?", "sinusoids", "sinusoidal", "Vaswani et al. 2017, arXiv:1706.03762"),
)  # fmt: skip

_WORDS = sorted({re.sub(r"[^a-z0-9-]", "", f.name.lower().replace(" ", "-")) for f in FAMILIES})


def normal(name: str) -> str:
    """A name as the patterns know it: without the owner, in small letters, with hyphens."""
    last = name.strip().rstrip("/").rpartition("/")[2]
    return re.sub(r"[\s_.:]+", "-", last.lower()).strip("-")


def family_of(name: str) -> Family | None:
    """The family that a model's name belongs to, if it is known."""
    said = normal(name)
    for family in FAMILIES:
        end = "" if family.pattern.endswith("-") else r"(?:[-\d].*)?"
        if re.fullmatch(f"(?:{family.pattern}){end or '.*'}", said):
            return family
    return None


def near_family(name: str) -> str | None:
    """The family's name that a misspelt one comes closest to."""
    near = difflib.get_close_matches(normal(name)[:40], _WORDS, 1, cutoff=0.75)
    return near[0] if near else None
