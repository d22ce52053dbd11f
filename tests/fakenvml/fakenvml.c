/* A stand-in for libnvidia-ml.so.1 for the tests of the GPU collector. It keeps to NVML's public ABI: names, return
 * codes and struct layouts; everything behind them is ours.
 *
 * FAKENVML_CONF names the state, a file of key=value lines with one [gpuN] section per GPU, read anew when it changes.
 *   power_mw=300000           constant power; what is averaged, drawn and counted
 *   power_instant_mw=         another figure for field 186 (default: the power drawn)
 *   power_average_mw=         another figure for field 185 and nvmlDeviceGetPowerUsage (default: mean of 1 s)
 *   power_module_mw=          power at module scope, as on a superchip
 *   curve=0:60000,10:300000   power drawn from each second since `epoch`, held until the next
 *   curve_repeat_s=60         the curve starts over after so many seconds
 *   epoch=1700000000.5        UTC second at which the counter stood at energy_mj (default: when the library was loaded)
 *   energy_mj=0               absent: no counter. energy_step_ms=100: how often it is published
 *   energy_frozen_at=<UTC s>  the counter stands still from then on
 *   energy_offset_mj=, energy_scale=  a jump, a wrong unit
 * Faults, in a GPU's section or before the first one:
 *   ret=15                    every call of the GPU fails so;  ret.<function>=3: this one
 *   ret.field<id>=3           one field value fails so
 *   sleep_ms.<function>=500   hang.<function>=1   segv.<function>=1
 * The clock is the system's, or what fakenvml_set_us() says.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MOST_GPUS 16
#define MOST_KEYS 80
#define MOST_INSTANCES 7

enum {
  SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
  GPU_IS_LOST = 15, VERSION_MISMATCH = 25
};

typedef struct { char key[56], value[512]; } pair;
typedef struct { int count; pair pairs[MOST_KEYS]; } section;
typedef struct { int gpu, instance; } device;  /* instance -1: the whole GPU */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static section node, gpus[MOST_GPUS];
static int gpu_count, users;
static struct stat seen;
static device whole[MOST_GPUS], parts[MOST_GPUS][MOST_INSTANCES];
static int64_t set_us = -1;
static double loaded_s;

EXPORT void fakenvml_set_us(int64_t us) { set_us = us; }

static double now_s(void) {
  struct timespec t;
  if (set_us >= 0) return (double)set_us / 1e6;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
__attribute__((constructor)) static void note_start(void) { loaded_s = now_s(); }

/* ---- state ---- */
static void keep(section *to, const char *key, const char *value) {
  int i = 0;
  while (i < to->count && strcmp(to->pairs[i].key, key)) i++;
  if (i == MOST_KEYS) return;
  if (i == to->count) to->count++;
  snprintf(to->pairs[i].key, sizeof to->pairs[i].key, "%.55s", key);
  snprintf(to->pairs[i].value, sizeof to->pairs[i].value, "%.511s", value);
}
static void parse(FILE *file) {
  char line[640];
  section *current = &node;
  memset(&node, 0, sizeof node);
  memset(gpus, 0, sizeof gpus);
  gpu_count = 0;
  while (fgets(line, sizeof line, file)) {
    int number;
    char *equals = strchr(line, '=');
    line[strcspn(line, "\r\n")] = 0;
    if (sscanf(line, "[gpu%d]", &number) == 1 && number >= 0 && number < MOST_GPUS) {
      current = &gpus[number];
      if (number >= gpu_count) gpu_count = number + 1;
    } else if (equals && line[0] != '#') {
      *equals = 0;
      keep(current, line, equals + 1);
    }
  }
}
static void reread(void) {  /* under the lock */
  const char *path = getenv("FAKENVML_CONF");
  struct stat is;
  if (!path || stat(path, &is)) return;
  if (is.st_ino == seen.st_ino && is.st_size == seen.st_size && is.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
      is.st_mtim.tv_nsec == seen.st_mtim.tv_nsec) return;
  FILE *file = fopen(path, "r");
  if (!file) return;
  parse(file);
  fclose(file);
  seen = is;
}
static const char *look(const section *in, const char *key) {
  for (int i = 0; i < in->count; i++) if (!strcmp(in->pairs[i].key, key)) return in->pairs[i].value;
  return NULL;
}
static double number(const section *in, const char *key, double otherwise) {
  const char *value = look(in, key);
  return value ? strtod(value, NULL) : otherwise;
}
static double fault(const section *in, const char *kind, const char *function, double otherwise) {
  char key[96];
  snprintf(key, sizeof key, "%s.%s", kind, function);
  return number(in, key, otherwise);
}
/* Before every answer: copy the state out, then misbehave without the lock, as a blocking driver call would. */
static int begin(const char *function, const device *of, section *copy) {
  pthread_mutex_lock(&lock);
  reread();
  int gone = of && of->gpu >= gpu_count;
  *copy = of && !gone ? gpus[of->gpu] : node;
  int started = users > 0;
  pthread_mutex_unlock(&lock);
  if (fault(copy, "segv", function, 0) > 0) { signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); }
  if (fault(copy, "hang", function, 0) > 0) for (;;) pause();
  double ms = fault(copy, "sleep_ms", function, 0);
  if (ms > 0) usleep((useconds_t)(ms * 1000));
  if (!started && strcmp(function, "nvmlInitWithFlags")) return UNINITIALIZED;
  if (gone) return GPU_IS_LOST;
  int result = (int)fault(copy, "ret", function, -1);
  if (result < 0 && of) result = (int)number(copy, "ret", -1);
  return result < 0 ? SUCCESS : result;
}
#define OF_NODE section s; do { int r = begin(__func__, NULL, &s); if (r) return r; } while (0)
#define OF_GPU section s; device *d = handle; \
  do { if (!d) return INVALID_ARGUMENT; int r = begin(__func__, d, &s); if (r) return r; } while (0)

