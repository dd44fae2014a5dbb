// Network namespaces by name, as `ip netns` keeps them: listing, entering, deleting.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/unique_fd.h"

namespace erar {

inline constexpr const char* kNamespaceDirectory = "/run/netns";

// Names of all network namespaces of the machine; empty when there are none.
std::vector<std::string> all_namespace_names();
Result<UniqueFd> open_namespace(const std::string& name);

// Runs `work` inside a namespace, on a thread that ends with it: the caller never leaves its own.
Result<void> in_namespace(const std::string& name, const std::function<Result<void>()>& work);

// Inside in_namespace(): writes /proc/sys/<path>. A setting the kernel does not have is no error.
Result<void> write_sysctl(const std::string& path, const std::string& value);
// Inside in_namespace(): waits until the device can send. A device whose peer came up later gets
// its queues from a kernel worker; until then it drops what it is given.
Result<void> wait_until_running(const std::string& device);

}  // namespace erar
