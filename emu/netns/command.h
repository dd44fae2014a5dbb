// Runs another program (ip, bridge, ethtool) without a shell and collects what it says.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace erar {

struct CommandOptions {
  std::string input;  // what the program reads from its standard input
  // A descriptor that the program inherits (-1: none). Fabric commands hand down their lock: when
  // they are killed, the lock stays taken until the `ip` they started has finished as well.
  int inherited_fd = -1;
};

// Looks argv[0] up in PATH and waits for its end. Returns what it wrote to standard output; an
// error names the command and the first line of its standard error when its exit status is not 0.
Result<std::string> run_program(const std::vector<std::string>& argv,
                                const CommandOptions& options = {});

}  // namespace erar
