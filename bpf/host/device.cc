// Device: loading, mapping, kicking and waiting, over libbpf.
#include "bpf/host/device.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "bpf/host/frame_socket.h"
#include "bpf/host/receive_offload.h"
#include "core/clock.h"
#include "core/session/operation_slot.h"
#include "core/session/ring_config.h"
// The skeleton names our structs without defining them: bpf/config.h must come first.
#include "erar.skel.h"

namespace erar {
namespace {

// libbpf tells why it refuses only through a callback: the last lines are kept for the error
// message.
std::string& libbpf_complaint() {
  thread_local std::string text;
  return text;
}

int keep_libbpf_complaint(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) return 0;
  std::array<char, 512> line{};
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  std::string& text = libbpf_complaint();
  if (text.empty()) text.assign(line.data());
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  return length;
}

Error libbpf_error(int negative_errno, std::string operation) {
  std::string why = libbpf_complaint();
  libbpf_complaint().clear();
  return Error{-negative_errno, std::move(operation), why.empty() ? "" : "(" + why + ")"};
}

std::size_t page_rounded(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// The memory of an array map, all of it present: array maps are mapped as a whole.
template <class T>
Result<T*> map_array(const bpf_map* map) {
  const std::size_t bytes = std::size_t{bpf_map__max_entries(map)} * bpf_map__value_size(map);
  void* memory = mmap(nullptr, page_rounded(bytes), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, bpf_map__fd(map), 0);
  if (memory == MAP_FAILED) return errno_error("map BPF array", bpf_map__name(map));
  return static_cast<T*>(memory);
}

void unmap_array(void* memory, const bpf_map* map) {
  if (memory == nullptr) return;
  munmap(memory, page_rounded(std::size_t{bpf_map__max_entries(map)} * bpf_map__value_size(map)));
}

// Up to this many frames the socket is cheaper than an injection.
constexpr std::uint32_t kKicksBySocket = 8;
// Fewer parked frames than this are resumed where the process is, whatever CPU parked them.
constexpr std::uint32_t kWorthAWakeUp = 8;

}  // namespace

struct Device::Handles {
  erar_bpf* skeleton = nullptr;
  int link_fd = -1;
  ring_buffer* doorbell = nullptr;
  ReceiveOffload receive_offload;
  FrameSocket socket;

  ~Handles() {
    ring_buffer__free(doorbell);
    if (link_fd >= 0) ::close(link_fd);
    erar_bpf__destroy(skeleton);
  }
};

Device::Device()
    : handles_(std::make_unique<Handles>()),
      team_([this](std::uint32_t operation, std::uint32_t frames) {
        return inject(operation, frames);
      }) {}

Device::~Device() {
  if (handles_->skeleton == nullptr) return;
  const auto& maps = handles_->skeleton->maps;
  unmap_array(memory_.arena, maps.arena);
  unmap_array(memory_.states, maps.states);
  unmap_array(memory_.operations, maps.operations);
  unmap_array(memory_.parked_payloads, maps.parked_payloads);
  unmap_array(memory_.parking, maps.parking);
  unmap_array(memory_.heard, maps.heard);
  unmap_array(const_cast<erar_mark*>(memory_.marks), maps.marks);
}

Result<std::unique_ptr<Device>> Device::open(const RingEndpoint& endpoint,
                                             const DeviceOptions& options) {
  std::unique_ptr<Device> device(new Device());
  if (auto loaded = device->load(endpoint, options); !loaded) return loaded.error();
  if (auto mapped = device->map_memory(); !mapped) return mapped.error();
  device->frame_words_.assign(
      kKicksBySocket * (ERAR_HEADER_BYTES + device->config_.segment_bytes) / 8, 0);
  if (auto attached = device->attach(endpoint, options.generic_mode); !attached)
    return attached.error();
  return device;
}

Result<void> Device::load(const RingEndpoint& endpoint, const DeviceOptions& options) {
  libbpf_set_print(keep_libbpf_complaint);
  libbpf_complaint().clear();
  auto config = make_ring_config(endpoint, options.arena_segments, options.job, options.token);
  if (!config) return config.error();
  config->tx_ifindex = if_nametoindex(endpoint.tx_interface.c_str());
  if (config->tx_ifindex == 0) return errno_error("find interface", endpoint.tx_interface);
  config_ = *config;
  auto socket = FrameSocket::open(endpoint.tx_interface);
  if (!socket) return socket.error();
  handles_->socket = std::move(*socket);
  timeout_ns_ = options.timeout_ns;
  spin_ns_ = options.spin_ns;

  erar_bpf* skeleton = handles_->skeleton = erar_bpf__open();
  if (skeleton == nullptr) return libbpf_error(-errno, "open the XDP program");
  std::memcpy(&skeleton->rodata->erar_settings, &config_, sizeof(config_));
  bpf_map__set_max_entries(skeleton->maps.arena, config_.arena_segments);
  bpf_map__set_value_size(skeleton->maps.arena, config_.segment_bytes);
  bpf_map__set_max_entries(skeleton->maps.states, config_.arena_segments);
  bpf_map__set_value_size(skeleton->maps.parked_payloads, config_.segment_bytes);
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) return Error{-cpus, "count CPUs", {}};
  bpf_map__set_max_entries(skeleton->maps.marks, static_cast<std::uint32_t>(cpus));
  if (const int error = erar_bpf__load(skeleton); error != 0)
    return libbpf_error(error, "load the XDP program");
  return {};
}

