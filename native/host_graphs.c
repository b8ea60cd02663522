/* Graphs of the host backend: lists of work that streams run again and again. */
#include <stdlib.h>

#include "host.h"

struct HostGraph {
  pthread_mutex_t lock;
  pthread_cond_t finished_launch;
  HostWork *first, **last;
  uint64_t launched, finished; /* counts: launches run one after the other */
  uint32_t references;         /* the owner's and one for each queued launch */
};

static HostGraph *new_graph(void) {
  HostGraph *graph = calloc(1, sizeof *graph);
  if (!graph) {
    error_set(MB_OUT_OF_MEMORY, 0, "no host memory for a graph");
    return NULL;
  }
  pthread_mutex_init(&graph->lock, NULL);
  pthread_cond_init(&graph->finished_launch, NULL);
  graph->last = &graph->first;
  graph->references = 1;
  return graph;
}

static void free_graph(HostGraph *graph) {
  while (graph->first) {
    HostWork *work = graph->first;
    graph->first = work->next;
    free(work);
  }
  pthread_mutex_destroy(&graph->lock);
  pthread_cond_destroy(&graph->finished_launch);
  free(graph);
}

/* With the lock, which is let go. */
static void drop_locked(HostGraph *graph) {
  bool last = --graph->references == 0;
  pthread_mutex_unlock(&graph->lock);
  if (last) free_graph(graph);
}

bool host_graph_add(HostGraph *graph, HostWork *work) {
  if (work->kind != HOST_FILL && work->kind != HOST_COPY && work->kind != HOST_LAUNCH) {
    return false;
  }
  *graph->last = work;
  graph->last = &work->next;
  return true;
}

int32_t host_capture_begin(void *self, void *stream) {
  HostStream *captured = stream;
  HostGraph *graph = new_graph();
  (void)self;
  if (!graph) return MB_OUT_OF_MEMORY;
  pthread_mutex_lock(&captured->lock);
  captured->capture = graph;
  pthread_mutex_unlock(&captured->lock);
  return MB_OK;
}

int32_t host_capture_status(void *self, void *stream, bool *capturing) {
  HostStream *asked = stream;
  (void)self;
  pthread_mutex_lock(&asked->lock);
  *capturing = asked->capture != NULL;
  pthread_mutex_unlock(&asked->lock);
  return MB_OK;
}

int32_t host_capture_end(void *self, void *stream, void **graph) {
  HostStream *captured = stream;
  HostGraph *ended;
  (void)self;
  pthread_mutex_lock(&captured->lock);
  ended = captured->capture;
  captured->capture = NULL;
  pthread_mutex_unlock(&captured->lock);
  if (graph) {
    *graph = ended;
  } else {
    free_graph(ended);
  }
  return MB_OK;
}

/* Its turn is taken and its work queued at once: a launch never waits for a later one. */
int32_t host_graph_launch(void *self, void *graph, void *stream) {
  HostGraph *launched = graph;
  HostWork *work = host_new_work(HOST_GRAPH, 0);
  int32_t status;
  (void)self;
  if (!work) return MB_OUT_OF_MEMORY;
  pthread_mutex_lock(&launched->lock);
  work->of.graph.graph = launched;
  work->of.graph.turn = launched->launched;
  status = host_enqueue(stream, work);
  if (status == MB_OK) {
    launched->launched++;
    launched->references++;
  }
  pthread_mutex_unlock(&launched->lock);
  return status;
}

void host_graph_run(HostDevice *device, HostGraph *graph, uint64_t turn) {
  pthread_mutex_lock(&graph->lock);
  while (graph->finished < turn) pthread_cond_wait(&graph->finished_launch, &graph->lock);
  pthread_mutex_unlock(&graph->lock);
  for (HostWork *work = graph->first; work; work = work->next) host_run(device, work);
  pthread_mutex_lock(&graph->lock);
  graph->finished++;
  pthread_cond_broadcast(&graph->finished_launch);
  drop_locked(graph);
}

int32_t host_graph_destroy(void *self, void *graph) {
  HostGraph *destroyed = graph;
  (void)self;
  pthread_mutex_lock(&destroyed->lock);
  drop_locked(destroyed);
  return MB_OK;
}
