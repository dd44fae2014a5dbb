// What the netns tests share: fabrics that are removed whatever happens, pings, waiting.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "emu/netns/fabric.h"

namespace erar::test {

// t<pid>-<label>: no two test processes meet.
std::string fabric_name(const std::string& label);

// Takes the fabric down when the test ends, failed or not.
class FabricRemover {
 public:
  explicit FabricRemover(std::string name) : name_(std::move(name)) {}
  FabricRemover(const FabricRemover&) = delete;
  FabricRemover& operator=(const FabricRemover&) = delete;
  ~FabricRemover() { (void)Fabric::down(name_); }

 private:
  std::string name_;
};

FabricSpec make_spec(const std::string& label, FabricKind kind, unsigned ranks);

// Standard output of a program run inside a namespace.
Result<std::string> run_inside(const std::string& name, const std::vector<std::string>& argv);
// One ping from rank to rank by rank_ipv4().
Result<void> ping(const Fabric& fabric, unsigned from, unsigned to);
// First pair that cannot ping each other.
Result<void> ping_all_pairs(const Fabric& fabric);

// Namespaces and state files of fabrics with this process's names, for "nothing is left".
std::vector<std::string> traces(const std::string& name);

// Polls until the condition holds; false when it did not in time.
bool eventually(std::chrono::milliseconds limit, const std::function<bool()>& condition);

// ERAR_TEST_SEED, or a new one; printed with the command that replays it.
unsigned test_seed();

}  // namespace erar::test