Result<void> Device::map_memory() {
  const auto& maps = handles_->skeleton->maps;
  const auto map_into = [](auto*& pointer, const bpf_map* map) -> Result<void> {
    auto memory = map_array<std::remove_reference_t<decltype(*pointer)>>(map);
    if (!memory) return memory.error();
    pointer = *memory;
    return {};
  };
  for (const auto& mapped :
       {map_into(memory_.arena, maps.arena), map_into(memory_.states, maps.states),
        map_into(memory_.operations, maps.operations),
        map_into(memory_.parked_payloads, maps.parked_payloads),
        map_into(memory_.parking, maps.parking), map_into(memory_.heard, maps.heard),
        map_into(memory_.marks, maps.marks)})
    if (!mapped) return mapped;
  memory_.mark_count = bpf_map__max_entries(maps.marks);
  memory_.mark = &native_mark_;
  memory_.config = &config_;
  memory_.counters = native_counters_.data();
  memory_.completions = &native_completions_;
  arena_ = {reinterpret_cast<std::byte*>(memory_.arena),
            std::size_t{config_.arena_segments} * config_.segment_bytes};
  for (std::uint32_t i = 0; i < ERAR_SLOTS; i++) memory_.operations[i].number = i;
  watch_.emplace(memory_, timeout_ns_);

  handles_->doorbell = ring_buffer__new(
      bpf_map__fd(maps.doorbell), [](void*, void*, std::size_t) { return 0; }, nullptr, nullptr);
  if (handles_->doorbell == nullptr) return libbpf_error(-errno, "open the doorbell ring buffer");
  return {};
}

Result<void> Device::attach(const RingEndpoint& endpoint, bool generic_mode) {
  const unsigned ifindex = if_nametoindex(endpoint.rx_interface.c_str());
  if (ifindex == 0) return errno_error("find interface", endpoint.rx_interface);
  if (generic_mode) {
    auto enabled = handles_->receive_offload.enable(endpoint.rx_interface);
    if (!enabled) return enabled;
  }
  LIBBPF_OPTS(bpf_link_create_opts, options,
              .flags = generic_mode ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE);
  // A link, not a netlink attachment: the kernel detaches the program when the process is gone.
  handles_->link_fd = bpf_link_create(bpf_program__fd(handles_->skeleton->progs.erar_xdp),
                                      static_cast<int>(ifindex), BPF_XDP, &options);
  if (handles_->link_fd >= 0) return {};
  const int code = -handles_->link_fd;
  // EEXIST: the other program is there in the other mode.
  const bool taken = code == EBUSY || code == EEXIST;
  return Error{code,
               std::string("attach the XDP program in ") + (generic_mode ? "generic" : "native") +
                   " mode to",
               endpoint.rx_interface +
                   (taken ? ", which carries another one (an interface serves one job)" : "")};
}

