#define _GNU_SOURCE
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "clock.h"
#include "device.h"

/* A range of whole mappings of one reservation. */
typedef struct Range {
  uint64_t address, size;
  Reservation *reservation;
} Range;

static uint64_t end_of(Range range) { return range.address + range.size; }

/* Sums the extents' sizes and finds the free range they are to fill. */
static int32_t find_map_range(MbDevice *device, double address, uint32_t count,
                              const uint32_t *ids, Range *range) {
  const uint64_t too_much = UINT64_C(1) << 53;
  int32_t status;
  range->size = 0;
  for (uint32_t i = 0; i < count; i++) {
    const MbExtent *extent = table_find(&device->extents, ids[i]);
    if (!extent) {
      return error_set(MB_BAD_HANDLE, 0, "no extent of this device has the id %" PRIu32, ids[i]);
    }
    range->size += extent->size;
    if (range->size >= too_much) {
      return error_set(MB_BAD_ARGUMENT, 0, "the extents reach beyond 2^53 bytes");
    }
  }
  status = check_address("address", address, device->granularity, range->size, &range->address);
  if (status != MB_OK) return status;
  range->reservation =
      reservations_find(&device->reservations, range->address, range->size);
  if (!range->reservation) {
    return error_set(MB_BAD_ARGUMENT, 0,
                     "0x%" PRIx64 " to 0x%" PRIx64 " does not lie inside one reservation",
                     range->address, end_of(*range));
  }
  return reservation_check_free(device, range->reservation, range->address, range->size);
}

static void note_mapped(MbDevice *device, Range range, uint64_t size, const uint32_t *ids,
                        int32_t access) {
  uint64_t at = range.address;
  for (uint32_t i = 0; at < range.address + size; i++) {
    const MbExtent *extent = table_find(&device->extents, ids[i]);
    Mapping mapping = {at, extent->size, ids[i] & ID_SLOT_MASK, access};
    mapping_note(device, range.reservation, mapping);
    at += extent->size;
  }
}

static uint64_t size_of(const MbDevice *device, uint32_t id) {
  const MbExtent *extent = table_find(&device->extents, id);
  return extent->size;
}

/* Sets the access of new mappings, in one call where the driver takes a range of them. */
static int32_t grant(MbDevice *device, Range range, const uint32_t *ids, int32_t access) {
  const MbBackend *backend = device->backend;
  int32_t status = MB_OK;
  for (uint64_t at = range.address; at < end_of(range) && status == MB_OK; ids++) {
    uint64_t size = range.size;
    if (backend->single_mappings) size = size_of(device, *ids);
    status = backend->set_access(device->self, at, size, access);
    at += size;
  }
  if (status == MB_OK && backend->settle) backend->settle(device->self);
  return status;
}

/* Unmaps the first bytes of a range, again in one call or several. What can't be unmapped is
 * noted as without access, so that its extents aren't released under it; counts it. */
static uint64_t take_back(MbDevice *device, Range range, uint64_t mapped, const uint32_t *ids) {
  uint64_t stuck = 0;
  for (uint64_t done = 0; done < mapped;) {
    Range piece = {range.address + done, mapped, range.reservation};
    if (device->backend->single_mappings) piece.size = size_of(device, *ids);
    if (device->backend->unmap(device->self, piece.address, piece.size) != MB_OK) {
      note_mapped(device, piece, piece.size, ids, MB_ACCESS_NONE);
      stuck += piece.size;
    }
    done += piece.size;
    ids++;
  }
  return stuck;
}

/* Unmaps what the failing call mapped, keeping its error. */
static int32_t undo_map(MbDevice *device, Range range, uint64_t mapped, const uint32_t *ids) {
  MbError error;
  uint64_t stuck;
  error_save(&error);
  stuck = take_back(device, range, mapped, ids);
  error_restore(&error);
  if (stuck) {
    error_append("; undoing failed too: %" PRIu64 " bytes stay mapped without access at 0x%" PRIx64,
                 stuck, range.address);
  }
  return error.status;
}

