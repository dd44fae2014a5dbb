// Socket set-up of the TCP ring: listen, connect with retries, accept, greetings both ways.
#include "emu/baseline/ring_link.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>

#include "core/clock.h"

namespace erar {
namespace {

constexpr std::uint32_t kMagic = 0x65524152;  // "eRAR"; a host of the other byte order reads RARe
constexpr std::uint16_t kVersion = 2;
constexpr std::uint64_t kRetryNs = 2'000'000;
// A SYN may be lost while the fabric comes up and TCP would repeat it only after a second.
constexpr std::uint64_t kConnectTryNs = 250'000'000;

enum class Verdict : std::uint16_t { kAsks = 0, kAccepts = 1, kRefuses = 2 };

// First bytes in either direction. The connecting rank asks, the accepting one answers.
struct Greeting {
  std::uint32_t magic = kMagic;
  std::uint16_t version = kVersion;
  Verdict verdict = Verdict::kAsks;
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
};
static_assert(sizeof(Greeting) == 16);

std::string rank_name(unsigned rank) { return "rank " + std::to_string(rank); }

sockaddr_in socket_address(std::uint32_t ipv4, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(ipv4);
  return address;
}

std::string address_text(std::uint32_t ipv4, std::uint16_t port) {
  const in_addr address{htonl(ipv4)};
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address, text, sizeof text);
  return std::string(text) + ":" + std::to_string(port);
}

const sockaddr* generic(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Without CAP_NET_ADMIN the kernel allows only those of net.ipv4.tcp_allowed_congestion_control.
Result<void> set_congestion_control(const UniqueFd& fd, const std::string& name) {
  if (name.empty()) return {};
  if (::setsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(),
                   static_cast<socklen_t>(name.size())) != 0) {
    return errno_error("set TCP congestion control", name);
  }
  return {};
}

// Once more on a connected socket, and read back: a route may name a congestion control of its own
// (emu/netns/builder.cc does), which the kernel takes when a connection is made.
Result<void> settle_congestion_control(const UniqueFd& fd, const std::string& name) {
  if (auto set = set_congestion_control(fd, name); !set || name.empty()) return set;
  std::array<char, 16> used{};
  auto size = static_cast<socklen_t>(used.size());
  if (::getsockopt(fd.get(), IPPROTO_TCP, TCP_CONGESTION, used.data(), &size) != 0)
    return errno_error("read TCP congestion control");
  if (name != used.data())
    return refusal("TCP congestion control " + name + " asked for, " + used.data() + " in use");
  return {};
}

Result<UniqueFd> make_socket(const TcpOptions& options) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error("open a TCP socket");
  // Before connect and listen, so that a name that cannot be set is an error before anything else.
  if (auto set = set_congestion_control(fd, options.congestion_control); !set) return set.error();
  const int on = 1;
  if (::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
    return errno_error("set TCP_NODELAY");
  }
  return fd;
}

