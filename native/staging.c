#include "staging.h"

#include <stdlib.h>

#include "device.h"

/* Two keep one caller's host copies and the device busy at once; more only for calls
 * that run at the same time. */
enum { CHUNKS_BEFORE_WAITING = 2, MOST_CHUNKS = 32 };

void staging_init(Staging *staging) {
  pthread_mutex_init(&staging->lock, NULL);
  pthread_cond_init(&staging->given, NULL);
  staging->newest = &staging->oldest;
}

void staging_destroy(Staging *staging) {
  pthread_mutex_destroy(&staging->lock);
  pthread_cond_destroy(&staging->given);
}

static StagingChunk *unlink_chunk(Staging *staging, StagingChunk **place) {
  StagingChunk *chunk = *place;
  *place = chunk->next;
  if (!chunk->next) staging->newest = place;
  staging->free_count--;
  return chunk;
}

/* With the lock: a free chunk that the device has done with, or null. */
static StagingChunk *take_passed(MbDevice *device) {
  Staging *staging = &device->staging;
  for (StagingChunk **place = &staging->oldest; *place; place = &(*place)->next) {
    if (!(*place)->pending ||
        device->backend->event_query(device->self, (*place)->event) == MB_OK) {
      return unlink_chunk(staging, place);
    }
  }
  return NULL;
}

static int32_t create_chunk(MbDevice *device, StagingChunk **chunk) {
  StagingChunk *created = calloc(1, sizeof *created);
  int32_t status;
  if (!created) return error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a staging chunk");
  status = device->backend->staging_alloc(device->self, STAGING_CHUNK_BYTES, &created->memory);
  if (status == MB_OK) {
    status = device->backend->event_create(device->self, 0, &created->event);
    if (status != MB_OK) {
      MbError error;
      error_save(&error);
      device->backend->staging_free(device->self, created->memory);
      error_restore(&error);
    }
  }
  if (status == MB_OK) {
    *chunk = created;
  } else {
    free(created);
  }
  return status;
}

/* With total already counted up. */
static int32_t create_counted_chunk(MbDevice *device, StagingChunk **chunk) {
  int32_t status = create_chunk(device, chunk);
  if (status != MB_OK) {
    pthread_mutex_lock(&device->staging.lock);
    device->staging.total--;
    pthread_cond_broadcast(&device->staging.given);
    pthread_mutex_unlock(&device->staging.lock);
  }
  return status;
}

int32_t staging_take(MbDevice *device, StagingChunk **chunk) {
  Staging *staging = &device->staging;
  StagingChunk *taken;
  int32_t status;
  pthread_mutex_lock(&staging->lock);
  while (!(taken = take_passed(device))) {
    if (staging->free_count < CHUNKS_BEFORE_WAITING && staging->total < MOST_CHUNKS) {
      staging->total++;
      pthread_mutex_unlock(&staging->lock);
      return create_counted_chunk(device, chunk);
    }
    if (staging->free_count) {
      taken = unlink_chunk(staging, &staging->oldest);
      break;
    }
    pthread_cond_wait(&staging->given, &staging->lock);
  }
  pthread_mutex_unlock(&staging->lock);
  if (taken->pending) {
    status = device->backend->event_synchronize(device->self, taken->event);
    if (status != MB_OK) {
      staging_give(device, taken, true);
      return status;
    }
  }
  *chunk = taken;
  return MB_OK;
}

StagingChunk *staging_take_spare(MbDevice *device) {
  Staging *staging = &device->staging;
  StagingChunk *chunk;
  bool create;
  pthread_mutex_lock(&staging->lock);
  chunk = take_passed(device);
  create = !chunk && staging->total < CHUNKS_BEFORE_WAITING;
  if (create) staging->total++;
  pthread_mutex_unlock(&staging->lock);
  if (create && create_counted_chunk(device, &chunk) != MB_OK) chunk = NULL;
  return chunk;
}

void staging_give(MbDevice *device, StagingChunk *chunk, bool pending) {
  Staging *staging = &device->staging;
  chunk->pending = pending;
  chunk->next = NULL;
  pthread_mutex_lock(&staging->lock);
  *staging->newest = chunk;
  staging->newest = &chunk->next;
  staging->free_count++;
  pthread_cond_signal(&staging->given);
  pthread_mutex_unlock(&staging->lock);
}

void staging_close(MbDevice *device) {
  Staging *staging = &device->staging;
  while (staging->oldest) {
    StagingChunk *chunk = unlink_chunk(staging, &staging->oldest);
    device->backend->event_destroy(device->self, chunk->event);
    device->backend->staging_free(device->self, chunk->memory);
    free(chunk);
  }
}
