// `erar doctor`: checks that try things, in a network namespace of their own.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "core/result.h"
#include "core/unique_fd.h"
#include "emu/netns/command.h"
#include "emu/netns/namespace.h"
#include "experiments/cli/doctor_checks.h"

namespace erar::cli {
namespace {

constexpr const char* kDevice = "probe0";

// A namespace that is gone when this is. Its name ends in no rank number: no fabric is called so.
class ProbeNamespace {
 public:
  ProbeNamespace() : name_(fmt::format("erar-doctor-{}.probe", getpid())) {
    auto made = run_program({"ip", "netns", "add", name_});
    if (!made) result_ = made.error();
  }
  ProbeNamespace(const ProbeNamespace&) = delete;
  ProbeNamespace& operator=(const ProbeNamespace&) = delete;
  ~ProbeNamespace() {
    if (result_) (void)run_program({"ip", "netns", "del", name_});
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const Result<void>& result() const { return result_; }

 private:
  std::string name_;
  Result<void> result_;
};

Check from_result(const char* subject, const Result<void>& result, const char* fine,
                  const char* advice) {
  if (result) return {Health::kOk, subject, fine};
  return {Health::kMissing, subject, fmt::format("{}: {}", result.error().message(), advice)};
}

// The smallest XDP program: return XDP_PASS.
Result<UniqueFd> load_pass_program() {
  std::array<bpf_insn, 2> instructions{};
  instructions[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  instructions[0].imm = XDP_PASS;
  instructions[1].code = BPF_JMP | BPF_EXIT;
  int fd = bpf_prog_load(BPF_PROG_TYPE_XDP, "erar_probe", "Dual BSD/GPL", instructions.data(),
                         instructions.size(), nullptr);
  if (fd < 0) return Error{-fd, "load an XDP program", {}};
  return UniqueFd(fd);
}

Result<void> make_veth(const std::string& name) {
  auto made = run_program(
      {"ip", "-n", name, "link", "add", kDevice, "type", "veth", "peer", "name", "probe1"});
  if (!made) return made.error();
  return {};
}

Result<void> make_bridge(const std::string& name) {
  auto made = run_program({"ip", "-n", name, "link", "add", "probe2", "type", "bridge"});
  if (!made) return made.error();
  return {};
}

// The functions below run inside the namespace.
Result<void> attach_natively(int program) {
  unsigned index = if_nametoindex(kDevice);
  if (index == 0) return errno_error("find device", kDevice);
  int code = bpf_xdp_attach(static_cast<int>(index), program, XDP_FLAGS_DRV_MODE, nullptr);
  if (code != 0) return Error{-code, "attach to a veth", {}};
  return {};
}

Result<void> run_live_frames(int program) {
  std::array<unsigned char, 64> frame{};  // addressed to nobody: the stack drops it
  LIBBPF_OPTS(bpf_test_run_opts, options);
  options.data_in = frame.data();
  options.data_size_in = static_cast<__u32>(frame.size());
  options.repeat = 4;
  options.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
  int code = bpf_prog_test_run_opts(program, &options);
  if (code != 0) return Error{-code, "inject live frames", {}};
  return {};
}

Result<void> create_ring_buffer() {
  auto bytes = static_cast<__u32>(sysconf(_SC_PAGESIZE));
  UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "erar_probe", 0, 0, bytes, nullptr));
  if (!fd.valid()) return errno_error("create");
  return {};
}

Result<void> create_mapped_array() {
  auto bytes = static_cast<__u32>(sysconf(_SC_PAGESIZE));
  LIBBPF_OPTS(bpf_map_create_opts, options);
  options.map_flags = BPF_F_MMAPABLE;
  UniqueFd fd(bpf_map_create(BPF_MAP_TYPE_ARRAY, "erar_probe", sizeof(__u32), bytes, 1, &options));
  if (!fd.valid()) return errno_error("create");
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return errno_error("map into memory");
  munmap(memory, bytes);
  return {};
}

void check_xdp(const std::string& name, std::vector<Check>& checks) {
  auto program = load_pass_program();
  if (!program) {
    checks.push_back({Health::kMissing, "XDP program",
                      program.error().message() + ": use a kernel with CONFIG_BPF_SYSCALL=y"});
    return;
  }
  const int fd = program->get();
  checks.push_back(from_result("native XDP",
                               in_namespace(name, [fd] { return attach_natively(fd); }),
                               "attaches to a veth", "use a kernel whose veth driver has XDP"));
  checks.push_back(from_result("live frames",
                               in_namespace(name, [fd] { return run_live_frames(fd); }),
                               "test runs inject them", "needs kernel 5.18 or newer"));
}

}  // namespace

std::vector<Check> kernel_checks() {
  std::vector<Check> checks;
  if (geteuid() != 0) {
    for (const char* subject : {"network namespace", "bridge", "veth", "native XDP", "live frames",
                                "ring buffer map", "mapped array map"}) {
      checks.push_back({Health::kWarn, subject, "not checked: needs root"});
    }
    return checks;
  }
  ProbeNamespace probe;
  checks.push_back(from_result("network namespace", probe.result(), "can be made",
                               "use a kernel with CONFIG_NET_NS=y and a writable /run/netns"));
  if (probe.result()) {
    auto veth = make_veth(probe.name());
    checks.push_back(from_result("bridge", make_bridge(probe.name()), "can be made",
                                 "use a kernel with CONFIG_BRIDGE"));
    checks.push_back(from_result("veth", veth, "can be made", "use a kernel with CONFIG_VETH"));
    if (veth) check_xdp(probe.name(), checks);
  }
  checks.push_back(from_result("ring buffer map", create_ring_buffer(), "can be made",
                               "use kernel 5.8 or newer"));
  checks.push_back(from_result("mapped array map", create_mapped_array(), "can be made and mapped",
                               "use kernel 5.5 or newer"));
  return checks;
}

}  // namespace erar::cli