static int32_t map_extents(MbDevice *device, double address, uint32_t count,
                           const uint32_t *ids, int32_t access, double *elapsed_ns) {
  Range range;
  uint64_t mapped = 0;
  int64_t started, between, ended;
  int32_t status = find_map_range(device, address, count, ids, &range);
  if (status != MB_OK) return status;
  started = clock_ns();
  for (uint32_t i = 0; i < count; i++) {
    const MbExtent *extent = table_find(&device->extents, ids[i]);
    status = device->backend->map(device->self, range.address + mapped, extent->size,
                                  extent->handle);
    if (status != MB_OK) return undo_map(device, range, mapped, ids);
    mapped += extent->size;
  }
  between = clock_ns();
  status = grant(device, range, ids, access);
  if (status != MB_OK) return undo_map(device, range, mapped, ids);
  ended = clock_ns();
  note_mapped(device, range, range.size, ids, access);
  if (elapsed_ns) {
    elapsed_ns[0] = (double)(between - started);
    elapsed_ns[1] = (double)(ended - between);
  }
  return MB_OK;
}

int32_t mb_map(uint32_t device, double address, uint32_t count, const uint32_t *extents,
               int32_t access, double *elapsed_ns) {
  MbDevice *d;
  int32_t status = check_count("count", count, CHECK_LARGEST_COUNT);
  if (status == MB_OK) status = check_pointer("extents", extents);
  if (status == MB_OK) status = check_access(access);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  return device_leave_vmm(d, map_extents(d, address, count, extents, access, elapsed_ns));
}

static int32_t find_mapped_range(MbDevice *device, double address, double size, Range *range) {
  int32_t status = check_size("size", size, device->granularity, &range->size);
  if (status == MB_OK) {
    status = check_address("address", address, device->granularity, range->size,
                           &range->address);
  }
  if (status != MB_OK) return status;
  range->reservation =
      reservations_find(&device->reservations, range->address, range->size);
  if (!range->reservation) {
    return error_set(MB_NOT_MAPPED, 0,
                     "0x%" PRIx64 " to 0x%" PRIx64 " does not lie inside one reservation",
                     range->address, end_of(*range));
  }
  return reservation_check_whole(device, range->reservation, range->address, range->size);
}

/* Sets the access of noted mappings. */
static int32_t grant_noted(MbDevice *device, Range range, int32_t access) {
  const MbBackend *backend = device->backend;
  int32_t status = MB_OK;
  for (uint64_t at = range.address; at < end_of(range) && status == MB_OK;) {
    uint64_t size = range.size;
    if (backend->single_mappings) size = mapping_at(device, range.reservation, at).size;
    status = backend->set_access(device->self, at, size, access);
    at += size;
  }
  if (status == MB_OK && backend->settle) backend->settle(device->self);
  return status;
}

/* Sets the access that is noted for the mappings of a range, with few calls. Mappings for
 * which that fails are noted as having none; counts their bytes. */
static uint64_t restore_access(MbDevice *device, Range range) {
  uint64_t at = range.address, failed = 0;
  while (at < end_of(range)) {
    Mapping first = mapping_at(device, range.reservation, at);
    uint64_t start = at;
    while (at < end_of(range)) {
      Mapping next = mapping_at(device, range.reservation, at);
      if (next.access != first.access) break;
      at += next.size;
    }
    if (first.access != MB_ACCESS_NONE &&
        grant_noted(device, (Range){start, at - start, range.reservation}, first.access) !=
            MB_OK) {
      failed += at - start;
      while (start < at) {
        Mapping mapping = mapping_at(device, range.reservation, start);
        mapping_note_access(device, range.reservation, mapping, MB_ACCESS_NONE);
        start += mapping.size;
      }
    }
  }
  return failed;
}

static int32_t undo_set_access(MbDevice *device, Range range) {
  MbError error;
  uint64_t failed;
  error_save(&error);
  failed = restore_access(device, range);
  error_restore(&error);
  if (failed) {
    error_append("; undoing failed too: %" PRIu64 " bytes are left without access", failed);
  }
  return error.status;
}

static int32_t set_access(MbDevice *device, double address, double size, int32_t access) {
  Range range;
  int32_t status = find_mapped_range(device, address, size, &range);
  if (status != MB_OK) return status;
  status = grant_noted(device, range, access);
  if (status != MB_OK) return undo_set_access(device, range);
  for (uint64_t at = range.address; at < end_of(range);) {
    Mapping mapping = mapping_at(device, range.reservation, at);
    mapping_note_access(device, range.reservation, mapping, access);
    at += mapping.size;
  }
  return MB_OK;
}

int32_t mb_set_access(uint32_t device, double address, double size, int32_t access) {
  MbDevice *d;
  int32_t status = check_access(access);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  return device_leave_vmm(d, set_access(d, address, size, access));
}