static int give_text(const char *value, char *to, unsigned length) {
  if (!value) return NOT_SUPPORTED;
  if (strlen(value) >= length) return INSUFFICIENT_SIZE;
  strcpy(to, value);
  return SUCCESS;
}
static int give_u32(const section *s, const char *key, unsigned *to) {
  const char *value = look(s, key);
  if (!value) return NOT_SUPPORTED;
  *to = (unsigned)strtoll(value, NULL, 0);
  return SUCCESS;
}

/* ---- load ---- */
/* Energy of the curve in its first `t` seconds, in mJ (mW x s), and the power at t. */
static double curve_mj(const char *curve, double t, double *power_mw) {
  double energy = 0, from, mw;
  int used;
  *power_mw = 0;
  while (sscanf(curve, "%lf:%lf%n", &from, &mw, &used) == 2 && from <= t) {
    double next;
    curve += used;
    if (*curve == ',') curve++;
    double until = sscanf(curve, "%lf:", &next) == 1 && next < t ? next : t;
    energy += mw * (until - from);
    *power_mw = mw;
  }
  return energy;
}
static double drawn_mj(const section *s, double at_s, double *power_mw) {
  const char *curve = look(s, "curve");
  double since = at_s - number(s, "epoch", loaded_s), ignored;
  if (since < 0) since = 0;
  if (!curve) {
    *power_mw = number(s, "power_mw", 0);
    return *power_mw * since;
  }
  double period = number(s, "curve_repeat_s", 0);
  if (period <= 0) return curve_mj(curve, since, power_mw);
  double rounds = floor(since / period);
  return rounds * curve_mj(curve, period, &ignored) + curve_mj(curve, since - rounds * period, power_mw);
}
static unsigned long long counter_mj(const section *s) {
  double at = now_s(), step = number(s, "energy_step_ms", 100) / 1000, frozen = number(s, "energy_frozen_at", at), mw;
  double epoch = number(s, "epoch", loaded_s);
  if (frozen < at) at = frozen;
  if (step > 0) at = epoch + step * floor((at - epoch) / step + 1e-6);
  double energy = number(s, "energy_mj", 0) + drawn_mj(s, at, &mw);
  return (unsigned long long)(energy * number(s, "energy_scale", 1) + number(s, "energy_offset_mj", 0) + 0.5);
}
static int has_power(const section *s) { return look(s, "power_mw") || look(s, "curve"); }
static inline int instant_mw(const section *s, unsigned *to) {
  double mw;
  if (look(s, "power_instant_mw")) return give_u32(s, "power_instant_mw", to);
  if (!has_power(s)) return NOT_SUPPORTED;
  drawn_mj(s, now_s(), &mw);
  *to = (unsigned)mw;
  return SUCCESS;
}
static int average_mw(const section *s, unsigned *to) {
  double mw, at = now_s();
  if (look(s, "power_average_mw")) return give_u32(s, "power_average_mw", to);
  if (!has_power(s)) return NOT_SUPPORTED;
  if (!look(s, "curve")) *to = (unsigned)number(s, "power_mw", 0);
  else *to = (unsigned)(drawn_mj(s, at, &mw) - drawn_mj(s, at - 1, &mw));
  return SUCCESS;
}

