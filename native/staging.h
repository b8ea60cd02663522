/* Chunks of pinned host memory through which data calls copy. A call owns the chunks it
 * uses, so a call that waits for its stream holds up nobody else. */
#ifndef MOONBRIGHT_STAGING_H
#define MOONBRIGHT_STAGING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define STAGING_CHUNK_BYTES ((size_t)4 << 20)

typedef struct MbDevice MbDevice;

typedef struct StagingChunk {
  uint8_t *memory;
  void *event;
  bool pending; /* the device reads it until the event has passed */
  struct StagingChunk *next;
} StagingChunk;

typedef struct Staging {
  pthread_mutex_t lock;
  pthread_cond_t given;
  StagingChunk *oldest, **newest;
  uint32_t free_count, total;
} Staging;

void staging_init(Staging *staging);
void staging_destroy(Staging *staging);
/* Waits for one if it must. */
int32_t staging_take(MbDevice *device, StagingChunk **chunk);
/* A second chunk for a call that has one already: null rather than a wait. */
StagingChunk *staging_take_spare(MbDevice *device);
void staging_give(MbDevice *device, StagingChunk *chunk, bool pending);
/* For closing: frees all chunks. */
void staging_close(MbDevice *device);

#endif
