/* Whether a device can map memory at chosen addresses. What the driver says of itself is not
 * enough: before 6.1 reserving addresses reports success and gives none, and around 7.2
 * access to a second mapping of a reservation is refused (ROCm/rocm-systems#2516). So what
 * the allocator lives on is done once, in small. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "hip.h"

/* Whatever the driver says: up to 7.2 it says 4 KiB even where larger ones are recommended,
 * and a translation reaches as far as a 2 MiB page only in mappings made of such. */
static const uint64_t least_granularity = UINT64_C(2) << 20;

enum { TRIAL_EXTENTS = 2 };

/* Of different sizes, as the versions that refuse the second accept it if they are equal. */
typedef struct Trial {
  HipDevice device; /* not an open one: only what the calls look at */
  uint64_t address, size;
  uint64_t sizes[TRIAL_EXTENTS], handles[TRIAL_EXTENTS];
  uint32_t created, mapped;
} Trial;

static uint64_t mapping_at(const Trial *trial, uint32_t index) {
  return trial->address + (index ? trial->sizes[0] : 0);
}

static int32_t try_mapping(Trial *trial) {
  int32_t status = MB_OK;
  for (; trial->created < TRIAL_EXTENTS && status == MB_OK; trial->created++) {
    uint32_t i = trial->created;
    status = hip_extent_create(&trial->device, trial->sizes[i], &trial->handles[i]);
    if (status != MB_OK) return status;
  }
  for (; trial->mapped < TRIAL_EXTENTS; trial->mapped++) {
    uint32_t i = trial->mapped;
    status = hip_map(&trial->device, mapping_at(trial, i), trial->sizes[i], trial->handles[i]);
    if (status != MB_OK) return status;
  }
  for (uint32_t i = 0; i < TRIAL_EXTENTS && status == MB_OK; i++) {
    status = hip_set_access(&trial->device, mapping_at(trial, i), trial->sizes[i],
                            MB_ACCESS_READ_WRITE);
  }
  return status;
}

/* Ends at the first failure; called again, it goes on there. */
static int32_t clean_up(Trial *trial) {
  int32_t status = MB_OK;
  for (; trial->mapped; trial->mapped--) {
    uint32_t i = trial->mapped - 1;
    status = hip_unmap(&trial->device, mapping_at(trial, i), trial->sizes[i]);
    if (status != MB_OK) return status;
  }
  for (; trial->created; trial->created--) {
    uint32_t i = trial->created - 1;
    status = hip_extent_release(&trial->device, trial->handles[i], trial->sizes[i]);
    if (status != MB_OK) return status;
  }
  return hip_unreserve(&trial->device, trial->address, trial->size);
}

/* What a driver answers that can't do it; anything else says nothing about that. */
static bool is_refusal(const MbError *error) {
  return error->driver_code == HIP_RESULT_INVALID_VALUE ||
         error->driver_code == HIP_RESULT_NOT_SUPPORTED ||
         (error->status == MB_OUT_OF_ADDRESSES && error->driver_code == 0);
}

/* refused: set if the driver can't do it, and then the last error says what. */
static int32_t try_out(const HipApi *api, HipDeviceId device, uint64_t granularity,
                       bool *refused) {
  Trial trial = {.device = {.api = api, .device = device, .granularity = granularity},
                 .size = 3 * granularity,
                 .sizes = {granularity, 2 * granularity}};
  MbError error;
  int32_t status = hip_reserve(&trial.device, trial.size, &trial.address);
  if (status == MB_OK) {
    int32_t cleaned;
    status = try_mapping(&trial);
    error_save(&error);
    cleaned = clean_up(&trial);
    if (cleaned != MB_OK) cleaned = clean_up(&trial);
    if (status == MB_OK) return cleaned;
    error_restore(&error);
  }
  error_save(&error);
  *refused = is_refusal(&error);
  /* A full device is no reason to do without. */
  return *refused || status == MB_OUT_OF_MEMORY ? MB_OK : status;
}

static int32_t ask_granularity(const HipApi *api, HipDeviceId device, uint64_t *granularity) {
  HipAllocationProperties properties = hip_extent_properties(device);
  int32_t status = MB_OK;
  *granularity = least_granularity;
  for (int option = HIP_GRANULARITY_MINIMUM; option <= HIP_GRANULARITY_RECOMMENDED; option++) {
    size_t bytes = 0;
    HipResult result = api->hipMemGetAllocationGranularity(&bytes, &properties, option);
    if (status == MB_OK) status = hip_check(api, result, "hipMemGetAllocationGranularity");
    if (bytes > *granularity) *granularity = bytes;
  }
  return status;
}

/* Whether the version and the device's attribute promise it. */
static int32_t is_promised(const HipApi *api, HipDeviceId device, bool *promised, char *why,
                           size_t why_bytes) {
  int version = 0, supported = 0;
  int32_t status = hip_check(api, api->hipRuntimeGetVersion(&version), "hipRuntimeGetVersion");
  *promised = false;
  if (status != MB_OK) return status;
  if (!api->has_vmm || version < HIP_FIRST_VMM_VERSION) {
    snprintf(why, why_bytes,
             "the HIP runtime's version is %d.%d, and mapping memory needs ROCm 6.1 or later: "
             "update ROCm",
             version / 10000000, version / 100000 % 100);
    return MB_OK;
  }
  status = hip_check(api, api->hipDeviceGetAttribute(&supported, HIP_ATTRIBUTE_VMM, device),
                     "hipDeviceGetAttribute %d", HIP_ATTRIBUTE_VMM);
  *promised = supported != 0;
  if (status == MB_OK && !supported) {
    snprintf(why, why_bytes,
             "the driver says that this device has no virtual memory management: update the "
             "amdgpu kernel driver");
  }
  return status;
}

int32_t hip_find_granularity(const HipApi *api, HipDeviceId device, uint64_t *granularity,
                             char *why, size_t why_bytes) {
  bool promised = false, refused = false;
  int32_t status = is_promised(api, device, &promised, why, why_bytes);
  *granularity = 0;
  if (status != MB_OK || !promised) return status;
  status = ask_granularity(api, device, granularity);
  if (status == MB_OK) status = try_out(api, device, *granularity, &refused);
  if (status == MB_OK && refused) {
    snprintf(why, why_bytes, "the driver has virtual memory management, but failed at it: %s",
             error_last_text());
    *granularity = 0;
  }
  return status;
}
