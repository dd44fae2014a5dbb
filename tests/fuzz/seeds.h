// Seeds: histories to begin with, made anew from the protocol as it is.
#pragma once

#include <map>
#include <string>

#include "tests/fuzz/history.h"

namespace erar::fuzz {

// By name, which may be a file's.
std::map<std::string, Bytes> make_seeds();

}  // namespace erar::fuzz
