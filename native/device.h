/* An open device, and how calls enter and leave it.
 *
 * Locks, in the order in which they are taken:
 *   vmm_lock     one reserve, create, map or unmap at a time; held during driver calls
 *   range_lock   what data calls look up; never held during a driver call
 *   object_lock  streams, events, modules, functions, graphs; never held during a driver call
 * Extents, reservations and their granules change under vmm_lock and range_lock both, so
 * holding either is enough to read them. */
#ifndef MOONBRIGHT_DEVICE_H
#define MOONBRIGHT_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "allocations.h"
#include "backend.h"
#include "ids.h"
#include "objects.h"
#include "reservations.h"
#include "staging.h"

typedef struct MbExtent {
  uint64_t size, handle;
  uint32_t mappings; /* addresses at which it is mapped; under vmm_lock */
  bool listed;       /* finds duplicates in one release call; under vmm_lock */
} MbExtent;

typedef struct MbDevice {
  const MbBackend *backend;
  void *self;
  uint64_t granularity; /* 0 if memory can't be mapped at chosen addresses */

  /* Of the registry, under its lock. */
  uint32_t calls_in_flight;
  bool closing;

  /* Set once, when a call finds the context dead. */
  pthread_mutex_t lost_lock;
  atomic_bool lost;
  MbError lost_error;

  pthread_mutex_t vmm_lock;
  pthread_mutex_t range_lock;
  MbTable extents;
  Reservations reservations;
  Allocations allocations; /* under range_lock alone */
  pthread_cond_t pinned_unused;

  pthread_mutex_t object_lock;
  pthread_cond_t object_unpinned;
  MbTable streams, events, modules, functions, graphs;
  MbObject default_stream;
  uint32_t captures; /* streams that are capturing, or begin or end it */
  uint32_t waits;    /* calls that wait for all streams: no capture begins meanwhile */

  Staging staging;
} MbDevice;

/* Finds the device, holds off its closing and makes its context current. Every MB_OK is
 * followed by a device_leave; after any other status there is nothing to leave. */
int32_t device_enter(uint32_t id, MbDevice **device);
/* Returns the status; MB_LOST makes the device lost. */
int32_t device_leave(MbDevice *device, int32_t status);

/* Waits for all streams of the device; captures_hold_off comes before. Not for the whole of a
 * GPU's context: that would spoil what other devices of the same GPU capture, and fail. */
int32_t streams_synchronize(MbDevice *device);

/* As device_enter, for a device that can map memory, with vmm_lock taken. */
int32_t device_enter_vmm(uint32_t id, MbDevice **device);
int32_t device_leave_vmm(MbDevice *device, int32_t status);

#endif
