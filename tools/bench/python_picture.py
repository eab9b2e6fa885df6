# SPDX-License-Identifier: Apache-2.0
# Copyright the libcomm authors
"""Draws what python_curves.py printed: python_picture.py FILE.jsonl PICTURE.svg.

Loss on data that was not trained on, against steps; ways in the order of their last loss.
"""

import json
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 56, 250, 36, 44
COLOURS = ["#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#777777"]
NAMES = {"gloo": "DDP over gloo", "": "hook, exact"}


def name_of(way):
    return NAMES.get(way, way if way.endswith("_hook") else "hook, " + way)


def read(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.startswith("{")]


def ticks(low, high, wanted=6):
    """Round numbers between two."""
    step = 1.0
    while (high - low) / step < wanted / 2:
        step /= 10
    while (high - low) / step > 2 * wanted:
        step *= 2
    first = int(low / step) + (low % step > 0)
    return [round(i * step, 9) for i in range(first, int(high / step) + 1)]


class Plane:
    """From steps and losses to places in the picture."""

    def __init__(self, steps, low, high):
        self.steps, self.low, self.high = steps, low, high

    def x(self, step):
        return round(LEFT + (WIDTH - LEFT - RIGHT) * step / self.steps, 1)

    def y(self, loss):
        share = (loss - self.low) / (self.high - self.low)
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share, 1)


def text(x, y, words, anchor="start", colour="#333333"):
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def grid(plane, every):
    for loss in ticks(plane.low, plane.high):
        y = plane.y(loss)
        yield f'<path d="M{LEFT} {y}H{WIDTH - RIGHT}" stroke="#dddddd"/>'
        yield text(LEFT - 8, y + 4, f"{loss:g}", "end")
    for step in range(0, plane.steps + 1, 2 * every):
        yield text(plane.x(step), HEIGHT - BOTTOM + 18, str(step), "middle")
    yield text(plane.x(plane.steps / 2), HEIGHT - 8, "steps", "middle")


def lines(plane, ways, every):
    for place, way in enumerate(ways):
        colour = COLOURS[place % len(COLOURS)]
        points = [
            (plane.x(min((i + 1) * every, plane.steps)), plane.y(min(loss, plane.high)))
            for i, loss in enumerate(way["curve"])
        ]
        path = " ".join(f"{x},{y}" for x, y in points)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        y = TOP + 14 + 20 * place
        x = WIDTH - RIGHT + 14
        yield f'<path d="M{x} {y - 4}h18" stroke="{colour}" stroke-width="3"/>'
        yield text(x + 24, y, f"{way['loss']:.4f}  {name_of(way['way'])}")


def picture(ways, every=50):
    ways = sorted(ways, key=lambda way: way["loss"])
    losses = [loss for way in ways for loss in way["curve"]]
    low, high = min(losses), max(losses)
    margin = 0.05 * (high - low) or 1
    plane = Plane(every * max(len(way["curve"]) for way in ways), low - margin, high + margin)
    title = f"{ways[0]['model']}: loss on data that was not trained on, 4 ranks as 2 nodes"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            text(LEFT, 20, title),
            *grid(plane, every),
            *lines(plane, ways, every),
            "</svg>\n",
        ]
    )


def main():
    source, target = sys.argv[1:]
    with open(target, "w", encoding="utf-8") as file:
        file.write(picture(read(source)))


main()
