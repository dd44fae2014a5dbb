// What is said of arguments that the parser does not take: one line, and the status 2, by every
// program.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdio>
#include <string>

namespace erar::cli {

inline constexpr int kBadArguments = 2;

inline std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& letter : text) {
    if (letter == '\n') letter = ' ';
  }
  return text;
}

// The parser's own words, but for two of them. Of an option whose value is missing it says
// "--ranks: 1 required  missing", and what it does not know it lists from the last to the first.
inline std::string text_of(const ::CLI::App& app, const ::CLI::ParseError& error) {
  const std::string text = one_line(error.what());
  if (dynamic_cast<const ::CLI::ExtrasError*>(&error) != nullptr) {
    std::string unknown;
    for (const std::string& argument : app.remaining(true)) unknown += " " + argument;
    return unknown.empty() ? text : "not expected:" + one_line(unknown);
  }
  const bool mismatch = dynamic_cast<const ::CLI::ArgumentMismatch*>(&error) != nullptr;
  const std::size_t colon = text.find(": 1 required ");
  if (!mismatch || colon == std::string::npos || !text.ends_with(" missing")) return text;
  return text.substr(0, colon) + ": a value is missing";
}

// To be called with what parse() threw, which --help and --version do as well; the exit status.
inline int explain(const ::CLI::App& app, const ::CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);
  std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), text_of(app, error).c_str());
  return kBadArguments;
}

}  // namespace erar::cli
