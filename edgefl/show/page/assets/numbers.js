/* Quantities as edgefl prints them, after core/units.py, whose ladders of units the page has: a test compares them. */
(() => {
  const { state, known } = edgefl;
  const ladder = (unit) => state.page.units[unit];
  const exponent = (value) => Number(value.toExponential().split("e")[1]);
  const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

  /** To the nearest integer, and to the even one of two that are equally near, as Python rounds. */
  function nearest(value) {
    const below = Math.floor(value);
    const over = value - below;
    return over > 0.5 || (over === 0.5 && below % 2 !== 0) ? below + 1 : below;
  }

  /** A number of so many significant digits; of two that are equally near, the even one, as Python rounds. */
  function rounded(value, count) {
    const [finer, power] = value.toExponential(count).split("e");
    const isTie = Number(`${finer}e${power}`) === value && finer.endsWith("5") && Number(finer.at(-2)) % 2 === 0;
    return Number(isTie ? `${finer.slice(0, -1)}e${power}` : value.toPrecision(count));
  }

  /** Significant digits as Python's "g" writes them. */
  function digits(value, count) {
    const near = rounded(value, count);
    const size = exponent(near);
    if (!value || (size >= -4 && size < count)) return trimmed(near.toFixed(Math.max(count - 1 - size, 0)));
    const [mantissa, rest] = near.toExponential().split("e");
    return `${mantissa}e${rest[0]}${rest.slice(1).padStart(2, "0")}`;
  }

  const thousands = (value) =>
    nearest(value)
      .toString()
      .replace(/\B(?=(\d{3})+(?!\d))/g, ",");

  function scaled(value, steps) {
    const reached = steps.find(([size]) => Math.abs(value) >= 0.9995 * size || (value === 0 && size === 1));
    const [size, unit] = reached ?? steps.at(-1);
    return `${Math.abs(value) < 999.5 * size ? digits(value / size, 3) : thousands(value / size)} ${unit}`;
  }

  function seconds(value) {
    const two = (rest) => String(rest).padStart(2, "0");
    if (nearest(value) < 60) return scaled(value, ladder("s").slice(3));
    if (nearest(value) < 3600) return `${Math.floor(nearest(value) / 60)} min ${two(nearest(value) % 60)} s`;
    const minutes = nearest(value / 60);
    return `${thousands(Math.floor(minutes / 60))} h ${two(minutes % 60)} min`;
  }

  function share(value) {
    if (value && Math.abs(value) < 1e-4) return value > 0 ? "<0.01%" : ">-0.01%";
    const decimals = value && !Number(Math.abs(value).toFixed(3)) ? 2 : 1;
    return `${(value * 100).toFixed(decimals)}%`;
  }

  const count = (value) => (Number.isInteger(value) ? thousands(value) : digits(value, 4).replace(/^\d{4}$/, thousands));
  // Three digits without an exponent.
  const plain = (value) => trimmed(rounded(value, 3).toFixed(Math.max(2 - exponent(rounded(value, 3)), 0)));
  const NAMELESS = { share, s: seconds, index: (value) => value.toFixed(2), loss: plain, "": count };

  /** A number with its unit, as the terminal has it: "1.23 MB", "3 min 04 s", "81.2%"; "unknown" for none. */
  edgefl.number = (value, unit = "") => {
    if (!known(value)) return "unknown";
    if (NAMELESS[unit]) return NAMELESS[unit](value);
    return ladder(unit) ? scaled(value, ladder(unit)) : `${plain(value)} ${unit}`;
  };

  // Of what an axis is drawn in, its greatest value is at least so many: 90 s are no 1.5 min.
  const LEAST = 3;

  /** The step in which an axis up to `most` is drawn: [its size in the base unit, its name]. */
  const step = (most, unit) => {
    if (unit === "share") return [0.01, "%"];
    if (unit === "index" || unit === "loss") return [1, ""];
    const steps = ladder(unit);
    if (!steps) return [1, unit];
    const fits = steps.find(([size]) => most >= size * (unit === "s" && size > 1 ? LEAST : 1));
    return fits ?? (most > 0 ? steps.at(-1) : steps.find(([size]) => size === 1));
  };

  function tick(value, unit) {
    if (unit === "share") return `${digits(value * 100, 6)}%`;
    const reached = ladder(unit)?.find(([least]) => value >= least * 0.9999) ?? ladder(unit)?.at(-1);
    const [size, name] = reached ?? step(value, unit);
    return `${digits(value / size, 6)} ${name.replace(/^days$/, "d")}`.trim();
  }

  const CLOCK = [60, 600, 3600, 36000, 86400, 864000, 8640000, 86400000];
  const FINE_CLOCK = [60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000, 86400];

  // On a narrow screen more ticks than these would not stand side by side.
  const MOST = 3;

  /** Whether there is little room beside a plot's names. */
  edgefl.narrow = () => document.documentElement.clientWidth < 640;

  /** Where a log axis has its ticks: at 1, 10, 100, and between them too where it is short. */
  function ticks(low, high, unit) {
    const found = everyTick(low, high, unit);
    // Around one value alone Plotly shows a decade to either side.
    const around = low === high ? 10 : 2;
    const within = found.filter((value) => value >= low / around && value <= high * around).length;
    const every = edgefl.narrow() ? Math.ceil(within / MOST) : 1;
    return found.filter((_, place) => place % every === 0);
  }

  /** About four ticks at even distances, for an axis too short for those of everyTick. */
  function evenTicks(low, high, unit) {
    const [size] = step(low, unit);
    const least = (high - low) / 4 / size;
    const power = 10 ** Math.floor(Math.log10(least));
    const each = size * power * [1, 2, 5, 10].find((first) => first * power >= least);
    const first = Math.ceil(low / each);
    return Array.from({ length: Math.floor(high / each) - first + 1 }, (_, place) => (first + place) * each);
  }

  function everyTick(low, high, unit) {
    if (low < high && high / low < 3) return evenTicks(low, high, unit);
    const [finest, fine] = [high / low < 8, high / low < 150];
    const found = unit === "s" ? [...(fine ? FINE_CLOCK : CLOCK)] : [];
    for (let power = Math.floor(Math.log10(low)) - 2; power <= Math.log10(high) + 2; power += 1) {
      const values = (finest ? [1, 1.5, 2, 3, 4, 5, 7] : fine ? [1, 2, 5] : [1]).map((first) =>
        Number(`${first}e${power}`),
      );
      // Half a minute and one are too near each other but on a very short axis.
      found.push(...values.filter((value) => unit !== "s" || value < (finest ? 60 : 45)));
    }
    return found.sort((one, other) => one - other);
  }

  /** An axis in a unit that suits its values.

      Returns {layout, of}: an axis of Plotly's layout, and what turns a value into its place on it. */
  edgefl.axis = (title, unit, values, { log = false, ...more } = {}) => {
    const heading = edgefl.narrow() ? edgefl.series.folded(edgefl.escaped(title)) : edgefl.escaped(title);
    let most = 0;
    let least = Infinity;
    for (const value of values) {
      if (!known(value)) continue;
      most = Math.max(most, Math.abs(value));
      if (value > 0) least = Math.min(least, value);
    }
    if (log && least < Infinity) {
      const tickvals = ticks(least, most, unit);
      const ticktext = tickvals.map((value) => tick(value, unit));
      const layout = { title: { text: heading }, type: "log", tickmode: "array", tickvals, ticktext, ...more };
      return { of: (value) => (value > 0 ? value : null), layout };
    }
    const [size, name] = step(most, unit);
    const suffix = unit === "share" ? { ticksuffix: "%" } : {};
    const layout = {
      title: { text: name && unit !== "share" ? `${heading} (${edgefl.escaped(name)})` : heading },
      type: "linear",
      ...suffix,
      ...more,
    };
    return { of: (value) => (known(value) ? value / size : null), layout };
  };

  /** An axis of rounds, which has no ticks between them. */
  edgefl.rounds = (rounds) => {
    let [low, high] = [Infinity, -Infinity];
    for (const round of rounds) [low, high] = [Math.min(low, round), Math.max(high, round)];
    return { title: { text: "round" }, ...(high - low < 10 ? { tickmode: "linear", dtick: 1 } : {}) };
  };
})();
