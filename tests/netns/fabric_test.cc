// Fabrics as they should be once they are up: reachability, devices, TCP, the XDP switch.
#include "emu/netns/fabric.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "core/protocol/wire.h"
#include "core/unique_fd.h"
#include "emu/netns/command.h"
#include "emu/netns/fault_boxes.h"
#include "emu/netns/layout.h"
#include "emu/netns/namespace.h"
#include "emu/netns/processes.h"
#include "emu/rank/launcher.h"
#include "tests/netns/support.h"

namespace erar {
namespace {

using namespace std::chrono_literals;
using test::fabric_name;
using test::FabricRemover;
using test::make_spec;
using test::run_inside;

#define ASSERT_OK(expression)                          \
  do {                                                 \
    auto&& outcome = (expression);                     \
    ASSERT_TRUE(outcome) << outcome.error().message(); \
  } while (false)

// All MAC addresses of fabrics begin so; other devices may come and go while tests run.
bool root_namespace_is_clean() {
  auto text = run_program({"ip", "-o", "link"});
  return text && text->find("link/ether 02:e7:") == std::string::npos;
}

struct Shape {
  FabricKind kind;
  unsigned ranks;
};

class FabricShapes : public testing::TestWithParam<Shape> {};

TEST_P(FabricShapes, EveryRankReachesEveryOther) {
  FabricSpec spec = make_spec("shape", GetParam().kind, GetParam().ranks);
  FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_OK(fabric);
  EXPECT_TRUE(root_namespace_is_clean());
  ASSERT_OK(test::ping_all_pairs(*fabric));

  ASSERT_OK(Fabric::down(spec.name));
  EXPECT_TRUE(test::traces(spec.name).empty());
  EXPECT_EQ(Fabric::down(spec.name).error().code, ENOENT);
  EXPECT_EQ(Fabric::open(spec.name).error().code, ENOENT);
}

INSTANTIATE_TEST_SUITE_P(All, FabricShapes,
                         testing::Values(Shape{FabricKind::kRing, 2}, Shape{FabricKind::kRing, 3},
                                         Shape{FabricKind::kRing, 8}, Shape{FabricKind::kBridge, 2},
                                         Shape{FabricKind::kBridge, 3},
                                         Shape{FabricKind::kBridge, 8},
                                         Shape{FabricKind::kSwitch, 2},
                                         Shape{FabricKind::kSwitch, 3},
                                         Shape{FabricKind::kSwitch, 8}),
                         [](const auto& shape) {
                           return fmt::format("{}{}", name_of(shape.param.kind), shape.param.ranks);
                         });

class FabricKinds : public testing::TestWithParam<FabricKind> {};

// What endpoint() says is what the devices are.
TEST_P(FabricKinds, EndpointsDescribeTheDevices) {
  FabricSpec spec = make_spec("endpoint", GetParam(), 3);
  spec.mtu = 1500;
  spec.queues = 3;
  FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_OK(fabric);
  for (unsigned rank = 0; rank < spec.ranks; ++rank) {
    const RingEndpoint own = fabric->endpoint(rank);
    const RingEndpoint right = fabric->endpoint((rank + 1) % spec.ranks);
    auto transmit =
        run_inside(fabric->rank_namespace(rank), {"ip", "-d", "addr", "show", own.tx_interface});
    auto receive = run_inside(fabric->rank_namespace(right.rank),
                              {"ip", "-d", "addr", "show", right.rx_interface});
    ASSERT_OK(transmit);
    ASSERT_OK(receive);
    for (const std::string& expected :
         {std::string("mtu 1500"), std::string("numtxqueues 3 numrxqueues 3"),
          fmt::format("link/ether {:02x}", fmt::join(own.source_mac, ":")),
          fmt::format("inet {}/", ipv4_text(own.source_ipv4))}) {
      EXPECT_NE(transmit->find(expected), std::string::npos) << expected << " in\n" << *transmit;
    }
    for (const std::string& expected :
         {std::string("mtu 1500"), std::string("numtxqueues 3 numrxqueues 3"),
          fmt::format("link/ether {:02x}", fmt::join(own.next_mac, ":")),
          fmt::format("inet {}/", ipv4_text(own.next_ipv4))}) {
      EXPECT_NE(receive->find(expected), std::string::npos) << expected << " in\n" << *receive;
    }
    EXPECT_EQ(own.next_ipv4, right.listen_ipv4);
  }
}

Result<std::string> congestion_control(int fd) {
  char name[16] = {};
  socklen_t length = sizeof(name);
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0) return errno_error("ask");
  return std::string(name);
}

sockaddr_in socket_address(std::uint32_t ipv4, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(ipv4);
  address.sin_port = htons(port);
  return address;
}

// Sockets keep the namespace that they were made in.
Result<UniqueFd> socket_inside(const std::string& name, int type) {
  UniqueFd fd;
  auto made = in_namespace(name, [&]() -> Result<void> {
    fd = UniqueFd(socket(AF_INET, type | SOCK_CLOEXEC, 0));
    if (!fd.valid()) return errno_error("open a socket");
    return {};
  });
  if (!made) return made.error();
  return fd;
}

// Programs that ask for nothing get cubic at both ends, whatever the machine's default.
TEST_P(FabricKinds, TcpIsCubic) {
  FabricSpec spec = make_spec("cubic", GetParam(), 3);
  FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_OK(fabric);
  auto server = socket_inside(fabric->rank_namespace(1), SOCK_STREAM);
  auto client = socket_inside(fabric->rank_namespace(0), SOCK_STREAM);
  ASSERT_OK(server);
  ASSERT_OK(client);
  sockaddr_in address = socket_address(fabric->rank_ipv4(1), 5000);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(server->get(), generic, sizeof(address)), 0);
  ASSERT_EQ(listen(server->get(), 1), 0);
  ASSERT_EQ(connect(client->get(), generic, sizeof(address)), 0);
  UniqueFd accepted(accept(server->get(), nullptr, nullptr));
  EXPECT_EQ(*congestion_control(client->get()), "cubic");
  EXPECT_EQ(*congestion_control(accepted.get()), "cubic");
}

