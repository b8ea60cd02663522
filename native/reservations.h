/* Reserved address ranges and what is mapped where in them.
 *
 * Each reservation holds one 32-bit entry per granule in lazily paged memory: a lookup is
 * one read, and 64 TiB of 2 MiB granules take 128 MiB of addresses, no more memory than
 * was mapped. Entry: extent slot + 1 (0: unmapped), a bit where a mapping starts, access. */
#ifndef MOONBRIGHT_RESERVATIONS_H
#define MOONBRIGHT_RESERVATIONS_H

#include <stdbool.h>

#include "ids.h"

typedef struct MbDevice MbDevice;

typedef struct Reservation {
  uint64_t address, size;
  uint32_t *granules;
  uint64_t used_granules;   /* none at or above this was ever mapped */
  uint64_t mapped_granules;
} Reservation;

/* Sorted by address. A zeroed one is empty. */
typedef struct Reservations {
  Reservation **items;
  uint32_t count, capacity;
} Reservations;

/* The reservation that holds the whole range, or null. */
Reservation *reservations_find(const Reservations *reservations, uint64_t address,
                               uint64_t size);

/* One mapping, as a walk over a range meets it. */
typedef struct Mapping {
  uint64_t address, size;
  uint32_t number; /* extent slot + 1 */
  int32_t access;
} Mapping;

/* The mapping that starts at an address known to be the start of one. */
Mapping mapping_at(const MbDevice *device, const Reservation *reservation, uint64_t address);

/* These change granules and take range_lock for it. */
void mapping_note(MbDevice *device, Reservation *reservation, Mapping mapping);
void mapping_forget(MbDevice *device, Reservation *reservation, Mapping mapping);
void mapping_note_access(MbDevice *device, Reservation *reservation, Mapping mapping,
                         int32_t access);

/* MB_BAD_ARGUMENT if any of the range is mapped. */
int32_t reservation_check_free(const MbDevice *device, const Reservation *reservation,
                               uint64_t address, uint64_t size);
/* MB_NOT_MAPPED, or MB_BAD_ARGUMENT if the range cuts a mapping. */
int32_t reservation_check_whole(const MbDevice *device, const Reservation *reservation,
                                uint64_t address, uint64_t size);

/* Whether data calls may touch the range: it lies in mappings with that access or inside
 * one tracked allocation. */
int32_t range_check(MbDevice *device, uint64_t address, uint64_t bytes, int32_t access);

/* For closing: unmaps and gives back all that is left, whatever the driver says. */
void reservations_close(MbDevice *device);

#endif
