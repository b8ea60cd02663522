#include "ids.h"

#include <stdlib.h>

/* Slots are taken again oldest first and only while this many rest, so that it takes
 * millions of creations until a stale id could name a new item. */
enum { ID_RESTING_SLOTS = 1024, ID_GENERATIONS = 4096 };

static uint32_t id_of(const MbTable *table, uint32_t slot) {
  return table->slots[slot].generation << 20 | (slot + 1);
}

static int32_t table_grow(MbTable *table) {
  uint32_t capacity = table->capacity ? table->capacity * 2 : 16;
  MbSlot *slots;
  if (capacity > ID_SLOT_MASK) capacity = ID_SLOT_MASK;
  slots = realloc(table->slots, capacity * sizeof *slots);
  if (!slots) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a table of ids");
  table->slots = slots;
  table->capacity = capacity;
  return MB_OK;
}

int32_t table_add(MbTable *table, void *item, uint32_t *id) {
  uint32_t slot;
  if (table->free_count > ID_RESTING_SLOTS ||
      (table->used == ID_SLOT_MASK && table->free_count > 0)) {
    slot = table->oldest_free - 1;
    table->oldest_free = table->slots[slot].next_free;
    if (!table->oldest_free) table->newest_free = 0;
    table->free_count--;
  } else {
    if (table->used == ID_SLOT_MASK) {
      return error_set(MB_LIMIT, 0, "all %u ids of a kind are taken", ID_SLOT_MASK);
    }
    if (table->used == table->capacity && table_grow(table) != MB_OK) return MB_OUT_OF_MEMORY;
    slot = table->used++;
    table->slots[slot].generation = 0;
  }
  table->slots[slot].item = item;
  *id = id_of(table, slot);
  return MB_OK;
}

void *table_find(const MbTable *table, uint32_t id) {
  uint32_t slot = (id & ID_SLOT_MASK) - 1; /* wraps for 0, which no table holds */
  if (slot >= table->used || id_of(table, slot) != id) return NULL;
  return table->slots[slot].item;
}

void *table_remove(MbTable *table, uint32_t id) {
  void *item = table_find(table, id);
  if (item) {
    uint32_t number = id & ID_SLOT_MASK;
    MbSlot *slot = &table->slots[number - 1];
    slot->item = NULL;
    slot->generation = (slot->generation + 1) % ID_GENERATIONS;
    slot->next_free = 0;
    if (table->newest_free) {
      table->slots[table->newest_free - 1].next_free = number;
    } else {
      table->oldest_free = number;
    }
    table->newest_free = number;
    table->free_count++;
  }
  return item;
}

void *table_at(const MbTable *table, uint32_t number) { return table->slots[number - 1].item; }

uint32_t table_next(const MbTable *table, uint32_t from) {
  for (uint32_t slot = from; slot < table->used; slot++) {
    if (table->slots[slot].item) return id_of(table, slot);
  }
  return 0;
}

void table_free(MbTable *table) {
  free(table->slots);
  *table = (MbTable){0};
}
