// Device: the XDP program loaded for one rank, its maps mapped, attached to the rank's interface.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bpf/config.h"
#include "bpf/host/kick_team.h"
#include "core/backend.h"
#include "core/protocol/start.h"
#include "core/result.h"
#include "core/session/native_step.h"
#include "core/session/ring_device.h"
#include "core/session/ring_watch.h"

namespace erar {

struct DeviceOptions {
  std::uint32_t arena_segments = 0;
  bool generic_mode = false;
  std::uint16_t job = 1;
  std::uint32_t token = 0;
  std::uint64_t timeout_ns = 5'000'000'000;
  std::uint64_t spin_ns = 0;  // how long wait_any() looks and yields before it sleeps
};

// Move-free owner of program, maps and link: all of them go with the object, and with the process.
class Device final : public RingDevice {
 public:
  // Loads and attaches; must run inside the rank's network namespace. Errors: see
  // open_erar_backend().
  static Result<std::unique_ptr<Device>> open(const RingEndpoint& endpoint,
                                              const DeviceOptions& options);
  ~Device() override;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  [[nodiscard]] const erar_config& config() const override { return config_; }
  [[nodiscard]] std::span<std::byte> arena() const override { return arena_; }

  // A few frames are made by the packet step here in the process and sent by a socket, more are
  // injected as kicks into the program: an injection costs about 11 us before its first frame, a
  // frame by socket about 2.
  Result<void> start(const erar_start& start) override;
  void close(std::uint32_t operation) override;
  // The two halves of start(), for tests: how many kick frames are due, and their injection.
  std::uint32_t open_operation(const erar_start& start);
  Result<void> inject(std::uint32_t operation, std::uint32_t frames);
  [[nodiscard]] int program_fd() const;
  [[nodiscard]] bool done(std::uint32_t operation) const override;
  Result<void> wait_any(std::span<const std::uint32_t> operations,
                        std::uint64_t patience_ns) override;
  [[nodiscard]] std::uint64_t timeout_ns() const override { return timeout_ns_; }
  [[nodiscard]] bool saw_losses() const override { return native_counters_[ERAR_COUNT_LOST] != 0; }

  // Counters summed over CPUs, in the order of enum erar_counter.
  [[nodiscard]] Result<std::vector<std::uint64_t>> counters() const;
  static const char* counter_name(unsigned counter);

 private:
  struct Handles;  // skeleton, link and ring buffer: libbpf's types stay in device.cc
  Device();
  Result<void> load(const RingEndpoint& endpoint, const DeviceOptions& options);
  Result<void> map_memory();
  Result<void> attach(const RingEndpoint& endpoint, bool generic_mode);
  Result<void> send_kicks(std::uint32_t operation, std::uint32_t frames);
  Result<void> sleep_on_doorbell(std::uint64_t at_most_ns);
  std::uint32_t resume_elsewhere(const erar_operation& operation);
  [[nodiscard]] erar_operation& slot(std::uint32_t operation) const {
    return memory_.operations[operation % ERAR_SLOTS];
  }

  std::unique_ptr<Handles> handles_;
  erar_config config_{};
  std::uint64_t timeout_ns_ = 0;
  std::uint64_t spin_ns_ = 0;
  std::span<std::byte> arena_;
  NativeMemory memory_;  // the program's maps, as this process sees them
  std::array<std::uint64_t, ERAR_COUNTERS> native_counters_{};
  std::uint64_t native_completions_ = 0;
  erar_mark native_mark_{};
  std::optional<RingWatch> watch_;
  std::vector<std::uint64_t> frame_words_;  // kKicksBySocket frames of full size
  KickTeam team_;
};

}  // namespace erar
