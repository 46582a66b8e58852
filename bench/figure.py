"""A figure of small multiples as SVG: gain by loss, a panel for each rate and round trip."""
import math

PANEL, GAP, LEFT, TOP, BOTTOM = (200, 190), 14, 64, 46, 80
COLOURS = {"cubic": "#0072b2", "bbr": "#d55e00", "reno": "#009e73"}
LEVELS = [0.8, 1, 1.5, 2, 3, 5, 10, 20]


def text(x, y, what, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{what}</text>'


def mark(x, y, row):
    """Colour: the sender; a disc with SACK, a square without; hollow where data goes up."""
    colour = COLOURS[row["tcp"]]
    fill = colour if row["way"] == "down" else "#fff"
    paint = f'fill="{fill}" stroke="{colour}"'
    tip = (f"<title>{row['tcp']}, SACK {row['sack']}, {row['way']}, {row['rate']} Mbit/s, "
           f"{row['rtt']} ms, loss {row['loss']}: {row['gain']:.2f} ({row['low']:.2f} to "
           f"{row['high']:.2f}), {row['verdict']}</title>")
    if row["sack"] == "on":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" {paint}>{tip}</circle>'
    return f'<rect x="{x - 3:.1f}" y="{y - 3:.1f}" width="6" height="6" {paint}>{tip}</rect>'


def small_multiples(rows, rates, trips, losses):
    width, height = PANEL
    span = [min(row["gain"] for row in rows), max(row["gain"] for row in rows)]
    low, high = math.log(min(0.75, span[0] / 1.15)), math.log(max(2, span[1] * 1.15))
    levels = [level for level in LEVELS if low <= math.log(level) <= high]

    def up(gain):
        return height * (high - math.log(gain)) / (high - low)

    all_width = LEFT + len(trips) * (width + GAP)
    all_height = TOP + len(rates) * (height + GAP) + BOTTOM
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {all_width} {all_height}" '
           'font-family="sans-serif" font-size="11">',
           f'<rect width="{all_width}" height="{all_height}" fill="#fff"/>',
           text(LEFT, 16, "Goodput with snoop-modern over that of plain, real kernels",
                'font-size="13" font-weight="bold"')]
    for column, trip in enumerate(trips):
        left = LEFT + column * (width + GAP)
        out.append(text(left + width / 2, TOP - 8, f"RTT {trip} ms", 'text-anchor="middle"'))
        for line, rate in enumerate(rates):
            top = TOP + line * (height + GAP)
            out.append(f'<g transform="translate({left},{top})">')
            out.append(f'<rect width="{width}" height="{height}" fill="none" stroke="#999"/>')
            for level in levels:
                stroke = "#333" if level == 1 else "#ddd"
                out.append(f'<line x2="{width}" y1="{up(level):.1f}" y2="{up(level):.1f}" '
                           f'stroke="{stroke}"/>')
                if column == 0:
                    out.append(text(-5, up(level) + 4, f"{level:g}", 'text-anchor="end"'))
            if column == 0:
                out.append(text(-height / 2, -36, f"{rate} Mbit/s",
                                'transform="rotate(-90)" text-anchor="middle"'))
            out += panel([row for row in rows if (row["rtt"], row["rate"]) == (trip, rate)],
                         losses, width, up)
            if line == len(rates) - 1:
                for place, loss in enumerate(losses):
                    name = "bursts" if loss.startswith("burst") else loss
                    x = (place + 0.5) * width / len(losses)
                    out.append(text(x, height + 16, name, 'text-anchor="middle"'))
            out.append("</g>")
    return "\n".join(out + legend(all_height - BOTTOM + 36) + ["</svg>"]) + "\n"


def panel(rows, losses, width, up):
    out = []
    step = width / len(losses)
    for place, loss in enumerate(losses):
        own = sorted((row for row in rows if row["loss"] == loss),
                     key=lambda row: (row["tcp"], row["sack"], row["way"]))
        for number, row in enumerate(own, 1):
            x = step * (place + number / (len(own) + 1))
            out.append(mark(x, up(row["gain"]), row))
    return out


def legend(y):
    out = []
    for place, (tcp, colour) in enumerate(COLOURS.items()):
        x = LEFT + 70 * place
        out.append(f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"/>' + text(x + 9, y + 4, tcp))
    what = "loss of packets below; disc: SACK, square: none; hollow: data goes up"
    return out + [text(LEFT, y + 24, what)]