std::uint32_t Device::open_operation(const erar_start& start) {
  const std::uint32_t frames = erar::open_operation(memory_, start);
  watch_->opened(start.number, monotonic_ns());
  return frames;
}

Result<void> Device::start(const erar_start& start) {
  std::uint32_t frames = open_operation(start);
  if (frames == 0) return {};
  if (frames <= kKicksBySocket) return send_kicks(start.number, frames);
  frames -= resume_elsewhere(slot(start.number));
  return frames == 0 ? Result<void>() : inject(start.number, frames);
}

// Orders frames that other CPUs parked back to them; returns how many.
std::uint32_t Device::resume_elsewhere(const erar_operation& operation) {
  std::array<std::uint32_t, 64> parked_by{};  // CPUs beyond are served from here
  for (std::uint32_t i = 0; i < operation.unpark_count; i++)
    if (operation.unpark_cpu[i] < parked_by.size()) parked_by[operation.unpark_cpu[i]]++;
  const int here = sched_getcpu();
  std::uint32_t ordered = 0;
  for (unsigned cpu = 0; cpu < parked_by.size(); cpu++) {
    if (static_cast<int>(cpu) == here || parked_by[cpu] < kWorthAWakeUp) continue;
    if (team_.inject_on(cpu, operation.number, parked_by[cpu])) ordered += parked_by[cpu];
  }
  return ordered;
}

Result<void> Device::send_kicks(std::uint32_t operation, std::uint32_t frames) {
  const std::size_t frame_bytes = std::size_t{ERAR_HEADER_BYTES} + config_.segment_bytes;
  std::array<std::span<const std::uint8_t>, kKicksBySocket> leaving;
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < frames; i++) {
    NativeFrame frame;
    frame.data = reinterpret_cast<std::uint8_t*>(frame_words_.data()) + i * frame_bytes;
    if (native_kick(memory_, frame, operation) == Verdict::kForward)
      leaving[count++] = {frame.data, frame.size};
  }
  // A link that is down or full loses what it is given, as any may: the time-out will say if it
  // lasts.
  const auto sent = handles_->socket.send({leaving.data(), count});
  if (!sent && sent.error().code != ENOBUFS && sent.error().code != ENETDOWN &&
      sent.error().code != EAGAIN)
    return sent;
  return {};
}

Result<void> Device::inject(std::uint32_t operation, std::uint32_t frames) {
  // Several threads may inject at once: each has a frame of its own.
  alignas(erar_frame) std::array<std::uint8_t, ERAR_MAX_FRAME_BYTES> kick_bytes{};
  auto* kick = reinterpret_cast<erar_frame*>(kick_bytes.data());
  erar_write_kick(kick, &config_, operation);
  // One batch: from the second on, the kernel would reuse pages of frames that have come to their
  // end meanwhile, without writing the kick frame into them again.
  static_assert(2 * ERAR_PARK_PLACES <= 256, "TEST_XDP_MAX_BATCH in net/bpf/test_run.c");
  LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = kick,
              .data_size_in = ERAR_HEADER_BYTES + config_.segment_bytes,
              .repeat = static_cast<int>(frames), .flags = BPF_F_TEST_XDP_LIVE_FRAMES,
              .batch_size = frames);
  const int error = bpf_prog_test_run_opts(program_fd(), &options);
  if (error != 0) return libbpf_error(error, "inject kick frames");
  return {};
}

int Device::program_fd() const { return bpf_program__fd(handles_->skeleton->progs.erar_xdp); }

