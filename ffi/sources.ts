/**
 * The C sources as text, so that they can be compiled where MoonBright runs, also when
 * it was loaded from a registry and not from files. A test holds the lists against the
 * folders.
 *
 * @module
 */

import allocations_c from "../native/allocations.c" with { type: "text" };
import backends_c from "../native/backends.c" with { type: "text" };
import baseline_c from "../native/baseline.c" with { type: "text" };
import captures_c from "../native/captures.c" with { type: "text" };
import check_c from "../native/check.c" with { type: "text" };
import cuda_c from "../native/cuda.c" with { type: "text" };
import cuda_allocators_c from "../native/cuda_allocators.c" with {
  type: "text",
};
import cuda_data_c from "../native/cuda_data.c" with { type: "text" };
import cuda_error_c from "../native/cuda_error.c" with { type: "text" };
import cuda_graphs_c from "../native/cuda_graphs.c" with { type: "text" };
import cuda_kernels_c from "../native/cuda_kernels.c" with { type: "text" };
import cuda_library_c from "../native/cuda_library.c" with { type: "text" };
import cuda_memory_c from "../native/cuda_memory.c" with { type: "text" };
import cuda_pinned_c from "../native/cuda_pinned.c" with { type: "text" };
import cuda_streams_c from "../native/cuda_streams.c" with { type: "text" };
import data_c from "../native/data.c" with { type: "text" };
import devices_c from "../native/devices.c" with { type: "text" };
import elf_image_c from "../native/elf_image.c" with { type: "text" };
import error_c from "../native/error.c" with { type: "text" };
import events_c from "../native/events.c" with { type: "text" };
import extents_c from "../native/extents.c" with { type: "text" };
import graphs_c from "../native/graphs.c" with { type: "text" };
import host_c from "../native/host.c" with { type: "text" };
import host_allocators_c from "../native/host_allocators.c" with {
  type: "text",
};
import host_data_c from "../native/host_data.c" with { type: "text" };
import host_events_c from "../native/host_events.c" with { type: "text" };
import host_graphs_c from "../native/host_graphs.c" with { type: "text" };
import host_kernels_c from "../native/host_kernels.c" with { type: "text" };
import host_memory_c from "../native/host_memory.c" with { type: "text" };
import host_streams_c from "../native/host_streams.c" with { type: "text" };
import ids_c from "../native/ids.c" with { type: "text" };
import kernels_c from "../native/kernels.c" with { type: "text" };
import mappings_c from "../native/mappings.c" with { type: "text" };
import objects_c from "../native/objects.c" with { type: "text" };
import pinned_c from "../native/pinned.c" with { type: "text" };
import reservations_c from "../native/reservations.c" with { type: "text" };
import staging_c from "../native/staging.c" with { type: "text" };
import streams_c from "../native/streams.c" with { type: "text" };
import timing_c from "../native/timing.c" with { type: "text" };
import tracking_c from "../native/tracking.c" with { type: "text" };
import wrapped_c from "../native/wrapped.c" with { type: "text" };
import allocations_h from "../native/allocations.h" with { type: "text" };
import backend_h from "../native/backend.h" with { type: "text" };
import captures_h from "../native/captures.h" with { type: "text" };
import check_h from "../native/check.h" with { type: "text" };
import clock_h from "../native/clock.h" with { type: "text" };
import cuda_h from "../native/cuda.h" with { type: "text" };
import cuda_api_h from "../native/cuda_api.h" with { type: "text" };
import device_h from "../native/device.h" with { type: "text" };
import elf_image_h from "../native/elf_image.h" with { type: "text" };
import error_h from "../native/error.h" with { type: "text" };
import host_h from "../native/host.h" with { type: "text" };
import ids_h from "../native/ids.h" with { type: "text" };
import kernels_h from "../native/kernels.h" with { type: "text" };
import moonbright_h from "../native/moonbright.h" with { type: "text" };
import objects_h from "../native/objects.h" with { type: "text" };
import reservations_h from "../native/reservations.h" with { type: "text" };
import staging_h from "../native/staging.h" with { type: "text" };
import tracking_h from "../native/tracking.h" with { type: "text" };
import kernel_busy_c from "../kernels/busy.c" with { type: "text" };
import kernel_paging_copy_c from "../kernels/paging_copy.c" with {
  type: "text",
};
import kernel_paging_entries_c from "../kernels/paging_entries.c" with {
  type: "text",
};
import kernel_paging_read_c from "../kernels/paging_read.c" with {
  type: "text",
};
import kernel_pattern_c from "../kernels/pattern.c" with { type: "text" };
import kernel_moonbright_h from "../kernels/moonbright.h" with { type: "text" };
import kernel_target_h from "../kernels/target.h" with { type: "text" };

/** Sources by file name. */
export type Sources = Readonly<Record<string, string>>;

/** The shim's sources, `native/`. */
export const SHIM_SOURCES: Sources = {
  "allocations.c": allocations_c,
  "backends.c": backends_c,
  "baseline.c": baseline_c,
  "captures.c": captures_c,
  "check.c": check_c,
  "cuda.c": cuda_c,
  "cuda_allocators.c": cuda_allocators_c,
  "cuda_data.c": cuda_data_c,
  "cuda_error.c": cuda_error_c,
  "cuda_graphs.c": cuda_graphs_c,
  "cuda_kernels.c": cuda_kernels_c,
  "cuda_library.c": cuda_library_c,
  "cuda_memory.c": cuda_memory_c,
  "cuda_pinned.c": cuda_pinned_c,
  "cuda_streams.c": cuda_streams_c,
  "data.c": data_c,
  "devices.c": devices_c,
  "elf_image.c": elf_image_c,
  "error.c": error_c,
  "events.c": events_c,
  "extents.c": extents_c,
  "graphs.c": graphs_c,
  "host.c": host_c,
  "host_allocators.c": host_allocators_c,
  "host_data.c": host_data_c,
  "host_events.c": host_events_c,
  "host_graphs.c": host_graphs_c,
  "host_kernels.c": host_kernels_c,
  "host_memory.c": host_memory_c,
  "host_streams.c": host_streams_c,
  "ids.c": ids_c,
  "kernels.c": kernels_c,
  "mappings.c": mappings_c,
  "objects.c": objects_c,
  "pinned.c": pinned_c,
  "reservations.c": reservations_c,
  "staging.c": staging_c,
  "streams.c": streams_c,
  "timing.c": timing_c,
  "tracking.c": tracking_c,
  "wrapped.c": wrapped_c,
  "allocations.h": allocations_h,
  "backend.h": backend_h,
  "captures.h": captures_h,
  "check.h": check_h,
  "clock.h": clock_h,
  "cuda.h": cuda_h,
  "cuda_api.h": cuda_api_h,
  "device.h": device_h,
  "elf_image.h": elf_image_h,
  "error.h": error_h,
  "host.h": host_h,
  "ids.h": ids_h,
  "kernels.h": kernels_h,
  "moonbright.h": moonbright_h,
  "objects.h": objects_h,
  "reservations.h": reservations_h,
  "staging.h": staging_h,
  "tracking.h": tracking_h,
};

/** The kernels' sources, `kernels/`. */
export const KERNEL_SOURCES: Sources = {
  "busy.c": kernel_busy_c,
  "paging_copy.c": kernel_paging_copy_c,
  "paging_entries.c": kernel_paging_entries_c,
  "paging_read.c": kernel_paging_read_c,
  "pattern.c": kernel_pattern_c,
  "moonbright.h": kernel_moonbright_h,
  "target.h": kernel_target_h,
};
