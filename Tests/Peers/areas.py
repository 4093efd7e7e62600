"""Answers of shapely and of geographiclib for 10,000 areas: Tests/Fixtures/areas.txt.

The areas come from a small generator of whole numbers, which AreaTests.swift has too, so that the file needs only the
answers. A line is one area: square metres, and for four places a 1 if the place is inside.

    pip install shapely pyproj
    python3 Tests/Peers/areas.py > Tests/Fixtures/areas.txt
"""

from pyproj import Geod
from shapely import MultiPolygon, Point, Polygon

# Nearly the same length in sixteen directions: whole numbers, so that two programs calculate the same.
WAYS = [(10, 0), (9, 4), (7, 7), (4, 9), (0, 10), (-4, 9), (-7, 7), (-9, 4)]
WAYS += [(-x, -y) for x, y in WAYS]


class Chance:
    """Knuth's MMIX generator; the upper half of its state."""

    def __init__(self):
        self.state = 1

    def below(self, limit: int) -> int:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 32) % limit


def ring(chance: Chance, center: tuple[int, int], smallest: int, largest: int) -> list[tuple[int, int]]:
    """Seen from the center, each vertex is in another direction. Latitude and longitude in 1e-7 degrees."""
    vertices = []
    for north, east in WAYS:
        radius = smallest + chance.below(largest - smallest)
        # Some directions are left out. Three that are far from each other stay.
        if chance.below(3) or (north, east) in (WAYS[0], WAYS[5], WAYS[11]):
            vertices.append((center[0] + north * radius, center[1] + east * radius))
    return vertices


def main():
    chance, earth = Chance(), Geod(ellps="WGS84")
    for _ in range(10_000):
        center = (chance.below(1_490_000_000) - 745_000_000, chance.below(3_598_000_000) - 1_799_000_000)
        size = 1 << chance.below(8)
        outer = ring(chance, center, size * 40, size * 160)
        hole = ring(chance, center, size * 4, size * 12) if chance.below(2) else []
        # One that is beside it.
        second = []
        if size <= 32 and chance.below(2):
            second = ring(chance, (center[0], center[1] + size * 3600), size * 40, size * 160)
        # shapely's x is the longitude.
        shape = Polygon([v[::-1] for v in outer], [[v[::-1] for v in hole]] if hole else [])
        if second:
            shape = MultiPolygon([shape, Polygon([v[::-1] for v in second])])
        assert shape.is_valid

        def size_of(vertices):
            return abs(earth.polygon_area_perimeter([v[1] / 1e7 for v in vertices], [v[0] / 1e7 for v in vertices])[0])

        inside = ""
        for _ in range(4):
            place = [center[0] + chance.below(size * 3200) - size * 1600, center[1] + chance.below(size * 6800) - size * 1600]
            inside += "01"[shape.contains(Point(place[1], place[0]))]
        print(f"{size_of(outer) - (size_of(hole) if hole else 0) + (size_of(second) if second else 0):.2f} {inside}")


if __name__ == "__main__":
    main()