Result<UniqueFd> listen_on(std::uint32_t ipv4, const TcpOptions& options) {
  auto fd = make_socket(options);
  if (!fd) return fd;
  const int on = 1;  // else a port of a run just ended is taken for a minute
  ::setsockopt(fd->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = socket_address(ipv4, options.port);
  if (::bind(fd->get(), generic(address), sizeof address) != 0 || ::listen(fd->get(), 4) != 0) {
    return errno_error("listen on", address_text(ipv4, options.port));
  }
  return fd;
}

// Waits for events on one socket; an Error without a peer's name when the deadline passes.
Result<void> wait_for(int fd, short events, std::uint64_t deadline_ns) {
  for (;;) {
    const std::uint64_t now_ns = monotonic_ns();
    if (now_ns >= deadline_ns) return Error{ETIMEDOUT, "wait", {}};
    pollfd waiting{fd, events, 0};
    const auto left_ms = (deadline_ns - now_ns) / 1'000'000 + 1;
    const int ready =
        ::poll(&waiting, 1, static_cast<int>(std::min<std::uint64_t>(left_ms, 60'000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return errno_error("poll");
  }
}

// One attempt. The error's code says whether another one makes sense.
Result<UniqueFd> try_connect(const RingEndpoint& endpoint, const TcpOptions& options,
                             std::uint64_t deadline_ns) {
  auto fd = make_socket(options);
  if (!fd) return fd;
  if (endpoint.source_ipv4 != 0) {
    const sockaddr_in source = socket_address(endpoint.source_ipv4, 0);
    if (::bind(fd->get(), generic(source), sizeof source) != 0) {
      return errno_error("bind to", address_text(endpoint.source_ipv4, 0));
    }
  }
  const sockaddr_in target = socket_address(endpoint.next_ipv4, options.port);
  if (::connect(fd->get(), generic(target), sizeof target) == 0) return fd;
  if (errno != EINPROGRESS) return errno_error("connect");
  auto connected = wait_for(fd->get(), POLLOUT, deadline_ns);
  if (!connected) return connected.error();
  int failure = 0;
  socklen_t size = sizeof failure;
  ::getsockopt(fd->get(), SOL_SOCKET, SO_ERROR, &failure, &size);
  if (failure != 0) return Error{failure, "connect", {}};
  return fd;
}

// The successor may not listen yet and its network may not be up yet.
bool may_pass(int code) {
  return code == ECONNREFUSED || code == ETIMEDOUT || code == EHOSTUNREACH || code == ENETUNREACH ||
         code == ECONNRESET;
}

Result<UniqueFd> connect_to_successor(const RingEndpoint& endpoint, const TcpOptions& options,
                                      std::uint64_t deadline_ns) {
  for (;;) {
    auto fd = try_connect(endpoint, options, std::min(deadline_ns, monotonic_ns() + kConnectTryNs));
    if (fd || !may_pass(fd.error().code)) return fd;
    if (monotonic_ns() + kRetryNs >= deadline_ns) {
      const std::string successor = rank_name((endpoint.rank + 1) % endpoint.ranks);
      const std::string reason = fd.error().code == ETIMEDOUT ? "" : std::strerror(fd.error().code);
      return Error{ETIMEDOUT, "connect to " + successor,
                   "at " + address_text(endpoint.next_ipv4, options.port) +
                       (reason.empty() ? "" : " (" + reason + ")")};
    }
    const timespec pause{0, static_cast<long>(kRetryNs)};
    ::nanosleep(&pause, nullptr);
  }
}

Result<UniqueFd> accept_predecessor(const UniqueFd& listener, const std::string& peer,
                                    std::uint64_t deadline_ns) {
  for (;;) {
    auto ready = wait_for(listener.get(), POLLIN, deadline_ns);
    if (!ready) return Error{ready.error().code, "wait for a connection from", peer};
    UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd.valid()) {
      const int on = 1;
      if (::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
        return errno_error("set TCP_NODELAY");
      }
      return fd;
    }
    // A caller that has hung up again, for one, is not our end.
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
      return errno_error("accept", peer);
  }
}

Result<void> send_greeting(const UniqueFd& fd, const Greeting& greeting, const std::string& peer) {
  // A fresh socket takes 16 bytes at once.
  if (::send(fd.get(), &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting) return {};
  return errno_error("greet", peer);
}

Result<Greeting> receive_greeting(const UniqueFd& fd, const std::string& peer,
                                  std::uint64_t deadline_ns) {
  Greeting greeting;
  std::size_t have = 0;
  while (have < sizeof greeting) {
    auto ready = wait_for(fd.get(), POLLIN, deadline_ns);
    if (!ready) return Error{ready.error().code, "wait for the greeting of", peer};
    const ssize_t got =
        ::recv(fd.get(), reinterpret_cast<char*>(&greeting) + have, sizeof greeting - have, 0);
    if (got == 0)
      return Error{ECONNRESET, "no greeting from", peer + ", which closed the connection"};
    if (got < 0 && errno != EAGAIN && errno != EINTR)
      return errno_error("receive greeting of", peer);
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  if (greeting.magic != kMagic) return Error{EPROTO, "no eRAR rank greets in place of", peer};
  if (greeting.version != kVersion) {
    return Error{EPROTO,
                 "version " + std::to_string(greeting.version) + " of the TCP ring spoken by",
                 peer + ", not " + std::to_string(kVersion)};
  }
  return greeting;
}

Result<void> check_neighbour(const Greeting& greeting, unsigned expected, unsigned ranks) {
  if (greeting.rank == expected && greeting.ranks == ranks) return {};
  return Error{
      EPROTO, rank_name(greeting.rank) + " of " + std::to_string(greeting.ranks),
      "greets where " + rank_name(expected) + " of " + std::to_string(ranks) + " was expected"};
}

// Asks the successor, answers the predecessor, hears the successor's answer: no circle of waiting.
Result<void> exchange_greetings(const RingLink& link, const RingEndpoint& endpoint,
                                std::uint64_t deadline_ns) {
  const unsigned before = (endpoint.rank + endpoint.ranks - 1) % endpoint.ranks;
  const unsigned after = (endpoint.rank + 1) % endpoint.ranks;
  Greeting mine;
  mine.rank = endpoint.rank;
  mine.ranks = endpoint.ranks;

  auto asked = receive_greeting(link.prev, rank_name(before), deadline_ns);
  if (!asked) return asked.error();
  auto right = check_neighbour(*asked, before, endpoint.ranks);
  mine.verdict = right ? Verdict::kAccepts : Verdict::kRefuses;
  if (auto sent = send_greeting(link.prev, mine, rank_name(before)); right && !sent) return sent;
  if (!right) return right;

  auto answer = receive_greeting(link.next, rank_name(after), deadline_ns);
  if (!answer) return answer.error();
  right = check_neighbour(*answer, after, endpoint.ranks);
  if (!right) return right;
  if (answer->verdict != Verdict::kAccepts) {
    return Error{EPROTO, rank_name(after),
                 "refuses " + rank_name(endpoint.rank) + " as predecessor"};
  }
  return {};
}

}  // namespace

Result<RingLink> open_ring_link(const RingEndpoint& endpoint, const TcpOptions& options) {
  const std::uint64_t deadline_ns = monotonic_ns() + options.timeout_ns;
  const unsigned before = (endpoint.rank + endpoint.ranks - 1) % endpoint.ranks;
  const unsigned after = (endpoint.rank + 1) % endpoint.ranks;
  auto listener = listen_on(endpoint.listen_ipv4, options);
  if (!listener) return listener.error();
  auto next = connect_to_successor(endpoint, options, deadline_ns);
  if (!next) return next.error();
  Greeting mine;
  mine.rank = endpoint.rank;
  mine.ranks = endpoint.ranks;
  if (auto sent = send_greeting(*next, mine, rank_name(after)); !sent) return sent.error();
  auto prev = accept_predecessor(*listener, rank_name(before), deadline_ns);
  if (!prev) return prev.error();
  for (const UniqueFd* fd : {&*prev, &*next}) {
    auto settled = settle_congestion_control(*fd, options.congestion_control);
    if (!settled) return settled.error();
  }
  RingLink link{std::move(*prev), std::move(*next)};
  if (auto greeted = exchange_greetings(link, endpoint, deadline_ns); !greeted)
    return greeted.error();
  return link;
}

}  // namespace erar