bool Device::done(std::uint32_t operation) const {
  return __atomic_load_n(&slot(operation).done, __ATOMIC_ACQUIRE) != 0;
}

void Device::close(std::uint32_t operation) { close_operation(memory_, operation); }

Result<void> Device::wait_any(std::span<const std::uint32_t> operations,
                              std::uint64_t patience_ns) {
  const auto any_done = [&] {
    return std::any_of(operations.begin(), operations.end(),
                       [this](std::uint32_t operation) { return done(operation); });
  };
  if (auto injected = team_.take_error(); !injected) return injected;
  if (any_done()) return {};
  // Another rank's process may need this CPU to get there: each look is followed by a yield.
  for (const std::uint64_t until_ns = monotonic_ns() + spin_ns_; monotonic_ns() < until_ns;) {
    sched_yield();
    if (any_done()) return {};
  }
  for (const std::uint32_t operation : operations)
    __atomic_store_n(&slot(operation).waiting, 1, __ATOMIC_SEQ_CST);
  const auto resend = [this](std::span<const std::uint8_t> frame) {
    (void)handles_->socket.send({&frame, 1});  // one that does not leave is lost, as others are
  };
  watch_->begin(monotonic_ns());
  while (!any_done()) {
    if (auto slept = sleep_on_doorbell(watch_->interval_ns()); !slept) return slept;
    if (any_done()) break;
    auto looked = watch_->look(operations, monotonic_ns(), patience_ns, resend);
    if (!looked) return looked;
  }
  watch_->end(monotonic_ns());
  return {};
}

// ring_buffer__poll() counts in milliseconds, which is too coarse.
Result<void> Device::sleep_on_doorbell(std::uint64_t at_most_ns) {
  epoll_event event{};
  const timespec at_most{static_cast<time_t>(at_most_ns / 1'000'000'000),
                         static_cast<long>(at_most_ns % 1'000'000'000)};
  const int epoll_fd = ring_buffer__epoll_fd(handles_->doorbell);
  if (epoll_pwait2(epoll_fd, &event, 1, &at_most, nullptr) < 0 && errno != EINTR)
    return errno_error("wait for the doorbell");
  const int records = ring_buffer__consume(handles_->doorbell);
  return records < 0 ? libbpf_error(records, "read the doorbell") : Result<void>();
}

Result<std::vector<std::uint64_t>> Device::counters() const {
  const int cpus = libbpf_num_possible_cpus();
  if (cpus < 0) return Error{-cpus, "count CPUs", {}};
  std::vector<std::uint64_t> per_cpu(static_cast<std::size_t>(cpus) * ERAR_COUNTERS);
  const std::uint32_t zero = 0;
  if (bpf_map_lookup_elem(bpf_map__fd(handles_->skeleton->maps.counters), &zero, per_cpu.data()) !=
      0)
    return errno_error("read", "counters");
  std::vector<std::uint64_t> sums(ERAR_COUNTERS);
  std::copy(native_counters_.begin(), native_counters_.end(), sums.begin());
  for (std::size_t i = 0; i < per_cpu.size(); i++) sums[i % ERAR_COUNTERS] += per_cpu[i];
  return sums;
}

const char* Device::counter_name(unsigned counter) {
  static constexpr std::array<const char*, ERAR_COUNTERS> kNames = {
      "packets",       "bytes",      "kicks",          "adds",           "stored",
      "forwarded",     "recycled",   "retired",        "parked",         "unparked",
      "resent",        "requested",  "lost",           "answered",       "alive",
      "foreign",       "drop_short", "drop_malformed", "drop_job",       "drop_misrouted",
      "drop_stale",    "drop_early", "drop_range",     "drop_duplicate", "drop_unanswered",
      "drop_checksum", "drop_kick",  "drop_internal"};
  return counter < kNames.size() ? kNames[counter] : "unknown";
}

}  // namespace erar
