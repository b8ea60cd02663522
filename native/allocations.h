/* Live allocations of the driver's own allocators, by address, so that data calls can
 * tell whether a range lies inside one. A treap: the n-th step of a replay must not cost
 * more for all that is live. The owner locks it. */
#ifndef MOONBRIGHT_ALLOCATIONS_H
#define MOONBRIGHT_ALLOCATIONS_H

#include <stdbool.h>

#include "error.h"

typedef enum AllocationKind { ALLOCATION_PLAIN, ALLOCATION_POOL } AllocationKind;

typedef struct Allocation {
  uint64_t address, size, rank;
  struct Allocation *lower, *higher;
  AllocationKind kind;
} Allocation;

/* A zeroed one is empty. */
typedef struct Allocations {
  Allocation *root;
} Allocations;

void allocations_insert(Allocations *allocations, Allocation *allocation);
/* Null unless an allocation of that kind begins at the address. */
Allocation *allocations_remove(Allocations *allocations, AllocationKind kind, uint64_t address);
bool allocations_contain(const Allocations *allocations, uint64_t address, uint64_t size);

#endif
