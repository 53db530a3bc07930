/*
 * wire.h
 *		Integers in frames: little endian, at any address. Private to rdma/.
 */
#ifndef SHERMAN_WIRE_H
#define SHERMAN_WIRE_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void
wire_put32(uint8_t *place, uint32_t value)
{
	value = htole32(value);
	memcpy(place, &value, sizeof(value));
}

static inline void
wire_put64(uint8_t *place, uint64_t value)
{
	value = htole64(value);
	memcpy(place, &value, sizeof(value));
}

static inline uint32_t
wire_get32(const uint8_t *place)
{
	uint32_t value;

	memcpy(&value, place, sizeof(value));
	return le32toh(value);
}

static inline uint64_t
wire_get64(const uint8_t *place)
{
	uint64_t value;

	memcpy(&value, place, sizeof(value));
	return le64toh(value);
}

#endif /* SHERMAN_WIRE_H */
