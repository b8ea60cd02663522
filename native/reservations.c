#define _GNU_SOURCE
#include "reservations.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "device.h"

enum { START_BIT = 1 << 20, ACCESS_SHIFT = 21 };

static uint64_t granule_of(const MbDevice *device, const Reservation *reservation,
                           uint64_t address) {
  return (address - reservation->address) / device->granularity;
}

static int32_t access_of(uint32_t entry) { return (int32_t)(entry >> ACCESS_SHIFT); }

static size_t granules_bytes(const MbDevice *device, uint64_t size) {
  return (size_t)(size / device->granularity) * sizeof(uint32_t);
}

/* Index of the first reservation above the address. */
static uint32_t index_above(const Reservations *reservations, uint64_t address) {
  uint32_t low = 0, high = reservations->count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (reservations->items[middle]->address > address) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

Reservation *reservations_find(const Reservations *reservations, uint64_t address,
                               uint64_t size) {
  uint32_t above = index_above(reservations, address);
  Reservation *found = above ? reservations->items[above - 1] : NULL;
  if (!found || address - found->address >= found->size) return NULL;
  return size <= found->size - (address - found->address) ? found : NULL;
}

Mapping mapping_at(const MbDevice *device, const Reservation *reservation, uint64_t address) {
  uint32_t entry = reservation->granules[granule_of(device, reservation, address)];
  uint32_t number = entry & ID_SLOT_MASK;
  const MbExtent *extent = table_at(&device->extents, number);
  return (Mapping){address, extent->size, number, access_of(entry)};
}

static void write_granules(MbDevice *device, Reservation *reservation, Mapping mapping,
                           uint32_t entry) {
  uint64_t first = granule_of(device, reservation, mapping.address);
  uint64_t count = mapping.size / device->granularity;
  uint64_t end = first + count;
  for (uint64_t granule = first; granule < end; granule++) reservation->granules[granule] = entry;
  if (entry) reservation->granules[first] |= START_BIT;
  if (end > reservation->used_granules) reservation->used_granules = end;
}

static uint32_t entry_of(uint32_t number, int32_t access) {
  return number | (uint32_t)access << ACCESS_SHIFT;
}

void mapping_note(MbDevice *device, Reservation *reservation, Mapping mapping) {
  MbExtent *extent = table_at(&device->extents, mapping.number);
  pthread_mutex_lock(&device->range_lock);
  write_granules(device, reservation, mapping, entry_of(mapping.number, mapping.access));
  reservation->mapped_granules += mapping.size / device->granularity;
  pthread_mutex_unlock(&device->range_lock);
  extent->mappings++;
}

void mapping_forget(MbDevice *device, Reservation *reservation, Mapping mapping) {
  MbExtent *extent = table_at(&device->extents, mapping.number);
  pthread_mutex_lock(&device->range_lock);
  write_granules(device, reservation, mapping, 0);
  reservation->mapped_granules -= mapping.size / device->granularity;
  pthread_mutex_unlock(&device->range_lock);
  extent->mappings--;
}

void mapping_note_access(MbDevice *device, Reservation *reservation, Mapping mapping,
                         int32_t access) {
  pthread_mutex_lock(&device->range_lock);
  write_granules(device, reservation, mapping, entry_of(mapping.number, access));
  pthread_mutex_unlock(&device->range_lock);
}

int32_t reservation_check_free(const MbDevice *device, const Reservation *reservation,
                               uint64_t address, uint64_t size) {
  uint64_t granule = granule_of(device, reservation, address);
  uint64_t end = granule + size / device->granularity;
  /* Fresh addresses lie above all that was mapped: nothing to look at. */
  if (end > reservation->used_granules) end = reservation->used_granules;
  for (; granule < end; granule++) {
    if (reservation->granules[granule]) {
      return error_set(MB_BAD_ARGUMENT, 0, "0x%" PRIx64 " is already mapped",
                       reservation->address + granule * device->granularity);
    }
  }
  return MB_OK;
}

int32_t reservation_check_whole(const MbDevice *device, const Reservation *reservation,
                                uint64_t address, uint64_t size) {
  uint64_t end = address + size;
  uint64_t at = address;
  while (at < end) {
    uint32_t entry = reservation->granules[granule_of(device, reservation, at)];
    if (!entry) return error_set(MB_NOT_MAPPED, 0, "0x%" PRIx64 " is not mapped", at);
    if (!(entry & START_BIT)) break;
    at += mapping_at(device, reservation, at).size;
  }
  if (at == end) return MB_OK;
  return error_set(MB_BAD_ARGUMENT, 0,
                   "the range 0x%" PRIx64 " to 0x%" PRIx64 " cuts a mapping at its %s", address,
                   end, at > end ? "end" : "start");
}

/* With range_lock or vmm_lock. */
static int32_t check_mapped(const MbDevice *device, uint64_t address, uint64_t bytes,
                            int32_t access) {
  const Reservation *reservation = reservations_find(&device->reservations, address, bytes);
  uint64_t granule, last;
  if (!reservation) {
    return error_set(MB_NOT_MAPPED, 0,
                     "0x%" PRIx64 " to 0x%" PRIx64
                     " lies in no reservation and in no allocation of this device",
                     address, address + bytes);
  }
  granule = granule_of(device, reservation, address);
  last = granule_of(device, reservation, address + bytes - 1);
  while (granule <= last) {
    uint32_t entry = reservation->granules[granule];
    uint64_t at = reservation->address + granule * device->granularity;
    if (!entry) return error_set(MB_NOT_MAPPED, 0, "0x%" PRIx64 " is not mapped", at);
    if ((access_of(entry) & access) != access) {
      return error_set(MB_NOT_MAPPED, 0, "0x%" PRIx64 " is mapped without %s access", at,
                       access == MB_ACCESS_READ ? "read" : "read-write");
    }
    granule += entry & START_BIT
                   ? mapping_at(device, reservation, at).size / device->granularity
                   : 1;
  }
  return MB_OK;
}

int32_t range_check(MbDevice *device, uint64_t address, uint64_t bytes, int32_t access) {
  int32_t status = MB_OK;
  pthread_mutex_lock(&device->range_lock);
  if (!allocations_find(&device->allocations, address, bytes)) {
    status = check_mapped(device, address, bytes, access);
  }
  pthread_mutex_unlock(&device->range_lock);
  return status;
}

/* With range_lock. */
static int32_t insert_reservation(Reservations *reservations, Reservation *added) {
  uint32_t place;
  if (reservations->count == reservations->capacity) {
    uint32_t capacity = reservations->capacity ? reservations->capacity * 2 : 8;
    Reservation **items;
    if (capacity > ID_SLOT_MASK) {
      return error_set(MB_LIMIT, 0, "the device has too many reservations");
    }
    items = realloc(reservations->items, capacity * sizeof(Reservation *));
    if (!items) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a reservation");
    reservations->items = items;
    reservations->capacity = capacity;
  }
  place = index_above(reservations, added->address);
  memmove(reservations->items + place + 1, reservations->items + place,
          (reservations->count - place) * sizeof *reservations->items);
  reservations->items[place] = added;
  reservations->count++;
  return MB_OK;
}

static void remove_reservation(MbDevice *device, const Reservation *removed) {
  Reservations *reservations = &device->reservations;
  uint32_t place;
  pthread_mutex_lock(&device->range_lock);
  place = index_above(reservations, removed->address) - 1;
  reservations->count--;
  memmove(reservations->items + place, reservations->items + place + 1,
          (reservations->count - place) * sizeof *reservations->items);
  pthread_mutex_unlock(&device->range_lock);
}

static void free_reservation(const MbDevice *device, Reservation *reservation) {
  munmap(reservation->granules, granules_bytes(device, reservation->size));
  free(reservation);
}

static int32_t new_reservation(const MbDevice *device, uint64_t size, Reservation **added) {
  Reservation *reservation = calloc(1, sizeof *reservation);
  void *granules;
  if (!reservation) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a reservation");
  granules = mmap(NULL, granules_bytes(device, size), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (granules == MAP_FAILED) {
    int code = errno;
    free(reservation);
    return error_set(MB_OUT_OF_ADDRESSES, code,
                     "mmap of %zu bytes to keep track of a reservation of %" PRIu64
                     " bytes: %s: ask for less",
                     granules_bytes(device, size), size, strerror(code));
  }
  reservation->size = size;
  reservation->granules = granules;
  *added = reservation;
  return MB_OK;
}

static int32_t reserve(MbDevice *device, uint64_t size, uint64_t *address) {
  Reservation *added = NULL;
  int32_t status = new_reservation(device, size, &added);
  if (status != MB_OK) return status;
  status = device->backend->reserve(device->self, size, &added->address);
  if (status == MB_OK) {
    uint64_t checked;
    if (check_address("the reserved address", (double)added->address, device->granularity, size,
                      &checked) != MB_OK) {
      status = error_set(MB_OUT_OF_ADDRESSES, 0, "%s", error_last_text());
    } else {
      pthread_mutex_lock(&device->range_lock);
      status = insert_reservation(&device->reservations, added);
      pthread_mutex_unlock(&device->range_lock);
    }
    if (status != MB_OK) {
      MbError error;
      error_save(&error);
      device->backend->unreserve(device->self, added->address, size);
      error_restore(&error);
    }
  }
  if (status == MB_OK) {
    *address = added->address;
  } else {
    free_reservation(device, added);
  }
  return status;
}

int32_t mb_reserve(uint32_t device, double size, double *address) {
  MbDevice *d;
  uint64_t bytes, reserved;
  int32_t status = check_pointer("address", address);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  status = check_size("size", size, d->granularity, &bytes);
  if (status == MB_OK) status = reserve(d, bytes, &reserved);
  if (status == MB_OK) *address = (double)reserved;
  return device_leave_vmm(d, status);
}

static int32_t unreserve(MbDevice *device, uint64_t address) {
  Reservation *reservation = reservations_find(&device->reservations, address, 1);
  int32_t status;
  if (!reservation || reservation->address != address) {
    return error_set(MB_BAD_ARGUMENT, 0, "no reservation starts at 0x%" PRIx64, address);
  }
  if (reservation->mapped_granules) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "%" PRIu64 " bytes of the reservation at 0x%" PRIx64 " are still mapped",
                     reservation->mapped_granules * device->granularity, address);
  }
  status = device->backend->unreserve(device->self, address, reservation->size);
  if (status == MB_OK) {
    remove_reservation(device, reservation);
    free_reservation(device, reservation);
  }
  return status;
}

int32_t mb_unreserve(uint32_t device, double address) {
  MbDevice *d;
  uint64_t start;
  int32_t status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  status = check_address("address", address, d->granularity, 0, &start);
  if (status == MB_OK) status = unreserve(d, start);
  return device_leave_vmm(d, status);
}

void reservations_close(MbDevice *device) {
  Reservations *reservations = &device->reservations;
  while (reservations->count) {
    Reservation *reservation = reservations->items[reservations->count - 1];
    uint64_t granule = 0;
    while (granule < reservation->used_granules) {
      uint64_t address = reservation->address + granule * device->granularity;
      if (reservation->granules[granule]) {
        Mapping mapping = mapping_at(device, reservation, address);
        device->backend->unmap(device->self, mapping.address, mapping.size);
        granule += mapping.size / device->granularity;
      } else {
        granule++;
      }
    }
    device->backend->unreserve(device->self, reservation->address, reservation->size);
    remove_reservation(device, reservation);
    free_reservation(device, reservation);
  }
  free(reservations->items);
  *reservations = (Reservations){0};
}
