// hummock-export ADDRESS:PORT: the figures of all processes of the host, as Prometheus scrapes them. It
// starts nothing in them and keeps nothing of them open; a process that ends meanwhile is not in the next
// answer.
#include <httplib.h>
#include <netdb.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "figures.h"
#include "figures_text.h"
#include "outputs.h"
#include "processes.h"

namespace {

using namespace hummock::tool;

constexpr unsigned kWaitMs = 200;  // for all processes together
constexpr const char* kOpenMetrics = "application/openmetrics-text";

std::string scrape(Format format) {
  static std::mutex mutex;  // one look at a time: more would but disturb one another
  const std::lock_guard guard(mutex);
  std::vector<Silent> silent;
  const std::vector<Snapshot> all = read_all(all_processes(), kWaitMs, &silent);
  std::string text =
      "# HELP hummock_silent_processes Processes on Hummock that have not answered yet.\n"
      "# TYPE hummock_silent_processes gauge\nhummock_silent_processes " +
      std::to_string(silent.size()) + "\n";
  return text + metrics(all, format);
}

void answer(const httplib::Request& request, httplib::Response& response) {
  const bool open = request.get_header_value("Accept").find(kOpenMetrics) != std::string::npos;
  response.set_content(scrape(open ? Format::open_metrics : Format::text),
                       open ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                            : "text/plain; version=0.0.4; charset=utf-8");
}

// "ADDRESS:PORT", or "[ADDRESS]:PORT" as addresses of version 6 are written. Port 0: any that is free.
struct Place {
  std::string host;
  int port = -1;

  explicit Place(const std::string& text) {
    const size_t colon = text.rfind(':');
    if (colon == std::string::npos) return;
    host = text.substr(0, colon);
    if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    const char* const begin = text.data() + colon + 1;
    const char* const end = text.data() + text.size();
    uint16_t number = 0;
    const auto [last, error] = std::from_chars(begin, end, number);
    if (begin != end && last == end && error == std::errc()) port = number;
  }
};

// What somebody who connects may cost: the exporter answers short questions, and waits for nobody for long.
void set_bounds(httplib::Server* server) {
  constexpr size_t kThreads = 64;  // one that says nothing keeps one of them for kPatience
  constexpr time_t kPatience = 2;  // seconds
  server->new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server->set_read_timeout(kPatience);
  server->set_write_timeout(kPatience);
  server->set_keep_alive_timeout(kPatience);
  server->set_payload_max_length(1 << 10);
  // The library would let a second exporter share the port.
  server->set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
}

int fail(const std::string& what) {
  fprintf(stderr, "hummock export: %s\n", what.c_str());
  return 1;
}

// Is there such a host? What errno says when a name is not found depends on the system's resolvers.
bool is_known(const char* host) {
  addrinfo* found = nullptr;
  if (getaddrinfo(host, nullptr, nullptr, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  guard_standard_streams();
  const std::string address = count > 1 ? arguments[1] : "127.0.0.1:9188";
  if (address == "--help" || address == "-h") {
    puts("Usage: hummock-export [ADDRESS:PORT]\nServes the figures of all processes to Prometheus.");
    return 0;
  }
  const Place place(address);
  if (place.port < 0) {
    fail(address + " is not ADDRESS:PORT");
    return 2;  // wrong use
  }
  httplib::Server server;
  set_bounds(&server);
  server.Get("/metrics", answer);
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("Hummock's figures are at /metrics\n", "text/plain");
  });
  errno = 0;
  const char* host = place.host.c_str();
  const int bound = place.port == 0                         ? server.bind_to_any_port(host)
                    : server.bind_to_port(host, place.port) ? place.port
                                                            : -1;
  const int error = errno;
  if (bound < 0)
    return fail(address + ": " + (is_known(host) ? strerror(error) : "there is no such address"));
  // Port 0 has become one; the line says which.
  printf("hummock export: http://%s:%d/metrics\n", address.substr(0, address.rfind(':')).c_str(), bound);
  fflush(stdout);
  return server.listen_after_bind() ? 0 : 1;
}