static int compare_addresses(const void *left, const void *right) {
  uint64_t a = ((const Range *)left)->address, b = ((const Range *)right)->address;
  return (a > b) - (a < b);
}

/* Checks the ranges and sorts them: which goes first makes no difference. */
static int32_t find_unmap_ranges(MbDevice *device, uint32_t count, const double *addresses,
                                 const double *sizes, Range *ranges) {
  for (uint32_t i = 0; i < count; i++) {
    int32_t status = find_mapped_range(device, addresses[i], sizes[i], &ranges[i]);
    if (status != MB_OK) return status;
  }
  qsort(ranges, count, sizeof *ranges, compare_addresses);
  for (uint32_t i = 1; i < count; i++) {
    if (ranges[i].address < end_of(ranges[i - 1])) {
      return error_set(MB_BAD_ARGUMENT, 0, "0x%" PRIx64 " lies in two of the ranges",
                       ranges[i].address);
    }
  }
  return MB_OK;
}

/* Maps a range again as it is still noted; counts the bytes that it could not. */
static uint64_t map_again(MbDevice *device, Range range) {
  uint64_t failed = 0, run = range.address;
  for (uint64_t at = range.address; at < end_of(range);) {
    Mapping mapping = mapping_at(device, range.reservation, at);
    const MbExtent *extent = table_at(&device->extents, mapping.number);
    if (device->backend->map(device->self, at, mapping.size, extent->handle) != MB_OK) {
      failed += restore_access(device, (Range){run, at - run, range.reservation});
      failed += mapping.size;
      mapping_forget(device, range.reservation, mapping);
      run = at + mapping.size;
    }
    at += mapping.size;
  }
  return failed + restore_access(device, (Range){run, end_of(range) - run, range.reservation});
}

static int32_t undo_unmap(MbDevice *device, uint32_t count, const Range *ranges) {
  MbError error;
  uint64_t failed = 0;
  error_save(&error);
  for (uint32_t i = 0; i < count; i++) failed += map_again(device, ranges[i]);
  error_restore(&error);
  if (failed) {
    error_append("; undoing failed too: %" PRIu64 " bytes are left unmapped or without access",
                 failed);
  }
  return error.status;
}

/* Unmaps a range, or on failure the beginning of it; counts the bytes. */
static int32_t unmap_range(MbDevice *device, Range range, uint64_t *unmapped) {
  int32_t status = MB_OK;
  *unmapped = 0;
  while (*unmapped < range.size) {
    uint64_t at = range.address + *unmapped, size = range.size;
    if (device->backend->single_mappings) size = mapping_at(device, range.reservation, at).size;
    status = device->backend->unmap(device->self, at, size);
    if (status != MB_OK) break;
    *unmapped += size;
  }
  return status;
}

static int32_t unmap_ranges(MbDevice *device, uint32_t count, Range *ranges) {
  for (uint32_t i = 0; i < count; i++) {
    uint64_t unmapped;
    int32_t status = unmap_range(device, ranges[i], &unmapped);
    if (status != MB_OK) {
      ranges[i].size = unmapped;
      return undo_unmap(device, i + 1, ranges);
    }
  }
  for (uint32_t i = 0; i < count; i++) {
    for (uint64_t at = ranges[i].address; at < end_of(ranges[i]);) {
      Mapping mapping = mapping_at(device, ranges[i].reservation, at);
      mapping_forget(device, ranges[i].reservation, mapping);
      at += mapping.size;
    }
  }
  return MB_OK;
}

int32_t mb_unmap(uint32_t device, uint32_t count, const double *addresses,
                 const double *sizes) {
  MbDevice *d;
  Range *ranges;
  int32_t status = check_count("count", count, CHECK_LARGEST_COUNT);
  if (status == MB_OK) status = check_pointer("addresses", addresses);
  if (status == MB_OK) status = check_pointer("sizes", sizes);
  if (status == MB_OK) status = device_enter_vmm(device, &d);
  if (status != MB_OK) return status;
  ranges = malloc(count * sizeof *ranges);
  if (ranges) {
    status = find_unmap_ranges(d, count, addresses, sizes, ranges);
    if (status == MB_OK) status = unmap_ranges(d, count, ranges);
    free(ranges);
  } else {
    status = error_set(MB_OUT_OF_MEMORY, 0, "no host memory to unmap %" PRIu32 " ranges", count);
  }
  return device_leave_vmm(d, status);
}
