// The options of `erar numerics`: as typed, and as checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"

namespace erar::numerics {

struct NumericsArguments {
  std::string ranks = "2,4,8,16,64";
  std::string count = "65536";
  std::string seed = "1";
  std::string json;
  std::string csv;
};

struct NumericsOptions {
  std::vector<unsigned> ranks;
  std::size_t count = 0;
  std::uint64_t seed = 0;
  std::string json_path;
  std::string csv_path;
};

// Each refusal is one line that names the option, the value and what is allowed.
Result<NumericsOptions> parse_numerics_options(const NumericsArguments& arguments);

}  // namespace erar::numerics
