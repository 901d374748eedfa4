// hummock-export ADDRESS:PORT: the figures of all processes of the host, as Prometheus scrapes them. It
// starts nothing in them and keeps nothing of them open; a process that ends meanwhile is not in the next
// answer.
#include <httplib.h>

#include <cstdio>
#include <cstring>
#include <mutex>

#include "figures.h"
#include "figures_text.h"
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

int fail(const char* address, const char* what) {
  fprintf(stderr, "hummock export: %s: %s\n", address, what);
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string address = count > 1 ? arguments[1] : "127.0.0.1:9188";
  const size_t colon = address.rfind(':');
  char* end = nullptr;
  const unsigned long port = colon == std::string::npos ? 0 : strtoul(address.c_str() + colon + 1, &end, 10);
  if (end == nullptr || *end != '\0' || port > 65535) return fail(address.c_str(), "is no ADDRESS:PORT");
  httplib::Server server;
  server.Get("/metrics", answer);
  server.Get("/", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("Hummock's figures are at /metrics\n", "text/plain");
  });
  const std::string host = address.substr(0, colon);
  // Port 0: any that is free. The line says which.
  const int bound =
      port != 0 ? (server.bind_to_port(host.c_str(), static_cast<int>(port)) ? static_cast<int>(port) : -1)
                : server.bind_to_any_port(host.c_str());
  if (bound < 0) return fail(address.c_str(), strerror(errno));
  printf("hummock export: http://%s:%d/metrics\n", host.c_str(), bound);
  fflush(stdout);
  return server.listen_after_bind() ? 0 : 1;
}
