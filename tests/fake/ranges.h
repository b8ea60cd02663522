/* Sorted tables of disjoint address ranges. */
#ifndef FAKE_RANGES_H
#define FAKE_RANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "objects.h"

typedef enum RangeKind {
  RANGE_RESERVATION,
  RANGE_MAPPING,
  RANGE_PLAIN,
  RANGE_POOLED,
  RANGE_PINNED
} RangeKind;

typedef struct Range {
  uint64_t begin, size;
  RangeKind kind;
  int access;    /* ACCESS_* */
  Object *owner; /* a mapping's physical memory, a pooled range's pool, else NULL */
  /* Of a pooled range: where its free is queued, or NULL; and whether it has run. */
  Object *freed_on;
  uint64_t free_sequence;
  bool cached;
  bool device_mapped; /* of a pinned range */
  /* Of a mapping that the device does not see yet: when it does, and with what access. */
  int64_t seen_at_ns;
  int access_then;
} Range;

typedef struct RangeTable {
  Range *items;
  size_t count, capacity;
} RangeTable;

/* Index of the first range that ends after the address. */
static size_t range_lower(const RangeTable *table, uint64_t address) {
  size_t low = 0, high = table->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const Range *range = &table->items[middle];
    if (range->begin + range->size <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

static bool range_overlaps(const RangeTable *table, uint64_t begin, uint64_t size) {
  const size_t i = range_lower(table, begin);
  return i < table->count && table->items[i].begin < begin + size;
}

/* The range that begins at the address, or NULL. */
static Range *range_at(const RangeTable *table, uint64_t begin) {
  const size_t i = range_lower(table, begin);
  return i < table->count && table->items[i].begin == begin ? &table->items[i] : NULL;
}

/* The caller has checked that it overlaps none. */
static void range_insert(RangeTable *table, Range range) {
  if (table->count == table->capacity) {
    table->capacity = table->capacity == 0 ? 64 : table->capacity * 2;
    table->items = checked_realloc(table->items, table->capacity * sizeof range);
  }
  const size_t i = range_lower(table, range.begin);
  memmove(&table->items[i + 1], &table->items[i], (table->count - i) * sizeof range);
  table->items[i] = range;
  table->count++;
}

static void range_remove(RangeTable *table, size_t first, size_t count) {
  const size_t after = first + count;
  memmove(&table->items[first], &table->items[after],
          (table->count - after) * sizeof *table->items);
  table->count -= count;
}

/* Whether ranges cover all of it without a gap, each with the access. */
static bool range_covers(const RangeTable *table, uint64_t begin, uint64_t size,
                         int access) {
  const uint64_t end = begin + size;
  if (end < begin) return false;
  for (size_t i = range_lower(table, begin); begin < end; i++) {
    if (i == table->count) return false;
    const Range *range = &table->items[i];
    if (range->begin > begin || (range->access & access) != access) return false;
    begin = range->begin + range->size;
  }
  return true;
}

/* How many whole ranges of the kind make up exactly this one; 0 if none do. */
static size_t range_wholes(const RangeTable *table, uint64_t begin, uint64_t size,
                           RangeKind kind, size_t *first) {
  const uint64_t end = begin + size;
  *first = range_lower(table, begin);
  size_t i = *first;
  while (begin < end && i < table->count && table->items[i].begin == begin &&
         table->items[i].kind == kind)
    begin += table->items[i++].size;
  return begin == end ? i - *first : 0;
}

static int32_t range_count(const RangeTable *table, RangeKind kind) {
  int32_t count = 0;
  for (size_t i = 0; i < table->count; i++) count += table->items[i].kind == kind;
  return count;
}

#endif
