// The XDP program under test: its fabric, a run of it, and its maps.
#include "tests/prog_run/program.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

#include "core/unique_fd.h"
#include "emu/netns/fabric.h"
#include "tests/fixtures/frame_fixtures.h"

namespace erar {
namespace {

// This process enters the rank's namespace for good.
class ProgRunEnvironment : public testing::Environment {
 public:
  void SetUp() override {
    ASSERT_EQ(geteuid(), 0U) << "this test needs root: it loads BPF programs";
    FabricSpec spec;
    spec.name = "t" + std::to_string(getpid()) + "-prog";
    spec.ranks = tests::kFixtureRanks;
    spec.mtu = tests::kFixtureMtu;
    spec.ephemeral = true;
    auto fabric = Fabric::up(spec);
    ASSERT_TRUE(fabric) << fabric.error().message();
    name_ = spec.name;
    endpoint = fabric->endpoint(1);
    home_ = UniqueFd(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    const std::string path = "/run/netns/" + fabric->rank_namespace(1);
    const UniqueFd rank(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(setns(rank.get(), CLONE_NEWNET), 0) << std::strerror(errno);
  }
  void TearDown() override {
    if (name_.empty()) return;
    ASSERT_EQ(setns(home_.get(), CLONE_NEWNET), 0);
    const auto down = Fabric::down(name_);
    EXPECT_TRUE(down) << (down ? "" : down.error().message());
  }

  static inline RingEndpoint endpoint;

 private:
  std::string name_;
  UniqueFd home_;
};

const auto* const kEnvironment = testing::AddGlobalTestEnvironment(new ProgRunEnvironment());

}  // namespace

const RingEndpoint& program_endpoint() { return ProgRunEnvironment::endpoint; }

RunOutcome run_program(int program_fd, const sim::Frame& frame, bool from_process) {
  static const unsigned nic = if_nametoindex(program_endpoint().rx_interface.c_str());
  RunOutcome outcome;
  outcome.frame.resize(4096);
  xdp_md context{};
  context.data_end = static_cast<__u32>(frame.size());
  context.ingress_ifindex = from_process ? 1 : nic;
  LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame.data(), .data_out = outcome.frame.data(),
              .data_size_in = static_cast<__u32>(frame.size()),
              .data_size_out = static_cast<__u32>(outcome.frame.size()), .ctx_in = &context,
              .ctx_size_in = sizeof(context));
  const int error = bpf_prog_test_run_opts(program_fd, &options);
  EXPECT_EQ(error, 0) << std::strerror(-error);
  outcome.action = static_cast<int>(options.retval);
  outcome.frame.resize(options.data_size_out);
  return outcome;
}

int action_of(Verdict verdict) {
  return verdict == Verdict::kForward ? XDP_REDIRECT
         : verdict == Verdict::kPass  ? XDP_PASS
                                      : XDP_DROP;
}

ProgramMaps::~ProgramMaps() {
  for (const Mapping& mapping : mappings_) munmap(mapping.memory, mapping.bytes);
}

// The program names its maps by number only; each tells its own name.
Result<void> ProgramMaps::map(int program_fd) {
  std::array<__u32, 32> ids{};
  bpf_prog_info info{};
  info.map_ids = reinterpret_cast<__u64>(ids.data());
  info.nr_map_ids = static_cast<__u32>(ids.size());
  __u32 length = sizeof(info);
  if (bpf_obj_get_info_by_fd(program_fd, &info, &length) != 0)
    return errno_error("look at", "the program");
  for (__u32 i = 0; i < info.nr_map_ids && i < ids.size(); i++) {
    const UniqueFd map(bpf_map_get_fd_by_id(ids[i]));
    if (map.get() < 0) return errno_error("open", "a map of the program");
    if (auto mapped = map_one(map.get()); !mapped) return mapped;
  }
  return {};
}

Result<void> ProgramMaps::map_one(int map_fd) {
  bpf_map_info info{};
  __u32 length = sizeof(info);
  if (bpf_obj_get_info_by_fd(map_fd, &info, &length) != 0) return errno_error("look at", "a map");
  const std::string name = info.name;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t value_bytes = (info.value_size + std::size_t{7}) / 8 * 8;
  const std::size_t bytes = (info.max_entries * value_bytes + page - 1) / page * page;
  std::function<void(void*)> put;
  const auto into = [&](auto*& pointer) {
    put = [&](void* memory) {
      pointer = static_cast<std::remove_reference_t<decltype(pointer)>>(memory);
    };
  };
  if (name == "arena") into(memory_.arena);
  if (name == "states") into(memory_.states);
  if (name == "operations") into(memory_.operations);
  if (name == "parked_payloads") into(memory_.parked_payloads);
  if (name == "parking") into(memory_.parking);
  if (name == "heard") into(memory_.heard);
  if (name == "marks") {
    into(memory_.marks);
    memory_.mark_count = info.max_entries;
  }
  if (!put) return {};  // counters and the like, which are not mapped
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, map_fd, 0);
  if (memory == MAP_FAILED) return errno_error("map", name);
  put(memory);
  mappings_.push_back({memory, bytes});
  return {};
}

}  // namespace erar
