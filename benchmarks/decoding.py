"""Memory of the cache and time per token against position: a bounded cache and transformers' DynamicCache.

    python benchmarks/decoding.py                                  32,768 tokens, the paper's WikiText model, ALiBi
    python benchmarks/decoding.py --tokens 4096 --stream 10000     smaller
    python benchmarks/decoding.py --run RUN                        also stream real text through a trained model

Both caches are filled with the same random keys up to a position, then a few tokens are decoded with each in turn. The
rival is DynamicCache with the leanest attention there is for it here: torch's flash kernel with ALiBi as its mask.
Times are medians of the CPU time of one thread, which other work on the machine disturbs less than it does the clock.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import resource
import statistics
import time
from pathlib import Path

import torch
from transformers.cache_utils import DynamicCache

from farfield.nn.cache.cache import BoundedCache
from farfield.nn.cache.certificate import SCOPE
from farfield.nn.cache.streaming import stream_losses
from farfield.nn.decoder.config import FarfieldConfig
from farfield.nn.decoder.model import FarfieldForCausalLM
from farfield.nn.denormals import flush_denormals


class LeanCache(DynamicCache):
    """DynamicCache, and attention to every key of it by the flash kernel."""

    def __init__(self, bias_HN):
        super().__init__()
        self.line = bias_HN.flip(-1).contiguous()

    def attend(self, q, k, v, layer, mask=None):
        k, v = self.update(k, v, layer)
        line = self.line[None, :, None, self.line.shape[1] - k.shape[2] :]
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=line)

    def bytes(self):
        return sum(x.numel() * x.element_size() for layer in self.layers for x in (layer.keys, layer.values))


def fill(model, ours, rival, upto, size):
    """Random tokens up to a position, in every layer of both caches."""
    heads, width = model.config.num_attention_heads, model.config.hidden_size // model.config.num_attention_heads
    while (new := min(1024, upto - ours.get_seq_length())) > 0:
        for layer in range(model.config.num_hidden_layers):
            q, k, v = size * torch.randn(3, 1, heads, new, width)
            ours.attend(q, k, v, layer)
            rival.update(k, v, layer)


def step(model, cache):
    """CPU time and clock time of one token."""
    token = torch.randint(model.config.vocab_size, (1, 1))
    clock, cpu = time.perf_counter(), time.process_time()
    model(token, past_key_values=cache)
    return time.process_time() - cpu, time.perf_counter() - clock


@torch.no_grad()
def curves(options):
    torch.manual_seed(0)
    config = FarfieldConfig(
        vocab_size=options.vocabulary, hidden_size=options.width, num_hidden_layers=options.layers,
        num_attention_heads=options.heads, intermediate_size=4 * options.width, encoding="alibi",
    )  # fmt: skip
    model = FarfieldForCausalLM(config).eval()
    ours = BoundedCache(model, options.epsilon, logit_bound=options.logit_bound, policy="warn")
    rival = LeanCache(model.position.bias(options.tokens + 1024))
    points = []
    for i in range(1, options.points + 1):
        position = options.tokens * i // options.points
        fill(model, ours, rival, position - options.steps, 0.6)
        taken = [(step(model, ours), step(model, rival)) for _ in range(options.steps)]
        row = {"position": position, "ours_bytes": ours.bytes(), "rival_bytes": rival.bytes()}
        for name, which in (("ours", 0), ("rival", 1)):
            row[f"{name}_ms"] = 1e3 * statistics.median(t[which][0] for t in taken)
            row[f"{name}_clock_ms"] = 1e3 * statistics.median(t[which][1] for t in taken)
        points.append(row)
        print(
            f"token {position:6}: {row['ours_ms']:7.1f} ms against {row['rival_ms']:7.1f} ms, "
            f"{row['ours_bytes'] / 2**20:6.1f} MB against {row['rival_bytes'] / 2**20:6.1f} MB",
            flush=True,
        )
    return points, ours.certificate()


def stream(options):
    """Read a long text once, in constant memory: the loss, the cache and the process at ten places."""
    if options.run is not None:
        from tokenizers import Tokenizer
        from transformers import AutoModelForCausalLM

        from farfield.data.corpus import open_corpus
        from farfield.data.tokens import tokenize

        model = AutoModelForCausalLM.from_pretrained(options.run).eval()
        tokenizer = Tokenizer.from_file(str(Path(options.run) / "tokenizer.json"))
        text = tokenize(open_corpus("python"), "test", tokenizer)
        tokens = torch.from_numpy(text.ids[: options.stream].astype("int64"))
    else:
        torch.manual_seed(0)
        config = FarfieldConfig(
            vocab_size=2048, hidden_size=128, num_hidden_layers=3, num_attention_heads=4, intermediate_size=512
        )
        model = FarfieldForCausalLM(config).eval()
        tokens = torch.randint(2048, (options.stream,))
    cache = BoundedCache(model, options.epsilon, logit_bound=options.stream_bound, policy="warn")
    places, losses, done = [], [], 0
    start, cpu = time.perf_counter(), time.process_time()
    every = max(1, len(tokens) // 10)
    for part in stream_losses(model, tokens, cache):
        losses.append(part)
        done += len(part)
        if done // every > (done - len(part)) // every or done == len(tokens) - 1:
            rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            places.append({"position": done, "cache_bytes": cache.bytes(), "peak_process_mb": rss})
            print(
                f"stream {done:7}: cache {cache.bytes() / 2**20:.2f} MB, peak of the process {rss:.0f} MB", flush=True
            )
    table = cache.certificate()
    return {
        "text": "the python corpus, split test" if options.run is not None else "random tokens, random weights",
        "tokens": len(tokens),
        "logit_bound": options.stream_bound,
        "loss": float(torch.cat(losses).double().mean()),
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "places": places,
        "certificate_holds": table.holds,
        "worst_share": table.worst.share,
        "tokens_over": sum(r.over for r in table.rows),
    }


def figure(points, out):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    x = [p["position"] for p in points]
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for name, label, colour in (("rival", "DynamicCache", "#c44"), ("ours", "bounded cache", "#16a")):
        left.plot(x, [p[f"{name}_bytes"] / 2**20 for p in points], "o-", label=label, color=colour, ms=3)
        right.plot(x, [p[f"{name}_ms"] for p in points], "o-", label=label, color=colour, ms=3)
    left.set(xlabel="position (tokens)", ylabel="memory of the cache (MB)")
    right.set(xlabel="position (tokens)", ylabel="time per token (ms of one CPU)")
    for axis in (left, right):
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    for kind in ("png", "svg"):
        fig.savefig(out.with_suffix(f".{kind}"), dpi=150)


def words(result):
    """The result as a page."""
    last, machine = result["points"][-1], result["machine"]
    lines = [
        "# Decoding with a bounded cache",
        "",
        f"Measured {result['date']} on {machine}, one thread, with `{result['command']}`.",
        "",
        f"ALiBi, {result['model']}, windows for |q.k|/sqrt(d) <= {result['logit_bound']} and epsilon = "
        f"{result['epsilon']}. Shares of attention are {SCOPE}.",
        "",
        "| position | bounded cache, MB | DynamicCache, MB | bounded, ms per token | DynamicCache, ms per token |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for p in result["points"]:
        lines.append(
            f"| {p['position']:,} | {p['ours_bytes'] / 2**20:.1f} | {p['rival_bytes'] / 2**20:.1f} | "
            f"{p['ours_ms']:.1f} | {p['rival_ms']:.1f} |"
        )
    lines += [
        "",
        f"At the end: **{last['rival_bytes'] / last['ours_bytes']:.1f} times less memory**, "
        f"**{last['rival_ms'] / last['ours_ms']:.1f} times less time per token** (CPU time; by the clock "
        f"{last['rival_clock_ms'] / last['ours_clock_ms']:.1f} times).",
        "",
        "![curves](decoding.svg)",
        "",
        "DynamicCache copies every key at every token. Where a layer's keys take more than 32 MB (16,384 tokens here), "
        "glibc takes that memory from the system anew each time, so its curve steepens.",
        "",
    ]
    if result["stream"]:
        s = result["stream"]
        lines += [
            "## Streaming",
            "",
            f"{s['tokens']:,} tokens ({s['text']}; a model of 3 layers of 4 heads, 128 wide; windows for "
            f"|q.k|/sqrt(d) <= {s['logit_bound']}) read once in {s['cpu_seconds']:.0f} s of CPU time, loss "
            f"{s['loss']:.4f}; largest certified share {s['worst_share']:.1e}, {s['tokens_over']} rows over epsilon.",
            "",
            "| position | cache, MB | peak of the process, MB |",
            "| ---: | ---: | ---: |",
        ]
        lines += [
            f"| {p['position']:,} | {p['cache_bytes'] / 2**20:.2f} | {p['peak_process_mb']:.0f} |" for p in s["places"]
        ]
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=32_768)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--vocabulary", type=int, default=50_265)
    parser.add_argument("--epsilon", default="0.01")
    parser.add_argument("--logit-bound", default="5")
    parser.add_argument("--points", type=int, default=16)
    parser.add_argument("--steps", type=int, default=7, help="tokens decoded with each cache at each point")
    parser.add_argument("--stream", type=int, default=100_000, help="tokens to stream; 0 for none")
    parser.add_argument("--stream-bound", default="12", help="the largest |q.k|/sqrt(d) of the streamed text")
    parser.add_argument("--run", default=None, help="a run folder: stream the python corpus through its model")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent.parent / "docs/benchmarks/decoding")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with flush_denormals():
        streamed = stream(options) if options.stream else None  # first: its memory is that of the process
        points, certificate = curves(options)
    result = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, torch {torch.__version__}",
        "command": "python benchmarks/decoding.py" + ("" if options.run is None else " --run RUN"),
        "model": f"{options.layers} layers of {options.heads} heads, {options.width} wide",
        "epsilon": options.epsilon,
        "logit_bound": options.logit_bound,
        "tokens": options.tokens,
        "points": points,
        "worst_share": certificate.worst.share,
        "stream": streamed,
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(words(result))
    figure(points, options.out)
    last = points[-1]
    print(
        f"decoding at token {options.tokens}: bounded {last['ours_ms']:.1f} ms, "
        f"DynamicCache {last['rival_ms']:.1f} ms, ratio {last['rival_ms'] / last['ours_ms']:.1f}; memory ratio "
        f"{last['rival_bytes'] / last['ours_bytes']:.1f}; {result['machine']}"
    )


if __name__ == "__main__":
    main()
