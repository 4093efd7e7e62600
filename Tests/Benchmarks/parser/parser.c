/*
 * What AdvertisingReports and IBeacon do, in plain C and just as strict, to be measured beside them: parser.py.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Sums of what was found, which keep the compiler from leaving work out; the same in parser.swift. */
struct totals {
	uint64_t reports, beacons, whole, torn, fields;
};

struct beacon {
	uint64_t uuid_high, uuid_low;
	uint16_t major, minor;
	int8_t measured_power;
};

enum { max_unfinished = 32 };

struct parser {
	struct totals totals;
	uint64_t unfinished[max_unfinished];
	size_t unfinished_count;
};

static uint64_t big_endian_64(const uint8_t *p)
{
	uint64_t value;
	memcpy(&value, p, sizeof value);
	return __builtin_bswap64(value);
}

static uint64_t address_at(const uint8_t *p)
{
	uint32_t low;
	uint16_t high;
	memcpy(&low, p, sizeof low);
	memcpy(&high, p + 4, sizeof high);
	return (uint64_t)high << 32 | low;
}

static bool find_beacon(const uint8_t *data, size_t size, struct beacon *beacon)
{
	static const uint8_t prefix[] = {0xFF, 0x4C, 0x00, 0x02, 0x15};
	for (size_t at = 0; at < size;) {
		size_t next = at + 1 + data[at];
		if (data[at] == 0 || next > size) return false;
		if (data[at] == 26 && memcmp(data + at + 1, prefix, sizeof prefix) == 0) {
			const uint8_t *p = data + at + 1 + sizeof prefix;
			beacon->uuid_high = big_endian_64(p);
			beacon->uuid_low = big_endian_64(p + 8);
			beacon->major = p[16] << 8 | p[17];
			beacon->minor = p[18] << 8 | p[19];
			beacon->measured_power = p[20];
			return true;
		}
		at = next;
	}
	return false;
}

static void report(struct parser *parser, uint64_t address, int8_t rssi, const uint8_t *data, size_t size)
{
	struct totals *totals = &parser->totals;
	struct beacon beacon;
	totals->reports++;
	/* 127 is `not available`; controllers that say 0 dBm or more mean the same. 1 is in place of none. */
	totals->fields += address ^ (uint64_t)(rssi < 0 && rssi != -128 ? rssi : 1);
	if (!find_beacon(data, size, &beacon)) return;
	totals->beacons++;
	totals->fields += beacon.uuid_high ^ beacon.uuid_low ^ ((uint32_t)beacon.major << 16 | beacon.minor)
		^ (uint64_t)beacon.measured_power;
}

/* Whether an extended report is a part of a longer advertisement. */
static bool is_fragment(struct parser *parser, const uint8_t *p, bool more_to_come)
{
	uint64_t advertiser = address_at(p + 3) | (uint64_t)p[2] << 48 | (uint64_t)p[11] << 56;
	size_t i = 0;
	while (i < parser->unfinished_count && parser->unfinished[i] != advertiser) i++;
	bool known = i < parser->unfinished_count;
	if (more_to_come) {
		if (!known && parser->unfinished_count < max_unfinished)
			parser->unfinished[parser->unfinished_count++] = advertiser;
		return true;
	}
	if (known) parser->unfinished[i] = parser->unfinished[--parser->unfinished_count];
	return known;
}

/* Both return the end of the last report, or NULL when one is torn. */
static const uint8_t *read_legacy(struct parser *parser, const uint8_t *p, const uint8_t *end, int count)
{
	for (; count > 0; count--) {
		if (end - p < 10) return NULL;
		size_t size = p[8];
		if (size > 31 || (size_t)(end - p) < 10 + size) return NULL;
		report(parser, address_at(p + 2), p[9 + size], p + 9, size);
		p += 10 + size;
	}
	return p;
}

static const uint8_t *read_extended(struct parser *parser, const uint8_t *p, const uint8_t *end, int count)
{
	for (; count > 0; count--) {
		if (end - p < 24) return NULL;
		size_t size = p[23];
		if ((size_t)(end - p) < 24 + size) return NULL;
		int status = p[0] >> 5 & 3;
		if ((status == 0 && parser->unfinished_count == 0) || !is_fragment(parser, p, status == 1))
			report(parser, address_at(p + 3), p[13], p + 24, size);
		p += 24 + size;
	}
	return p;
}

static void read_event(struct parser *parser, const uint8_t *event, size_t size)
{
	if (size < 4 || event[0] != 0x3E) return;
	size_t length = 2 + event[1];
	const uint8_t *end = event + (length < size ? length : size);
	const uint8_t *last;
	switch (event[2]) {
	case 0x02: last = read_legacy(parser, event + 4, end, event[3]); break;
	case 0x0D: last = read_extended(parser, event + 4, end, event[3]); break;
	default: return;
	}
	if (last == event + length && length == size && event[3] > 0)
		parser->totals.whole++;
	else
		parser->totals.torn++;
}

/* Reads `count` events: number i is bytes[offsets[i]] up to bytes[offsets[i + 1]]. */
void parse_c(const uint8_t *bytes, const uint32_t *offsets, size_t count, struct totals *totals)
{
	struct parser parser = {.unfinished_count = 0};
	for (size_t i = 0; i < count; i++)
		read_event(&parser, bytes + offsets[i], offsets[i + 1] - offsets[i]);
	*totals = parser.totals;
}
