#include "allocations.h"

#include <stddef.h>

/* Ranks must look random for the treap to stay flat: splitmix64 of the address. */
static uint64_t rank_of(uint64_t address) {
  uint64_t x = address + 0x9E3779B97F4A7C15u;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
  x = (x ^ x >> 27) * 0x94D049BB133111EBu;
  return x ^ x >> 31;
}

/* Splits by address into what lies below it and the rest. */
static void split(Allocation *tree, uint64_t address, Allocation **lower, Allocation **higher) {
  while (tree) {
    if (tree->address < address) {
      *lower = tree;
      lower = &tree->higher;
      tree = tree->higher;
    } else {
      *higher = tree;
      higher = &tree->lower;
      tree = tree->lower;
    }
  }
  *lower = *higher = NULL;
}

static void join(Allocation **place, Allocation *lower, Allocation *higher) {
  while (lower && higher) {
    if (lower->rank > higher->rank) {
      *place = lower;
      place = &lower->higher;
      lower = lower->higher;
    } else {
      *place = higher;
      place = &higher->lower;
      higher = higher->lower;
    }
  }
  *place = lower ? lower : higher;
}

void allocations_insert(Allocations *allocations, Allocation *allocation) {
  Allocation **place = &allocations->root;
  allocation->rank = rank_of(allocation->address);
  while (*place && (*place)->rank >= allocation->rank) {
    place = allocation->address < (*place)->address ? &(*place)->lower : &(*place)->higher;
  }
  split(*place, allocation->address, &allocation->lower, &allocation->higher);
  *place = allocation;
}

Allocation *allocations_remove(Allocations *allocations, AllocationKind kind, uint64_t address) {
  Allocation **place = &allocations->root, *found;
  while (*place && (*place)->address != address) {
    place = address < (*place)->address ? &(*place)->lower : &(*place)->higher;
  }
  found = *place;
  if (!found || found->kind != kind) return NULL;
  join(place, found->lower, found->higher);
  return found;
}

bool allocations_overlap(const Allocations *allocations, uint64_t address, uint64_t size) {
  const Allocation *node = allocations->root, *last = NULL;
  while (node) {
    if (node->address < address + size) {
      last = node;
      node = node->higher;
    } else {
      node = node->lower;
    }
  }
  /* They are apart, so of those that begin below the range's end the last ends last. */
  return last && last->address + last->size > address;
}

Allocation *allocations_find(const Allocations *allocations, uint64_t address, uint64_t size) {
  Allocation *node = allocations->root, *below = NULL;
  while (node) {
    if (node->address <= address) {
      below = node;
      node = node->higher;
    } else {
      node = node->lower;
    }
  }
  if (!below || address - below->address >= below->size) return NULL;
  return size <= below->size - (address - below->address) ? below : NULL;
}