/* ---- library and GPUs ---- */
EXPORT int nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  OF_NODE;
  pthread_mutex_lock(&lock);
  users++;
  for (int i = 0; i < MOST_GPUS; i++) {
    whole[i] = (device){i, -1};
    for (int k = 0; k < MOST_INSTANCES; k++) parts[i][k] = (device){i, k};
  }
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}
EXPORT int nvmlShutdown(void) {
  OF_NODE;
  pthread_mutex_lock(&lock);
  users--;
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}
EXPORT const char *nvmlErrorString(int code) { (void)code; return "an error of the fake"; }
EXPORT int nvmlSystemGetDriverVersion(char *to, unsigned length) {
  OF_NODE;
  const char *version = look(&s, "driver_version");
  return give_text(version ? version : "580.65.06", to, length);
}
EXPORT int nvmlDeviceGetCount_v2(unsigned *count) { OF_NODE; *count = (unsigned)gpu_count; return SUCCESS; }
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) {
  if (index >= MOST_GPUS || (int)index >= gpu_count) return INVALID_ARGUMENT;
  section s;
  int r = begin(__func__, &whole[index], &s);
  *handle = &whole[index];
  return r;
}
EXPORT int nvmlDeviceGetUUID(void *handle, char *to, unsigned length) {
  OF_GPU;
  char name[96];
  if (d->instance < 0) return give_text(look(&s, "uuid"), to, length);
  snprintf(name, sizeof name, "MIG-%s-%d", look(&s, "uuid"), d->instance);
  return give_text(name, to, length);
}
EXPORT int nvmlDeviceGetName(void *handle, char *to, unsigned length) { OF_GPU; return give_text(look(&s, "name"), to, length); }
EXPORT int nvmlDeviceGetArchitecture(void *handle, unsigned *to) { OF_GPU; return give_u32(&s, "architecture", to); }
EXPORT int nvmlDeviceGetPersistenceMode(void *handle, unsigned *to) { OF_GPU; *to = (unsigned)number(&s, "persistence", 1); return SUCCESS; }

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } pci;
EXPORT int nvmlDeviceGetPciInfo_v3(void *handle, pci *to) {
  OF_GPU;
  memset(to, 0, sizeof *to);
  return give_text(look(&s, "bus_id"), to->bus_id, sizeof to->bus_id);
}

/* ---- energy and power ---- */
EXPORT int nvmlDeviceGetEnforcedPowerLimit(void *handle, unsigned *to) { OF_GPU; return give_u32(&s, "limit_mw", to); }
EXPORT int nvmlDeviceGetPowerManagementDefaultLimit(void *handle, unsigned *to) { OF_GPU; return give_u32(&s, "default_limit_mw", to); }
EXPORT int nvmlDeviceGetPowerManagementLimitConstraints(void *handle, unsigned *low, unsigned *high) {
  OF_GPU;
  *low = 0;
  return give_u32(&s, "max_limit_mw", high);
}
EXPORT int nvmlDeviceGetPowerUsage(void *handle, unsigned *to) { OF_GPU; return d->instance < 0 ? average_mw(&s, to) : NOT_SUPPORTED; }
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *to) {
  OF_GPU;
  if (d->instance >= 0 || !look(&s, "energy_mj")) return NOT_SUPPORTED;
  *to = counter_mj(&s);
  return SUCCESS;
}
typedef union { double d; unsigned ui; unsigned long ul; unsigned long long ull; long long sll; int si; unsigned short us; } any;
typedef struct { uint32_t id, scope; int64_t time_us, latency_us; uint32_t type, result; any value; } field;
EXPORT int nvmlDeviceGetFieldValues(void *handle, int count, field *f) {
  OF_GPU;
  for (int i = 0; i < count; i++) {
    char name[24];
    unsigned mw = 0;
    int r = NOT_SUPPORTED;
    snprintf(name, sizeof name, "field%u", f[i].id);
    f[i].time_us = (int64_t)(now_s() * 1e6);
    f[i].type = (uint32_t)number(&s, "type_of_power", 1);
    if (f[i].id == 83 && f[i].scope == 0 && look(&s, "energy_mj")) {
      f[i].type = 3;
      f[i].value.ull = counter_mj(&s);
      r = SUCCESS;
    }
#ifndef OLD_DRIVER
    if (f[i].id == 186 && f[i].scope == 0) r = instant_mw(&s, &mw);
    if (f[i].id == 186 && f[i].scope == 1) r = give_u32(&s, "power_module_mw", &mw);
    if (f[i].id == 185 && f[i].scope == 0) r = average_mw(&s, &mw);
#endif
    if (r == SUCCESS && f[i].id != 83) f[i].value.ull = mw;
    int forced = (int)fault(&s, "ret", name, -1);
    f[i].result = (uint32_t)(forced >= 0 ? forced : r);
  }
  return SUCCESS;
}

