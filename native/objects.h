/* Streams, events, modules, functions and graphs of a device. A call pins what it uses, so that
 * another thread's destroy waits for it instead of pulling a handle from under it. */
#ifndef MOONBRIGHT_OBJECTS_H
#define MOONBRIGHT_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "ids.h"

typedef struct MbDevice MbDevice;

typedef struct MbObject MbObject;

typedef enum CaptureState {
  CAPTURE_NONE,
  CAPTURE_CHANGING, /* a thread is beginning or ending it */
  CAPTURE_ACTIVE,
} CaptureState;

/* Modules whose kernels a capture or a graph holds. */
typedef struct HeldModules {
  MbObject **items;
  uint32_t count, capacity;
} HeldModules;

struct MbObject {
  void *handle;
  uint32_t pins;
  MbObject *module;      /* of a function */
  bool timing, recorded; /* of an event */
  CaptureState capture;  /* of a stream */
  HeldModules held;      /* of a graph, or of a stream while it captures */
  uint32_t holders;      /* of a module: captures and graphs that hold kernels of it */
  bool claimed;          /* it is being destroyed: its id is stale unless that fails */
};

/* Tables of MbDevice. */
typedef enum ObjectKind {
  OBJECT_STREAM,
  OBJECT_EVENT,
  OBJECT_MODULE,
  OBJECT_FUNCTION,
  OBJECT_GRAPH,
} ObjectKind;

/* Takes the handle over on success only. */
int32_t object_add(MbDevice *device, ObjectKind kind, MbObject object, uint32_t *id);
int32_t object_pin(MbDevice *device, ObjectKind kind, uint32_t id, MbObject **object);
/* Walks: pins the first object behind an id, 0 to begin with, and sets the id to its own; null
 * at the end. Waits for one that is being destroyed to be gone. */
MbObject *object_pin_next(MbDevice *device, ObjectKind kind, uint32_t *id);
void object_unpin(MbDevice *device, MbObject *object);
/* For the one who is to destroy it: makes the id stale and waits until nobody has it pinned.
 * For a module, its functions too; it is refused while a graph holds kernels of it. */
int32_t object_claim(MbDevice *device, ObjectKind kind, uint32_t id, MbObject **object);
/* Ends a claim: forgets what was destroyed, else makes the id good again. */
void object_end_claim(MbDevice *device, ObjectKind kind, uint32_t id, bool destroyed);
/* Removes any one object of the kind; false if there is none. For closing. */
bool object_remove_any(MbDevice *device, ObjectKind kind, MbObject *object);

#endif