TEST_P(FabricKinds, OffloadsCanBeOff) {
  FabricSpec spec = make_spec("offload", GetParam(), 2);
  spec.offloads = false;
  FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_OK(fabric);
  auto features =
      run_inside(fabric->rank_namespace(0), {"ethtool", "-k", fabric->endpoint(0).tx_interface});
  ASSERT_OK(features);
  for (const char* feature :
       {"rx-checksumming: off", "tx-checksumming: off", "tcp-segmentation-offload: off",
        "generic-segmentation-offload: off", "generic-receive-offload: off"}) {
    EXPECT_NE(features->find(feature), std::string::npos) << feature;
  }
  if (GetParam() != FabricKind::kRing) {
    auto port = run_inside(middle_namespace_name(spec.name), {"ethtool", "-k", "port0"});
    ASSERT_OK(port);
    EXPECT_NE(port->find("generic-receive-offload: on"), std::string::npos);
  }
  ASSERT_OK(test::ping_all_pairs(*fabric));
}

INSTANTIATE_TEST_SUITE_P(All, FabricKinds,
                         testing::Values(FabricKind::kRing, FabricKind::kBridge,
                                         FabricKind::kSwitch),
                         [](const auto& shape) { return name_of(shape.param); });

TEST(FabricTest, SeveralSideBySide) {
  FabricRemover removers[] = {FabricRemover(fabric_name("side")),
                              FabricRemover(fabric_name("side-1")),
                              FabricRemover(fabric_name("side-1-0"))};
  auto ring = Fabric::up(make_spec("side", FabricKind::kRing, 3));
  auto bridge = Fabric::up(make_spec("side-1", FabricKind::kBridge, 2));
  auto xdp_switch = Fabric::up(make_spec("side-1-0", FabricKind::kSwitch, 2));
  ASSERT_OK(ring);
  ASSERT_OK(bridge);
  ASSERT_OK(xdp_switch);
  ASSERT_OK(test::ping_all_pairs(*ring));

  // The names begin alike; each takes only its own away.
  ASSERT_OK(Fabric::down(fabric_name("side")));
  ASSERT_OK(test::ping_all_pairs(*bridge));
  ASSERT_OK(Fabric::down(fabric_name("side-1")));
  ASSERT_OK(test::ping_all_pairs(*xdp_switch));
  EXPECT_TRUE(Fabric::open(fabric_name("side-1-0")));
}

