#!/usr/bin/env python3
"""Writes what a traffic feed shows of a street on which a bicycle passes a vehicle: `python3 road.py --out road.jsonl`.

A model, not a recording. The vehicle stands at 48.7758, 9.1829 and points north; the bicycle comes from behind at 15 km/h,
0.6 m beside the vehicle's left side, and reaches its steps after five seconds. 25 frames a second, 0.1 s late.
"""

import argparse
import json
import math

LATITUDE, LONGITUDE = 48.7758, 9.1829
NORTH, EAST = 111_200.0, 111_320.0 * math.cos(math.radians(LATITUDE))  # metres a degree
BEGIN, SECONDS, RATE, LATE = 1_767_225_600, 12, 25, 0.1
SPEED, ARRIVAL = 15 / 3.6, 5.0
CAR, BICYCLE = (4.6, 1.9), (1.8, 0.6)


def thing(name, category, ahead, right, speed, size):
    return {
        "id": name, "category": category,
        "position": {"x": round(LATITUDE + ahead / NORTH, 8), "y": round(LONGITUDE + right / EAST, 8), "z": 0},
        "speed": {"x": speed, "y": 0, "z": 0}, "shape": {"length": size[0], "width": size[1], "height": 0},
    }


def main():
    parser = argparse.ArgumentParser(description="Write a recording of a street on which a bicycle passes.")
    parser.add_argument("--out", required=True, help="the recording")
    options = parser.parse_args()
    with open(options.out, "w") as file:
        for index in range(SECONDS * RATE):
            time = index / RATE
            # The steps begin 0.5 m behind the vehicle's middle.
            ahead = -0.5 - BICYCLE[0] / 2 + SPEED * (time - ARRIVAL)
            vehicles = [
                thing("1", "car", 0, 0, 0, CAR),
                thing("2", "bicycle", ahead, -(CAR[1] / 2 + 0.6 + BICYCLE[1] / 2), SPEED, BICYCLE),
            ]
            stamp = BEGIN + time
            frame = {"section": "S0-10", "timestampSecs": str(int(stamp)),
                     "timestampNsecs": str(round(stamp % 1 * 1e9)), "vehicles": vehicles}
            file.write(json.dumps({"received": round(stamp + LATE, 3), "frame": frame}) + "\n")


if __name__ == "__main__":
    main()
