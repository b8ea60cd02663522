/* Tables from ids to items. An id is generation << 20 | slot + 1, so that a stale or
 * invented one is told from a live one. The owner of a table locks it. */
#ifndef MOONBRIGHT_IDS_H
#define MOONBRIGHT_IDS_H

#include "error.h"

#define ID_SLOT_MASK 0xFFFFFu

typedef struct MbSlot {
  void *item; /* null while free */
  uint32_t generation;
  uint32_t next_free; /* slot + 1 */
} MbSlot;

/* A zeroed table is an empty one. */
typedef struct MbTable {
  MbSlot *slots;
  uint32_t used, capacity;
  uint32_t oldest_free, newest_free, free_count;
} MbTable;

/* MB_LIMIT if the table is full. */
int32_t table_add(MbTable *table, void *item, uint32_t *id);
/* Null if there is none of that id. */
void *table_find(const MbTable *table, uint32_t id);
void *table_remove(MbTable *table, uint32_t id);
/* The item of a slot known to be live; number is slot + 1. */
void *table_at(const MbTable *table, uint32_t number);
/* Walks: the id of the first item in slot `from` or later, 0 at the end. */
uint32_t table_next(const MbTable *table, uint32_t from);
void table_free(MbTable *table);

#endif
