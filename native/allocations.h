/* Live allocations of the driver's own allocators and of page-locked host memory, by
 * address, so that data calls can tell whether a range lies inside one. A treap: the n-th
 * step of a replay must not cost more for all that is live. The owner locks it. */
#ifndef MOONBRIGHT_ALLOCATIONS_H
#define MOONBRIGHT_ALLOCATIONS_H

#include <stdbool.h>

#include "error.h"

typedef enum AllocationKind {
  ALLOCATION_PLAIN,
  ALLOCATION_POOL,
  ALLOCATION_PINNED,  /* of the host, used by the device too */
  ALLOCATION_WRAPPED, /* somebody else's, never freed here */
} AllocationKind;

typedef struct Allocation {
  uint64_t address, size, rank;
  struct Allocation *lower, *higher;
  AllocationKind kind;
  uint32_t copies; /* of the host's that go on in it, if it is page-locked */
} Allocation;

/* A zeroed one is empty. */
typedef struct Allocations {
  Allocation *root;
} Allocations;

void allocations_insert(Allocations *allocations, Allocation *allocation);
/* Null unless an allocation of that kind begins at the address. */
Allocation *allocations_remove(Allocations *allocations, AllocationKind kind, uint64_t address);
/* Whether any allocation has a byte of the range, which is not empty. */
bool allocations_overlap(const Allocations *allocations, uint64_t address, uint64_t size);
/* The allocation that holds the whole range, or null. */
Allocation *allocations_find(const Allocations *allocations, uint64_t address, uint64_t size);

#endif
