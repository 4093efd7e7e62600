#!/usr/bin/env python3
"""How well a vehicle hears riders' devices with its own ears: the model of ranging.py turned round.

    ears.py --stepctl .build/release/stepctl --data FOLDER [--seed 1] [--louder 0 6 12]

The path is the same both ways, so the traces of the modelled vehicle are read as what two adapters hear of a device. A
vehicle does not know how loud a device is: each trace gets an offset of its own (4 dB, one standard deviation), the same
at both ears, and then a transmitter that is louder still. The vehicle decides as `stepctl locate` does, with a new start
at each trace. The columns are those of ranging.py; opposite: traces in which the step opposite the rider might have been
moved, which is what a program needs that claims the other side.
"""

import argparse
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ranging

DEVICES = 4.0  # dB, from one device to the next
SENSITIVITY = -95  # dBm


def turned(packets: list[ranging.Packet], shift: float) -> list[ranging.Packet]:
    moved = (packet._replace(rssi=min(-1, round(packet.rssi + shift))) for packet in packets)
    return [packet for packet in moved if packet.rssi > SENSITIVITY]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stepctl", required=True)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--louder", type=float, nargs="+", default=[0.0, 6.0, 12.0])
    parser.add_argument("--most", type=int, help="so many traces at the most")
    options = parser.parse_args()
    data = ranging.Data(options.data)
    walks = []
    for name in data.sets:
        traces = data.traces(name)
        if data.is_vehicle(traces):
            walks += ranging.walks(data, name, traces)
    walks = walks[: options.most]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        stepctl = ranging.Stepctl(options.stepctl, Path(folder))

        def each(work, cases):
            return list(pool.map(work, cases))

        rows = {}
        for louder in options.louder:
            dice = random.Random(options.seed)
            cases = [(turned(packets, dice.gauss(0, DEVICES) + louder), *rest) for packets, *rest in walks]
            cases = [case for case in cases if case[0]]
            said = each(lambda case: stepctl.permits(case[0], ranging.ticks_of(case[0])), cases)
            rows[f"{louder:+.0f} dB"] = ranging.score_permits(cases, None, lambda *_: said) | {
                "opposite": sum(
                    any(step not in (None, right) for step in ticks)
                    for (_, right, _), ticks in zip(cases, said)
                    if right
                )
            }
        ranging.show(f"{len(walks)} traces of the model, turned round", rows)


if __name__ == "__main__":
    main()
