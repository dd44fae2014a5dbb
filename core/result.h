// Result<T>: a value, or the reason why there is none. The project's one way to report refusals.
#pragma once

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace erar {

// What failed: the operation ("open", "attach XDP"), the object it was done to, and errno where the
// kernel gave one (0 where it did not). message() is one line, fit to be shown to a user.
struct Error {
  int code = 0;
  std::string operation;
  std::string object;

  [[nodiscard]] std::string message() const {
    std::string text = operation;
    if (!object.empty()) text += (text.empty() ? "" : " ") + object;
    if (code != 0) text += std::string(": ") + std::strerror(code);
    return text;
  }
};

// Error from the current errno.
inline Error errno_error(std::string operation, std::string object = {}) {
  return Error{errno, std::move(operation), std::move(object)};
}

// Error without an errno: a refusal of our own.
inline Error refusal(std::string text) { return Error{0, std::move(text), {}}; }

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  explicit operator bool() const { return !error_.has_value(); }
  [[nodiscard]] const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace erar