/* ---- the rest of a sample ---- */
EXPORT int nvmlDeviceGetUtilizationRates(void *handle, unsigned to[2]) {
  OF_GPU;
  if (number(&s, "mig", 0) > 0) return NOT_SUPPORTED;
  to[1] = (unsigned)number(&s, "util_mem", 0);
  return give_u32(&s, "util", &to[0]);
}
static unsigned long long bytes(const section *s, const char *key) { return (unsigned long long)number(s, key, 0); }
EXPORT int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long to[3]) {
  OF_GPU;
  if (!look(&s, "mem_total")) return NOT_SUPPORTED;
  to[0] = bytes(&s, "mem_total");
  to[2] = bytes(&s, "mem_used") + bytes(&s, "mem_reserved");
  to[1] = to[0] - to[2];
  return SUCCESS;
}
EXPORT int nvmlDeviceGetClockInfo(void *handle, unsigned kind, unsigned *to) { OF_GPU; return give_u32(&s, kind == 2 ? "mem_mhz" : "sm_mhz", to); }
EXPORT int nvmlDeviceGetTemperature(void *handle, unsigned sensor, unsigned *to) { OF_GPU; (void)sensor; return give_u32(&s, "temp_c", to); }
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *to) { OF_GPU; *to = bytes(&s, "reasons"); return SUCCESS; }

typedef struct { unsigned pid; unsigned long long memory; unsigned instance, compute_instance; } process;
static int give_processes(const section *s, unsigned *count, process *to) {
  char key[16];
  unsigned have = 0;
  for (;; have++) { snprintf(key, sizeof key, "proc%u", have); if (!look(s, key)) break; }
  unsigned room = *count;
  *count = have;
  if (have == 0) return SUCCESS;
  if (!to || room < have) return INSUFFICIENT_SIZE;
  for (unsigned i = 0; i < have; i++) {
    unsigned long long memory = ~0ULL;  /* "not available" */
    snprintf(key, sizeof key, "proc%u", i);
    to[i] = (process){0, 0, ~0u, ~0u};
    sscanf(look(s, key), "%u:%llu", &to[i].pid, &memory);
    to[i].memory = memory;
  }
  return SUCCESS;
}
EXPORT int nvmlDeviceGetComputeRunningProcesses_v2(void *handle, unsigned *count, process *to) { OF_GPU; return give_processes(&s, count, to); }

#ifndef OLD_DRIVER
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory2;
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *handle, memory2 *to) {
  OF_GPU;
  if (to->version != 0x02000028u) return VERSION_MISMATCH;
  if (!look(&s, "mem_total")) return NOT_SUPPORTED;
  to->total = bytes(&s, "mem_total");
  to->reserved = bytes(&s, "mem_reserved");
  to->used = bytes(&s, "mem_used");
  to->free = to->total - to->used - to->reserved;
  return SUCCESS;
}
typedef struct { unsigned version, sensor; int celsius; } temperature;
EXPORT int nvmlDeviceGetTemperatureV(void *handle, temperature *to) {
  OF_GPU;
  if (to->version != 0x0100000Cu) return VERSION_MISMATCH;
  return give_u32(&s, "temp_c", (unsigned *)&to->celsius);
}
EXPORT int nvmlDeviceGetCurrentClocksEventReasons(void *handle, unsigned long long *to) { OF_GPU; *to = bytes(&s, "reasons"); return SUCCESS; }
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned *count, process *to) { OF_GPU; return give_processes(&s, count, to); }
#endif

/* ---- MIG ---- */
EXPORT int nvmlDeviceGetMigMode(void *handle, unsigned *current, unsigned *pending) {
  OF_GPU;
  if (!look(&s, "mig")) return NOT_SUPPORTED;
  *current = *pending = number(&s, "mig", 0) > 0;
  return SUCCESS;
}
EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *handle, unsigned *to) { OF_GPU; *to = (unsigned)number(&s, "mig", 0); return SUCCESS; }
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *handle, unsigned index, void **to) {
  OF_GPU;
  if (index >= MOST_INSTANCES || index >= number(&s, "mig", 0)) return NOT_FOUND;
  *to = &parts[d->gpu][index];
  return SUCCESS;
}
