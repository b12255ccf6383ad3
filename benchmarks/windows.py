"""How short are certified windows, and what do they change in the network as a whole? On trained models, real text.

    python benchmarks/windows.py RUN [RUN ...]

For each run (of `farfield train`): the largest logit on the python corpus, the windows for it at epsilon = 0.01 against
those of the rule "drop where bias < -(2M + ln n) + ln epsilon" (the pruning rule of the Forgetting Transformer) at the
same guarantee, and the change of the loss against the full cache for several epsilons.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import statistics
import warnings
from pathlib import Path

import torch
from flint import arb, ctx
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM
from transformers.cache_utils import DynamicCache

import farfield.nn.decoder.model
from farfield.data.corpus import open_corpus
from farfield.data.tokens import tokenize
from farfield.nn.cache.certificate import SCOPE
from farfield.nn.cache.model_biases import biases_of
from farfield.nn.cache.streaming import change_of_loss, stream_losses
from farfield.theory.fields.windows import smallest_window


class LogitCache(DynamicCache):
    """Keeps every key, and notes the largest |q.k|/sqrt(d) of each layer and head."""

    def __init__(self, biases):
        super().__init__()
        self.biases, self.largest = biases, {}

    def attend(self, q, k, v, layer, mask=None):
        k, v = self.update(k, v, layer)
        bias = self.biases.vector(layer, k.shape[2])
        score = q @ k.mT * q.shape[3] ** -0.5
        t = torch.arange(k.shape[2] - q.shape[2], k.shape[2])[:, None] - torch.arange(k.shape[2])
        seen = score.masked_fill(t < 0, 0.0).abs().amax((0, 2, 3))
        self.largest[layer] = torch.maximum(seen, self.largest.get(layer, seen))
        logits = (score + bias[:, t.clamp(min=0)]).masked_fill(t < 0, float("-inf"))
        return logits.softmax(-1) @ v


def threshold_window(weights, epsilon, logit_bound, context):
    """The window of the rule "drop a key where its bias is below -(2M + ln n) + ln epsilon", counted from r(0).

    The pruning rule of the Forgetting Transformer (Lin et al. 2025): each of at most n dropped keys may have a share of
    epsilon/n. It gives the same guarantee as ours for texts of n tokens, for weights that never grow with distance.
    """
    with ctx.workprec(128):
        least = weights.term(0) * arb(epsilon) * (-2 * arb(str(logit_bound))).exp() / context
        low, high = 0, 1  # kept at `low`, dropped from `high` on
        while not weights.term(high) < least:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if weights.term(middle) < least else (middle, high)
    return high


def measured(run, options):
    model = AutoModelForCausalLM.from_pretrained(run).eval()
    tokenizer = Tokenizer.from_file(str(Path(run) / "tokenizer.json"))
    text = tokenize(open_corpus("python"), "test", tokenizer)
    tokens = torch.from_numpy(text.ids[0, : options.tokens].astype("int64"))
    biases = biases_of(model)
    cache = LogitCache(biases)
    for _ in stream_losses(model, tokens[: options.logit_tokens], cache, 256):
        pass
    heads = []
    for layer in range(biases.layers):
        for head in range(biases.heads):
            bound = round(float(cache.largest[layer][head]) + 0.005, 2)
            series = biases.weights(layer, head, None)
            ours = smallest_window(series, "0.01", bound)
            theirs = threshold_window(series, "0.01", bound, options.context)
            heads.append(
                {"layer": layer + 1, "head": head + 1, "logit_bound": bound, "ours": ours, "threshold": theirs}
            )
    changes = []
    for epsilon in options.epsilons:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = change_of_loss(model, tokens, epsilon)
        changes.append(
            {
                "epsilon": epsilon,
                "full": found.full,
                "bounded": found.bounded,
                "change": found.change,
                "largest_token": found.largest,
                "cache": found.kept,
                "worst_share": found.certificate.worst.share,
                "rows_over": sum(r.over for r in found.certificate.rows),
            }
        )
        print(f"{model.config.encoding}, epsilon {epsilon}: {found}", flush=True)
    ratio = statistics.median(h["ours"] / h["threshold"] for h in heads)
    total = sum(h["ours"] for h in heads) / sum(h["threshold"] for h in heads)
    print(f"{model.config.encoding}: windows {ratio:.2f} times the threshold rule's (median), {total:.2f} in total")
    return {
        "encoding": model.config.encoding, "heads": heads, "median_ratio": ratio, "total_ratio": total,
        "tokens": len(tokens), "changes": changes,
    }  # fmt: skip


def words(result):
    lines = [
        "# Certified windows of trained models",
        "",
        f"Measured {result['date']} on {result['machine']}, with `python benchmarks/windows.py RUN ...`. The runs: "
        "preset `small`, 600 steps on the `python` corpus; logits and losses on its test split.",
        "",
        "## Windows at epsilon = 0.01 against the threshold rule",
        "",
        "Each head's largest |q.k|/sqrt(d) on the text is its M. The rule of the Forgetting Transformer drops a key "
        f"where bias < -(2M + ln n) + ln epsilon, here with n = {result['context']:,}: the same guarantee for texts up "
        "to that length. Ours hold at every length.",
        "",
        "| encoding | M | ours, widest head | threshold rule, widest head | ours / rule, median | all heads together |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for r in result["runs"]:
        m = [h["logit_bound"] for h in r["heads"]]
        widest = max(r["heads"], key=lambda h: h["ours"])
        lines.append(
            f"| {r['encoding']} | {min(m):.1f} to {max(m):.1f} | {widest['ours']:,} | {widest['threshold']:,} | "
            f"{r['median_ratio']:.2f} | {r['total_ratio']:.2f} |"
        )
    lines += [
        "",
        "## The network as a whole",
        "",
        f"The share of attention is {SCOPE}. What the whole loses is measured, not certified: the mean loss on the "
        "text with windows that the cache measures by itself, against the full cache.",
        "",
        "| encoding | epsilon | loss, every key | change | largest change of a token | cache against full | "
        "largest certified share | rows over epsilon |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for r in result["runs"]:
        for c in r["changes"]:
            lines.append(
                f"| {r['encoding']} ({r['tokens']:,} tokens) | {c['epsilon']} | {c['full']:.5f} | {c['change']:+.1e} | "
                f"{c['largest_token']:.1e} | {100 * c['cache']:.1f} % | {c['worst_share']:.1e} | {c['rows_over']} |"
            )
    return "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+")
    parser.add_argument("--tokens", type=int, default=32_768, help="of the text whose loss is compared")
    parser.add_argument("--logit-tokens", type=int, default=4096, help="of the text whose largest logit is taken")
    parser.add_argument("--context", type=int, default=32_768, help="n of the threshold rule")
    parser.add_argument("--epsilons", nargs="+", default=["0.1", "0.01", "0.001", "1e-6"])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs/benchmarks/windows")
    options = parser.parse_args()
    torch.set_num_threads(1)
    assert farfield.nn.decoder.model  # makes transformers know our models
    result = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, torch {torch.__version__}",
        "context": options.context,
        "runs": [measured(run, options) for run in options.runs],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(words(result))


if __name__ == "__main__":
    main()
