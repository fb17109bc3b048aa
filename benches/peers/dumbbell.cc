// The dumbbell of the benches in ns-3.
//
//   dumbbell KEY=VALUE ...
//
// The keys and their meanings are those of benches/scene.py. Prints one JSON object on one line; counts and
// processor time cover the simulated time from mark_s to the end (the key `seconds`), so set-up is excluded.
// With count=1, every device counts the packets that it has sent; timed runs have no counters but send the
// same packets.
//
// Differences from the other programs: two bytes of PPP header per packet and link; the queue is a
// RedQueueDisc or FifoQueueDisc above a device queue of one packet; loss recovery is TcpClassicRecovery. Time
// stamps are off (with them, each segment of 1460 bytes would exceed the MTU and be fragmented), and so is
// SACK. Routes are found by NixVectorRouting: with static or global routing, a list with an entry per flow is
// searched for each packet.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/nix-vector-routing-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

class Scene
{
  public:
    Scene(int argc, char** argv)
    {
        for (int i = 1; i < argc; ++i)
        {
            const std::string argument = argv[i];
            const auto equals = argument.find('=');
            if (equals == std::string::npos)
            {
                std::cerr << "`" << argument << "' is not KEY=VALUE\n";
                std::exit(2);
            }
            m_values[argument.substr(0, equals)] = argument.substr(equals + 1);
        }
    }

    std::string Text(const std::string& key) const
    {
        const auto found = m_values.find(key);
        if (found == m_values.end())
        {
            std::cerr << "no value for " << key << "\n";
            std::exit(2);
        }
        return found->second;
    }

    double Number(const std::string& key) const { return std::stod(Text(key)); }
    uint32_t Count(const std::string& key) const { return std::stoul(Text(key)); }
    bool Has(const std::string& key) const { return m_values.count(key) > 0; }

  private:
    std::map<std::string, std::string> m_values;
};

// Value i of n, evenly spread from low to high.
double
Spread(double low, double high, uint32_t i, uint32_t n)
{
    return n == 1 ? low : low + (high - low) * i / (n - 1);
}

void
ConfigureTcp(const Scene& scene)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", StringValue("ns3::TcpClassicRecovery"));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(scene.Count("min_rto_ms"))));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(scene.Count("mss")));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    // Otherwise a router compares each packet's destination with the addresses of all its interfaces.
    Config::SetDefault("ns3::Ipv4::WeakEsModel", BooleanValue(false));
    // Buffers that never limit a flow but are not larger than needed: four times a flow's equal share of the
    // bandwidth-delay product and the queue.
    const double bdp_bytes = scene.Number("rate_mbit") * 1e6 / 8 * scene.Number("rtt_high_ms") / 1e3;
    const double room = 4 * (bdp_bytes + 1500.0 * scene.Count("limit")) / scene.Count("flows");
    const auto buffer = static_cast<uint32_t>(std::max(131072.0, room));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
}

std::string
Milliseconds(double ms)
{
    return std::to_string(ms) + "ms";
}

uint64_t g_hops = 0;

struct Counts
{
    uint64_t hops = 0;
    uint64_t bytes = 0;
    uint32_t dropped = 0;
    double cpu_s = 0;
};

// Processor time of this thread (Linux).
double
CpuSeconds()
{
    timespec spent{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return spent.tv_sec + spent.tv_nsec / 1e9;
}

void
CountHop(Ptr<const Packet>)
{
    ++g_hops;
}

// A link; the device has a queue of only one packet if a queue disc is above it.
NetDeviceContainer
Connect(Ptr<Node> a, Ptr<Node> b, double rate_mbit, double delay_ms,
        const std::string& device_queue, bool count)
{
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(rate_mbit * 1e6))));
    link.SetChannelAttribute("Delay", StringValue(Milliseconds(delay_ms)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(device_queue));
    const auto devices = link.Install(a, b);
    for (uint32_t i = 0; count && i < devices.GetN(); ++i)
    {
        devices.Get(i)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&CountHop));
    }
    return devices;
}

