/* What the fake drivers answer. The vendors' numbers are the same, their names are not. */
#ifndef FAKE_RESULTS_H
#define FAKE_RESULTS_H

#include <stddef.h>
#include <stdint.h>

typedef enum Result {
  RESULT_SUCCESS = 0,
  RESULT_INVALID_VALUE = 1,
  RESULT_OUT_OF_MEMORY = 2,
  RESULT_NOT_INITIALIZED = 3,
  RESULT_DEINITIALIZED = 4,
  RESULT_NO_DEVICE = 100,
  RESULT_INVALID_DEVICE = 101,
  RESULT_INVALID_CONTEXT = 201,
  RESULT_NO_BINARY_FOR_GPU = 209,
  RESULT_INVALID_IMAGE = 218, /* CUDA's word is PTX, HIP's is kernel file */
  RESULT_OPERATING_SYSTEM = 304,
  RESULT_INVALID_HANDLE = 400,
  RESULT_ILLEGAL_STATE = 401,
  RESULT_NOT_FOUND = 500,
  RESULT_NOT_READY = 600,
  RESULT_ILLEGAL_ADDRESS = 700,
  RESULT_CONTEXT_IS_DESTROYED = 709,
  RESULT_LAUNCH_FAILED = 719,
  RESULT_NOT_SUPPORTED = 801,
  RESULT_CAPTURE_UNSUPPORTED = 900,
  RESULT_CAPTURE_INVALIDATED = 901,
  RESULT_CAPTURE_ISOLATION = 905,
  RESULT_CAPTURE_IMPLICIT = 906,
  RESULT_UNKNOWN = 999
} Result;

/* Constants that the vendors share. */
enum { ALLOCATION_PINNED = 1, LOCATION_DEVICE = 1 };
enum { ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_READ_WRITE = 3 };
enum { GRANULARITY_MINIMUM = 0, GRANULARITY_RECOMMENDED = 1 };
enum { STREAM_NON_BLOCKING = 1 };
enum { EVENT_BLOCKING_SYNC = 1, EVENT_DISABLE_TIMING = 2 };
enum { POOL_RELEASE_THRESHOLD = 4 };
enum { HOST_DEVICE_MAP = 2 };
enum { CAPTURE_MODE_RELAXED = 2 };

#define ARGS_BUFFER ((void *)1)
#define ARGS_BUFFER_SIZE ((void *)2)

typedef struct MemLocation {
  int type, id;
} MemLocation;

typedef struct MemAccess {
  MemLocation location;
  int flags;
} MemAccess;

_Static_assert(sizeof(MemAccess) == 12, "as in the vendors' headers");

#endif
