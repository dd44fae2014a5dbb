// Runs another program: posix_spawn, with memory files as its standard streams.
#include "emu/netns/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/unique_fd.h"

namespace erar {
namespace {

// Memory files instead of pipes: the program finds its whole input there even if we are killed (a
// pipe would end in the middle of a line, and `ip` would execute half a name), and nothing can
// block.
struct Streams {
  UniqueFd input;
  UniqueFd output;
  UniqueFd errors;
};

Result<Streams> make_streams(const std::string& input) {
  Streams streams;
  streams.input = UniqueFd(memfd_create("stdin", MFD_CLOEXEC));
  streams.output = UniqueFd(memfd_create("stdout", MFD_CLOEXEC));
  streams.errors = UniqueFd(memfd_create("stderr", MFD_CLOEXEC));
  if (!streams.input.valid() || !streams.output.valid() || !streams.errors.valid()) {
    return errno_error("create a memory file");
  }
  std::size_t written = 0;
  while (written < input.size()) {
    ssize_t bytes = write(streams.input.get(), input.data() + written, input.size() - written);
    if (bytes < 0) return errno_error("write a memory file");
    written += static_cast<std::size_t>(bytes);
  }
  if (lseek(streams.input.get(), 0, SEEK_SET) < 0) return errno_error("rewind a memory file");
  return streams;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t bytes = pread(fd, buffer, sizeof(buffer), static_cast<off_t>(text.size()));
    if (bytes <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(bytes));
  }
}

Result<pid_t> spawn(const std::vector<std::string>& argv, const Streams& streams,
                    int inherited_fd) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, streams.input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, streams.output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, streams.errors.get(), STDERR_FILENO);
  // dup2 of a descriptor onto itself takes close-on-exec off, in the child only.
  if (inherited_fd >= 0) {
    posix_spawn_file_actions_adddup2(&actions, inherited_fd, inherited_fd);
  }
  // A process group of its own and an open signal mask: Ctrl-C at the terminal goes to us, and we
  // decide, instead of `ip` ending in the middle of a batch.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);

  pid_t pid = -1;
  int code = posix_spawnp(&pid, argv[0].c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return Error{code, "run", argv[0]};
  return pid;
}

}  // namespace

Result<std::string> run_program(const std::vector<std::string>& argv,
                                const CommandOptions& options) {
  if (argv.empty()) return refusal("run: no program given");
  auto streams = make_streams(options.input);
  if (!streams) return streams.error();
  auto pid = spawn(argv, *streams, options.inherited_fd);
  if (!pid) return pid.error();

  int status = 0;
  while (waitpid(*pid, &status, 0) < 0) {
    if (errno != EINTR) return errno_error("wait for", argv[0]);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return read_all(streams->output.get());

  std::string complaint = read_all(streams->errors.get());
  complaint = complaint.substr(0, complaint.find('\n'));
  if (WIFSIGNALED(status)) {
    complaint = fmt::format("ended by signal {}", WTERMSIG(status));
  } else if (complaint.empty()) {
    complaint = fmt::format("exit status {}", WEXITSTATUS(status));
  }
  return refusal(fmt::format("{}: {}", fmt::join(argv, " "), complaint));
}

}  // namespace erar