TEST(FabricTest, RefusesWhatCannotBe) {
  FabricSpec spec = make_spec("bad", FabricKind::kRing, 1);
  EXPECT_FALSE(Fabric::up(spec)) << "one rank";
  spec.ranks = 65;
  EXPECT_FALSE(Fabric::up(spec)) << "65 ranks";
  spec.ranks = 2;
  spec.mtu = 100;
  EXPECT_FALSE(Fabric::up(spec)) << "MTU 100";
  spec.mtu = 9000;
  spec.kind = FabricKind::kSwitch;
  EXPECT_FALSE(Fabric::up(spec)) << "native XDP with MTU 9000";
  for (const char* name :
       {"", "ring", "bridge", "switch", "a/b", "A", "..", "a b", "abcdefghijklmnopqrstuvwxy"}) {
    spec = FabricSpec{};
    spec.name = name;
    EXPECT_FALSE(Fabric::up(spec)) << name;
    EXPECT_FALSE(Fabric::down(name)) << name;
  }
}

TEST(FabricTest, UpTwiceIsRefused) {
  FabricSpec spec = make_spec("twice", FabricKind::kRing, 2);
  FabricRemover remover(spec.name);
  ASSERT_OK(Fabric::up(spec));
  EXPECT_EQ(Fabric::up(spec).error().code, EEXIST);
  auto opened = Fabric::open(spec.name);
  ASSERT_OK(opened);
  ASSERT_OK(test::ping_all_pairs(*opened));
}

std::uint64_t redirected_frames(const Fabric& fabric, unsigned port) {
  auto text = run_inside(middle_namespace_name(fabric.spec().name),
                         {"ethtool", "-S", fmt::format("port{}", port)});
  if (!text) return 0;
  std::uint64_t sum = 0;
  const std::string key = "xdp_redirect: ";
  for (std::size_t at = text->find(key); at != std::string::npos; at = text->find(key, at + 1)) {
    sum += std::strtoull(text->c_str() + at + key.size(), nullptr, 10);
  }
  return sum;
}

// eRAR frames take the XDP program, others the bridge below; without the program all take the
// bridge and the ranks' NICs have their offloads back.
TEST(XdpSwitch, ForwardsErarFrames) {
  FabricSpec spec = make_spec("switch", FabricKind::kSwitch, 3);
  FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_OK(fabric);
  // The kernel delivers redirected frames to devices with NAPI only; eRAR's program brings it.
  ASSERT_OK(run_inside(fabric->rank_namespace(2), {"ethtool", "-K", "eth0", "gro", "on"}));
  for (std::uint16_t port : {std::uint16_t{ERAR_UDP_PORT}, std::uint16_t{ERAR_UDP_PORT + 1}}) {
    auto receiver = socket_inside(fabric->rank_namespace(2), SOCK_DGRAM);
    auto sender = socket_inside(fabric->rank_namespace(0), SOCK_DGRAM);
    ASSERT_OK(receiver);
    ASSERT_OK(sender);
    int one = 1;  // no UDP checksum, as eRAR has none
    setsockopt(sender->get(), SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one));
    timeval limit{2, 0};
    setsockopt(receiver->get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address = socket_address(fabric->rank_ipv4(2), port);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    ASSERT_EQ(bind(receiver->get(), generic, sizeof(address)), 0);
    for (bool on : {true, false, true}) {
      ASSERT_OK(fabric->set_xdp_switch(on));
      std::uint64_t before = redirected_frames(*fabric, 0);
      char byte = 'e';
      ASSERT_EQ(sendto(sender->get(), &byte, 1, 0, generic, sizeof(address)), 1);
      ASSERT_EQ(recv(receiver->get(), &byte, 1, 0), 1) << "port " << port << " on " << on;
      bool redirected = on && port == ERAR_UDP_PORT;
      EXPECT_EQ(redirected_frames(*fabric, 0) - before, redirected ? 1u : 0u) << port << on;
    }
  }
}

