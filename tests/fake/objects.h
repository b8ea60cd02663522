/* Handles are numbers of a table that never reuses them, so that a stale or invented one
 * is refused where the real driver would crash. Dead objects keep their memory: queued
 * work may still point to them. */
#ifndef FAKE_OBJECTS_H
#define FAKE_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef enum ObjectKind {
  OBJECT_CONTEXT,
  OBJECT_STREAM,
  OBJECT_EVENT,
  OBJECT_MODULE,
  OBJECT_FUNCTION,
  OBJECT_POOL,
  OBJECT_PHYSICAL,
  OBJECT_GRAPH,
  OBJECT_GRAPH_EXEC
} ObjectKind;

/* The first member of everything that has a handle. */
typedef struct Object {
  ObjectKind kind;
  bool alive;
  uintptr_t handle;
} Object;

/* Not an address of this machine: used as a pointer, a handle faults at once. */
#define HANDLE_BASE ((uintptr_t)0xFACE000000000000u)
#define HANDLE_STEP 16u

static Object **objects;
static size_t object_count, object_capacity;

static void *checked_realloc(void *memory, size_t bytes) {
  void *moved = realloc(memory, bytes);
  if (moved == NULL) abort();
  return moved;
}

static void *object_new(ObjectKind kind, size_t bytes) {
  if (object_count == object_capacity) {
    object_capacity = object_capacity == 0 ? 64 : object_capacity * 2;
    objects = checked_realloc(objects, object_capacity * sizeof *objects);
  }
  Object *object = calloc(1, bytes);
  if (object == NULL) abort();
  object->kind = kind;
  object->alive = true;
  object->handle = HANDLE_BASE + object_count * HANDLE_STEP;
  objects[object_count++] = object;
  return object;
}

/* NULL if the handle is none of a living object of that kind. */
static void *object_find(ObjectKind kind, uintptr_t handle) {
  const uintptr_t index = (handle - HANDLE_BASE) / HANDLE_STEP;
  if (handle % HANDLE_STEP != 0 || index >= object_count) return NULL;
  Object *object = objects[index];
  return object->alive && object->kind == kind ? object : NULL;
}

static int32_t objects_alive(ObjectKind kind) {
  int32_t alive = 0;
  for (size_t i = 0; i < object_count; i++)
    alive += objects[i]->alive && objects[i]->kind == kind;
  return alive;
}

#endif