QueueDiscContainer
InstallQueue(const Scene& scene, Ptr<NetDevice> device)
{
    const DataRate rate(static_cast<uint64_t>(scene.Number("rate_mbit") * 1e6));
    TrafficControlHelper queue;
    const QueueSizeValue limit(QueueSize(scene.Text("limit") + "p"));
    if (scene.Text("discipline") == "red")
    {
        queue.SetRootQueueDisc("ns3::RedQueueDisc",
                               "MaxSize", limit,
                               "MinTh", DoubleValue(scene.Number("min_th")),
                               "MaxTh", DoubleValue(scene.Number("max_th")),
                               "LInterm", DoubleValue(1 / scene.Number("max_p")),
                               "QW", DoubleValue(scene.Number("w_q")),
                               "Gentle", BooleanValue(true),
                               "Wait", BooleanValue(false),
                               "MeanPktSize", UintegerValue(scene.Count("mss") + 40),
                               "LinkBandwidth", DataRateValue(rate),
                               "LinkDelay", StringValue(Milliseconds(scene.Number("delay_ms"))));
    }
    else
    {
        queue.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", limit);
    }
    return queue.Install(device);
}

} // namespace

int
main(int argc, char** argv)
{
    const Scene scene(argc, argv);
    const bool count = scene.Has("count") && scene.Count("count") != 0;
    const uint32_t flows = scene.Count("flows");
    const double seconds = scene.Number("seconds");
    const double delay_ms = scene.Number("delay_ms");
    const std::string unlimited = "10000000p";
    ConfigureTcp(scene);

    NodeContainer routers(2);
    NodeContainer senders(flows);
    NodeContainer receivers(flows);
    InternetStackHelper internet;
    Ipv4NixVectorHelper nix;
    internet.SetRoutingHelper(nix);
    internet.SetIpv6StackInstall(false);
    internet.InstallAll();

    const double rate = scene.Number("rate_mbit");
    const double access = scene.Number("access_mbit");
    const auto bottleneck = Connect(routers.Get(0), routers.Get(1), rate, delay_ms, "1p", count);
    const auto queue = InstallQueue(scene, bottleneck.Get(0)).Get(0);
    TrafficControlHelper back;
    back.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue(unlimited));
    back.Install(bottleneck.Get(1));
    Ipv4AddressHelper address("10.0.0.0", "255.255.255.252");
    address.Assign(bottleneck);

    const uint16_t port = 9;
    std::vector<Ptr<PacketSink>> sinks;
    TrafficControlHelper none;
    for (uint32_t i = 0; i < flows; ++i)
    {
        const double rtt_ms = Spread(scene.Number("rtt_low_ms"), scene.Number("rtt_high_ms"), i, flows);
        const double access_ms = (rtt_ms / 2 - delay_ms) / 2;
        const auto left = Connect(senders.Get(i), routers.Get(0), access, access_ms, unlimited, count);
        const auto right = Connect(routers.Get(1), receivers.Get(i), access, access_ms, unlimited, count);
        address.NewNetwork();
        address.Assign(left);
        address.NewNetwork();
        const auto addresses = address.Assign(right);
        // One buffer per hop: assigning an address adds a queue disc, which access links do not need.
        none.Uninstall(left);
        none.Uninstall(right);
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(addresses.GetAddress(1), port));
        source.SetAttribute("SendSize", UintegerValue(scene.Count("mss")));
        source.Install(senders.Get(i)).Start(Seconds(Spread(0, scene.Number("start_s"), i, flows)));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.push_back(DynamicCast<PacketSink>(sink.Install(receivers.Get(i)).Get(0)));
    }
    const double setup_cpu_s = CpuSeconds();
    const auto snapshot = [&sinks, &queue]() {
        uint64_t bytes = 0;
        for (const auto& sink : sinks)
        {
            bytes += sink->GetTotalRx();
        }
        return Counts{g_hops, bytes, queue->GetStats().nTotalDroppedPackets, CpuSeconds()};
    };
    Counts at_mark;
    Simulator::Schedule(Seconds(scene.Number("mark_s")), [&at_mark, &snapshot]() { at_mark = snapshot(); });
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    const Counts at_end = snapshot();
    std::cout << "{\"packet_hops\":" << (count ? std::to_string(at_end.hops - at_mark.hops) : "null")
              << ",\"delivered\":" << (at_end.bytes - at_mark.bytes) / scene.Count("mss")
              << ",\"dropped\":" << at_end.dropped - at_mark.dropped
              << ",\"cpu_s\":" << at_end.cpu_s - at_mark.cpu_s << ",\"setup_cpu_s\":" << setup_cpu_s << "}" << std::endl;
    // The operating system takes the memory back faster than Simulator::Destroy would.
    std::_Exit(0);
}