TEST(XdpSwitch, TakenAwayGivesOffloadsBack) {
  FabricRemover removers[] = {FabricRemover(fabric_name("switch")),
                              FabricRemover(fabric_name("plain"))};
  auto fabric = Fabric::up(make_spec("switch", FabricKind::kSwitch, 2));
  auto plain = Fabric::up(make_spec("plain", FabricKind::kBridge, 2));
  ASSERT_OK(fabric);
  ASSERT_OK(plain);
  auto features = [](const Fabric& of) {
    auto nic = run_inside(of.rank_namespace(1), {"ethtool", "-k", "eth0"});
    auto port = run_inside(middle_namespace_name(of.spec().name), {"ethtool", "-k", "port1"});
    return nic && port ? *nic + *port : std::string("ethtool failed");
  };
  EXPECT_NE(features(*fabric), features(*plain)) << "XDP takes TSO away while it is attached";
  ASSERT_OK(fabric->set_xdp_switch(false));
  EXPECT_EQ(features(*fabric), features(*plain));
  ASSERT_OK(test::ping_all_pairs(*fabric));
  ASSERT_OK(plain->set_xdp_switch(true));  // no-op on other kinds
}

TEST(Restore, PutsBackWhatAKilledCommandLeftChanged) {
  FabricRemover remover(fabric_name("restore"));
  auto fabric = Fabric::up(make_spec("restore", FabricKind::kSwitch, 2));
  ASSERT_OK(fabric);
  const auto gro = [&] {
    auto said = run_inside(fabric->rank_namespace(1), {"ethtool", "-k", "eth0"});
    return said && said->find("generic-receive-offload: on") != std::string::npos;
  };
  const auto port = [&] {
    auto said =
        run_inside(middle_namespace_name(fabric->spec().name), {"ip", "link", "show", "port1"});
    return said && said->find("xdp") != std::string::npos;
  };
  ASSERT_OK(fabric->set_xdp_switch(false));
  ASSERT_OK(run_inside(fabric->rank_namespace(1), {"ethtool", "-K", "eth0", "gro", "on"}));
  ASSERT_TRUE(gro());
  ASSERT_FALSE(port());
  ASSERT_OK(fabric->restore());
  EXPECT_FALSE(gro());
  EXPECT_TRUE(port());
}

// A killed `erar run`: what its ranks had started lives on, and the links lose everything. Who else
// lives there is left alone.
TEST(Restore, EndsWhatAKilledCommandLeftRunning) {
  FabricSpec spec = make_spec("orphans", FabricKind::kRing, 2);
  spec.faults = true;
  spec.offloads = false;
  FabricRemover remover(spec.name);
  auto fabric = Fabric::up(spec);
  ASSERT_OK(fabric);
  const std::vector<std::string> namespaces = {fabric->rank_namespace(0),
                                               fabric->rank_namespace(1)};
  {
    auto boxes = FaultBoxes::open(spec);
    ASSERT_OK(boxes);
    Faults all;
    all.loss = 1;
    ASSERT_OK(boxes->set(all));
  }
  std::fflush(nullptr);
  const pid_t launcher = fork();
  if (launcher == 0) {
    static_cast<void>(static_cast<bool>(
        launch_program(*fabric, {}, {"sh", "-c", "trap '' TERM; sleep 60 & sleep 60"}, 29500)));
    _exit(0);
  }
  const auto inhabitants = [&] { return processes_in(namespaces).size(); };
  ASSERT_TRUE(test::eventually(5s, [&] { return inhabitants() == 6; })) << inhabitants();
  kill(launcher, SIGKILL);
  waitpid(launcher, nullptr, 0);
  ASSERT_TRUE(test::eventually(5s, [&] { return inhabitants() == 4; })) << inhabitants();
  ASSERT_OK(fabric->restore());
  EXPECT_EQ(inhabitants(), 0U);
  ASSERT_OK(test::ping_all_pairs(*fabric));

  std::fflush(nullptr);
  const pid_t guest = fork();
  if (guest == 0) {
    auto inside = open_namespace(namespaces[0]);
    if (!inside || setns(inside->get(), CLONE_NEWNET) != 0) _exit(1);
    sleep(60);
    _exit(0);
  }
  ASSERT_TRUE(test::eventually(5s, [&] { return inhabitants() == 1; })) << inhabitants();
  EXPECT_TRUE(fabric->restore());
  EXPECT_EQ(inhabitants(), 1U);
  kill(guest, SIGKILL);
  waitpid(guest, nullptr, 0);
}

}  // namespace
}  // namespace erar
