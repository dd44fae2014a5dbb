// The checks of `erar doctor`.
#pragma once

#include <string>
#include <vector>

namespace erar::cli {

enum class Health {
  kOk,
  kInfo,     // worth knowing, changes nothing
  kWarn,     // works, but slower or not as measured; or could not be checked
  kMissing,  // eRAR does not run without it
};

struct Check {
  Health health = Health::kOk;
  std::string subject;
  std::string detail;  // what was found and, where that is not well, what to do
};

// What can be read: kernel, privileges, settings, memory, tools.
std::vector<Check> system_checks();
// What must be tried: namespaces, veths, XDP, maps. Everything made is removed.
std::vector<Check> kernel_checks();

}  // namespace erar::cli
