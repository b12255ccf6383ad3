// Axes: from numbers to places on a figure, with round ticks; linear, logarithmic, or of logarithms.

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

export function powerText(exponent) {
  if (exponent >= 0 && exponent <= 3) return String(10 ** exponent);
  return `10${[...String(exponent)].map((c) => RAISED[c]).join("")}`;
}

export function short(number) {
  if (number === 0) return "0";
  const size = Math.abs(number);
  return size >= 1e-3 && size < 1e6 ? String(Number(number.toPrecision(4))) : number.toExponential(2).replace("e+", "e");
}

function roundStep(span, most) {
  const rough = span / most;
  const unit = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= rough * (1 - 1e-9));
}

// kind: "linear", "log" (numbers), "power" (numbers that are logarithms already)
export class Axis {
  constructor({ kind = "linear", label = "", low = null, high = null, reverse = false, ticks = null }, values) {
    Object.assign(this, { kind, label, reverse, given: ticks });
    const inside = values.map((v) => this.inner(v)).filter(Number.isFinite);
    this.low = low === null ? Math.min(...inside) : this.inner(low);
    this.high = high === null ? Math.max(...inside) : this.inner(high);
    if (!inside.length && (low === null || high === null)) [this.low, this.high] = [0, 1];
    if (kind !== "linear" && low === null) this.low = Math.floor(this.low + 1e-9);
    if (kind !== "linear" && high === null) this.high = Math.ceil(this.high - 1e-9);
    if (kind === "linear" && low === null && this.low > 0 && this.low < this.high / 2) this.low = 0;
    if (kind === "linear" && high === null && this.high > this.low) {
      const step = roundStep(this.high - this.low, 6);
      this.high = Math.ceil(this.high / step - 1e-9) * step;
    }
    if (!(this.high > this.low)) [this.low, this.high] = [this.low - (kind === "linear" ? 0.5 : 0), this.low + 1];
  }

  inner(value) {
    if (value === null || value === undefined) return NaN;
    return this.kind === "log" ? Math.log10(value) : value;
  }

  place(value, from, to) {
    const share = (this.inner(value) - this.low) / (this.high - this.low);
    return from + (to - from) * (this.reverse ? 1 - share : share);
  }

  ticks(most) {
    if (this.given) return this.given;
    const out = [];
    if (this.kind === "linear") {
      const step = roundStep(this.high - this.low, most);
      for (let v = Math.ceil(this.low / step - 1e-9) * step; v <= this.high + step * 1e-6; v += step) {
        out.push({ value: v, text: short(Math.abs(v) < step * 1e-6 ? 0 : v) });
      }
      return out;
    }
    const step = Math.max(1, Math.ceil((this.high - this.low) / most));
    for (let e = Math.ceil(this.low); e <= this.high + 1e-9; e += step) {
      out.push({ value: this.kind === "log" ? 10 ** e : e, text: powerText(e) });
    }
    return out;
  }
}
